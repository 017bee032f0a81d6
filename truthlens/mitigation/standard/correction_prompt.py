"""Build the correction prompt: evidence, question, the marked answer, and what is known of each mark.

Only the values are made here; the wording (the white paper's four principles and five instructions, 3.2.3) is
in the templates. Who is asked and what becomes of the reply is not decided here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from truthlens.core.records.enums import Endpoint
from truthlens.core.records.exchange import Exchange, Passage
from truthlens.core.records.explanation import Difference
from truthlens.core.records.verdict import Mark, Span, Verdict, marks_of
from truthlens.core.thresholds import EVEN_ODDS, at_rate
from truthlens.prompts import delimiters, render
from truthlens.prompts.evidence_selection import relevant
from truthlens.text.sentences import is_json, sentences
from truthlens.text.spans import touching

MOST_CHARS = 60_000
"""Characters of evidence in a correction prompt at most: a model that wrote from much must see it to correct."""

# More than this no model works through one by one; all stay marked in the answer.
_MOST_LISTED = 40
_MOST_CLAIM_CHARS = 300
_MOST_NEAREST_CHARS = 400
# A passage as short as this is found by its number: quoting from it would say it twice.
_SHORT_PASSAGE_CHARS = 600
_MOST_VALUE_CHARS = 80
_MOST_NOTE_CHARS = 200
_MOST_DIFFERENCES = 4
_MOST_READ_TIMES = 8


@dataclass(frozen=True, slots=True)
class _Difference:
    stated: str
    found: str


@dataclass(frozen=True, slots=True)
class _Listed:
    number: int
    confidence: str
    claim: str
    kind: str
    passage: int | None
    nearest: str
    differences: tuple[_Difference, ...]
    note: str


def correction_prompt(
    exchange: Exchange,
    text: str,
    verdict: Verdict,
    *,
    checks: str = "",
    missed: str = "",
    cue: bool | None = None,
    most_chars: int = MOST_CHARS,
) -> str:
    """Return the prompt that asks for ``text`` without what ``verdict`` flags in it.

    Args:
        exchange: the request half.
        text: the answer to be corrected.
        verdict: on ``text``; its spans are marked, with their explanations where they have any.
        checks: question and answer pairs of a self-check, fenced, or ``""``.
        missed: the code for which the attempt before was not taken, or ``""``.
        cue: whether the prompt ends by opening the answer; ``None``: where the API continues texts.
        most_chars: characters of evidence at most.
    """
    found = marks_of(with_spans(text, verdict).spans, length=len(text))
    return render.render(
        "correct",
        chinese=render.in_chinese(text, exchange.query),
        evidence=evidence_for(exchange, verdict, text=text, most_chars=most_chars),
        question=delimiters.tag("question", exchange.query),
        answer=marked_answer(text, verdict),
        marks=_shown(_listed(number, mark, text, exchange.passages) for number, mark in _chosen(found)),
        checks=checks,
        missed=missed,
        json=exchange.structured or is_json(text),
        cue=exchange.endpoint is Endpoint.COMPLETIONS if cue is None else cue,
    )


def with_spans(text: str, verdict: Verdict) -> Verdict:
    """Return the verdict with a span over all of ``text`` if an answer is flagged without any span.

    Many slight doubts can flag an answer; a prompt that marked nothing would ask for nothing.
    """
    if verdict.spans or verdict.score is None or not text.strip():
        return verdict
    start = len(text) - len(text.lstrip())
    score = at_rate(verdict.score, EVEN_ODDS, given=verdict.expected_rate)
    return replace(verdict, spans=(Span(start, len(text.rstrip()), score),))


def evidence_for(
    exchange: Exchange, verdict: Verdict, *, text: str = "", most_chars: int = delimiters.MOST_CHARS
) -> str:
    """Return the fenced evidence; if too long, the parts about the flagged spans and the question come first.

    First in line are the passages and sentences that explanations name, then those that share most with the
    flagged sentences and the question.

    Args:
        exchange: the request half.
        verdict: on ``text``.
        text: the answer.
        most_chars: characters of evidence at most.
    """
    verdict = with_spans(text, verdict)
    near: list[int] = []
    around: dict[int, list[tuple[int, int]]] = {}
    for span in sorted(verdict.spans, key=lambda each: -each.score):
        if span.passage is not None and 0 <= span.passage < len(exchange.passages):
            near.append(span.passage)
            if span.explanation is not None and span.explanation.sentence is not None:
                around.setdefault(span.passage, []).append(span.explanation.sentence)
    texts = [passage.text for passage in exchange.passages]
    if sum(map(len, texts)) > most_chars > 0:
        ranges = sentences(text)
        flagged = touching(ranges, ((span.start, span.end) for span in verdict.spans))
        about = [
            text[start:end] for (start, end), is_flagged in zip(ranges, flagged, strict=True) if is_flagged
        ]
        found = relevant(texts, [*about, exchange.query], most_chars=most_chars)
        near += found.passages
        for passage, places in found.sentences.items():
            around.setdefault(passage, []).extend(places)
    return delimiters.evidence(exchange.passages, near=near, around=around, most_chars=most_chars)


def marked_answer(text: str, verdict: Verdict) -> str:
    """Return the fenced answer with its flagged spans marked."""
    marked = delimiters.marked(text, with_spans(text, verdict).spans)
    return f"<{delimiters.PREFIX}answer>\n{marked}\n</{delimiters.PREFIX}answer>"


def _chosen(found: Sequence[Mark]) -> list[tuple[int, Mark]]:
    """Return the marks that are listed, in order: all, or those with the highest scores."""
    numbered = list(enumerate(found, start=1))
    return sorted(sorted(numbered, key=lambda each: -each[1].score)[:_MOST_LISTED], key=lambda each: each[0])


def _shown(listed: Iterable[_Listed]) -> list[_Listed]:
    """Return the marks to show; a sentence nearest to several of them is quoted only at the first."""
    told: set[str] = set()
    shown: list[_Listed] = []
    for each in listed:
        shown.append(replace(each, nearest="") if each.nearest in told else each)
        told.add(each.nearest)
    return shown


def _listed(number: int, mark: Mark, text: str, passages: Sequence[Passage]) -> _Listed:
    span = mark.telling
    explanation = span.explanation
    passage = span.passage if span.passage is not None and 0 <= span.passage < len(passages) else None
    source = passages[passage].text if passage is not None else ""
    sentence = source[slice(*explanation.sentence)] if explanation and explanation.sentence else ""
    differences = mark.differences[:_MOST_DIFFERENCES]
    note = next((each.note for each in mark.spans if each.note), "")
    return _Listed(
        number=number,
        confidence=f"{mark.score:.2f}",
        claim=delimiters.inline("claim", _cut(text[mark.start : mark.end], _MOST_CLAIM_CHARS)),
        kind=explanation.kind.value if explanation else "",
        passage=passage + 1 if passage is not None else None,
        nearest=delimiters.inline("nearest", _cut(sentence, _MOST_NEAREST_CHARS))
        if sentence.strip() and len(source) > _SHORT_PASSAGE_CHARS
        else "",
        differences=tuple(_difference(each, text, source) for each in differences),
        note=delimiters.inline("note", _cut(note, _MOST_NOTE_CHARS)) if note else "",
    )


def _difference(difference: Difference, text: str, source: str) -> _Difference:
    found = source[slice(*difference.evidence)] if difference.evidence else ""
    return _Difference(
        stated=delimiters.inline("stated", _cut(text[difference.start : difference.end], _MOST_VALUE_CHARS)),
        found=delimiters.inline("found", _cut(found, _MOST_VALUE_CHARS)) if found else "",
    )


def _cut(text: str, most_chars: int) -> str:
    # White space goes: what is read may be more than what is shown, and no more than a few times as much.
    line = " ".join(text[: _MOST_READ_TIMES * most_chars].split())
    return line if len(line) <= most_chars else f"{line[: most_chars - 1]}…"
