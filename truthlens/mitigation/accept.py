"""Whether a candidate may stand in for the answer, judged by its form: no score is looked at here.

A rewrite can be better by score and still be useless: cut off, in another language, no longer the JSON that a program
waits for, or rid of its errors by leaving out everything. ``rejection`` finds such texts and ``clean`` takes away what
models put around an answer. Whether a candidate is better grounded is for the verdict to say.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from truthlens.core.language import FUNCTION_WORDS
from truthlens.core.records import Span
from truthlens.core.text import sentences
from truthlens.mitigation import fence, prompts
from truthlens.mitigation.contract import Task
from truthlens.mitigation.declining import abstains, declines
from truthlens.mitigation.tongue import same_language

EMPTY = "empty"
TRUNCATED = "truncated"
LEAKED = "leaked"
NOT_JSON = "not-json"
JSON_SHAPE = "json-shape"
TOO_LONG = "too-long"
LANGUAGE = "language"
REFUSAL = "refusal"
LOST_CONTENT = "lost-content"

# How a finished answer ends; whatever else a backend names cuts it off or is no answer.
_UNFINISHED = frozenset({"length", "max_tokens", "content_filter"})
_MOST_TIMES = 3
_MOST_MORE_CHARS = 500
_STEM_LETTERS = 6
_WORD = re.compile(r"[^\W_]+(?:[.,:/-]\d+)*")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]+")
_STOP_WORDS = frozenset().union(*FUNCTION_WORDS.values())
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


def rejection(task: Task, text: str, *, finish_reason: str | None) -> str | None:
    """The code for which ``text`` may not stand in for the answer of ``task``, or ``None`` where it may.

    Args:
        task: the first answer, its verdict and its plan.
        text: the candidate, after ``clean``.
        finish_reason: what the backend said of the candidate's end.

    The codes that compare the two texts' contents come last: whoever lets those pass knows that no other holds.
    """
    first = task.answer.text
    if not text.strip():
        return EMPTY
    if finish_reason in _UNFINISHED:
        return TRUNCATED
    if _leaks(text, first):
        return LEAKED
    if wrong := _json_rejection(first, text, structured=task.exchange.structured):
        return wrong
    if not same_language(first, text):
        return LANGUAGE
    kept = unflagged(first, task.verdict.spans)
    if not declines(first) and (declines(text) or (kept and abstains(text))):
        return REFUSAL
    if len(text) > most_chars(first):
        return TOO_LONG
    if retention(kept, text) < task.plan.standard.min_retention:
        return LOST_CONTENT
    return None


def most_chars(first: str) -> int:
    """How long a text that stands in for ``first`` may be, in characters."""
    return _MOST_TIMES * len(first) + _MOST_MORE_CHARS


def clean(text: str, *, first: str = "") -> str:
    """``text`` without tags of ours, without a code fence around it and without a line that announces it.

    Args:
        text: what a model answered.
        first: the answer that it stands in for: what that has itself stays, white space at its ends included.
    """
    bare = fence.unmarked(text).strip()
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
    """The sentences of ``text`` that no span touches and that have words of content."""
    kept = (
        text[start:end]
        for start, end in sentences(text)
        if not any(span.start < end and start < span.end for span in spans)
    )
    return tuple(sentence for sentence in kept if _content(sentence))


def retention(kept: Sequence[str], text: str) -> float:
    """The share (0..1) of the words of content of ``kept`` that ``text`` holds, in whatever form; 1.0 of nothing."""
    wanted = [word for sentence in kept for word in _content(sentence)]
    if not wanted:
        return 1.0
    held = frozenset(_content(text))
    return sum(word in held for word in wanted) / len(wanted)


def _content(text: str) -> list[str]:
    """Words of content, cut to their first letters so that an ending does not count; pairs of characters in Chinese."""
    found: list[str] = []
    for run in _UNSPACED.findall(text):
        found += [run[place : place + 2] for place in range(max(len(run) - 1, 1))]
    for word in _WORD.findall(_UNSPACED.sub(" ", text.casefold())):
        if word not in _STOP_WORDS:
            found.append(word if any(c.isdigit() for c in word) else _stem(word))
    return found


def _stem(word: str) -> str:
    return (word[:-1] if len(word) > 3 and word.endswith("s") else word)[:_STEM_LETTERS]


def _leaks(text: str, first: str) -> bool:
    if fence.imitations(text) > fence.imitations(first):
        return True
    shown, had = prompts.normalised(text), prompts.normalised(first)
    return any(phrase in shown and phrase not in had for phrase in prompts.phrases())


def _json_rejection(first: str, text: str, *, structured: bool) -> str | None:
    # Asked for in the prompt alone, JSON often comes in a code fence; then the candidate has one as well.
    bare = _unfenced(first.strip())
    wanted = _shape_of(bare)
    if wanted is None or (not structured and wanted in _SCALARS):
        return None
    found = _shape_of(text if bare == first.strip() else _unfenced(text.strip()))
    if found is None:
        return NOT_JSON
    return None if _fits(found, wanted) else JSON_SHAPE


_Shape = str | dict[str, "_Shape"] | list["_Shape"]
_SCALARS = ("null", "boolean", "number", "string")


def _shape_of(text: str) -> _Shape | None:
    """Containers, keys and kinds of values of a JSON text; ``None`` where it is none."""
    try:
        return _shape(json.loads(text))
    except (ValueError, RecursionError):
        return None


def _shape(value: object) -> _Shape:
    if isinstance(value, dict):
        return {key: _shape(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_shape(item) for item in value]
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    return "number" if isinstance(value, int | float) else "string"


def _fits(found: _Shape, wanted: _Shape) -> bool:
    """Whether a program that reads ``wanted`` can read ``found``.

    The keys are the same and the values of one kind, null aside: what is not known may become null. A list may get
    shorter, and each of its items fits one that was there.
    """
    if found == "null" or wanted == "null":
        return True
    if isinstance(found, dict) and isinstance(wanted, dict):
        return found.keys() == wanted.keys() and all(_fits(found[key], wanted[key]) for key in found)
    if isinstance(found, list) and isinstance(wanted, list):
        return all(any(_fits(item, other) for other in wanted) for item in found) if wanted else True
    return found == wanted


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
