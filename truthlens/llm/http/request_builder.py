"""A call as it is sent: address, JSON and headers, with the right key and no other."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

import httpx

from truthlens import __version__
from truthlens.core.errors import CallError
from truthlens.core.records.calls import CallFailure, ModelRequest, ModelSpec
from truthlens.core.records.enums import Endpoint

# Serves both, told apart by the body.
_EITHER = "/invocations"
_SUFFIXES = {Endpoint.CHAT: "/chat/completions", Endpoint.COMPLETIONS: "/completions"}

# They speak of streams and of several choices, of which none is asked for.
_DROPPED = frozenset({"stream_options", "best_of"})
FIXED_HEADERS = {
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
        fields["authorization"] = b"Bearer " + key_in(environ, spec.api_key_env)
    elif request.own and authorization is not None and (spec is None or spec.base_url is None):
        # The client gave its key to the gateway's backend, whatever address a model of that name has besides.
        fields["authorization"] = credentials(authorization)
    return Outgoing(
        url=address(request, base_url=spec.base_url if spec else None, upstream=upstream, path=path),
        content=_content(request),
        headers=fields | FIXED_HEADERS,
    )


def has_key(spec: ModelSpec, environ: Mapping[str, str]) -> bool:
    """Return whether the model's key is there, or it needs none."""
    return not spec.api_key_env or _usable(_value(environ, spec.api_key_env))


def key_in(environ: Mapping[str, str], variable: str) -> bytes:
    """Return the key that the environment variable ``variable`` holds, fit for a header.

    Raises:
        CallError: ``no-key``: it holds none that could be sent.
    """
    key = _value(environ, variable)
    if not _usable(key):
        raise CallError(CallFailure.NO_KEY, f"environment variable {variable} holds no key")
    return key.encode("ascii")


def _value(environ: Mapping[str, str], variable: str) -> str:
    return environ.get(variable, "").strip()  # secrets mounted as files end in a line break


def _usable(key: str) -> bool:
    return bool(key) and key.isascii() and key.isprintable()


def credentials(authorization: str) -> bytes:
    """Return the client's own header as it is sent on.

    Raises:
        CallError: ``no-key``: it has control characters, with which it could add headers.
    """
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


def address(
    request: ModelRequest, *, base_url: str | None, upstream: str | None, path: str | None
) -> httpx.URL:
    """Return the URL that ``request`` is posted to.

    Args:
        request: what is asked.
        base_url: the model's own, ending before ``/chat/completions``.
        upstream: the exchange's backend, ending before ``/v1``.
        path: ``:path`` of the exchange, for the model that gave the answer. Its query string is kept (some
            backends want their version there), its fragment and any host dropped.

    Raises:
        CallError: ``no-backend``: there is no address, or none that can be used.
    """
    suffix = _SUFFIXES[request.endpoint]
    if base_url is not None:
        return checked_url(f"{base_url.rstrip('/')}{suffix}")
    if upstream is None:
        raise CallError(CallFailure.NO_BACKEND, "the model has no base_url and there is no upstream")
    target = _own_target(path, suffix) if request.own and path else f"/v1{suffix}"
    return checked_url(f"{upstream.rstrip('/')}{target}")


def _own_target(path: str, suffix: str) -> str:
    try:
        split = urlsplit(path) if not path.startswith("/") else urlsplit(f"http://host{path}")
    except ValueError:
        # The exception quotes the path, which a client wrote.
        raise CallError(CallFailure.NO_BACKEND, "the path of the exchange is no path") from None
    segments = unquote(split.path).split("/")
    if not split.path.startswith("/") or ".." in segments or "." in segments:
        # Joined to the upstream's prefix, dots would leave it.
        raise CallError(CallFailure.NO_BACKEND, "the path of the exchange cannot be used")
    base, query = split.path.rstrip("/"), f"?{split.query}" if split.query else ""
    if base.endswith(_EITHER):
        return f"{base}{query}"
    for known in _SUFFIXES.values():  # the longer one first: each ends in the other
        if base.endswith(known):
            base = base.removesuffix(known)
            break
    else:
        raise CallError(CallFailure.NO_BACKEND, "the path of the exchange is of no API that is called")
    return f"{base}{suffix}{query}"


def checked_url(text: str) -> httpx.URL:
    """Return ``text`` as a URL.

    Raises:
        CallError: ``no-backend``: it is none of http or https with a host.
    """
    try:
        url = httpx.URL(text)
    except (httpx.InvalidURL, ValueError):
        # The exception quotes the URL, whose path a client wrote.
        raise CallError(CallFailure.NO_BACKEND, "the address is no URL") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise CallError(CallFailure.NO_BACKEND, "the address is no http(s) URL with a host")
    return url
