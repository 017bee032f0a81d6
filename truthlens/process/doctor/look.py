"""Look over the network within a deadline; what goes wrong is said in words without a URL or a secret."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit
from urllib.request import getproxies

import httpx

from truthlens.core.net import Address
from truthlens.llm.client import open_pool

_T = TypeVar("_T")
_MOST_BYTES = 4 << 20
_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - what listens everywhere is asked here


class LookError(Exception):
    """A look failed; the message says how, as the end of a sentence."""


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What an HTTP server answered; names of headers are lower-case."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


async def in_thread(work: Callable[[], _T], timeout_s: float) -> _T:
    """Return what ``work`` returns on a thread that nobody waits for beyond the deadline, at the end neither.

    Raises:
        LookError: the time was over. What ``work`` raises is raised.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_T] = loop.create_future()

    def settle(way: Callable[[Any], None], value: Any) -> None:
        if not future.done():
            way(value)

    def run() -> None:
        try:
            end, value = future.set_result, work()
        except BaseException as error:  # noqa: BLE001 - raised where it is waited for
            end, value = future.set_exception, error  # type: ignore[assignment]
        try:
            loop.call_soon_threadsafe(settle, end, value)
        except RuntimeError:
            return  # nobody waits any more

    threading.Thread(target=run, daemon=True, name="truthlens-doctor").start()
    try:
        async with asyncio.timeout(timeout_s):
            return await future
    except TimeoutError:
        raise LookError(f"gives no answer within {timeout_s:g} s") from None


async def resolve(host: str, port: int, timeout_s: float) -> None:
    """Find the address of ``host``.

    Raises:
        LookError: it has none, or that is not known in time.
    """
    try:
        await in_thread(lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM), timeout_s)
    except (OSError, UnicodeError):
        raise LookError("has a name that does not resolve to an address") from None


def reached_host(address: Address) -> str:
    """Return the host by which this machine reaches ``address``, which may stand for all of its own."""
    return _ANY.get(address.host, address.host)


async def connect(address: Address, timeout_s: float) -> None:
    """Open a connection to ``address``, and close it.

    Raises:
        LookError: nobody accepts it in time.
    """
    try:
        async with asyncio.timeout(timeout_s):
            if not address.port:
                _, writer = await asyncio.open_unix_connection(address.host)
            else:
                host = reached_host(address)
                await resolve(host, address.port, timeout_s)
                _, writer = await asyncio.open_connection(host, address.port)
            writer.close()
            await writer.wait_closed()
    except (OSError, TimeoutError) as error:
        raise LookError(reason(error, timeout_s)) from None


async def shown_certificate(address: Address, timeout_s: float) -> bytes:
    """Return the certificate (DER) that a gRPC server shows, which need not be trusted here.

    Raises:
        LookError: nobody accepts a connection with TLS in time.
    """
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    try:
        async with asyncio.timeout(timeout_s):
            if address.port:
                host = reached_host(address)
                _, writer = await asyncio.open_connection(host, address.port, ssl=context)
            else:
                _, writer = await asyncio.open_unix_connection(
                    address.host, ssl=context, server_hostname="truthlens"
                )
            shown: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
            writer.transport.abort()
            return shown
    except (OSError, TimeoutError) as error:
        raise LookError(reason(error, timeout_s)) from None


async def get(
    url: str,
    timeout_s: float,
    *,
    headers: Mapping[str, bytes] | None = None,
    direct: bool = False,
    unix: str | None = None,
    most_bytes: int = _MOST_BYTES,
) -> HttpAnswer:
    """Return what ``url`` answers to a GET; no redirect is followed.

    Args:
        url: http or https.
        timeout_s: for all of it.
        headers: sent along.
        direct: by no proxy that the environment names.
        unix: the socket that it is asked at.
        most_bytes: of the body; 0 takes status and headers alone.

    Raises:
        LookError: nobody answers in time, or too much.
    """
    parts = urlsplit(url)
    proxied = not direct and bool(getproxies())
    transport = httpx.AsyncHTTPTransport(uds=unix) if unix else None
    sent = [(name.encode("ascii"), value) for name, value in (headers or {}).items()]
    try:
        async with asyncio.timeout(timeout_s):
            if unix is None and not proxied:
                await resolve(parts.hostname or "", parts.port or 0, timeout_s)
            upstream = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}" if direct else None
            async with (
                open_pool(upstream, transport) as http,
                http.stream("GET", url, headers=sent, timeout=timeout_s) as response,
            ):
                body = bytearray()
                if most_bytes:
                    await _fill(body, response, most_bytes)
                return HttpAnswer(response.status_code, bytes(body), dict(response.headers))
    except (OSError, TimeoutError, httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        raise LookError(reason(error, timeout_s)) from None


async def _fill(body: bytearray, response: httpx.Response, most_bytes: int) -> None:
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > most_bytes:
            raise LookError(f"answers with more than {most_bytes >> 20} MiB")


def reason(error: BaseException, timeout_s: float) -> str:
    """Return what ``error`` of a connection means, without the error's own words, which may quote a URL."""
    if isinstance(error, TimeoutError | httpx.TimeoutException):
        return f"gives no answer within {timeout_s:g} s"
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"has a certificate that is not trusted here ({cause.verify_message})"
        if isinstance(cause, ssl.SSLError):
            return "does not speak TLS as expected"
        if isinstance(cause, OSError) and cause.errno and cause.errno > 0:
            return f"cannot be connected to ({os.strerror(cause.errno).lower()})"
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, httpx.ConnectError | OSError):
        return "cannot be connected to"
    return f"cannot be asked ({type(error).__name__})"


def shown_url(url: str) -> str:
    """Return ``url`` without user, password, query and fragment."""
    try:
        parts = urlsplit(url)
        return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))
    except ValueError:
        return "(no URL)"
