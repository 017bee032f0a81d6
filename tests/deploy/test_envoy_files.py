"""Envoy accepts the configurations in ``envoy/`` and ``deploy/``, and their values fit TruthLens's own."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from truthlens.core.records.enums import Streaming
from truthlens.core.records.plan import MARGIN_S, Plan
from truthlens.envoy.config import FAIL_OPEN_HEADERS
from truthlens.envoy.process import envoy_binary
from truthlens.gateway.server import MAX_MESSAGE_BYTES
from truthlens.policy import Limits
from truthlens.process.settings import Settings

ROOT = Path(__file__).resolve().parents[2]
FILES = [*sorted((ROOT / "envoy").glob("*.yaml")), ROOT / "deploy" / "compose" / "envoy.yaml"]


def _validate(path: Path) -> None:
    done = subprocess.run(
        [envoy_binary(), "--mode", "validate", "-c", str(path), "--log-level", "error"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _load(path: Path) -> dict[str, Any]:
    return yaml.safe_load(path.read_text("utf-8"))


def _manager(config: dict[str, Any]) -> dict[str, Any]:
    return config["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]


def _filter(config: dict[str, Any], name: str = "envoy.filters.http.ext_proc") -> dict[str, Any]:
    (found,) = [entry for entry in _manager(config)["http_filters"] if entry["name"] == name]
    return found["typed_config"]


def _routes(config: dict[str, Any]) -> list[dict[str, Any]]:
    return _manager(config)["route_config"]["virtual_hosts"][0]["routes"]


def _cluster(config: dict[str, Any], name: str) -> dict[str, Any]:
    return next(c for c in config["static_resources"]["clusters"] if c["name"] == name)


def _seconds(text: str) -> float:
    return float(text.removesuffix("s"))


def _readme_route() -> dict[str, Any]:
    blocks = re.findall(
        r"^```yaml\n(.*?)^```", (ROOT / "envoy" / "README.md").read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    (route,) = next(block for entry in blocks if isinstance(block := yaml.safe_load(entry), list))
    return route


@pytest.mark.envoy
@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_envoy_accepts_the_file(path: Path) -> None:
    """A real Envoy accepts every configuration file."""
    _validate(path)


@pytest.mark.envoy
def test_envoy_accepts_the_route_of_the_readme(tmp_path: Path) -> None:
    """The example route of the README can be pasted before the checked route."""
    config = _load(ROOT / "envoy" / "truthlens.yaml")
    _routes(config).insert(0, _readme_route())
    path = tmp_path / "envoy.yaml"
    path.write_text(yaml.safe_dump(config))
    _validate(path)


def test_the_route_of_the_readme_has_the_defaults_of_the_checked_route() -> None:
    """The README's route marks failed-open answers and buffers as the checked route does."""
    route, checked = _readme_route(), _routes(_load(ROOT / "envoy" / "truthlens.yaml"))[-1]
    assert route["response_headers_to_add"] == checked["response_headers_to_add"]
    assert route["request_body_buffer_limit"] == checked["request_body_buffer_limit"]


def test_the_three_files_differ_in_what_their_names_say() -> None:
    """Fail open, fail closed and two processes differ in just that."""
    base, closed, two = (
        _load(ROOT / "envoy" / f"truthlens{suffix}.yaml") for suffix in ("", "-fail-closed", "-two-processes")
    )
    assert _filter(base)["failure_mode_allow"] is True
    assert _filter(closed)["failure_mode_allow"] is False
    endpoints = _cluster(two, "truthlens")["load_assignment"]["endpoints"][0]["lb_endpoints"]
    assert len(endpoints) == 2
    _filter(closed)["failure_mode_allow"] = True
    assert closed == base
    del endpoints[1]
    assert two == base


def test_behind_a_router_nothing_else_is_different() -> None:
    """Two more filters in front, one more cluster, and the other routes are none of the router's business."""
    base, routed = (_load(ROOT / "envoy" / f"truthlens{suffix}.yaml") for suffix in ("", "-behind-router"))
    cleared, router, *rest = _manager(routed)["http_filters"]
    assert cleared["typed_config"]["mutations"] == {"request_mutations": [{"remove": "x-domain"}]}
    modes = router["typed_config"]["processing_mode"]
    assert (modes["request_body_mode"], modes["response_header_mode"]) == ("BUFFERED", "SKIP")
    for route in _routes(routed)[:-1]:
        assert route["typed_per_filter_config"].pop(router["name"])["disabled"] is True
    assert routed["static_resources"]["clusters"].pop()["name"] == "router"
    _manager(routed)["http_filters"] = rest
    assert routed == base


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_limits_fit_together(path: Path) -> None:
    """Timeouts and sizes of Envoy leave room for those of the policy and of the gRPC server."""
    config = _load(path)
    processor = _filter(config)
    assert _seconds(processor["message_timeout"]) > 2 * Plan(decision="x").timeout_s
    gated = Plan(decision="x", streaming=Streaming.GATE).streamed_hold_s
    assert gated is not None
    assert _seconds(processor["message_timeout"]) >= gated + MARGIN_S
    assert _seconds(_manager(config)["stream_idle_timeout"]) > _seconds(processor["message_timeout"])
    assert Limits().max_body_bytes < _routes(config)[-1]["request_body_buffer_limit"] < MAX_MESSAGE_BYTES
    (check,) = _cluster(config, "truthlens")["health_checks"]
    notice_s = Settings.__dataclass_fields__["drain_notice_s"].default
    assert notice_s > _seconds(check["interval"]) * check["unhealthy_threshold"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_checked_route_marks_answers_that_truthlens_had_no_say_in(path: Path) -> None:
    """The checked route sets the fail-open headers; the others say nothing, for there is no answer."""
    *others, route = _routes(_load(path))
    assert not any("response_headers_to_add" in other for other in others)
    added = {entry["header"]["key"]: entry["header"]["value"] for entry in route["response_headers_to_add"]}
    assert added == FAIL_OPEN_HEADERS
