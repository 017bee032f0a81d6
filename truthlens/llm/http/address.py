"""Resolve where a call goes: the model's own base URL, or the backend of the exchange."""

from __future__ import annotations

from urllib.parse import unquote, urlsplit

import httpx

from truthlens.core.errors import CallError
from truthlens.core.records.calls import CallFailure, ModelRequest
from truthlens.core.records.enums import Endpoint

# Serves both, told apart by the body.
_EITHER = "/invocations"
_SUFFIXES = {Endpoint.CHAT: "/chat/completions", Endpoint.COMPLETIONS: "/completions"}


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
        return _checked(f"{base_url.rstrip('/')}{suffix}")
    if upstream is None:
        raise CallError(CallFailure.NO_BACKEND, "the model has no base_url and there is no upstream")
    target = _own_target(path, suffix) if request.own and path else f"/v1{suffix}"
    return _checked(f"{upstream.rstrip('/')}{target}")


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


def _checked(text: str) -> httpx.URL:
    try:
        url = httpx.URL(text)
    except (httpx.InvalidURL, ValueError):
        # The exception quotes the URL, whose path a client wrote.
        raise CallError(CallFailure.NO_BACKEND, "the address is no URL") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise CallError(CallFailure.NO_BACKEND, "the address is no http(s) URL with a host")
    return url
