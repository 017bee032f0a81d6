"""JSON text edited in place: only the members named change, every other character stays as it was.

Decoding and encoding again would lose what Python cannot hold (``1e400``, ``1.10``, repeated keys, escapes);
here each object and array is cut into the raw texts of its members.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator

from truthlens.core.errors import DialectError
from truthlens.core.json_size import check_values

_TYPE_NAMES = {dict: "an object", list: "a list", str: "a string", bool: "a boolean", type(None): "null"}

_SPACE = re.compile(r"[ \t\n\r]*")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_raw_decode = json.JSONDecoder().raw_decode


def decode(body: bytes) -> str:
    """Decode a JSON body to text; a byte order mark is dropped.

    Raises:
        DialectError: The bytes are not UTF-8.
    """
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DialectError(f"body is not UTF-8 (byte {error.start}); expected JSON in UTF-8") from None


def load_object(
    text: str, *, max_values: int | None = None, repeated: list[tuple[str, object]] | None = None
) -> dict[str, object]:
    """The JSON object that ``text`` holds; of members of one name in an object the last.

    Args:
        text: of a client or a backend.
        max_values: most values that it may hold; ``None`` where that was seen to before.
        repeated: gets the members, at any depth, that another one of their name replaces: other parsers take those.

    Raises:
        BodyTooLargeError: ``text`` holds more values.
        DialectError: ``text`` is no JSON, nests too deeply, or holds something other than an object.
    """
    if max_values is not None:
        check_values(text, max_values)
    try:
        value = json.loads(text, object_pairs_hook=None if repeated is None else _Pairs(repeated))
    except json.JSONDecodeError as error:
        # The decoder's exception holds the document; it must not travel with ours.
        raise DialectError(f"body is not JSON (character {error.pos}); expected a JSON object") from None
    except (RecursionError, ValueError):
        raise DialectError("body is JSON that cannot be held (too deep or a number too long)") from None
    if not isinstance(value, dict):
        raise DialectError(f"body is {describe(value)}; expected a JSON object")
    return value


class _Pairs:
    """Makes objects of their members, and keeps the members that would be lost.

    Args:
        repeated: gets them.
    """

    def __init__(self, repeated: list[tuple[str, object]]) -> None:
        self._repeated = repeated

    def __call__(self, pairs: list[tuple[str, object]]) -> dict[str, object]:
        """Return the object of ``pairs``."""
        made = dict(pairs)
        if len(made) < len(pairs):
            self._repeated += [(key, value) for key, value in pairs if made[key] is not value]
        return made


def describe(value: object) -> str:
    """Return what kind of JSON value ``value`` is, in words and without its text."""
    return _TYPE_NAMES.get(type(value), "a number")


def show(text: str) -> str:
    """Return ``text`` with each lone surrogate, which UTF-8 cannot hold, as U+FFFD; same length."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def dump(value: object) -> str:
    """Return the compact JSON of ``value`` that can be written as UTF-8."""
    return show(json.dumps(value, ensure_ascii=False, allow_nan=False))


def edit_object(raw: str, edit: Callable[[str, str], str | None]) -> str:
    """Return ``raw``, the text of an object, with each member's value replaced by ``edit(key, value text)``.

    Where ``edit`` returns ``None`` the member is removed. Repeated keys are each edited.
    """
    return _edit(raw, lambda key, _position, value: edit(key, value))


def edit_array(raw: str, edit: Callable[[int, str], str | None]) -> str:
    """Return ``raw``, the text of an array, with each item replaced by ``edit(position, text)`` or gone."""
    return _edit(raw, lambda _key, position, value: edit(position, value))


def keys(raw: str) -> list[str]:
    """Return the names of the members of ``raw``, the text of an object, in order; repeated ones each."""
    return [key for key, _start, _end in _members(raw)]


def append_member(raw: str, key: str, value: str) -> str:
    """Return ``raw``, the text of an object, with one more member at its end."""
    end = raw.rindex("}")
    lead = "" if raw[:end].rstrip(" \t\n\r").endswith("{") else ", "
    return f"{raw[:end]}{lead}{dump(key)}: {value}{raw[end:]}"


def _edit(raw: str, edit: Callable[[str, int, str], str | None]) -> str:
    pieces: list[str] = []
    done = 0
    kept = 0
    for position, (key, start, end) in enumerate(_members(raw)):
        new = edit(key, position, raw[start:end])
        lead, done = raw[done:start], end
        if new is None:
            if position == 0:
                pieces.append(raw[: _skip(raw, 0) + 1])
            continue
        if kept == 0 and position > 0:
            # The members before were all removed: the comma that parted them goes with them.
            lead = lead[lead.index(",") + 1 :]
        pieces += (lead, new)
        kept += 1
    return "".join(pieces) + raw[done:]


def _members(raw: str) -> Iterator[tuple[str, int, int]]:
    """Yield key (``""`` in an array) and value's start and end for each member of valid JSON text."""
    position = _skip(raw, 0)
    is_object = raw[position] == "{"
    position = _skip(raw, position + 1)
    while raw[position] not in "}]":
        key = ""
        if is_object:
            key, position = _raw_decode(raw, position)
            position = _skip(raw, _skip(raw, position) + 1)
        _, end = _raw_decode(raw, position)
        yield key, position, end
        position = _skip(raw, end)
        if raw[position] == ",":
            position = _skip(raw, position + 1)


def _skip(raw: str, position: int) -> int:
    match = _SPACE.match(raw, position)
    return match.end() if match else position
