"""A certificate authority for tests, and certificates in folders as the kubelet writes them."""

from __future__ import annotations

import ipaddress
import itertools
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP256R1,
    EllipticCurvePrivateKey,
    generate_private_key,
)
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

_NOW = datetime.now(UTC).replace(microsecond=0)


@dataclass(frozen=True)
class Pair:
    """A certificate and its key."""

    certificate: x509.Certificate
    key: EllipticCurvePrivateKey

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def issued(*names: str, by: Pair | None = None, days: float = 30) -> Pair:
    """A certificate with alternative ``names``, of the last 90 days or as long as it lasts; its own authority without ``by``."""
    key = generate_private_key(SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0] if names else "roots")])
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(by.certificate.subject if by else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(_NOW - timedelta(days=max(90.0, days)))
        .not_valid_after(_NOW + timedelta(days=days))
        .add_extension(x509.BasicConstraints(ca=by is None, path_length=None), critical=True)
    )
    if names:
        builder = builder.add_extension(
            x509.SubjectAlternativeName([_name(each) for each in names]), critical=False
        )
    return Pair(builder.sign(by.key if by else key, hashes.SHA256()), key)


def _name(text: str) -> x509.GeneralName:
    if "://" in text:
        return x509.UniformResourceIdentifier(text)
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


class SecretFolder:
    """``tls.crt``, ``tls.key`` and ``ca.crt``, links into a folder that is swapped as a whole."""

    def __init__(self, path: Path, pair: Pair, ca: Pair) -> None:
        path.mkdir(parents=True)
        self.path = path
        self._numbers = itertools.count()
        self.swap(pair, ca)
        for name in ("tls.crt", "tls.key", "ca.crt"):
            (path / name).symlink_to(Path("..data") / name)

    @property
    def files(self) -> tuple[Path, Path, Path]:
        """Certificate, key and roots."""
        return self.path / "tls.crt", self.path / "tls.key", self.path / "ca.crt"

    def swap(self, pair: Pair, ca: Pair) -> None:
        """Put other files in their place, all at once."""
        name = f"..{next(self._numbers)}"
        new = self.path / name
        new.mkdir()
        (new / "tls.crt").write_bytes(pair.pem)
        (new / "tls.key").write_bytes(pair.key_pem)
        (new / "ca.crt").write_bytes(ca.pem)
        link = self.path / "..tmp"
        link.symlink_to(name)
        link.rename(self.path / "..data")
