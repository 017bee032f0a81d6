"""Take secrets and personal data out of what is captured, each character by a mark, so that positions stay right."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import regex

from truthlens.api.sse.frames import Decoder, set_data
from truthlens.core.review_settings import ReviewSettings
from truthlens.review.entry.redaction import MARK, redactor

# Members of a request whose value is a credential, or names a person, by the OpenAI API and the proxies in front of it.
_SECRET_MEMBERS = frozenset({
    "api_key", "apikey", "api-key", "authorization", "access_token", "extra_headers", "user", "safety_identifier",
})  # fmt: skip
_SECRET_HEADERS = frozenset({
    "authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key", "api-key", "x-auth-token",
})  # fmt: skip
_Path = tuple[str | int, ...]


class Cleaner:
    """Cleans the texts of exchanges.

    Args:
        settings: ``redact`` and ``redact_patterns`` are what is taken out, as in kept texts of the review queue.
        secrets: texts that are never kept, such as the keys of models.

    The methods raise ``TimeoutError`` for a text on which a pattern takes too long.
    """

    def __init__(self, settings: ReviewSettings, secrets: Iterable[str]) -> None:
        known = [regex.escape(each) for each in secrets if each]
        self._redact = redactor(settings.redact, (*known, *settings.redact_patterns))
        self._redacts = bool(known or settings.redact or settings.redact_patterns)
        self.changed = False
        """Whether anything was taken out of a text so far."""

    def text(self, text: str) -> str:
        """Return a text without what is taken out."""
        if not self._redacts or not text:
            return text
        clean = self._redact(text)
        self.changed |= clean != text
        return clean

    def headers(self, headers: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
        """Return the headers of these lower-case ``names``, never one that holds a credential."""
        kept = sorted(set(names) - _SECRET_HEADERS)
        return {name: self.text(headers[name]) for name in kept if name in headers}

    def value(self, value: Any) -> Any:
        """Return a JSON value with all texts in it cleaned; names of members stay."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {name: self.value(each) for name, each in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(each) for each in value]
        return value

    def request(self, body: str) -> str:
        """Return the JSON of a request, unchanged to the byte where nothing is to be taken out of it."""
        try:
            read = json.loads(body)
        except (ValueError, RecursionError):
            return self.text(body)
        clean = self.members(read) if isinstance(read, dict) else self.value(read)
        return body if clean == read else json.dumps(clean)

    def members(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return the members of a request with all texts cleaned, and credentials and names of persons hidden."""
        return {
            name: _hidden(each) if name in _SECRET_MEMBERS else self.value(each)
            for name, each in request.items()
        }

    def response(self, body: str, *, streams: bool) -> str:
        """Return the JSON or the event stream of a response, unchanged to the byte where nothing is to be taken out of it."""
        if not self._redacts:
            return body
        if streams:
            return self._stream(body)
        try:
            read = json.loads(body)
        except (ValueError, RecursionError):
            return self.text(body)
        clean = self.value(read)
        return body if clean == read else json.dumps(clean)

    def _stream(self, body: str) -> str:
        """Return a stream with each text cleaned as a whole, whichever chunks its characters stand in."""
        decoder = Decoder()
        frames, last = decoder.feed(body.encode()), decoder.finish()
        frames += [] if last is None else [last]
        chunks = [_chunk(frame.data) for frame in frames]
        texts: dict[_Path, list[str]] = defaultdict(list)
        for chunk in chunks:
            for path, text in _texts(chunk):
                texts[path].append(text)
        clean = {path: iter(_cut(self.text("".join(parts)), parts)) for path, parts in texts.items()}
        written = []
        for frame, chunk in zip(frames, chunks, strict=True):
            changed = _replaced(chunk, lambda path, _text: next(clean[path]))
            raw = (frame.raw if changed == chunk else set_data(frame, json.dumps(changed))).decode()
            written.append(self.text(raw) if chunk is None else raw)
        return "".join(written)


def _hidden(value: Any) -> Any:
    if isinstance(value, str):
        return MARK * len(value)
    if isinstance(value, dict):
        return {name: _hidden(each) for name, each in value.items()}
    return None


def _chunk(data: str | None) -> Any:
    try:
        return json.loads(data or "")
    except (ValueError, RecursionError):
        return None


def _texts(value: Any) -> Iterator[tuple[_Path, str]]:
    found: list[tuple[_Path, str]] = []

    def note(path: _Path, text: str) -> str:
        found.append((path, text))
        return text

    _replaced(value, note)
    yield from found


def _replaced(value: Any, put: Callable[[_Path, str], str], path: _Path = ()) -> Any:
    """Return a chunk with each of its texts as ``put`` gives it; a choice and a tool call are known by their ``index``."""
    if isinstance(value, str):
        return put(path, value)
    if isinstance(value, dict):
        return {name: _replaced(each, put, (*path, name)) for name, each in value.items()}
    if isinstance(value, list):
        places = (
            each.get("index", place) if isinstance(each, dict) else place for place, each in enumerate(value)
        )
        return [_replaced(each, put, (*path, str(place))) for place, each in zip(places, value, strict=True)]
    return value


def _cut(text: str, parts: Iterable[str]) -> Iterator[str]:
    start = 0
    for part in parts:
        yield text[start : start + len(part)]
        start += len(part)
