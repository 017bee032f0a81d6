"""Write chunks: change a chunk's text in place, or make chunks that carry text or a verdict.

Deliberately not here: reading chunks (``chunks``), whole streams (``buffered``), which text is to be changed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping

from truthlens.api.responses import OWN_MEMBER, edit_choices, edit_parts, text_parts
from truthlens.api.sse.chunks import Transcript, index_of, is_object, join_pairs, parse_chunk
from truthlens.api.sse.frames import Frame, encode, reread, set_data
from truthlens.core.errors import DialectError
from truthlens.core.records.enums import Endpoint
from truthlens.text import json_edit

_OBJECTS = {Endpoint.CHAT: "chat.completion.chunk", Endpoint.COMPLETIONS: "text_completion"}


def edit_content(frame: Frame, choice_index: int, new_text: str | None, *, endpoint: Endpoint) -> bytes:
    """Return the frame's bytes with another text for one choice; ``edit_texts`` with that choice alone."""
    return edit_texts(frame, {choice_index: new_text}, endpoint=endpoint)


def edit_texts(frame: Frame, texts: Mapping[int, str | None], *, endpoint: Endpoint) -> bytes:
    """Return the frame's bytes with other texts for some of its choices; every other byte stays.

    Such a choice loses its ``logprobs``, which describe a text that is gone. Content in parts has the new
    text in its first text part, and its other text parts go. A choice that says the same already is not
    changed.

    Args:
        frame: A frame that ``parse_chunk`` could read.
        texts: The text by ``Delta.index``, or ``None`` to take the choice's text out; where a frame repeats a
            choice, the first takes the text and the others none.
        endpoint: The API of the stream.

    Raises:
        DialectError: The chunk's JSON nests too deeply to be edited.
        ValueError: There is a new text, and the frame holds no text of that choice to put it in the place of.
    """
    chunk = parse_chunk(frame, endpoint)
    edit = _ContentEdit(texts, endpoint)
    text = _edited(frame.data, edit.top) if frame.data is not None and chunk.deltas else ""
    changed = False
    for index, new in texts.items():
        if index in edit.placed:
            old = "".join(delta.text for delta in chunk.deltas if delta.index == index)
            changed = changed or join_pairs(old) != new
        elif new is not None:
            raise ValueError(f"the frame holds no text of choice {index}; add a chunk instead")
    return set_data(frame, text) if changed else frame.raw


def strip(frame: Frame, *, members: Collection[str] = (), logprobs: Collection[int] = ()) -> Frame:
    """Return the frame without top-level ``members`` of its chunk, and these choices' ``logprobs``.

    A frame that holds none of that is given back itself.

    Raises:
        DialectError: The chunk's JSON nests too deeply to be edited.
    """
    data = frame.data
    names = [*members, *(["logprobs"] if logprobs else [])]
    # A name may be written with escapes.
    if data is None or not ("\\u" in data or any(name in data for name in names)):
        return frame

    def top(key: str, raw: str) -> str | None:
        return None if key in members else edit_choices(key, raw, choice)

    def choice(place: int, raw: str) -> str:
        if not raw.startswith("{") or index_of(json.loads(raw), place) not in logprobs:
            return raw
        return json_edit.edit_object(
            raw, lambda key, value: None if key == "logprobs" and value != "null" else value
        )

    if not is_object(data):
        return frame
    text = _edited(data, top)
    return frame if text == data else reread(frame, set_data(frame, text))


def content_chunk(
    transcript: Transcript, index: int, text: str, *, role: str = "", finish_reason: str | None = None
) -> str:
    """Return JSON of a chunk, valid by the API's schema, that adds ``text`` to choice ``index``."""
    choice: dict[str, object] = {"index": index}
    if transcript.endpoint is Endpoint.COMPLETIONS:
        choice["text"] = text
    else:
        choice["delta"] = ({"role": role} if role else {}) | ({"content": text} if text else {})
    choice |= {"logprobs": None, "finish_reason": finish_reason}
    return json_edit.dump(_envelope(transcript, [choice]))


def final_chunk(transcript: Transcript, extra: Mapping[str, object]) -> str:
    """Return JSON of a chunk without choices that carries ``extra`` as its ``truthlens`` object."""
    return json_edit.dump(_envelope(transcript, []) | {OWN_MEMBER: dict(extra)})


def done_frame(*, newline: bytes = b"\n") -> bytes:
    """Return the frame that ends a stream."""
    return encode("[DONE]", newline=newline)


def _edited(data: str, top: Callable[[str, str], str | None]) -> str:
    try:
        return json_edit.edit_object(data, top)
    except RecursionError:
        raise DialectError("chunk nests too deeply to be edited") from None


class _ContentEdit:
    """One pass over a chunk's JSON; ``placed`` are the choices whose text was replaced."""

    def __init__(self, texts: Mapping[int, str | None], endpoint: Endpoint) -> None:
        self.placed: set[int] = set()
        self._texts = texts
        self._endpoint = endpoint
        self._new: str | None = None
        self._found = False

    def top(self, key: str, raw: str) -> str:
        # A chunk that repeats ``choices`` was read by its last; an earlier one may be of any shape.
        if key != "choices" or not raw.startswith("["):
            return raw
        self.placed.clear()
        return json_edit.edit_array(raw, self._choice)

    def _choice(self, place: int, raw: str) -> str:
        if not raw.startswith("{"):
            return raw
        choice = json.loads(raw)
        index = index_of(choice, place)
        if index not in self._texts:
            return raw
        text = self._texts[index]
        self._new = "" if text is not None and index in self.placed else text
        self._found = False
        edited = json_edit.edit_object(raw, self._member)
        if not self._found:
            return raw
        self.placed.add(index)
        if choice.get("logprobs") is None:
            return edited
        return json_edit.edit_object(edited, lambda key, value: None if key == "logprobs" else value)

    def _member(self, key: str, raw: str) -> str:
        if self._endpoint is Endpoint.COMPLETIONS:
            return self._replaced(raw) or '""' if key == "text" else raw
        if key == "delta" and raw.startswith("{"):
            return json_edit.edit_object(
                raw, lambda name, value: self._replaced(value) if name == "content" else value
            )
        return raw

    def _replaced(self, raw: str) -> str | None:
        """Return the new content; ``None`` if the member goes."""
        new = self._new
        if raw.startswith('"'):
            self._found = True
            return None if new is None else json_edit.dump(new)
        if not raw.startswith("["):
            return raw
        places = list(text_parts(raw))
        if not places:
            return raw
        self._found = True
        return edit_parts(raw, {**dict.fromkeys(places), places[0]: new})


def _envelope(transcript: Transcript, choices: list[object]) -> dict[str, object]:
    return {
        "id": transcript.id or "truthlens",
        "object": transcript.object or _OBJECTS[transcript.endpoint],
        "created": transcript.created,
        "model": transcript.model,
        "choices": choices,
    }
