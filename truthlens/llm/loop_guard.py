"""Mark TruthLens's own calls, so that a call that comes back through the gateway is passed untouched.

A mark is a one-time, expiring word of a process that holds the secret for one request body; it tells nothing
of the exchange. A backend that is sent one could spend it only on the very request that it was sent, within
its minute.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import math
import secrets
import time
from collections.abc import Callable

MARK_HEADER = "x-truthlens-mark"
_CONTEXT = b"truthlens mark v1:"
_LONGEST = 128
_LONGEST_VALIDITY_S = 3600.0
_MOST_SEEN = 100_000


class Marks:
    """Issues marks and accepts each of them once.

    Args:
        secret: shared by the processes of a fleet, at least 16 bytes; left out, one of this process alone.
            Each process accepts a mark once, so a fleet accepts it at most once per process.
        clock: seconds since the epoch, the same for all that share a secret.

    Raises:
        ValueError: the secret is too short.
    """

    def __init__(self, secret: bytes | None = None, *, clock: Callable[[], float] = time.time) -> None:
        if secret is not None and len(secret) < 16:
            raise ValueError(f"the mark secret has {len(secret)} bytes; expected at least 16")
        self._secret = secret if secret is not None else secrets.token_bytes(32)
        self._clock = clock
        self._seen: dict[str, int] = {}
        self._next_sweep = 0.0

    def issue(self, body: bytes, valid_s: float) -> str:
        """Return a fresh ``expiry.nonce.signature`` for ``MARK_HEADER``: URL-safe ASCII, valid ``valid_s``.

        An hour at the most, and for the request ``body`` alone.
        """
        expiry = math.ceil(self._clock() + min(valid_s, _LONGEST_VALIDITY_S))
        signed = f"{expiry}.{secrets.token_urlsafe(12)}"
        return f"{signed}.{self._signature(signed, body)}"

    def accepts(self, value: str, body: bytes) -> bool:
        """Return whether ``value`` was issued for ``body`` with the secret, is still valid and unused."""
        signed, _, signature = value.rpartition(".")
        if len(value) > _LONGEST or not value.isascii():
            return False
        if not hmac.compare_digest(signature.encode(), self._signature(signed, body).encode()):
            return False
        expiry_text, _, nonce = signed.partition(".")
        expiry, now = int(expiry_text), self._clock()
        if expiry <= now:
            return False
        self._forget_expired(now)
        # A full table refuses: what is not remembered could be accepted twice.
        if nonce in self._seen or len(self._seen) >= _MOST_SEEN:
            return False
        self._seen[nonce] = expiry
        return True

    def _signature(self, signed: str, body: bytes) -> str:
        message = _CONTEXT + signed.encode() + b":" + hashlib.sha256(body).digest()
        digest = hmac.new(self._secret, message, hashlib.sha256).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()

    def _forget_expired(self, now: float) -> None:
        if now < self._next_sweep:
            return
        self._seen = {nonce: expiry for nonce, expiry in self._seen.items() if expiry > now}
        self._next_sweep = now + 1.0
