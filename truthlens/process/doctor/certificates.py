"""The certificates of ext_proc: whether their files can be used, for how long, and whether the running process shows them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from truthlens.core.errors import StartError
from truthlens.gateway.certificates import Tls, read_pem
from truthlens.process.doctor.findings import CheckResult, error, ok, warning
from truthlens.process.doctor.setup import Setup

_SOON_DAYS = 7.0  # as the alert on truthlens_tls_expiry_timestamp_seconds


def of_certificates(setup: Setup, shown: bytes | None) -> Iterator[CheckResult]:
    """Yield what is wrong with the TLS files of a set-up, whose process shows the certificate ``shown`` (DER), if it runs."""
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
