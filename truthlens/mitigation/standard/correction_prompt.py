"""Build the correction prompt: evidence, question, the answer with its doubtful claims marked, and what is known of each.

Only the values are made here; the wording (the white paper's four principles and five instructions, 3.2.3) is
in the templates. Who is asked and what becomes of the reply is not decided here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from truthlens.core.records.claims import ClaimOutcome
from truthlens.core.records.enums import Endpoint
from truthlens.core.records.exchange import Exchange, Passage
from truthlens.core.records.explanation import Difference, SpanKind
from truthlens.core.records.verdict import Verdict
from truthlens.mitigation.doubts import Doubt, doubts_shown
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
_MOST_VALUE_CHARS = 80
_MOST_NOTE_CHARS = 200
_MOST_DIFFERENCES = 4
_MOST_READ_TIMES = 8
_KINDS = {
    ClaimOutcome.CONTRADICTED: SpanKind.CONTRADICTED.value,
    ClaimOutcome.NOT_STATED: SpanKind.UNSUPPORTED.value,
}


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
    reason: str
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
        verdict: on ``text``; what it holds against the text is marked, with what is known of it.
        checks: question and answer pairs of a self-check, fenced, or ``""``.
        missed: the code for which the attempt before was not taken, or ``""``.
        cue: whether the prompt ends by opening the answer; ``None``: where the API continues texts.
        most_chars: characters of evidence at most.
    """
    found = doubts_shown(text, verdict)
    return render.render(
        "correct",
        chinese=render.in_chinese(text, exchange.query),
        evidence=evidence_for(exchange, verdict, text=text, most_chars=most_chars),
        question=delimiters.tag("question", exchange.query),
        answer=marked_answer(text, found),
        marks=_shown(_listed(number, doubt, text, exchange.passages) for number, doubt in _chosen(found)),
        checks=checks,
        missed=missed,
        json=exchange.structured or is_json(text),
        cue=exchange.endpoint is Endpoint.COMPLETIONS if cue is None else cue,
    )


def evidence_for(
    exchange: Exchange, verdict: Verdict, *, text: str = "", most_chars: int = delimiters.MOST_CHARS
) -> str:
    """Return the fenced evidence; if too long, the parts about what is in doubt and the question come first.

    First in line are the passages and sentences that findings name, then those that share most with the
    doubtful sentences and the question.

    Args:
        exchange: the request half.
        verdict: on ``text``.
        text: the answer.
        most_chars: characters of evidence at most.
    """
    found = doubts_shown(text, verdict)
    near: list[int] = []
    around: dict[int, list[tuple[int, int]]] = {}
    for doubt in sorted(found, key=lambda each: -each.score):
        for passage, sentence in _sources(doubt):
            if 0 <= passage < len(exchange.passages):
                near.append(passage)
                if sentence is not None:
                    around.setdefault(passage, []).append(sentence)
    texts = [passage.text for passage in exchange.passages]
    if sum(map(len, texts)) > most_chars > 0:
        ranges = sentences(text)
        flagged = touching(ranges, ((doubt.start, doubt.end) for doubt in found))
        about = [
            text[start:end] for (start, end), is_flagged in zip(ranges, flagged, strict=True) if is_flagged
        ]
        chosen = relevant(texts, [*about, exchange.query], most_chars=most_chars)
        near += chosen.passages
        for passage, places in chosen.sentences.items():
            around.setdefault(passage, []).extend(places)
    return delimiters.evidence(exchange.passages, near=near, around=around, most_chars=most_chars)


def marked_answer(text: str, found: Iterable[Doubt]) -> str:
    """Return the fenced answer with what is in doubt marked."""
    marked = delimiters.marked(text, (doubt.mark for doubt in found))
    return f"<{delimiters.PREFIX}answer>\n{marked}\n</{delimiters.PREFIX}answer>"


def _sources(doubt: Doubt) -> Iterator[tuple[int, tuple[int, int] | None]]:
    """Yield the passages that findings name, each with the sentence that decides, where there is one; the surest first."""
    if doubt.claim is not None and doubt.claim.passage is not None:
        yield doubt.claim.passage, doubt.claim.sentence
    for span in sorted(doubt.spans, key=lambda each: -each.score):
        if span.passage is not None:
            yield span.passage, span.sentence


def _chosen(found: Sequence[Doubt]) -> list[tuple[int, Doubt]]:
    """Return the doubts that are listed, in order: all, or those with the highest scores."""
    numbered = list(enumerate(found, start=1))
    return sorted(sorted(numbered, key=lambda each: -each[1].score)[:_MOST_LISTED], key=lambda each: each[0])


def _shown(listed: Iterable[_Listed]) -> list[_Listed]:
    """Return the doubts to show; a sentence nearest to several of them is quoted only at the first."""
    told: set[str] = set()
    shown: list[_Listed] = []
    for each in listed:
        shown.append(replace(each, nearest="") if each.nearest in told else each)
        told.add(each.nearest)
    return shown


def _listed(number: int, doubt: Doubt, text: str, passages: Sequence[Passage]) -> _Listed:
    passage, sentence = doubt.place
    if passage is not None and not 0 <= passage < len(passages):
        passage = None
    source = passages[passage].text if passage is not None else ""
    nearest = source[slice(*sentence)].strip() if sentence is not None else ""
    return _Listed(
        number=number,
        confidence=f"{doubt.score:.2f}",
        claim=delimiters.inline("claim", _cut(text[doubt.start : doubt.end], _MOST_CLAIM_CHARS)),
        kind=_kind(doubt),
        passage=passage + 1 if passage is not None else None,
        # A passage of one sentence is found by its number: quoting it would say it twice.
        nearest=_inline(
            "nearest", nearest if len(nearest) < len(source.strip()) else "", _MOST_NEAREST_CHARS
        ),
        differences=tuple(_difference(each, text, source) for each in doubt.differences[:_MOST_DIFFERENCES]),
        reason=_inline("reason", doubt.claim.reason if doubt.claim is not None else "", _MOST_NOTE_CHARS),
        note=_inline("note", next((each.note for each in doubt.spans if each.note), ""), _MOST_NOTE_CHARS),
    )


def _kind(doubt: Doubt) -> str:
    """Return what is wrong, in the words that the template knows; ``""`` where nobody says."""
    span, claim = doubt.telling, doubt.claim
    if doubt.is_told and span is not None and span.explanation is not None:
        return span.explanation.kind.value
    return _KINDS.get(claim.outcome, "") if claim is not None else ""


def _difference(difference: Difference, text: str, source: str) -> _Difference:
    return _Difference(
        stated=delimiters.inline("stated", _cut(text[difference.start : difference.end], _MOST_VALUE_CHARS)),
        found=_inline(
            "found", source[slice(*difference.evidence)] if difference.evidence else "", _MOST_VALUE_CHARS
        ),
    )


def _inline(name: str, text: str, most_chars: int) -> str:
    """Return ``text`` in its tag, ``""`` where there is none."""
    return delimiters.inline(name, _cut(text, most_chars)) if text else ""


def _cut(text: str, most_chars: int) -> str:
    # White space goes: what is read may be more than what is shown, and no more than a few times as much.
    line = " ".join(text[: _MOST_READ_TIMES * most_chars].split())
    return line if len(line) <= most_chars else f"{line[: most_chars - 1]}…"
