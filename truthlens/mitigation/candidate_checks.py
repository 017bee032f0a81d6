"""Check that a candidate may replace the answer, by its form alone: no score is used here.

A rewrite can be better by score and still be useless: cut off, in another language, no longer the JSON that a
program waits for, about something else, or rid of its errors by leaving out everything. ``rejection`` finds
such texts and ``clean`` takes away what models put around an answer. Whether a candidate is better grounded
is for the verdict to say.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from truthlens.core.records.calls import CUT_OFF
from truthlens.mitigation.doubts import Doubt, doubts
from truthlens.mitigation.interfaces import Task
from truthlens.mitigation.relevance import is_off_topic, says_nothing
from truthlens.prompts import delimiters, render
from truthlens.text.claims.non_claims import is_abstention, is_refusal
from truthlens.text.same_language import same_language
from truthlens.text.sentences import sentences
from truthlens.text.spans import touching
from truthlens.text.word_forms import content_words, has_content

_MOST_DEPTH = 40


@dataclass(slots=True)
class Shape:
    """What is at one place of a JSON text, or in all items of a list.

    ``kinds`` are those of plain values. ``objects`` has the shapes of the members by the keys of the object,
    ``items`` that of the items of lists, ``None`` where there was no list. Values are not compared, nor is what
    is nested deeper than 40 levels; the work is in proportion to the texts.
    """

    kinds: set[str] = field(default_factory=set)
    objects: dict[frozenset[str], dict[str, Shape]] = field(default_factory=dict)
    items: Shape | None = None

    @property
    def is_plain(self) -> bool:
        """Whether neither an object nor a list was seen here."""
        return not self.objects and self.items is None

    def add(self, value: object, depth: int = 0) -> None:
        """See one more value at this place."""
        if depth > _MOST_DEPTH:
            self.kinds.add("null")  # which everything fits
        elif isinstance(value, dict):
            members = self.objects.setdefault(frozenset(value), {})
            for key, member in value.items():
                members.setdefault(key, Shape()).add(member, depth + 1)
        elif isinstance(value, list):
            self.items = self.items or Shape()
            for item in value:
                self.items.add(item, depth + 1)
        else:
            self.kinds.add(_kind(value))

    def admits(self, value: object) -> bool:
        """Return whether ``value`` is like what was seen here.

        An object has the keys of one that was seen, and its values are of the kinds that those had. A list
        may get shorter, and its items are like those that were seen. Null fits everywhere, and everything
        fits where null was: what is not known may become null, and what was not known may become known.
        """
        if value is None or "null" in self.kinds:
            return True
        if isinstance(value, dict):
            members = self.objects.get(frozenset(value))
            return members is not None and all(members[key].admits(value[key]) for key in value)
        if isinstance(value, list):
            items = self.items
            if items is None:
                return False
            return (items.is_plain and not items.kinds) or all(items.admits(item) for item in value)
        return _kind(value) in self.kinds


EMPTY = "empty"
TRUNCATED = "truncated"
LEAKED = "leaked"
NOT_JSON = "not-json"
JSON_SHAPE = "json-shape"
TOO_LONG = "too-long"
LANGUAGE = "language"
REFUSAL = "refusal"
NO_CLAIM = "no-claim"
OFF_TOPIC = "off-topic"
LOST_CONTENT = "lost-content"

_MOST_TIMES = 3
_MOST_MORE_CHARS = 500
_FENCE = re.compile(r"(`{3,20}|~{3,20})[ \t]{0,4}[\w+-]{0,20}[ \t]{0,4}\n")
_PREFACE = re.compile(
    r"(?:#{1,6}[ ]*|\*{1,2}|_{1,2})?"
    r"(?:(?:sure|certainly|of course|okay|ok|absolutely|understood)[,.!:]?\s+)?"
    r"(?:(?:here(?:'s|’s| is| are| you go)|below is|this is|the following is)\b[^\n:]{0,40}?)?\b"
    r"(?:corrected|revised|updated|rewritten|improved|amended|edited|fixed|final)\s+"
    r"(?:and\s+\w+\s+)?(?:answer|response|version|text|reply|rewrite)\b[^\n:.]{0,80}:(?:\*{1,2}|_{1,2})?\s*"
    r"|(?:#{1,6}[ ]*)(?:corrected|revised|updated|rewritten)\s+(?:answer|response|version|text)[ ]*\n+"
    r"|(?:#{1,6}[ ]*|\*{1,2})?(?:好的|当然|没问题|明白)?[，,。！!]?\s*(?:(?:以下|下面|这)(?:就)?是|以下为)?(?:我)?(?:经过?)?"
    r"(?:修正|修改|更正|修订|改写|重写|校正|纠正|订正|更新)(?:过)?(?:之)?(?:后)?的?"
    r"(?:回答|答案|回复|版本|文本|内容|答复)(?:如下)?\s*[：:](?:\*{1,2})?\s*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Json:
    """The value of a JSON answer, and whether it was in a code fence."""

    value: object
    is_fenced: bool


def rejection(task: Task, text: str, *, finish_reason: str | None) -> str | None:
    """Return the code why ``text`` may not replace the answer of ``task``, or ``None`` if it may.

    Args:
        task: the first answer, its verdict and its plan.
        text: the candidate, after ``clean``.
        finish_reason: what the backend said of the candidate's end.

    The codes that compare the two texts' contents come last: a caller that accepts those knows that no other
    applies.
    """
    first, exchange = task.answer.text, task.exchange
    query = exchange.query
    wanted = _wanted_json(first, structured=exchange.structured)
    wrong = _json_rejection(wanted, text) if wanted else None
    answers = not wanted and not says_nothing(first, query)
    kept = unflagged(first, doubts(first, task.verdict))
    checks: dict[str, Callable[[], bool]] = {
        EMPTY: lambda: not text.strip(),
        TRUNCATED: lambda: finish_reason in CUT_OFF,
        LEAKED: lambda: _leaks(text, first),
        NOT_JSON: lambda: wrong == NOT_JSON,
        JSON_SHAPE: lambda: wrong == JSON_SHAPE,
        LANGUAGE: lambda: not same_language(first, text, query),
        REFUSAL: lambda: not is_refusal(first) and (is_refusal(text) or (bool(kept) and is_abstention(text))),
        NO_CLAIM: lambda: answers and says_nothing(text, query),
        OFF_TOPIC: lambda: (
            answers and is_off_topic(text, (query, first, *(each.text for each in exchange.passages)))
        ),
        TOO_LONG: lambda: len(text) > most_chars(first),
        LOST_CONTENT: lambda: retention(kept, text) < task.plan.standard.min_retention,
    }
    return next((code for code, fails in checks.items() if fails()), None)


def most_chars(first: str) -> int:
    """Return how long a text that replaces ``first`` may be, in characters."""
    return _MOST_TIMES * len(first) + _MOST_MORE_CHARS


def clean(text: str, *, first: str = "") -> str:
    """Return ``text`` without our tags, without a code fence around it and without a line that announces it.

    Args:
        text: what a model answered.
        first: the answer that it replaces: what that has itself stays, white space at its ends included.
    """
    bare = delimiters.unmarked(text).strip()
    for _ in range(3):
        before = bare
        if not first.lstrip().startswith(("```", "~~~")):
            bare = _unfenced(bare)
        if not _PREFACE.match(first.lstrip()):
            bare = _without_preface(bare)
        if bare == before:
            break
    if not bare or not first.strip():
        return bare
    start = len(first) - len(first.lstrip())
    return first[:start] + bare + first[len(first.rstrip()) :]


def unflagged(text: str, found: Sequence[Doubt]) -> tuple[str, ...]:
    """Return the sentences of ``text`` that hold nothing doubtful and that have content words."""
    ranges = sentences(text)
    flagged = touching(ranges, ((doubt.start, doubt.end) for doubt in found))
    kept = (
        text[start:end] for (start, end), is_flagged in zip(ranges, flagged, strict=True) if not is_flagged
    )
    return tuple(sentence for sentence in kept if has_content(sentence))


def retention(kept: Sequence[str], text: str) -> float:
    """Return the share (0..1) of the content words of ``kept`` that ``text`` has in any form.

    It is 1.0 for none.
    """
    wanted = [word for sentence in kept for word in content_words(sentence)]
    if not wanted:
        return 1.0
    held = frozenset(content_words(text))
    return sum(word in held for word in wanted) / len(wanted)


def _leaks(text: str, first: str) -> bool:
    if delimiters.imitations(text) > delimiters.imitations(first):
        return True
    shown, had = render.normalised(text), render.normalised(first)
    return any(phrase in shown and phrase not in had for phrase in render.phrases())


def _wanted_json(first: str, *, structured: bool) -> _Json | None:
    """Return the JSON of the first answer, or ``None`` where it is not JSON to compare with."""
    # Asked for in the prompt alone, JSON often comes in a code fence; then the candidate has one as well.
    bare = _unfenced(first.strip())
    try:
        value = parsed(bare)
    except ValueError:
        return None
    if not structured and not isinstance(value, dict | list):
        return None
    return _Json(value, is_fenced=bare != first.strip())


def _json_rejection(wanted: _Json, text: str) -> str | None:
    try:
        value = parsed(_unfenced(text.strip()) if wanted.is_fenced else text)
    except ValueError:
        return NOT_JSON
    return None if shape_of(wanted.value).admits(value) else JSON_SHAPE


def _unfenced(text: str) -> str:
    opening = _FENCE.match(text)
    if not opening or not text[opening.end() :].rstrip().endswith(opening[1]):
        return text
    within = text[opening.end() :].rstrip().removesuffix(opening[1])
    # A fence within means that the outer marks are the first and the last of several blocks.
    return text if opening[1] in within else within.rstrip(" \t").strip("\n")


def _without_preface(text: str) -> str:
    match = _PREFACE.match(text)
    rest = text[match.end() :].strip() if match else ""
    return rest or text


def shape_of(value: object) -> Shape:
    """Return the shape of one value of a JSON text."""
    shape = Shape()
    shape.add(value)
    return shape


def parsed(text: str) -> object:
    """Return the value of a JSON text.

    Raises:
        ValueError: it is no JSON, or nested too deeply to be read.
    """
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, int | float) else "string"
