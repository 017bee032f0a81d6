"""Look up how many tokens a model takes in its server's list of models; cached for a while, and bounded.

That nothing is known is no failure: the call is made as it is, and the server says if it is too long.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import httpx

from truthlens.llm.http.causes import window_of

_KNOWN_S = 600.0
_UNKNOWN_S = 60.0
_LONGEST_S = 2.0
_MOST_BYTES = 2 << 20
_MOST_SERVERS = 64
_MOST_MODELS = 512
_SUFFIXES = ("/chat/completions", "/completions")
# vLLM and SGLang, OpenRouter and LM Studio, Groq, Mistral, others; llama.cpp puts its figures into ``meta``.
_FIELDS = (
    "max_model_len",
    "context_length",
    "context_window",
    "max_context_length",
    "max_context_window",
    "n_ctx",
)


@dataclass(slots=True)
class _Server:
    """What one server said: windows by model, until when that is good, and the lock of who asks."""

    windows: dict[str, int] = field(default_factory=dict)
    until: float = float("-inf")
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class ContextWindows:
    """Remembers the windows of models.

    Args:
        http: carries the requests.
        clock: seconds, monotonic.
    """

    def __init__(self, http: httpx.AsyncClient, clock: Callable[[], float]) -> None:
        self._http = http
        self._clock = clock
        self._servers: OrderedDict[str, _Server] = OrderedDict()

    async def of(
        self, model: str, url: httpx.URL, headers: Mapping[str, bytes], *, time_s: float
    ) -> int | None:
        """Return the tokens that ``model`` takes, prompt and answer together; ``None`` if that is not known.

        Args:
            model: its name at the server.
            url: where it is called; the list of models is at the same server.
            headers: of a call, lower-case names.
            time_s: as long as the server may take, where it has to be asked.
        """
        listing = _listing(url)
        if listing is None:
            return None
        server = self._server(str(listing))
        if self._clock() >= server.until:
            async with server.lock:
                if self._clock() >= server.until:
                    await self._ask(server, listing, headers, min(time_s, _LONGEST_S))
        return server.windows.get(model)

    def learn(self, model: str, url: httpx.URL, window: int) -> None:
        """Keep what an error of the server said of a model's window."""
        if (listing := _listing(url)) is not None:
            server = self._server(str(listing))
            if model in server.windows or len(server.windows) < _MOST_MODELS:
                server.windows[model] = window

    def _server(self, listing: str) -> _Server:
        server = self._servers.pop(listing, None) or _Server()
        self._servers[listing] = server
        if len(self._servers) > _MOST_SERVERS:
            self._servers.popitem(last=False)
        return server

    async def _ask(
        self, server: _Server, listing: httpx.URL, headers: Mapping[str, bytes], time_s: float
    ) -> None:
        found: dict[str, int] | None = None
        try:
            async with asyncio.timeout(time_s):
                found = await self._listed(listing, headers)
        except Exception:  # noqa: BLE001 - whatever a server or the layers below httpx do, nothing is known then
            found = None
        if found is not None:
            server.windows = found
        server.until = self._clock() + (_KNOWN_S if found else _UNKNOWN_S)

    async def _listed(self, listing: httpx.URL, headers: Mapping[str, bytes]) -> dict[str, int]:
        raw = [(name.encode("ascii"), value) for name, value in headers.items() if name != "content-type"]
        auth = httpx.Auth() if "authorization" in headers else httpx.USE_CLIENT_DEFAULT
        body = bytearray()
        async with self._http.stream("GET", listing, headers=raw, auth=auth) as response:
            if response.status_code != httpx.codes.OK:
                return {}
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > _MOST_BYTES:
                    return {}
        return read_windows(bytes(body))


def read_windows(body: bytes) -> dict[str, int]:
    """Return the windows by model of a list of models; what makes no sense is left out."""
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    entries = content.get("data") if isinstance(content, dict) else content
    found: dict[str, int] = {}
    for entry in entries[:_MOST_MODELS] if isinstance(entries, list) else []:
        name = entry.get("id") if isinstance(entry, dict) else None
        if not isinstance(name, str):
            continue
        meta = entry.get("meta")
        places = [entry, meta] if isinstance(meta, dict) else [entry]
        values = (window_of(place.get(key)) for place in places for key in _FIELDS)
        if window := next((value for value in values if value is not None), None):
            found[name] = window
    return found


def _listing(url: httpx.URL) -> httpx.URL | None:
    for suffix in _SUFFIXES:
        if url.path.endswith(suffix):
            return url.copy_with(path=f"{url.path.removesuffix(suffix)}/models")
    return None
