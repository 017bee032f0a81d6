"""A call as it is sent: address, JSON and headers, with the right key and no other."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import httpx

from truthlens import __version__
from truthlens.core.errors import CallError
from truthlens.core.records.calls import CallFailure, ModelRequest, ModelSpec
from truthlens.llm.http.address import address

# They speak of streams and of several choices, of which none is asked for.
_DROPPED = frozenset({"stream_options", "best_of"})
_FIXED_HEADERS = {
    "content-type": b"application/json",
    "accept": b"application/json",
    "accept-encoding": b"identity",
    "user-agent": f"truthlens/{__version__}".encode("ascii"),
}


@dataclass(frozen=True, slots=True)
class Outgoing:
    """All of a call but its mark, which each attempt has its own of. ``headers`` has lower-case names."""

    url: httpx.URL
    content: bytes
    headers: Mapping[str, bytes]


def outgoing(
    request: ModelRequest,
    spec: ModelSpec | None,
    *,
    upstream: str | None,
    environ: Mapping[str, str],
    authorization: str | None,
    path: str | None,
    headers: Mapping[str, str],
) -> Outgoing:
    """Build the outgoing HTTP request for ``request``.

    Args:
        request: what is asked; ``model``, ``stream`` and ``n`` of its body are set here.
        spec: the model, where it is configured.
        upstream: the exchange's backend.
        environ: where the model's key comes from.
        authorization: the client's own; taken only for the model that gave the answer, at the upstream, if it
            has no key.
        path: ``:path`` of the exchange.
        headers: further ones; none of them replaces one that is set here.

    Raises:
        CallError: ``no-backend``, ``no-key``, or ``client-error`` where the body cannot be written.
    """
    fields = {name: value.encode("ascii", "replace") for name, value in headers.items()}
    fields.pop("authorization", None)
    if spec is not None and spec.api_key_env:
        fields["authorization"] = b"Bearer " + _key(environ, spec.api_key_env)
    elif request.own and authorization is not None and (spec is None or spec.base_url is None):
        # The client gave its key to the gateway's backend, whatever address a model of that name has besides.
        fields["authorization"] = _credentials(authorization)
    return Outgoing(
        url=address(request, base_url=spec.base_url if spec else None, upstream=upstream, path=path),
        content=_content(request),
        headers=fields | _FIXED_HEADERS,
    )


def has_key(spec: ModelSpec, environ: Mapping[str, str]) -> bool:
    """Return whether the model's key is there, or it needs none."""
    return not spec.api_key_env or _usable(_value(environ, spec.api_key_env))


def _key(environ: Mapping[str, str], variable: str) -> bytes:
    key = _value(environ, variable)
    if not _usable(key):
        raise CallError(CallFailure.NO_KEY, f"environment variable {variable} holds no key")
    return key.encode("ascii")


def _value(environ: Mapping[str, str], variable: str) -> str:
    return environ.get(variable, "").strip()  # secrets mounted as files end in a line break


def _usable(key: str) -> bool:
    return bool(key) and key.isascii() and key.isprintable()


def _credentials(authorization: str) -> bytes:
    value = authorization.encode("utf-8", "surrogateescape")
    if any(byte < 0x20 or byte == 0x7F for byte in value):
        raise CallError(CallFailure.NO_KEY, "the client's authorization cannot be passed on")
    return value


def _content(request: ModelRequest) -> bytes:
    body = {name: value for name, value in request.body.items() if name not in _DROPPED}
    try:
        # ASCII alone: a client's JSON may hold lone surrogates, which no UTF-8 can.
        text = json.dumps(body | {"model": request.model, "stream": False, "n": 1}, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise CallError(CallFailure.CLIENT_ERROR, "the request cannot be written as JSON") from None
    return text.encode("ascii")
