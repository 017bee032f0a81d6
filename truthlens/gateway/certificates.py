"""The certificates of the ext_proc server: read, checked, and read again while it runs.

cert-manager and the kubelet swap a symbolic link, people copy one file after the other. Whatever cannot be used as a whole
changes nothing: the certificates before it stay in use. Connections keep what they began with.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import grpc
import structlog
from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from truthlens.core.errors import StartError
from truthlens.policy.watch import changes
from truthlens.telemetry.metrics import Metrics

log = structlog.get_logger("truthlens.gateway.certificates")

# Between the two files of a pair that somebody is writing.
_GRACE_S = 0.3
_SANS = "x509_subject_alternative_name"


@dataclass(frozen=True, slots=True)
class Tls:
    """Files of PEM: certificate chain, its private key, and the roots of clients.

    Args:
        certificate: the chain, the server's own certificate first.
        key: its private key, without a passphrase.
        client_ca: roots of client certificates, which are then demanded; ``None`` asks for none.
        client_names: the alternative names (DNS, URI or IP) of which a client's certificate needs one; empty for any.
    """

    certificate: Path
    key: Path
    client_ca: Path | None = None
    client_names: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class PemFiles:
    """What the files of a ``Tls`` hold, checked, and until when it is of use."""

    key: bytes
    chain: bytes
    roots: bytes | None
    expires: datetime
    """When the first certificate of the chain ends."""
    roots_expire: datetime | None
    """When the last root ends: an old one beside a new one is how roots are changed."""

    def configuration(self) -> grpc.ServerCertificateConfiguration:
        """Return these for one handshake; gRPC takes each object once."""
        pair = (self.key, self.chain)
        return grpc.ssl_server_certificate_configuration([pair], root_certificates=self.roots)


class Certificates:
    """The certificates in use.

    Args:
        tls: where they are.
        signals: told of reloads and of the time that is left.

    Raises:
        StartError: the files cannot be used.
    """

    def __init__(self, tls: Tls, signals: Metrics) -> None:
        self._tls = tls
        self._signals = signals
        self._refused = ""
        self._refused_names: frozenset[str] | None = None
        self._use(read_pem(tls))
        if self.current.expires <= datetime.now(UTC):
            log.error("the TLS certificate has expired: clients refuse it", file=str(tls.certificate))

    def credentials(self) -> grpc.ServerCredentials:
        """Return credentials of one server, whose handshakes take what is in use at their time."""
        given = self.current

        def newer() -> grpc.ServerCertificateConfiguration | None:
            nonlocal given
            if given is self.current:
                return None
            given = self.current
            return given.configuration()

        return grpc.dynamic_ssl_server_credentials(
            given.configuration(), newer, require_client_authentication=self._tls.client_ca is not None
        )

    def accepts(self, identity: Callable[[], dict[str, Iterable[bytes]]]) -> bool:
        """Return whether a client whose ``auth_context`` is ``identity`` may ask, and say it where not."""
        if not self._tls.client_names:
            return True
        names = frozenset(name.decode("utf-8", "replace") for name in identity().get(_SANS, ()))
        if names & self._tls.client_names:
            return True
        self._signals.refused_clients.inc()
        if names != self._refused_names:
            self._refused_names = names
            log.error("a client is refused: its certificate has no accepted name", names=sorted(names)[:8])
        return False

    async def follow(self) -> None:
        """Take over what changes in the files, until cancelled."""
        async for _ in changes(self._tls.certificate.parent):
            await self.look()

    async def look(self) -> None:
        """Read the files again, and use what they hold if it is new and whole."""
        found = await asyncio.to_thread(self._read)
        if isinstance(found, str) and found != self._refused:
            await asyncio.sleep(_GRACE_S)
            found = await asyncio.to_thread(self._read)
        if isinstance(found, str):
            if found != self._refused:
                self._refused = found
                self._signals.tls_reloads.labels("failed").inc()
                log.error("TLS files not taken over, those before them stay in use", error=found)
            return
        self._refused = ""
        if found != self.current:
            self._use(found)
            self._signals.tls_reloads.labels("ok").inc()
            log.info("TLS files taken over", expires=found.expires.isoformat())

    def _use(self, files: PemFiles) -> None:
        self.current = files
        self._signals.tls_expiry.labels("certificate").set(files.expires.timestamp())
        if files.roots_expire is not None:
            self._signals.tls_expiry.labels("client_ca").set(files.roots_expire.timestamp())

    def _read(self) -> PemFiles | str:
        try:
            found = read_pem(self._tls)
        except StartError as error:
            return str(error)
        if found.expires <= datetime.now(UTC) and found.expires < self.current.expires:
            return f"{self._tls.certificate} has expired, and the one in use has not"
        return found


def read_pem(tls: Tls) -> PemFiles:
    """Read and check the files.

    Raises:
        StartError: one of them cannot be read, holds something else, or key and certificate do not belong together.
    """
    key_pem, chain_pem = _bytes(tls.key), _bytes(tls.certificate)
    chain = _certificates(tls.certificate, chain_pem)
    try:
        key = load_pem_private_key(key_pem, password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise StartError(f"{tls.key} holds no PEM private key without a passphrase (--tls-key)") from None
    if key.public_key() != chain[0].public_key():
        raise StartError(
            f"the key in {tls.key} (--tls-key) does not belong to the first certificate in {tls.certificate} (--tls-cert)"
        )
    roots_pem, roots_expire = None, None
    if tls.client_ca is not None:
        roots_pem = _bytes(tls.client_ca)
        roots_expire = max(each.not_valid_after_utc for each in _certificates(tls.client_ca, roots_pem))
    expires = min(each.not_valid_after_utc for each in chain)
    return PemFiles(key_pem, chain_pem, roots_pem, expires, roots_expire)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise StartError(f"cannot read the TLS file {path}: {error.strerror}") from error


def _certificates(path: Path, pem: bytes) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError:
        raise StartError(f"{path} holds no PEM certificate, or one that is cut off") from None
