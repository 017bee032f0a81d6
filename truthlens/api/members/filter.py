"""Which members of a chunk or a body may leave beside an answer that was scored, and beside one whose text was changed.

Backends repeat what they say: token ids, log probabilities, ``message`` beside ``delta``, a whole ``__verbose``. Whoever
withholds a text must not deliver it in another member, and whoever must score a text must not deliver one that stands where
nobody looked. So members are let through by what they are, not taken out by name: the answer itself, its finish, tool
calls, and what is plainly bookkeeping (numbers, flags, ids, addresses).

Deliberately not here: what the answer is (``responses``, ``chunks``), and its new text (``chunk_edits``).
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from enum import Enum
from os.path import commonprefix
from string import ascii_letters, digits

from truthlens.api import json_edit
from truthlens.api.content import text_of_part
from truthlens.api.members.bookkeeping import (
    LONGEST,
    MOST_WORDS,
    NAMES,
    count_words,
    is_address,
    is_identifier,
    natural_words,
    spelled_by,
    texts_within,
)
from truthlens.api.members.copies import ForbiddenTexts, squeezed
from truthlens.core.records.enums import Endpoint

LOGPROBS_DROPPED = "logprobs-dropped"
"""The note that says that log probabilities were taken out."""
FIELDS_DROPPED = "fields-dropped"
"""The note that says that other members were."""

_MOST_WORDS_TITLES = 24
# In a member over all frames, and in all members of unknown names together: less than what is a copy.
_MOST_WORDS_SAID = 5
_MOST_WORDS_MODEL = 8
_MOST_ITEMS = 4
_MOST_MEMBERS = 64
# Most chunks are small and leave whole, which a look tells; with long ones an edit costs less than that.
_MOST_LOOKED_AT = 64 << 10
# The longest run that is looked for over the borders of strings and frames.
_TAIL = 128
_MOST_REPEATED = 1024
_KEY = re.compile(r"[\w.$:/+-]{1,64}", re.ASCII)
_SIGNATURES = frozenset(("signature", "thought_signature"))
_SIGNATURE = re.compile(r"[A-Za-z0-9+/]+={0,2}", re.ASCII)
_TEXTLESS = (int, float, bool, type(None))

# Names under which servers repeat an answer, one short piece a chunk.
_COPIES = frozenset(
    [
        "text",
        "content",
        "message",
        "delta",
        "logprobs",
        "top_logprobs",
        "prompt_logprobs",
        "token",
        "tokens",
        "token_id",
        "token_ids",
        "prompt_token_ids",
        "output",
        "output_text",
        "output_ids",
        "generated_text",
        "generation",
        "response",
        "completion",
        "transcript",
        "audio",
        "hidden_states",
        "details",
        "__verbose",
    ]
)
_CALLS = frozenset(("tool_calls", "function_call"))
# Said to the reader beside the answer, as what they are: they pass with an answer that was not changed.
_ASIDE = frozenset(
    ("reasoning_content", "reasoning", "reasoning_details", "thinking", "thinking_blocks", "refusal")
)
_NAMED = NAMES | _COPIES | _CALLS | _ASIDE | {"error"}
_CALLED = frozenset(("function", "custom"))
_CALLED_WITH = frozenset(("arguments", "input"))
# Nothing is lost with it.
_PADDING = frozenset(("obfuscation", "p"))
_GONE = object()


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


class Members:
    """Takes members out of the chunks of one stream, or out of one body.

    Attributes:
        dropped: Whether anything was taken out so far, other than log probabilities.
        logprobs_dropped: Whether log probabilities of the answer were.
    """

    def __init__(self, endpoint: Endpoint, *, streamed: bool) -> None:
        self.dropped = False
        self.logprobs_dropped = False
        self._holder = "text" if endpoint is Endpoint.COMPLETIONS else "delta" if streamed else "message"
        self._streamed = streamed
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
        self._forbidden.add(text)
        self._repeated.clear()

    def forbids(self, text: str) -> bool:
        """Whether ``text`` repeats what must not leave."""
        return self._forbidden.stands_in(text)

    def cleaned(self, text: str, level_of: Callable[[int], Level], *, top: Level) -> str:
        """The JSON object ``text`` without the members that may not leave; ``text`` itself where all may.

        Args:
            text: A chunk or a body that could be read.
            level_of: For the choice at a place of ``choices``.
            top: For the members beside ``choices``.

        Raises:
            RecursionError: It nests too deeply to be edited.
        """
        doubled: list[bool] = []

        def pairs(members: list[tuple[str, object]]) -> dict[str, object]:
            found = dict(members)
            if len(found) != len(members):
                doubled.append(True)
            return found

        self._begin()
        # Of a name that is repeated clients read the last, and so did we.
        if len(text) <= _MOST_LOOKED_AT:
            body = json.loads(text, object_pairs_hook=pairs)
            if not doubled and self._leaves_whole(body, level_of, top):
                self._commit()
                return text
            self._begin()
        edited = self._edit_last(text, lambda key, raw: self._edit_top(key, raw, level_of, top))
        self._commit()
        return edited

    def _begin(self) -> None:
        self._leaving.clear()
        self._frame.clear()
        self._new.clear()

    def _commit(self) -> None:
        for path, said in self._leaving.items():
            self._before[path] = (self._before[path] + "".join(said))[-_TAIL:]
        if len(self._repeated) < _MOST_REPEATED:
            self._repeated.update(self._new)

    def _leaves_whole(self, body: Mapping[str, object], level_of: Callable[[int], Level], top: Level) -> bool:
        for key, value in body.items():
            if key == "choices" and isinstance(value, list):
                if not all(
                    self._choice_leaves_whole(choice, level_of(place)) for place, choice in enumerate(value)
                ):
                    return False
            elif self._beside(key, value, top) is not value:
                return False
        return True

    def _choice_leaves_whole(self, choice: object, level: Level) -> bool:
        if level is Level.ALL:
            return True
        if not isinstance(choice, dict):
            return isinstance(choice, _TEXTLESS)
        for key, value in choice.items():
            if key == self._holder and isinstance(value, dict):
                index = _index_of(choice)
                if any(self._in_holder(name, each, index, level) is not each for name, each in value.items()):
                    return False
            elif self._in_choice(key, value, choice, level) is not value:
                return False
        return True

    def _edit_top(self, key: str, raw: str, level_of: Callable[[int], Level], top: Level) -> str | None:
        if key == "choices" and raw.startswith("["):
            return json_edit.edit_array(raw, lambda place, each: self._edit_choice(each, level_of(place)))
        return self._edited(key, raw, lambda value: self._beside(key, value, top))

    def _edit_choice(self, raw: str, level: Level) -> str | None:
        if level is Level.ALL:
            return raw
        if not raw.startswith("{"):
            return self._edited(
                "choices", raw, lambda value: value if isinstance(value, _TEXTLESS) else _GONE
            )
        choice = json.loads(raw)

        def edit(key: str, value: str) -> str | None:
            if key == self._holder and value.startswith("{"):
                return self._edit_last(
                    value,
                    lambda name, each: self._edited(
                        name, each, lambda found: self._in_holder(name, found, _index_of(choice), level)
                    ),
                )
            return self._edited(key, value, lambda found: self._in_choice(key, found, choice, level))

        return self._edit_last(raw, edit)

    def _edited(self, key: str, raw: str, keep: Callable[[object], object]) -> str | None:
        value = json.loads(raw)
        kept = keep(value)
        if kept is value:
            return raw
        self._note(key)
        return None if kept is _GONE else json_edit.dump(kept)

    def _edit_last(self, raw: str, edit: Callable[[str, str], str | None]) -> str:
        """``raw`` with each member edited; of a name that is repeated only the last stays."""
        left = Counter(json_edit.keys(raw))

        def edit_member(key: str, value: str) -> str | None:
            left[key] -= 1
            if not left[key]:
                return edit(key, value)
            self._note(key)
            return None

        return json_edit.edit_object(raw, edit_member)

    def _note(self, key: str) -> None:
        if key == "logprobs":
            self.logprobs_dropped = True
        elif key not in _PADDING:
            self.dropped = True

    # --- what leaves: the value itself, less of it, or nothing ----------------------------------------------

    def _beside(self, key: str, value: object, level: Level) -> object:
        if level is Level.ALL:
            return value
        if key == "error" and level not in _TAKEN_BACK:
            return value if self._may_leave(key, all_strings(value)) else _GONE
        return self._bookkeeping(key, value, key)

    def _in_choice(self, key: str, value: object, choice: Mapping[str, object], level: Level) -> object:
        if key == self._holder == "text" and isinstance(value, str) and level is not Level.UNREAD:
            return value
        if key == "logprobs":
            # They spell the text of their choice, so that what they may say goes by that.
            keeps = level is Level.SCORED and not self._is_ahead(value, choice)
            return value if value is None or (keeps and not texts_within(key, value)) else _GONE
        return self._bookkeeping(key, value, f"{_index_of(choice)}.{key}")

    def _in_holder(self, key: str, value: object, index: str, level: Level) -> object:
        if key in _CALLS:
            return self._calls(value)
        if key == "content" and isinstance(value, str) and level is not Level.UNREAD:
            return value
        if key == "content" and isinstance(value, list) and level is not Level.UNREAD:
            return _less(value, [self._part(part, index, level) for part in value])
        path = f"{index}.{self._holder}.{key}"
        if key in _ASIDE and value:
            if level in _TAKEN_BACK or not self._may_leave(path, all_strings(value)):
                return _GONE
            return value
        return self._bookkeeping(key, value, path)

    def _part(self, part: object, index: str, level: Level) -> object:
        if isinstance(part, str):
            return part
        if not isinstance(part, dict):
            return _GONE
        aside = part.get("type") in ("thinking", "reasoning", "refusal")
        if aside and level not in _TAKEN_BACK and self._may_leave(f"{index}.part", all_strings(part)):
            return part
        is_text = text_of_part(part) is not None
        kept = {
            key: value if is_text and key == "text" else self._bookkeeping(key, value, f"{index}.part.{key}")
            for key, value in part.items()
        }
        return _less(part, kept)

    def _calls(self, value: object) -> object:
        """What leaves of tool calls: names and arguments, which are for programs, and bookkeeping."""
        if isinstance(value, list):
            return _less(value, [self._calls(each) if isinstance(each, dict) else _GONE for each in value])
        if not isinstance(value, dict):
            return value if value is None else _GONE
        return _less(value, {key: self._in_call(key, each) for key, each in value.items()})

    def _in_call(self, key: str, value: object) -> object:
        if key in _CALLED_WITH or (key == "name" and value is None):
            return value
        if key == "name":
            # However many words it has: the call is void without it.
            fits = isinstance(value, str) and _KEY.fullmatch(value) and self._may_leave("call.name", [value])
            return value if fits else _GONE
        if key in _CALLED and isinstance(value, dict):
            return _less(value, {name: self._in_call(name, each) for name, each in value.items()})
        return self._bookkeeping(key, value, f"call.{key}")

    def _is_ahead(self, logprobs: object, choice: Mapping[str, object]) -> bool:
        """Whether log probabilities tell of more than the text in the same choice: of what is still to come."""
        if not self._streamed or logprobs is None:
            return False
        return len(spelled_by(logprobs)) > len(_text_of(choice.get(self._holder)))

    def _bookkeeping(self, key: str, value: object, path: str) -> object:
        """What of a member leaves of which nobody scores the text."""
        known = key in NAMES
        if (value is None or value == "") and key in _NAMED:
            return value
        if key in _COPIES or not (known or _KEY.fullmatch(key)):
            return _GONE
        if known and (
            isinstance(value, _TEXTLESS) or (isinstance(value, str) and (path, value) in self._repeated)
        ):
            # Nearly all of nearly all chunks.
            return value
        left = _Filter(key)
        kept = left.of(key, value)
        own = [] if known else [key]
        if kept is _GONE or path in self._shut or not self._has_room(key, path, [*own, *left.counted]):
            return _GONE
        if not self._may_leave(path, [*own, *left.said]):
            # What has begun to spell it goes on.
            self._shut.add(path)
            return _GONE
        if known and isinstance(value, str):
            self._new.append((path, value))
        return kept

    def _has_room(self, key: str, path: str, said: list[str]) -> bool:
        """Whether what is said in a place, in this frame and all before, stays too little to be a sentence."""
        place = path if key in NAMES else ""
        words = self._passed[place].union(word for each in said for word in natural_words(each))
        if len(words) > (_MOST_WORDS_MODEL if key == "model" else _MOST_WORDS_SAID):
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


class _Filter:
    """Leaves of one member what is too short to be a sentence.

    ``said`` is what that says, in order; ``counted`` what of it counts with other frames.
    """

    def __init__(self, name: str) -> None:
        self.said: list[str] = []
        self.counted: list[str] = []
        self._known = name in NAMES
        self._numbers_only = name == "usage"
        self._titles = _MOST_WORDS_TITLES
        self._items = _MOST_ITEMS

    def of(self, name: str, value: object, beside: Mapping[str, object] | None = None) -> object:
        if isinstance(value, _TEXTLESS):
            return value
        if isinstance(value, str):
            return value if not self._numbers_only and self._takes(name, value, beside or {}) else _GONE
        if isinstance(value, dict):
            if len(value) > _MOST_MEMBERS:
                return _GONE
            return _less(value, {key: self._member(key, each, value) for key, each in value.items()})
        assert isinstance(value, list)
        # A row of numbers is a text in token ids, a row of words is one as it stands; so are many short rows.
        self._items -= sum(isinstance(each, (str, *_TEXTLESS)) and not is_address(each) for each in value)
        if self._items < 0 or len(value) > _MOST_MEMBERS or (self._numbers_only and value):
            return _GONE
        return _less(value, [self.of(name, each) for each in value])

    def _member(self, key: str, value: object, beside: Mapping[str, object]) -> object:
        if key in _COPIES or not _KEY.fullmatch(key):
            return _GONE
        if key not in NAMES:
            words = len(natural_words(key))
            if words > MOST_WORDS:
                return _GONE
            # Names of measures have several words each, and there are many.
            self._says(key, counts=words == 1 or not self._known)
        return self.of(key, value, beside)

    def _says(self, text: str, *, counts: bool = True) -> None:
        self.said.append(text)
        if counts:
            self.counted.append(text)

    def _takes(self, name: str, text: str, beside: Mapping[str, object]) -> bool:
        if is_address(text):
            self._says(text, counts=False)
            # The path of a page often spells its title.
            spaced = text if "%20" in text or "+" in text else text.partition("?")[2]
            return len(natural_words(spaced)) <= _MOST_WORDS_SAID
        if name in _SIGNATURES and _SIGNATURE.fullmatch(text):
            self._says(text, counts=False)
            return True
        if name not in NAMES or not is_identifier(name, text):
            words = count_words(text)
            if len(text) > LONGEST or words > MOST_WORDS or len(natural_words(text)) > _MOST_WORDS_SAID:
                return False
            if name == "title" and is_address(beside.get("url")):
                self._titles -= words
                self._says(text, counts=False)
                return self._titles >= 0
        self._says(text)
        return True


def _less(value: object, kept: object) -> object:
    """``kept`` without what is gone; ``value`` itself where nothing is, ``_GONE`` where nothing is left."""
    if isinstance(kept, dict):
        assert isinstance(value, dict)
        left: object = {key: each for key, each in kept.items() if each is not _GONE}
        same = all(kept[key] is each for key, each in value.items())
    else:
        assert isinstance(kept, list)
        assert isinstance(value, list)
        left = [each for each in kept if each is not _GONE]
        same = all(new is old for new, old in zip(kept, value, strict=True))
    return value if same else left or _GONE


def said_aside(holder: Mapping[str, object]) -> str:
    """What a delta or a message says to the reader beside the answer: reasoning, a refusal."""
    return "".join(each for key in _ASIDE for each in all_strings(holder.get(key)))


def all_strings(value: object) -> list[str]:
    """All strings in a JSON value but the names of the table, in order."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [
            found
            for key, item in value.items()
            for found in ([key] if key not in _NAMED else []) + all_strings(item)
        ]
    return [found for item in value for found in all_strings(item)] if isinstance(value, list) else []


def _index_of(choice: Mapping[str, object]) -> str:
    index = choice.get("index")
    return str(index) if isinstance(index, int) else ""


def _text_of(holder: object) -> str:
    if isinstance(holder, str):
        return holder
    found = holder if isinstance(holder, dict) else {}
    content = found.get("content")
    if isinstance(content, list):
        return "".join(text_of_part(part) or "" for part in content)
    aside = [found.get(name) for name in ("refusal", "reasoning_content", "reasoning")]
    return "".join(each for each in (content, *aside) if isinstance(each, str))
