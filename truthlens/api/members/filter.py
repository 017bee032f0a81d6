"""Which members of a chunk or a body may leave beside an answer that was scored, and beside one whose text was changed.

Backends repeat what they say: token ids, log probabilities, ``message`` beside ``delta``, a whole ``__verbose``. Whoever
withholds a text must not deliver it in another member, and whoever must score a text must not deliver one that stands where
nobody looked. So members are let through by what they are, not taken out by name: the answer itself, its finish, tool
calls, and what is plainly bookkeeping (numbers, flags, ids, addresses).

Deliberately not here: what the answer is (``responses``, ``chunks``), and its new text (``chunk_edits``).
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from os.path import commonprefix
from string import ascii_letters, digits
from typing import Any

from truthlens.api.content import text_of_part, texts_of_parts
from truthlens.api.members.bookkeeping import (
    ARGUMENTS,
    CALLED,
    CALLS,
    COPIES,
    GONE,
    KEY,
    MOST_PARTS,
    MOST_PARTS_MODEL,
    NAMES,
    REASONING,
    TEXTLESS,
    ShortStrings,
    is_address,
    less,
    natural_words,
    spelled_by,
    texts_within,
)
from truthlens.api.members.copies import ForbiddenTexts, squeezed
from truthlens.core.records.enums import Endpoint
from truthlens.text import json_edit

LOGPROBS_DROPPED = "logprobs-dropped"
"""The note that says that log probabilities were taken out."""
FIELDS_DROPPED = "fields-dropped"
"""The note that says that other members were."""

# The longest run that is looked for over the borders of strings and frames.
_TAIL = 128
_MOST_REPEATED = 1024
# Said to the reader beside the answer, as what they are: they pass with an answer that was not changed.
_ASIDE = REASONING | {"refusal"}
_NAMED = NAMES | COPIES | CALLS | _ASIDE | {"error"}
# Nothing is lost with it.
_PADDING = frozenset(("obfuscation", "p"))


class Level(Enum):
    """How much of a choice, or beside the choices, is let through.

    ``ALL``: everything. ``SCORED``: the answer, bookkeeping, and what is said aside (reasoning, refusals, errors).
    ``REPLACED``: the same, of an answer that is new. ``CHANGED``: nothing aside. ``UNREAD``: no answer either, since nobody
    could read it.
    """

    ALL = 0
    SCORED = 1
    REPLACED = 2
    CHANGED = 3
    UNREAD = 4


_TAKEN_BACK = (Level.CHANGED, Level.UNREAD)


class _Edits(dict[object, object]):
    """What becomes of members that do not leave as they are: nothing, another value, or edits within."""


class Members:
    """Takes members out of the chunks of one stream, or out of one body.

    Attributes:
        dropped: Whether anything was taken out so far, other than log probabilities.
        logprobs_dropped: Whether log probabilities of the answer were.
        forbidden: How many texts must not leave so far.
    """

    def __init__(self, endpoint: Endpoint, *, streamed: bool) -> None:
        self.dropped = False
        self.logprobs_dropped = False
        self.forbidden = 0
        self._holder = "text" if endpoint is Endpoint.COMPLETIONS else "delta" if streamed else "message"
        self._streamed = streamed
        self._doubled = False
        # Words that passed, by the place where they stood: pieces of a text differ, bookkeeping repeats itself.
        self._passed: defaultdict[str, set[str]] = defaultdict(set)
        self._shut: set[str] = set()
        self._addresses: defaultdict[str, str] = defaultdict(str)
        self._repeated: set[tuple[str, str]] = set()
        self._new: list[tuple[str, str]] = []
        self._forbidden = ForbiddenTexts()
        # What left of a place in the frames before, of this frame at the place, and of all of this frame.
        self._before: defaultdict[str, str] = defaultdict(str)
        self._leaving: defaultdict[str, list[str]] = defaultdict(list)
        self._frame: list[str] = []

    @property
    def notes(self) -> set[str]:
        """What a verdict says of it."""
        said = {LOGPROBS_DROPPED: self.logprobs_dropped, FIELDS_DROPPED: self.dropped}
        return {note for note, true in said.items() if true}

    def forbid(self, text: str) -> None:
        """Let nothing leave aside that repeats ``text``, which must not leave."""
        self.forbidden += 1
        self._forbidden.add(text)
        self._repeated.clear()

    def forbids(self, text: str) -> bool:
        """Whether ``text`` repeats what must not leave."""
        return self._forbidden.stands_in(text)

    def leaves_beside(self, name: str, text: str) -> bool:
        """Whether ``text`` may leave in a line of a frame beside its data, as the member ``name`` may; it counts as left, or as taken out."""
        self._begin()
        value = int(text) if name == "usage" and text.isascii() and text.isdecimal() else text
        leaves = self._bookkeeping(name, value, f"line.{name}") == value
        self._commit()
        if not leaves:
            self._note(name)
        return leaves

    @property
    def said_nothing(self) -> bool:
        """Whether the last ``cleaned`` found nothing new: until the next ``forbid`` its like leaves as it is, unlooked at."""
        return not (self._leaving or self._new)

    def cleaned(self, text: str, level_of: Callable[[int], Level], *, top: Level) -> str:
        """The JSON object ``text`` without the members that may not leave; ``text`` itself where all may.

        Args:
            text: A chunk or a body that could be read.
            level_of: For the choice at a place of ``choices``.
            top: For the members beside ``choices``.

        Raises:
            RecursionError: It nests too deeply to be edited.
        """
        self._doubled = False
        self._begin()
        body = json.loads(text, object_pairs_hook=self._object)

        def keep(key: str, value: object) -> object:
            if key == "choices" and isinstance(value, list):
                choices = enumerate(value)
                return self._within(value, choices, lambda place, each: self._choice(each, level_of(place)))
            return self._beside(key, value, top)

        kept = self._within(body, body.items(), keep)
        self._commit()
        return self._edited(text, kept) if isinstance(kept, _Edits) else text

    def _begin(self) -> None:
        self._leaving.clear()
        self._frame.clear()
        self._new.clear()

    def _commit(self) -> None:
        for path, said in self._leaving.items():
            self._before[path] = (self._before[path] + "".join(said))[-_TAIL:]
        if len(self._repeated) < _MOST_REPEATED:
            self._repeated.update(self._new)

    def _object(self, members: list[tuple[str, object]]) -> dict[str, object]:
        """A JSON object: of a name that is repeated clients read the last, and so did we."""
        found = dict(members)
        if len(found) == len(members):
            return found
        self._doubled = True
        return {key: value for key, value in members if found[key] is value}

    def _within(
        self, value: object, members: Iterable[tuple[Any, object]], keep: Callable[[Any, object], object]
    ) -> object:
        """``value`` itself where all of its members leave as they are, else what becomes of the others."""
        edits = _Edits({key: kept for key, each in members if (kept := keep(key, each)) is not each})
        return edits if edits or self._doubled else value

    def _edited(self, raw: str, edits: _Edits) -> str:
        """``raw``, an object or a list, with its members edited; of a repeated name only the last stays."""

        def edit(key: str | int, each: str) -> str | None:
            if key not in edits:
                return each
            kept = edits[key]
            if isinstance(kept, _Edits):
                return self._edited(each, kept)
            self._note(key)
            return None if kept is GONE else json_edit.dump(kept)

        if raw.startswith("["):
            return json_edit.edit_array(raw, edit)
        left = Counter(json_edit.keys(raw))

        def edit_last(key: str, each: str) -> str | None:
            left[key] -= 1
            if not left[key]:
                return edit(key, each)
            self._note(key)
            return None

        return json_edit.edit_object(raw, edit_last)

    def _note(self, key: str | int) -> None:
        if key == "logprobs":
            self.logprobs_dropped = True
        elif key not in _PADDING:
            self.dropped = True

    # --- what leaves: the value itself, less of it, or nothing ----------------------------------------------

    def _beside(self, key: str, value: object, level: Level) -> object:
        if level is Level.ALL:
            return value
        if key == "error" and level not in _TAKEN_BACK:
            return value if self._may_leave(key, _all_strings(value)) else GONE
        return self._bookkeeping(key, value, key)

    def _choice(self, choice: object, level: Level) -> object:
        if level is Level.ALL or isinstance(choice, TEXTLESS):
            return choice
        if not isinstance(choice, dict):
            return GONE
        index = _index_of(choice)

        def keep(key: str, value: object) -> object:
            if key == self._holder and isinstance(value, dict):
                members = value.items()
                return self._within(
                    value, members, lambda name, each: self._in_holder(name, each, index, level)
                )
            return self._in_choice(key, value, choice, level)

        return self._within(choice, choice.items(), keep)

    def _in_choice(self, key: str, value: object, choice: Mapping[str, object], level: Level) -> object:
        if key == self._holder == "text" and isinstance(value, str) and level is not Level.UNREAD:
            return value
        if key == "logprobs":
            # They spell the text of their choice, so that what they may say goes by that.
            keeps = level is Level.SCORED and not self._is_ahead(value, choice)
            return value if value is None or (keeps and not texts_within(key, value)) else GONE
        return self._bookkeeping(key, value, f"{_index_of(choice)}.{key}")

    def _in_holder(self, key: str, value: object, index: str, level: Level) -> object:
        if key in CALLS:
            return self._calls(value)
        if key == "content" and isinstance(value, str) and level is not Level.UNREAD:
            return value
        if key == "content" and isinstance(value, list) and level is not Level.UNREAD:
            return less(value, [self._part(part, index, level) for part in value])
        path = f"{index}.{self._holder}.{key}"
        if key in _ASIDE and value:
            if level in _TAKEN_BACK or not self._may_leave(path, _all_strings(value)):
                return GONE
            return value
        return self._bookkeeping(key, value, path)

    def _part(self, part: object, index: str, level: Level) -> object:
        if isinstance(part, str):
            return part
        if not isinstance(part, dict):
            return GONE
        aside = part.get("type") in ("thinking", "reasoning", "refusal")
        if aside and level not in _TAKEN_BACK and self._may_leave(f"{index}.part", _all_strings(part)):
            return part
        is_text = text_of_part(part) is not None
        kept = {
            key: value if is_text and key == "text" else self._bookkeeping(key, value, f"{index}.part.{key}")
            for key, value in part.items()
        }
        return less(part, kept)

    def _calls(self, value: object) -> object:
        """What leaves of tool calls: names and arguments, which are for programs, and bookkeeping."""
        if isinstance(value, list):
            return less(value, [self._calls(each) if isinstance(each, dict) else GONE for each in value])
        if not isinstance(value, dict):
            return value if value is None else GONE
        return less(value, {key: self._in_call(key, each) for key, each in value.items()})

    def _in_call(self, key: str, value: object) -> object:
        if key in ARGUMENTS or (key == "name" and value is None):
            return value
        if key == "name":
            # However many words it has: the call is void without it.
            fits = isinstance(value, str) and KEY.fullmatch(value) and self._may_leave("call.name", [value])
            return value if fits else GONE
        if key in CALLED and isinstance(value, dict):
            return less(value, {name: self._in_call(name, each) for name, each in value.items()})
        return self._bookkeeping(key, value, f"call.{key}")

    def _is_ahead(self, logprobs: object, choice: Mapping[str, object]) -> bool:
        """Whether log probabilities tell of more than the text in the same choice: of what is still to come."""
        if not self._streamed or logprobs is None:
            return False
        return len(spelled_by(logprobs)) > len(_text_of(choice.get(self._holder)))

    def _bookkeeping(self, key: str, value: object, path: str) -> object:
        """What of a member leaves of which nobody scores the text."""
        if value in (None, "") and key in _NAMED:
            return value
        if key in COPIES or not KEY.fullmatch(key):
            return GONE
        known = key in NAMES
        if known and (
            isinstance(value, TEXTLESS) or (isinstance(value, str) and (path, value) in self._repeated)
        ):
            # Nearly all of nearly all chunks.
            return value
        left = ShortStrings(key)
        kept = left.of(key, value)
        if kept is GONE or path in self._shut or not self._has_room(key, path, left.counted):
            return GONE
        if not self._may_leave(path, left.said):
            # What has begun to spell it goes on.
            self._shut.add(path)
            return GONE
        if known and isinstance(value, str):
            self._new.append((path, value))
        return kept

    def _has_room(self, key: str, path: str, said: list[str]) -> bool:
        """Whether what is said in a place, in this frame and all before, stays too little to be a sentence."""
        place = path if key in NAMES else ""
        words = self._passed[place].union(word for each in said for word in natural_words(each))
        if len(words) > (MOST_PARTS_MODEL if key == "model" else MOST_PARTS):
            return False
        self._passed[place] = words
        return True

    def _may_leave(self, path: str, said: list[str]) -> bool:
        """Whether these strings repeat nothing that must not leave, with what left before them; they count as left."""
        if not said:
            return True
        # A piece of a text may end within a word.
        piece = "".join(squeezed(self._new_of(path, each)) for each in said)
        if self._forbidden:
            beside = "".join(self._frame)[-_TAIL:]
            before = self._before[path] + "".join(self._leaving[path])
            whole = " ".join(said)
            if self._forbidden.stands_in(whole) or any(
                self._forbidden.spelled_in(each[-_TAIL:] + piece) for each in (before, beside)
            ):
                return False
        self._leaving[path].append(piece)
        self._frame.append(piece)
        return True

    def _new_of(self, path: str, text: str) -> str:
        """What an address says that the one before it in the same place does not; any other text itself."""
        if not is_address(text):
            return text
        last, self._addresses[path] = self._addresses[path], text
        same = commonprefix([last, text])  # noqa: RUF071 - of characters
        return text[len(same.rstrip(ascii_letters + digits)) :]


def said_aside(holder: Mapping[str, object]) -> str:
    """What a delta or a message says to the reader beside the answer: reasoning, a refusal."""
    return "".join(each for key in _ASIDE for each in _all_strings(holder.get(key)))


def _all_strings(value: object) -> list[str]:
    """All strings in a JSON value but the names of the table, in order."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [
            found
            for key, item in value.items()
            for found in ([key] if key not in _NAMED else []) + _all_strings(item)
        ]
    return [found for item in value for found in _all_strings(item)] if isinstance(value, list) else []


def _index_of(choice: Mapping[str, object]) -> str:
    index = choice.get("index")
    return str(index) if isinstance(index, int) else ""


def _text_of(holder: object) -> str:
    if isinstance(holder, str):
        return holder
    found = holder if isinstance(holder, dict) else {}
    content = found.get("content")
    if isinstance(content, list):
        return "".join(texts_of_parts(content))
    aside = [found.get(name) for name in ("refusal", "reasoning_content", "reasoning")]
    return "".join(each for each in (content, *aside) if isinstance(each, str))
