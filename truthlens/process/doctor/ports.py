"""The addresses of a sidecar: free where it is planned, answering where it runs."""

from __future__ import annotations

import asyncio
import json
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from truthlens.core.errors import StartError
from truthlens.core.net import Address
from truthlens.envoy.ports import ensure_free
from truthlens.process.doctor.findings import CheckResult, error, ok, warning
from truthlens.process.doctor.look import LookError, connect, get, reached_host, shown_certificate
from truthlens.process.doctor.setup import Setup

_SERVING = "SERVING"
_SOON_DAYS = 7.0  # as the alert on truthlens_tls_expiry_timestamp_seconds


@dataclass(frozen=True, slots=True)
class Seen:
    """What is at the addresses of a sidecar.

    ``readyz`` is what a console of TruthLens says there, ``health`` what gRPC health does; ``None`` for none.
    ``certificate`` is what ext_proc shows (DER), where it is to speak TLS.
    """

    extproc: bool
    console: bool
    readyz: Mapping[str, Any] | None = None
    ready: bool = False
    health: str | None = None
    certificate: bytes | None = None

    @property
    def runs(self) -> bool:
        """Whether a sidecar is there."""
        return self.readyz is not None or self.health is not None or self.certificate is not None


async def look_at_addresses(setup: Setup) -> Seen:
    """Return what is at the addresses of ``setup``."""
    settings, time_s = setup.settings, setup.timeout_s
    tls = settings.tls_certificate is not None
    extproc, console, health, readyz, certificate = await asyncio.gather(
        _listens(settings.extproc, time_s),
        _listens(settings.console, time_s),
        _none() if tls else _health(health_address(setup), time_s),
        _readyz(settings.console, time_s),
        _certificate(settings.extproc, time_s) if tls else _none(),
    )
    state, ready = readyz
    return Seen(extproc, console, state, ready, health, certificate)


def health_address(setup: Setup) -> Address:
    """Return where the sidecar answers Envoy's health checks."""
    settings = setup.settings
    return settings.health or settings.extproc.health or settings.extproc


def of_addresses(setup: Setup, seen: Seen) -> list[CheckResult]:
    """Return what is wrong with the addresses of a set-up in which ``seen`` was found."""
    running = seen.runs or setup.admin is not None
    found = [
        _extproc(setup, seen, running=running),
        _health_finding(setup, seen, running=running),
        _console(setup, seen, running=running),
    ]
    return [*found, *_of_certificates(setup, seen.certificate)]


def _extproc(setup: Setup, seen: Seen, *, running: bool) -> CheckResult:
    address = setup.settings.extproc
    if not running:
        return _planned("ports.extproc", address, "--extproc")
    if not seen.extproc:
        return error(
            "ports.extproc",
            f"nothing listens at {address}",
            "Envoy asks nobody about exchanges that it sends there: they pass unchecked, or are "
            "refused where it fails closed",
            "start truthlens serve there, or name the address that it has with --extproc",
        )
    if setup.settings.tls_certificate is not None and seen.certificate is None:
        return error(
            "ports.extproc",
            f"{address} takes connections, and speaks no TLS",
            "an Envoy that speaks TLS reaches nobody there",
            "start truthlens serve with --tls-cert and --tls-key, or leave them out here",
        )
    return ok("ports.extproc", f"{address} takes connections{_with_mode(address)}")


def _health_finding(setup: Setup, seen: Seen, *, running: bool) -> CheckResult:
    address = health_address(setup)
    if not running:
        return _planned("ports.health", address, "--health")
    if setup.settings.tls_certificate is not None:
        return ok("ports.health", f"{address}: not asked, for it speaks TLS")
    if seen.health is None:
        return error(
            "ports.health",
            f"no gRPC health check is answered at {address}",
            "Envoy's health checks fail, and it sends no exchange",
            "start truthlens serve there, or name the address that it has with --health (with TLS, "
            "--tls-cert)",
        )
    if seen.health != _SERVING:
        return error(
            "ports.health",
            f"the health check at {address} says {seen.health}",
            "the process starts, drains, or its event loop is stuck: Envoy sends it no exchange",
            "wait for the start to end; else look into its log, and start it again",
        )
    return ok("ports.health", f"{address} says SERVING")


def _console(setup: Setup, seen: Seen, *, running: bool) -> CheckResult:
    address = setup.settings.console
    if not running:
        return _planned("ports.console", address, "--console")
    if seen.readyz is None:
        taken = "another program answers" if seen.console else "nothing listens"
        return error(
            "ports.console",
            f"{taken} at {address}, where probes and metrics of the sidecar are expected",
            "neither probes nor Prometheus see the process",
            "name the address that it has with --console, or start it with this one",
        )
    if not seen.ready:
        return error(
            "ports.console",
            f"/readyz at {address} says that the process is not ready",
            "it loads its models, or drains; probes keep it out of service",
            "wait for the start to end; else look into its log",
        )
    return ok("ports.console", f"{address} is ready")


def _of_certificates(setup: Setup, shown: bytes | None) -> Iterator[CheckResult]:
    """Yield what is wrong with the TLS files of a set-up, whose process shows the certificate ``shown`` (DER), if it runs."""
    # Only for set-ups with TLS.
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    from truthlens.gateway.certificates import Tls, read_pem

    settings = setup.settings
    if settings.tls_certificate is None or settings.tls_key is None:
        return
    try:
        files = read_pem(Tls(settings.tls_certificate, settings.tls_key, settings.tls_client_ca))
    except StartError as unfit:
        yield error(
            "ports.tls",
            str(unfit),
            "a sidecar does not start with it, and one that runs keeps what it has",
            "write certificate, key and roots as PEM files that belong together",
        )
        return
    ends = {"certificate": (settings.tls_certificate, files.expires)}
    if files.roots_expire is not None:
        ends["client_ca"] = (settings.tls_client_ca or settings.tls_certificate, files.roots_expire)
    for name, (path, end) in ends.items():
        left = (end - datetime.now(UTC)).total_seconds() / 86400
        if left > _SOON_DAYS:
            yield ok(f"ports.{name}", f"{path} is good for {left:.0f} days")
            continue
        tell = warning if left > 0 else error
        yield tell(
            f"ports.{name}",
            f"{path} {'ends in' if left > 0 else 'has expired since'} {abs(left):.1f} days",
            "Envoy and the sidecar refuse each other from then on",
            "renew it, and look at what was to do so: a new file is used without a restart",
        )
    own = x509.load_pem_x509_certificate(files.chain).public_bytes(Encoding.DER)
    if shown is not None and shown != own:
        yield warning(
            "ports.shown",
            f"{settings.extproc} shows another certificate than {settings.tls_certificate} holds",
            "the process has not taken the new file over, or another one listens there",
            "look for `TLS files` in its log",
        )


def _planned(check: str, address: Address, flag: str) -> CheckResult:
    try:
        ensure_free(address, flag=flag)
    except StartError as taken:
        message, _, remedy = str(taken).partition("; ")
        return error(check, message, "a sidecar does not start there", remedy)
    return ok(check, f"{address} is free")


async def _listens(address: Address, timeout_s: float) -> bool:
    try:
        await connect(address, timeout_s)
    except LookError:
        return False
    return True


def _with_mode(address: Address) -> str:
    if address.port:
        return ""
    try:
        return f", mode {stat.S_IMODE(Path(address.host).stat().st_mode):o}"
    except OSError:
        return ""


async def _certificate(address: Address, timeout_s: float) -> bytes | None:
    try:
        return await shown_certificate(address, timeout_s)
    except LookError:
        return None


async def _none() -> None:
    return None


async def _health(address: Address, timeout_s: float) -> str | None:
    try:
        await connect(address, timeout_s)
    except LookError:
        return None
    host = reached_host(address)
    options = [("grpc.enable_http_proxy", 0)]
    async with grpc.aio.insecure_channel(str(Address(host, address.port)), options=options) as channel:
        ask = health_pb2_grpc.HealthStub(channel).Check
        try:
            reply = await ask(health_pb2.HealthCheckRequest(), timeout=timeout_s)
        except grpc.aio.AioRpcError:
            return None
    return str(health_pb2.HealthCheckResponse.ServingStatus.Name(reply.status))


async def _readyz(address: Address, timeout_s: float) -> tuple[Mapping[str, Any] | None, bool]:
    host = reached_host(address)
    unix = None if address.port else address.host
    where = Address(host, address.port) if address.port else "localhost"
    try:
        answer = await get(f"http://{where}/readyz", timeout_s, direct=True, unix=unix)
        state = json.loads(answer.body)
    except (LookError, ValueError, RecursionError):
        return None, False
    ours = isinstance(state, dict) and isinstance(state.get("policy"), dict) and "ready" in state
    return (state, state["ready"] is True) if ours else (None, False)
