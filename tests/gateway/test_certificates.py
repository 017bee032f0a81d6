"""Certificates are read as a whole or not at all, and again while the server runs."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
from cryptography import x509
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.fakes.certificates import Pair, SecretFolder, issued
from tests.fakes.ports import free_port
from tests.gateway.test_session import Pipeline
from truthlens.core.errors import StartError
from truthlens.core.net import Address
from truthlens.gateway import wire
from truthlens.gateway.certificates import Certificates, Tls, read_pem
from truthlens.gateway.server import Server
from truthlens.telemetry.metrics import Metrics

CA = issued()
FIRST, SECOND = (issued("truthlens", by=CA) for _ in range(2))
ENVOY, STRANGER = issued("envoy.gateway", by=CA), issued("other.gateway", by=CA)


@pytest.fixture
def folder(tmp_path: Path) -> SecretFolder:
    return SecretFolder(tmp_path / "tls", FIRST, CA)


def tls_of(folder: SecretFolder, *names: str) -> Tls:
    return Tls(*folder.files, client_names=frozenset(names))


def value(signals: Metrics, name: str) -> float:
    lines = signals.exposition().decode().splitlines()
    return float(next((line.split()[-1] for line in lines if line.startswith(name)), "0"))


@contextlib.asynccontextmanager
async def serving(certificates: Certificates) -> AsyncIterator[tuple[Server, Address]]:
    health = Address("127.0.0.1", free_port())
    server = Server(
        Pipeline(), address=f"127.0.0.1:{free_port()}", certificates=certificates, health_at=health
    )
    await server.start()
    try:
        yield server, health
    finally:
        await server.stop()


async def code_of(port: int, client: Pair | None) -> grpc.StatusCode | None:
    """How an ext_proc stream of ``client`` ends that says nothing; ``None`` where it is served."""
    pair = (client.key_pem, client.pem) if client else ()
    options = [("grpc.ssl_target_name_override", "truthlens"), ("grpc.use_local_subchannel_pool", 1)]
    credentials = grpc.ssl_channel_credentials(CA.pem, *pair)
    async with grpc.aio.secure_channel(f"127.0.0.1:{port}", credentials, options=options) as channel:
        try:
            async for _ in channel.stream_stream(f"/{wire.SERVICE}/Process")(iter(())):
                pass
        except grpc.aio.AioRpcError as error:
            return error.code()
        return None


async def served(port: int) -> x509.Certificate:
    """The certificate that a server shows."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    shown = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.transport.abort()
    return x509.load_der_x509_certificate(shown)


async def test_only_clients_with_a_certificate_of_the_roots_and_an_accepted_name_are_served(
    folder: SecretFolder,
) -> None:
    """Others get no connection, or an error that Envoy does not take for "let everything pass"."""
    signals = Metrics()
    async with serving(Certificates(tls_of(folder, "envoy.gateway"), signals)) as (server, _):
        assert await code_of(server.port, ENVOY) is None
        assert await code_of(server.port, None) is grpc.StatusCode.UNAVAILABLE
        assert await code_of(server.port, issued("envoy.gateway", by=issued())) is grpc.StatusCode.UNAVAILABLE
        assert value(signals, "truthlens_refused_clients_total") == 0
        assert await code_of(server.port, STRANGER) is grpc.StatusCode.PERMISSION_DENIED
    assert value(signals, "truthlens_refused_clients_total") == 1


@pytest.mark.parametrize("name", ["spiffe://mesh/ns/gateway/sa/envoy", "10.0.0.7"])
async def test_a_client_is_known_by_a_uri_or_an_address_too(folder: SecretFolder, name: str) -> None:
    """As meshes write them."""
    async with serving(Certificates(tls_of(folder, name), Metrics())) as (server, _):
        assert await code_of(server.port, issued("any", name, by=CA)) is None


async def test_new_files_are_used_by_the_next_connection_on_both_ports(folder: SecretFolder) -> None:
    """The health port is answered by another server, with the same certificates."""
    signals = Metrics()
    certificates = Certificates(tls_of(folder), signals)
    async with serving(certificates) as (server, health):
        assert await served(server.port) == await served(health.port) == FIRST.certificate
        folder.swap(SECOND, CA)
        await certificates.look()
        assert await served(server.port) == await served(health.port) == SECOND.certificate
        assert await code_of(server.port, ENVOY) is None
    assert value(signals, 'truthlens_tls_reloads_total{result="ok"}') == 1


async def test_new_roots_are_used_too(folder: SecretFolder) -> None:
    """A client of the old ones is refused from then on."""
    certificates = Certificates(tls_of(folder), Metrics())
    async with serving(certificates) as (server, _):
        assert await code_of(server.port, ENVOY) is None
        folder.swap(FIRST, issued())
        await certificates.look()
        assert await code_of(server.port, ENVOY) is grpc.StatusCode.UNAVAILABLE


def cut(folder: SecretFolder) -> None:
    (folder.path / "..data" / "tls.crt").write_bytes(SECOND.pem[:300])


def one_of_two(folder: SecretFolder) -> None:
    (folder.path / "..data" / "tls.crt").write_bytes(SECOND.pem)


def gone(folder: SecretFolder) -> None:
    (folder.path / "..data" / "tls.key").unlink()


def expired(folder: SecretFolder) -> None:
    folder.swap(issued("truthlens", by=CA, days=-1), CA)


@pytest.mark.parametrize("harm", [cut, one_of_two, gone, expired])
async def test_files_that_are_not_whole_change_nothing_and_are_told_once(
    folder: SecretFolder,
    harm: Callable[[SecretFolder], object],
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """And health says that it serves; what is whole again is used."""
    signals = Metrics()
    certificates = Certificates(tls_of(folder), signals)
    async with serving(certificates) as (server, _):
        await server.set_serving(True)
        harm(folder)
        for _ in range(3):
            await certificates.look()
        assert await served(server.port) == FIRST.certificate
        assert value(signals, 'truthlens_tls_reloads_total{result="failed"}') == 1
        assert capsys.readouterr().out.count("not taken over") + caplog.text.count("not taken over") == 1
        options = [("grpc.ssl_target_name_override", "truthlens")]
        with grpc.secure_channel(
            f"127.0.0.1:{server.port}",
            grpc.ssl_channel_credentials(CA.pem, ENVOY.key_pem, ENVOY.pem),
            options=options,
        ) as channel:
            check = health_pb2_grpc.HealthStub(channel).Check
            said = await asyncio.to_thread(check, health_pb2.HealthCheckRequest(), timeout=30)
        assert said.status == health_pb2.HealthCheckResponse.SERVING
        folder.swap(SECOND, CA)
        await certificates.look()
        assert await served(server.port) == SECOND.certificate


async def test_a_swapped_folder_is_noticed_while_the_server_runs(folder: SecretFolder) -> None:
    """As the kubelet swaps it, by a link that no file's own name takes part in."""
    certificates = Certificates(tls_of(folder), Metrics())
    async with serving(certificates) as (server, _), asyncio.timeout(30):
        folder.swap(SECOND, CA)
        while await served(server.port) != SECOND.certificate:
            await asyncio.sleep(0.05)


def test_the_time_that_is_left_is_a_metric(folder: SecretFolder) -> None:
    """Of a chain the first end counts, of roots the last."""
    signals = Metrics()
    chain, older = issued("truthlens", by=CA, days=9), issued(days=3)
    data = folder.path / "..data"
    (data / "tls.crt").write_bytes(FIRST.pem + chain.pem)
    (data / "ca.crt").write_bytes(CA.pem + older.pem)
    Certificates(tls_of(folder), signals)
    told = [
        value(signals, f'truthlens_tls_expiry_timestamp_seconds{{file="{file}"}}')
        for file in ("certificate", "client_ca")
    ]
    assert told == [each.certificate.not_valid_after_utc.timestamp() for each in (chain, CA)]


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("tls.crt", None, "cannot read the TLS file"),
        ("tls.crt", b"text", "holds no PEM certificate"),
        ("tls.key", b"text", "holds no PEM private key without a passphrase"),
        ("tls.key", SECOND.key_pem, "does not belong to"),
        ("ca.crt", b"", "holds no PEM certificate"),
    ],
)
def test_a_process_does_not_start_with_files_that_it_cannot_use(
    folder: SecretFolder, file: str, content: bytes | None, said: str
) -> None:
    """The message names the file."""
    path = folder.path / "..data" / file
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(StartError, match=said) as error:
        read_pem(tls_of(folder))
    assert file in str(error.value)
    assert "PRIVATE KEY" not in str(error.value)


def test_without_roots_nobody_is_asked_for_a_certificate(folder: SecretFolder) -> None:
    """Then there are none to tell of, either."""
    signals = Metrics()
    Certificates(replace(tls_of(folder), client_ca=None), signals)
    assert 'file="client_ca"' not in signals.exposition().decode()
