"""Which members of a chunk or a body may leave beside an answer that was judged, and beside one whose text was changed.

Backends repeat what they say: token ids, log probabilities, ``message`` beside ``delta``, a whole ``__verbose``. Whoever
withholds a text must not deliver it in another member, and whoever must judge a text must not deliver one that stands where
nobody looked. So members are let through by what they are, not taken out by name: the answer itself, its finish, tool
calls, and what is plainly bookkeeping (numbers, flags, ids, addresses).

Deliberately not here: what the answer is (``responses``, ``chunks``), and its new text (``chunk_edits``).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from enum import Enum

from truthlens.api import json_edit
from truthlens.api.content import text_of_part
from truthlens.core.enums import Endpoint

LOGPROBS_DROPPED = "logprobs-dropped"
"""The note that says that log probabilities were taken out."""
FIELDS_DROPPED = "fields-dropped"
"""The note that says that other members were."""

_LONGEST = 128
_MOST_WORDS = 4
_MOST_WORDS_KNOWN = 24
_MOST_ITEMS = 4
_MOST_MEMBERS = 64
# Most chunks are small and leave whole, which a look tells; with long ones an edit costs less than that.
_MOST_LOOKED_AT = 64 << 10
# Scripts that part words by no space: so many characters are a word.
_WIDE = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\ua4cf\uac00-\ud7ff\uf900-\ufaff\uff66-\uff9f]"
)
_WIDE_WORD = 2
# So many words in a row are a copy.
_RUN = 6
_TOKEN = re.compile(f"{_WIDE.pattern}|[^\\W{_WIDE.pattern[1:-1]}]+")
_KEY = re.compile(r"[\w.$:/+-]{1,64}", re.ASCII)
_ADDRESS = re.compile(r"https?://[!-~]{1,2000}|data:image/[\w.+-]{1,40};base64,[A-Za-z0-9+/=]+", re.ASCII)
_TEXTLESS = (int, float, bool, type(None))

# What servers are known to say of a chunk or a choice without saying its text.
_BOOKKEEPING = frozenset(
    (
        *(
            "id",
            "object",
            "created",
            "model",
            "index",
            "role",
            "type",
            "name",
            "finish_reason",
            "error",
            "usage",
        ),
        *(
            "system_fingerprint",
            "service_tier",
            "provider",
            "obfuscation",
            "p",
            "timings",
            "x_groq",
            "images",
        ),
        *("prompt_filter_results", "content_filter_results", "content_filter_offsets", "annotations"),
        *("stop_reason", "matched_stop", "native_finish_reason", "kv_transfer_params", "citations"),
        *("search_results", "provider_specific_fields"),
    )
)
# Names under which servers repeat an answer, one short piece a chunk.
_COPIES = frozenset(
    (
        *(
            "text",
            "content",
            "message",
            "delta",
            "logprobs",
            "top_logprobs",
            "prompt_logprobs",
            "token",
            "tokens",
        ),
        *(
            "token_id",
            "token_ids",
            "prompt_token_ids",
            "output",
            "output_text",
            "output_ids",
            "generated_text",
        ),
        *(
            "generation",
            "response",
            "completion",
            "transcript",
            "audio",
            "hidden_states",
            "details",
            "__verbose",
        ),
    )
)
_CALLS = frozenset(("tool_calls", "function_call"))
# Said to the reader beside the answer, as what they are: they pass with an answer that was not changed.
_ASIDE = frozenset(
    ("reasoning_content", "reasoning", "reasoning_details", "thinking", "thinking_blocks", "refusal")
)
_GONE = object()


class Level(Enum):
    """How much of a choice, or beside the choices, is let through.

    ``ALL``: everything. ``JUDGED``: the answer, bookkeeping, and what is said aside (reasoning, refusals, errors).
    ``REPLACED``: the same, of an answer that is new. ``CHANGED``: nothing aside. ``UNREAD``: no answer either, since nobody
    could read it.
    """

    ALL = 0
    JUDGED = 1
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
        # Short strings that passed, by the place where they stood: pieces of a text differ, bookkeeping repeats itself.
        self._passed: dict[str, set[str]] = {}
        self._forbidden: set[tuple[str, ...]] = set()

    @property
    def notes(self) -> set[str]:
        """What a verdict says of it."""
        said = {LOGPROBS_DROPPED: self.logprobs_dropped, FIELDS_DROPPED: self.dropped}
        return {note for note, true in said.items() if true}

    def forbid(self, text: str) -> None:
        """Let nothing leave aside that repeats ``text``, which must not leave."""
        self._forbidden.update(_runs(text))

    def forbids(self, text: str) -> bool:
        """Whether ``text`` repeats what must not leave."""
        return self._repeats(text)

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

        # Of a name that is repeated clients read the last, and so did we.
        if len(text) <= _MOST_LOOKED_AT:
            body = json.loads(text, object_pairs_hook=pairs)
            if not doubled and self._leaves_whole(body, level_of, top):
                return text
        return self._edit_last(text, lambda key, raw: self._edit_top(key, raw, level_of, top))

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
                if any(self._in_holder(name, each, level) is not each for name, each in value.items()):
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
                        name, each, lambda found: self._in_holder(name, found, level)
                    ),
                )
            return self._edited(key, value, lambda found: self._in_choice(key, found, choice, level))

        return self._edit_last(raw, edit)

    def _edited(self, key: str, raw: str, judge: Callable[[object], object]) -> str | None:
        value = json.loads(raw)
        kept = judge(value)
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
        else:
            self.dropped = True

    # --- what leaves: the value itself, less of it, or nothing ----------------------------------------------

    def _beside(self, key: str, value: object, level: Level) -> object:
        if level is Level.ALL or (key == "error" and level not in _TAKEN_BACK and not self._repeats(value)):
            return value
        return self._bookkeeping(key, value, key)

    def _in_choice(self, key: str, value: object, choice: Mapping[str, object], level: Level) -> object:
        if key == self._holder == "text" and isinstance(value, str) and level is not Level.UNREAD:
            return value
        if key == "logprobs" and level is Level.JUDGED and not self._is_ahead(value, choice):
            return value
        return self._bookkeeping(key, value, f"choice.{key}")

    def _in_holder(self, key: str, value: object, level: Level) -> object:
        if key in _CALLS or (key == "content" and isinstance(value, str) and level is not Level.UNREAD):
            return value
        if key == "content" and isinstance(value, list) and level is not Level.UNREAD:
            return _less(value, [self._part(part, level) for part in value])
        if key in _ASIDE and value:
            return _GONE if level in _TAKEN_BACK or self._repeats(value) else value
        return self._bookkeeping(key, value, f"{self._holder}.{key}")

    def _part(self, part: object, level: Level) -> object:
        if isinstance(part, str):
            return part
        if not isinstance(part, dict):
            return _GONE
        aside = part.get("type") in ("thinking", "reasoning", "refusal")
        if aside and level not in _TAKEN_BACK and not self._repeats(part):
            return part
        is_text = text_of_part(part) is not None
        kept = {
            key: value if is_text and key == "text" else self._bookkeeping(key, value, f"part.{key}")
            for key, value in part.items()
        }
        return _less(part, kept)

    def _repeats(self, value: object) -> bool:
        return bool(self._forbidden) and not self._forbidden.isdisjoint(_runs(" ".join(all_strings(value))))

    def _is_ahead(self, logprobs: object, choice: Mapping[str, object]) -> bool:
        """Whether log probabilities tell of more than the text in the same choice: of what is still to come."""
        if not self._streamed or logprobs is None:
            return False
        found = logprobs if isinstance(logprobs, dict) else {}
        entries = found.get("content") or found.get("refusal") or found.get("tokens") or []
        spelled = "".join(map(_token_of, entries)) if isinstance(entries, list) else ""
        return len(spelled) > len(_text_of(choice.get(self._holder)))

    def _bookkeeping(self, key: str, value: object, path: str) -> object:
        """What of a member leaves of which nobody judges the text."""
        known = key in _BOOKKEEPING
        if value is None or value == "":
            return value
        if known and (isinstance(value, _TEXTLESS) or _is_plain(value)):
            # Nearly all of nearly all chunks.
            return value
        if key in _COPIES or not (known or _KEY.fullmatch(key)):
            return _GONE
        kept = _Filter(known).of(value)
        if known or kept is _GONE:
            return kept
        passed = self._passed.setdefault(path, set())
        strings = passed.union(each for each in all_strings(kept) if not _is_address(each))
        if sum(map(_words, strings)) > _MOST_WORDS:
            return _GONE
        self._passed[path] = strings
        return kept


class _Filter:
    """Leaves of one member what is too short, in sum, to be a sentence."""

    def __init__(self, known: bool) -> None:
        self._left = _MOST_WORDS_KNOWN if known else _MOST_WORDS

    def of(self, value: object) -> object:
        if isinstance(value, _TEXTLESS):
            return value
        if isinstance(value, str):
            return value if self._takes(value) else _GONE
        if isinstance(value, dict):
            if len(value) > _MOST_MEMBERS:
                return _GONE
            kept = {
                key: _GONE if key in _COPIES or not _KEY.fullmatch(key) else self.of(each)
                for key, each in value.items()
            }
            return _less(value, kept)
        assert isinstance(value, list)
        # A row of numbers is a text in token ids, a row of words is one as it stands.
        plain = [each for each in value if isinstance(each, (str, *_TEXTLESS)) and not _is_address(each)]
        if len(plain) > _MOST_ITEMS or len(value) > _MOST_MEMBERS:
            return _GONE
        return _less(value, [self.of(each) for each in value])

    def _takes(self, text: str) -> bool:
        if _is_address(text):
            return True
        words = _words(text)
        if len(text) > _LONGEST or words > min(_MOST_WORDS, self._left):
            return False
        self._left -= words
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


def _is_address(value: object) -> bool:
    return isinstance(value, str) and _ADDRESS.fullmatch(value) is not None


def _is_plain(value: object) -> bool:
    """Whether a value is a short word of ASCII, as ids and names are."""
    return (
        isinstance(value, str)
        and len(value) <= _LONGEST
        and value.isascii()
        and " " not in value
        and value.isprintable()
    )


def _words(text: str) -> int:
    """Words of a text; an id or an address is one."""
    if text.isascii():
        return len(text.split())
    return len(text.split()) + len(_WIDE.findall(text)) // _WIDE_WORD


def said_aside(holder: Mapping[str, object]) -> str:
    """What a delta or a message says to the reader beside the answer: reasoning, a refusal."""
    return "".join(each for key in _ASIDE for each in all_strings(holder.get(key)))


def repeats(text: str, other: str) -> bool:
    """Whether ``other`` holds a piece of ``text``: six of its words in a row, or all of a shorter one."""
    return not _runs(text).isdisjoint(_runs(other, len(_TOKEN.findall(text))))


def all_strings(value: object) -> list[str]:
    """All strings in a JSON value but its keys, in order."""
    if isinstance(value, str):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [found for item in items for found in all_strings(item)]


def _runs(text: str, most: int = _RUN) -> set[tuple[str, ...]]:
    tokens = _TOKEN.findall(text.lower())
    size = min(_RUN, most, len(tokens))
    return {tuple(tokens[start : start + size]) for start in range(len(tokens) - size + 1)} if size else set()


def _token_of(entry: object) -> str:
    token = entry.get("token") if isinstance(entry, dict) else entry
    return token if isinstance(token, str) else ""


def _text_of(holder: object) -> str:
    if isinstance(holder, str):
        return holder
    found = holder if isinstance(holder, dict) else {}
    content = found.get("content")
    if isinstance(content, list):
        return "".join(text_of_part(part) or "" for part in content)
    aside = [found.get(name) for name in ("refusal", "reasoning_content", "reasoning")]
    return "".join(each for each in (content, *aside) if isinstance(each, str))
