"""A running Envoy, by what its admin interface says, and the addresses that it asks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.http_sources import answering, source_server
from tests.fakes.ports import free_port
from tests.fakes.setups import admin_of, here, recorded, setup_of, wrong
from truthlens.core.net import Address, Upstream
from truthlens.envoy.config import EnvoySettings, render
from truthlens.process.doctor.envoy import look_at_envoy, of_clocks
from truthlens.process.doctor.envoy_admin import read_admin
from truthlens.process.doctor.findings import CheckLevel, CheckResult, exit_status
from truthlens.process.doctor.policy import read_policy
from truthlens.process.doctor.setup import Setup

ENVOY = Path(__file__).parents[3] / "envoy" / "truthlens.yaml"


async def every(setup: Setup) -> list[CheckResult]:
    """All that is found of the Envoys of a set-up."""
    return await look_at_envoy(setup, read_policy(setup.settings))


async def of(folder: Path, told: dict[str, Any], extproc: Address | None = None) -> dict[str, CheckResult]:
    """What is wrong with an Envoy that says ``told``."""
    async with admin_of(told) as admin:
        return wrong(await every(setup_of(folder, extproc=extproc or here(21080), admin=admin.url)))


def over_xds(told: dict[str, Any]) -> dict[str, Any]:
    """The same configuration as a control plane gives it: every part from its own service."""
    parts: dict[str, Any] = {}
    for part in told["config_dump"]["configs"]:
        parts |= {name: value for name, value in part.items() if name.startswith("static_")}
    (listener,) = (each["listener"] for each in parts["static_listeners"])
    (route,) = parts["static_route_configs"]
    manager = listener["filter_chains"][0]["filters"][0]["typed_config"]
    del manager["route_config"]
    manager["rds"] = {"route_config_name": "of-the-plane"}
    clusters = [each["cluster"] for each in parts["static_clusters"]]
    assigned = [{"endpoint_config": each.pop("load_assignment")} for each in clusters]
    told["config_dump"] = {
        "configs": [
            {
                "dynamic_listeners": [
                    {"name": "warming"},
                    {"name": "l", "active_state": {"listener": listener}},
                ]
            },
            {"dynamic_active_clusters": [{"cluster": each} for each in clusters]},
            {"dynamic_route_configs": [{"route_config": {**route["route_config"], "name": "of-the-plane"}}]},
            {"dynamic_endpoint_configs": assigned},
        ]
    }
    return told


@pytest.mark.parametrize("told", [recorded(), over_xds(recorded())], ids=["static", "xds"])
async def test_a_healthy_envoy_has_nothing_wrong(tmp_path: Path, told: dict[str, Any]) -> None:
    """Wherever its configuration comes from."""
    assert await of(tmp_path, told) == {}


@pytest.mark.parametrize("told", [recorded(), over_xds(recorded())], ids=["static", "xds"])
async def test_what_is_in_force_is_checked_as_a_file_is(tmp_path: Path, told: dict[str, Any]) -> None:
    """The key is named, and no line."""
    text = json.dumps(told).replace('"max_message_timeout": "310s"', '"max_message_timeout": "1s"')
    policy = "hallucination: {default_mode: standard, detectors: [encoder]}\n"
    async with admin_of(json.loads(text.replace('"normalize_path": true, ', ""))) as admin:
        bad = wrong(await every(setup_of(tmp_path, policy, extproc=here(21080), admin=admin.url)))
    assert set(bad) == {"envoy.max_message_timeout", "envoy.typed_config"}
    assert bad["envoy.max_message_timeout"].what.startswith(f"{admin.url}: static_resources.listeners[0]")


async def test_counters_of_failures_are_warnings(tmp_path: Path) -> None:
    """Those of the filter, whatever its prefix; those of another processor are not ours."""
    told = recorded()
    names = (
        "message_timeouts",
        "spurious_msgs_received",
        "override_message_timeout_ignored",
        "streams_failed",
    )
    for stat in told["stats"]["stats"]:
        if stat.get("name", "").rpartition(".")[2] in names:
            stat["value"] = 4
    told["stats"]["stats"].append({"name": "http.llm.ext_proc.router.rejected_header_mutations", "value": 9})
    bad = await of(tmp_path, told)
    assert set(bad) == {f"envoy.{name}" for name in names}
    assert {each.severity for each in bad.values()} == {CheckLevel.WARNING}
    assert all("4 " in each.what for each in bad.values())


async def test_another_release_than_the_one_that_was_tried_is_a_warning(tmp_path: Path) -> None:
    """Its number is told."""
    bad = await of(
        tmp_path, {**recorded(), "server_info": {"version": "ab12/1.31.4/Clean/RELEASE/BoringSSL"}}
    )
    assert {name: each.severity for name, each in bad.items()} == {"envoy.version": CheckLevel.WARNING}
    assert "1.31.4" in bad["envoy.version"].what


async def test_an_envoy_that_does_not_serve_is_an_error(tmp_path: Path) -> None:
    """It starts, or drains."""
    assert "DRAINING" in (await of(tmp_path, {**recorded(), "ready": "DRAINING\n"}))["envoy.ready"].what


@pytest.mark.parametrize("content", [b"<html>", {}, [], {"configs": [{"static_listeners": [1]}]}, None])
async def test_an_admin_interface_that_is_none_was_not_looked_at(tmp_path: Path, content: Any) -> None:
    """Exit status 2, for nothing is known of the Envoy."""
    url = f"http://127.0.0.1:{free_port()}"
    if content is not None:
        async with source_server(answering(content)) as server:
            found = await every(setup_of(tmp_path, admin=server.url))
    else:
        found = await every(setup_of(tmp_path, admin=url))
    assert [each.id for each in found] == ["envoy.admin"]
    assert exit_status(found) == 2


async def test_the_admin_interface_is_only_read(tmp_path: Path) -> None:
    """Five GETs."""
    async with admin_of(recorded()) as admin:
        await read_admin(admin.url, 10.0)
    assert sorted(asked.target.split()[0] for asked in admin.asked) == ["GET"] * 5


@pytest.mark.parametrize(
    ("extproc", "health", "check", "level"),
    [
        (here(18080), None, None, None),
        (here(18081), None, "envoy.endpoint", CheckLevel.ERROR),
        (Address("/run/t.sock", 0), None, "envoy.endpoint", CheckLevel.ERROR),
        (here(18080), here(19999), "envoy.health", CheckLevel.ERROR),
    ],
)
async def test_addresses_that_differ_are_named(
    tmp_path: Path, extproc: Address, health: Address | None, check: str | None, level: CheckLevel | None
) -> None:
    """Envoy's with its line, and the sidecar's."""
    setup = setup_of(tmp_path, extproc=extproc, health=health, envoys=(ENVOY,))
    bad = wrong(await every(setup))
    assert {name: each.severity for name, each in bad.items()} == ({check: level} if check else {})


async def test_an_address_of_another_machine_is_a_warning(tmp_path: Path) -> None:
    """A Service may have another port than its sidecars."""
    settings = EnvoySettings(
        here(10000), [Address("10.0.0.7", 50051)], Upstream("127.0.0.1", 8000, tls=False)
    )
    envoy = tmp_path / "envoy.json"
    envoy.write_text(render(settings))
    bad = wrong(await every(setup_of(tmp_path, extproc=here(18080), envoys=(envoy,))))
    assert {name: each.severity for name, each in bad.items()} == {"envoy.endpoint": CheckLevel.WARNING}


async def test_without_a_policy_the_clocks_were_not_looked_at(tmp_path: Path) -> None:
    """What needs none is."""
    setup = setup_of(tmp_path, "hallucination: {treshold: 1}\n", extproc=here(18080), envoys=(ENVOY,))
    assert [(each.id, each.severity) for each in await every(setup)] == [("envoy.clocks", CheckLevel.UNKNOWN)]


async def test_a_file_that_is_none_is_an_error(tmp_path: Path) -> None:
    """It cannot be read, or has no filter."""
    binary, empty = tmp_path / "binary", tmp_path / "empty.yaml"
    binary.write_bytes(b"\xff\xfe")
    empty.write_text("admin: {}\n")
    for file, said in ((binary, "UTF-8"), (empty, "no listener")):
        found = wrong(await every(setup_of(tmp_path, envoys=(file,))))
        assert any(said in each.why for each in found.values())


def test_a_stop_that_cuts_answers_is_a_warning(tmp_path: Path) -> None:
    """The agentic loop takes five minutes, and a stop waits for one."""
    policy = (
        "hallucination: {default_mode: agentic, detectors: [encoder], retrieval: {sources: [w]}}\n"
        "sources: [{name: w, type: ddgs}]\n"
    )
    setup = setup_of(tmp_path, policy)
    file = read_policy(setup.settings)
    assert file.policy is not None, file.diagnostics
    told = wrong(of_clocks(setup, file.policy))["clocks.drain"]
    assert "--drain-grace 300" in told.change
    assert wrong(of_clocks(setup_of(tmp_path, policy, drain_grace_s=310.0), file.policy)) == {}
    assert of_clocks(setup, None) == []
