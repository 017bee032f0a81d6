"""What doctor says of TLS to the sidecar: the files, what the process shows, and whether Envoy speaks it too."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.certificates import SecretFolder, issued
from tests.fakes.ports import free_port
from tests.fakes.setups import here, setup_of, wrong
from tests.gateway.test_session import Pipeline
from truthlens.core.net import Upstream
from truthlens.envoy.config import EnvoySettings, render
from truthlens.envoy.sidecar_tls import SidecarTls
from truthlens.gateway.certificates import Certificates, Tls
from truthlens.gateway.server import Server
from truthlens.process.doctor.envoy import look_at_envoy
from truthlens.process.doctor.policy import read_policy
from truthlens.process.doctor.ports import look_at_addresses, of_addresses
from truthlens.process.doctor.setup import Setup
from truthlens.telemetry.metrics import Metrics

CA = issued()
NAMES = ("tls_certificate", "tls_key", "tls_client_ca")


def files_of(folder: SecretFolder) -> dict[str, Any]:
    return dict(zip(NAMES, folder.files, strict=True))


async def found(setup: Setup) -> dict[str, str]:
    told = wrong(of_addresses(setup, await look_at_addresses(setup)))
    return {name: f"{each.severity} {each.what}" for name, each in told.items()}


async def test_the_certificate_that_a_process_shows_is_compared_with_the_file(tmp_path: Path) -> None:
    """And a process that was started with it is right."""
    folder = SecretFolder(tmp_path / "tls", issued("truthlens", by=CA), CA)
    port = free_port()
    server = Server(
        Pipeline(), address=f"127.0.0.1:{port}", certificates=Certificates(Tls(*folder.files), Metrics())
    )
    setup = setup_of(tmp_path, extproc=here(port), **files_of(folder))
    await server._server.start()
    try:
        assert set(await found(setup)) == {"ports.console"}
        (folder.path / "tls.crt").unlink()
        other = issued("truthlens", by=CA)
        (folder.path / "tls.crt").write_bytes(other.pem)
        (folder.path / "tls.key").unlink()
        (folder.path / "tls.key").write_bytes(other.key_pem)
        assert "another certificate" in (await found(setup))["ports.shown"]
    finally:
        await server.stop()


@pytest.mark.parametrize(("days", "level"), [(30, None), (5, "warning"), (-2, "error")])
async def test_the_days_that_are_left_are_told(tmp_path: Path, days: int, level: str | None) -> None:
    """A week before the end it is a warning, as the alert is."""
    folder = SecretFolder(tmp_path / "tls", issued("truthlens", by=CA, days=days), CA)
    told = (await found(setup_of(tmp_path, **files_of(folder)))).get("ports.certificate", "")
    assert told.startswith(level or "")
    assert bool(told) is (level is not None)


async def test_files_that_do_not_belong_together_are_told(tmp_path: Path) -> None:
    """As the process itself would at its start."""
    folder = SecretFolder(tmp_path / "tls", issued("truthlens", by=CA), CA)
    setup = setup_of(tmp_path, **{**files_of(folder), "tls_key": tmp_path / "none.key"})
    assert "cannot read the TLS file" in (await found(setup))["ports.tls"]


PLAIN = EnvoySettings(here(10000), [here(21080)], Upstream("127.0.0.1", 8000, tls=False))
ROOTS = SidecarTls("/ca.crt", "truthlens")
PAIR = replace(ROOTS, certificate="/tls.crt", key="/tls.key")


@pytest.mark.parametrize(
    ("envoy", "asked", "said"),
    [
        (None, 0, ""),
        (ROOTS, 0, "Envoy speaks TLS"),
        (None, 2, "the sidecar speaks TLS"),
        (ROOTS, 2, ""),
        (ROOTS, 3, "Envoy shows no certificate"),
        (PAIR, 3, ""),
        (replace(PAIR, secrets="/secrets"), 3, ""),
    ],
)
async def test_both_sides_have_to_speak_it(
    tmp_path: Path, envoy: SidecarTls | None, asked: int, said: str
) -> None:
    """With a certificate of Envoy's where the sidecar asks for one."""
    file = tmp_path / "envoy.json"
    file.write_text(render(replace(PLAIN, sidecar_tls=envoy)))
    assert json.loads(file.read_text())
    paths = (tmp_path / name for name in NAMES)
    setup = setup_of(
        tmp_path, extproc=here(21080), envoys=(file,), **dict(zip(NAMES[:asked], paths, strict=False))
    )
    told = wrong(await look_at_envoy(setup, read_policy(setup.settings)))
    assert said in getattr(told.get("envoy.tls"), "what", "")
    assert bool(said) is ("envoy.tls" in told)
