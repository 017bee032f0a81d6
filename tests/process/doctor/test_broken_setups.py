"""Three set-ups with several faults each: all are found, and each says what to change."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from tests.fakes.http_sources import source_server
from tests.fakes.other_users import another_user, let_in
from tests.fakes.ports import free_port
from tests.fakes.setups import admin_of, at_paths, grpc_health, here, recorded, setup_of, wrong
from truthlens.core.net import Upstream
from truthlens.pipeline import Pipeline
from truthlens.policy import InvalidPolicyError, PolicyHolder, load_policy
from truthlens.process.app import web_server
from truthlens.process.doctor.examination import examine
from truthlens.process.doctor.findings import CheckLevel, exit_status
from truthlens.process.endpoints import Readiness, WebParts, endpoints_app
from truthlens.review.store.database import ReviewDatabase, checked_url
from truthlens.telemetry.metrics import Metrics
from truthlens.telemetry.recent_exchanges import Recent

ENVOY = Path(__file__).parents[3] / "envoy" / "truthlens.yaml"


async def test_an_envoy_that_does_not_wait_and_does_not_hold(tmp_path: Path) -> None:
    """Clocks shorter than the policy's, failing open in full duplex, paths as clients spell them, buffers below the bodies."""
    envoy = tmp_path / "envoy.yaml"
    text = ENVOY.read_text()
    for right, bad in (
        ("max_message_timeout: 310s", "max_message_timeout: 20s"),
        ("stream_idle_timeout: 330s", "stream_idle_timeout: 30s"),
        ("response_body_mode: NONE", "response_body_mode: FULL_DUPLEX_STREAMED"),
        ("normalize_path: true", "normalize_path: false"),
        ("request_body_buffer_limit: 67108864", "request_body_buffer_limit: 65536"),
    ):
        assert right in text
        text = text.replace(right, bad)
    envoy.write_text(text)
    setup = setup_of(
        tmp_path,
        "hallucination: {default_mode: standard, detectors: [encoder], mitigation: {deadline_s: 45}}\n",
        envoys=(envoy,),
        extproc=here(18080),
        upstream=None,
    )
    found = wrong(await examine(setup))
    faults = {
        "envoy.max_message_timeout": "47s or more",
        "envoy.stream_idle_timeout": "57s or more",
        "envoy.failure_mode_allow": "response_body_mode: NONE",
        "envoy.response_body_mode": "write NONE",
        "envoy.request_body_buffer_limit": "limits.max_body_bytes: 65536 or less",
        "envoy.typed_config": "normalize_path: true",
    }
    assert {name: text for name, text in faults.items() if text not in found[name].change} == {}
    assert [name for name in faults if not found[name].what.startswith(f"{envoy}:")] == []


async def test_a_policy_whose_stores_and_models_are_not_there(tmp_path: Path) -> None:
    """A model that no backend serves, a key that is not set, a Redis that is gone, a review database that is read-only."""
    let_in(tmp_path)
    kept = tmp_path / "kept"
    database = ReviewDatabase(checked_url(f"sqlite:///{kept / 'reviews.db'}"))
    database.upgrade()
    database.dispose()
    (kept / "reviews.db").chmod(0o444)
    kept.chmod(0o555)
    redis = free_port()
    async with source_server(at_paths({"/v1/models": {"data": [{"id": "llama"}]}})) as backend:
        setup = setup_of(
            tmp_path,
            f"""\
models:
- {{name: critic, base_url: "{backend.url}/v1"}}
- {{name: paid, base_url: "{backend.url}/v1", api_key_env: PAID_KEY}}
hallucination:
  detectors: [encoder, {{name: judge, model: critic, formatting_model: paid}}]
""",
            upstream=Upstream.parse(backend.url),
            redis=f"redis://ann:a-password-of-redis@127.0.0.1:{redis}/0",
            review_database=f"sqlite:///{kept / 'reviews.db'}",
        )
        for each in (tmp_path / "models").rglob("*"):
            each.chmod(0o755 if each.is_dir() else 0o644)
        with another_user():
            every = await examine(setup)
    found = wrong(every)
    missing = [each.what for each in every if each.id == "backends.model"]
    assert [
        name for name in ("critic", "paid") if not any(f"{name!r} is not among" in what for what in missing)
    ] == []
    assert all("'llama'" in what for what in missing)
    assert "'PAID_KEY'" in found["backends.key"].what
    assert found["stores.redis"].severity is CheckLevel.ERROR
    assert "read-only" in found["stores.reviews"].what
    assert str(kept) in found["stores.reviews"].change
    assert exit_status(every) == 1
    assert "a-password-of-redis" not in str(every)
    # Nothing but the list was asked for, and nothing was sent.
    assert {asked.target for asked in backend.asked} == {"GET /v1/models HTTP/1.1"}
    assert all(asked.body == b"" for asked in backend.asked)


async def test_a_sidecar_with_a_bad_edit_behind_an_envoy_that_asks_elsewhere(tmp_path: Path) -> None:
    """The reload that failed with its reason, the file's mistake with its line, and the two addresses that differ."""
    elsewhere = free_port()
    async with grpc_health() as ports, admin_of(recorded(healthy=False, port=elsewhere)) as admin:
        setup = setup_of(tmp_path, extproc=ports.extproc, health=ports.health, admin=admin.url)
        file = setup.settings.config
        holder = PolicyHolder(load_policy(file))
        served = holder.current.version
        file.write_text("hallucination:\n  treshold: 0.5\n")
        with pytest.raises(InvalidPolicyError) as refused:
            load_policy(file)
        holder.last_error = refused.value
        parts = WebParts(holder, cast("Pipeline", None), Metrics(), Recent(), Readiness(warm=True))
        async with web_server(endpoints_app(parts), setup.settings.console):
            every = await examine(setup)
    found = wrong(every)
    assert found["policy.treshold"].what == f"{file}:2: hallucination.treshold"
    assert f"goes on with version {served}" in found["policy.reload"].what
    assert "treshold" in found["policy.reload"].why
    assert f"127.0.0.1:{elsewhere}" in found["envoy.endpoint"].what
    assert found["envoy.endpoint"].what.endswith(str(ports.extproc))
    assert found["envoy.endpoint"].severity is CheckLevel.ERROR
    assert f"127.0.0.1:{elsewhere}" in found["envoy.cluster"].what
    assert "3 exchanges" in found["envoy.streams_failed"].what
    assert [each.id for each in every if each.group == "ports" and each.severity is not CheckLevel.OK] == []
    assert exit_status(every) == 1
