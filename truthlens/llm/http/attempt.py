"""One attempt over HTTP: a request is sent, its answer's bytes come back or the reason why not.

The head decides before anything of the body is read, so an endless stream costs nothing; of an error that
says what was wrong with the request, a bounded part is. What the bytes of an answer say is read elsewhere.
"""

from __future__ import annotations

import asyncio
import time
import zlib
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime

import httpx

from truthlens.core.errors import CallError
from truthlens.core.records.calls import CallFailure
from truthlens.llm.errors import AttemptError
from truthlens.llm.http import causes

MOST_BYTES = 16 * 1024 * 1024
_AGAIN = frozenset({408, 429, 500, 502, 503, 504})
_SUCCESS = range(200, 300)
# Such an error says what is wrong with the request, and the next one may do better for it.
_REFUSED = frozenset({400, 401, 402, 403, 404, 413, 422})
_LONGEST_REFUSAL_S = 2.0


async def post(
    http: httpx.AsyncClient,
    url: httpx.URL,
    content: bytes,
    headers: Mapping[str, bytes],
    *,
    most_bytes: int = MOST_BYTES,
    wall_clock: Callable[[], float] = time.time,
) -> bytes:
    """Post a request and return the body of a 2xx JSON answer, decoded, at most ``most_bytes`` long.

    Args:
        http: carries the request.
        url: where to.
        content: the request, of the content type that ``headers`` say.
        headers: lower-case names; an ``authorization`` here goes before one in the URL.
        most_bytes: of a longer answer no more than one read of the network is held, and it is a bad response.
        wall_clock: seconds since the epoch, for answers that name the date of the next attempt.

    Raises:
        AttemptError: anything else came, or nothing.
    """
    # The no-op authentication keeps a user name in the URL from replacing the key.
    auth = httpx.Auth() if "authorization" in headers else httpx.USE_CLIENT_DEFAULT
    try:
        async with http.stream("POST", url, content=content, headers=_raw(headers), auth=auth) as response:
            await _check_refusal(response)
            _check_head(response, most_bytes, wall_clock)
            return await _read(response, most_bytes)
    except CallError:
        raise
    except (httpx.ConnectTimeout, httpx.PoolTimeout):
        raise AttemptError(CallFailure.CONNECTION, "no connection in time", again=True) from None
    except httpx.TimeoutException:
        raise AttemptError(CallFailure.TIMEOUT, "no answer in time") from None
    except zlib.error:
        raise AttemptError(CallFailure.BAD_RESPONSE, "the encoded data are damaged") from None
    except Exception as error:  # noqa: BLE001 - the layers below httpx let errors of their own through
        # The exception's text may quote the URL; its type is all that is told.
        raise AttemptError(CallFailure.CONNECTION, type(error).__name__, again=True) from None


async def _check_refusal(response: httpx.Response) -> None:
    """Raise the error of a refused request with its cause, for which a part of the body is read."""
    if response.status_code not in _REFUSED:
        return
    body = bytearray()
    try:
        if response.headers.get("content-encoding", "identity").strip().lower() in ("identity", "gzip"):
            async with asyncio.timeout(_LONGEST_REFUSAL_S):
                await _fill(body, response, causes.MOST_BYTES)
    except (httpx.HTTPError, zlib.error, TimeoutError):
        pass  # what came is enough to say that it was refused
    cause = causes.cause_of(response.status_code, bytes(body))
    raise AttemptError(CallFailure.CLIENT_ERROR, f"status {response.status_code}", cause=cause)


def _raw(headers: Mapping[str, bytes]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("ascii"), value) for name, value in headers.items()]


def _check_head(response: httpx.Response, most_bytes: int, wall_clock: Callable[[], float]) -> None:
    status = response.status_code
    if status not in _SUCCESS:
        raise AttemptError(
            _failure_of(status),
            f"status {status}",
            again=status in _AGAIN,
            least_wait_s=_least_wait_s(response.headers, wall_clock),
        )
    kind = response.headers.get("content-type", "application/json").partition(";")[0].strip().lower()
    if kind != "application/json" and not (kind.startswith("application/") and kind.endswith("+json")):
        raise AttemptError(CallFailure.BAD_RESPONSE, "the content-type is not JSON")
    # None was asked for. Gzip is let through, for it can be inflated within a bound.
    if response.headers.get("content-encoding", "identity").strip().lower() not in ("identity", "gzip"):
        raise AttemptError(CallFailure.BAD_RESPONSE, "a content-encoding that was not asked for")
    length = response.headers.get("content-length", "0")
    if length.isascii() and length.isdigit() and len(length) < 20 and int(length) > most_bytes:
        raise _too_large(most_bytes)


def _failure_of(status: int) -> CallFailure:
    if status == httpx.codes.TOO_MANY_REQUESTS:
        return CallFailure.RATE_LIMITED
    return CallFailure.SERVER_ERROR if status >= 500 else CallFailure.CLIENT_ERROR


def _least_wait_s(headers: httpx.Headers, wall_clock: Callable[[], float]) -> float:
    """Return the seconds that the backend asks to wait, 0 if it does not say.

    Source: RFC 9110 section 10.2.3; ``retry-after-ms`` is what OpenAI and Azure send in addition.
    """
    milliseconds = _seconds(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    after = headers.get("retry-after", "")
    seconds = _seconds(after)
    if seconds is not None:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(after).timestamp() - wall_clock())
    except (ValueError, OverflowError):
        return 0.0


def _seconds(text: str) -> float | None:
    text = text.strip()
    if len(text) > 20 or not text.isascii() or not text.replace(".", "", 1).isdigit():
        return None
    return float(text)


async def _read(response: httpx.Response, most_bytes: int) -> bytes:
    body = bytearray()
    await _fill(body, response, most_bytes + 1)
    if len(body) > most_bytes:
        raise _too_large(most_bytes)
    return bytes(body)


async def _fill(body: bytearray, response: httpx.Response, enough: int) -> None:
    """Add the decoded body to ``body`` until its end, or until it has ``enough`` bytes or some more."""
    if response.headers.get("content-encoding", "identity").strip().lower() == "identity":
        async for chunk in response.aiter_bytes():
            body += chunk
            if len(body) >= enough:
                return
        return
    # Inflated here and not by httpx, which has no bound on what one chunk becomes.
    gzip = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    async for chunk in response.aiter_raw():
        body += gzip.decompress(chunk, enough - len(body))
        if len(body) >= enough or gzip.eof:
            return


def _too_large(most_bytes: int) -> AttemptError:
    return AttemptError(CallFailure.BAD_RESPONSE, f"the answer is larger than {most_bytes} bytes")
