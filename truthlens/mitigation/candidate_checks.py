"""Check that a candidate may replace the answer, by its form alone: no score is used here.

A rewrite can be better by score and still be useless: cut off, in another language, no longer the JSON that a
program waits for, about something else, or rid of its errors by leaving out everything. ``rejection`` finds
such texts and ``clean`` takes away what models put around an answer. Whether a candidate is better grounded
is for the verdict to say.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from truthlens.core.records.verdict import Span
from truthlens.mitigation.interfaces import Task
from truthlens.mitigation.json_shape import parsed, shape_of
from truthlens.mitigation.relevance import is_off_topic, says_nothing
from truthlens.prompts import delimiters, render
from truthlens.text.claims.non_claims import Query, is_abstention, is_refusal
from truthlens.text.content_words import content_words, has_content
from truthlens.text.same_language import same_language
from truthlens.text.sentences import sentences
from truthlens.text.spans import touching

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

# How a finished answer ends; whatever else a backend names cuts it off or is no answer.
_UNFINISHED = frozenset({"length", "max_tokens", "content_filter"})
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
    first = task.answer.text
    if not text.strip():
        return EMPTY
    if finish_reason in _UNFINISHED:
        return TRUNCATED
    if _leaks(text, first):
        return LEAKED
    query = task.exchange.query
    wanted = _wanted_json(first, structured=task.exchange.structured)
    if wanted and (wrong := _json_rejection(wanted, text)):
        return wrong
    if not same_language(first, text, query):
        return LANGUAGE
    kept = unflagged(first, task.verdict.spans)
    if not is_refusal(first) and (is_refusal(text) or (kept and is_abstention(text, Query(text)))):
        return REFUSAL
    if not wanted and not says_nothing(first, query):
        if says_nothing(text, query):
            return NO_CLAIM
        if is_off_topic(text, (query, first, *(passage.text for passage in task.exchange.passages))):
            return OFF_TOPIC
    if len(text) > most_chars(first):
        return TOO_LONG
    if retention(kept, text) < task.plan.standard.min_retention:
        return LOST_CONTENT
    return None


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


def unflagged(text: str, spans: Sequence[Span]) -> tuple[str, ...]:
    """Return the sentences of ``text`` that no span touches and that have content words."""
    ranges = sentences(text)
    flagged = touching(ranges, ((span.start, span.end) for span in spans))
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
