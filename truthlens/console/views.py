"""Build the page of one exchange from its entry: texts where they were kept, else positions alone."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass

from truthlens.api.answer_citations import awaits_citations
from truthlens.console.annotated import passage_label
from truthlens.core.records.calls import CallRecord
from truthlens.core.records.exchange import Exchange, Passage
from truthlens.core.records.mitigation_result import Attempt, Correction
from truthlens.core.records.verdict import Mark, Span, Verdict, marks_by_detector, marks_of
from truthlens.delivery import left_text
from truthlens.telemetry.recent_exchanges import EvidenceFigures, RecentExchange, evidence_figures

# A model that the configuration does not name is one that a client's request names: its name is a client's
# text.
_BACKEND = "the backend's"
# Of a request that somebody pasted: what a page can show.
_MOST_TEXTS = 200
_LONGEST_TEXT = 2_000


@dataclass(frozen=True, slots=True)
class ShownSpan:
    """The mark of a detector's spans with the texts that belong to it, ``""`` where they were not kept.

    ``span`` is the one that says most.
    """

    mark: Mark
    span: Span
    text: str
    nearest: str


@dataclass(frozen=True, slots=True)
class ShownChoice:
    """One choice of the answer.

    ``pieces`` are its text in order, each with the mark that it is, or nothing.
    """

    index: int
    verdict: Verdict
    correction: Correction | None
    attempts: tuple[tuple[str, Attempt], ...]
    spans: tuple[ShownSpan, ...]
    pieces: tuple[tuple[str, Mark | None], ...]


@dataclass(frozen=True, slots=True)
class ShownText:
    """A text of a request under what is said of it; ``cut`` characters of it are not shown."""

    label: str
    text: str
    cut: int = 0


@dataclass(frozen=True, slots=True)
class ShownEvidence:
    """What of a request is evidence and what is not; ``more`` texts are not shown.

    ``reason`` says why no answer can be checked, ``""`` where one can. ``awaits``: evidence may come with the answer.
    """

    reason: str
    awaits: bool
    query: str
    figures: EvidenceFigures
    passages: tuple[ShownText, ...]
    left: tuple[ShownText, ...]
    more: int


@dataclass(frozen=True, slots=True)
class ShownEntry:
    """An entry, ready for its page; ``calls`` have the name by which a model may be shown.

    ``passages`` and ``left`` are the texts of the request, none where they were not kept.
    """

    choices: tuple[ShownChoice, ...]
    calls: tuple[tuple[str, CallRecord], ...]
    passages: tuple[ShownText, ...] = ()
    left: tuple[ShownText, ...] = ()


def shown_entry(entry: RecentExchange, models: Container[str]) -> ShownEntry:
    """Return what the page of ``entry`` shows.

    Args:
        entry: one of the last exchanges.
        models: names of models that the configuration has.
    """
    outcome = entry.outcome
    named = outcome.plan.named_models

    def name(model: str) -> str:
        return model if model in named or model in models else _BACKEND

    passages = entry.exchange.passages if entry.exchange else ()
    choices = []
    for place, verdict in enumerate(outcome.verdicts):
        answer = outcome.answers[place] if place < len(outcome.answers) else None
        correction = outcome.corrections[place] if place < len(outcome.corrections) else None
        text = answer.text if answer else ""
        choices.append(
            ShownChoice(
                index=answer.index if answer else place,
                verdict=verdict,
                correction=correction,
                attempts=tuple(
                    (name(each.model), each) for each in (correction.attempts if correction else ())
                ),
                spans=tuple(_shown_span(mark, text, passages) for mark in marks_by_detector(verdict.spans)),
                pieces=tuple(_pieces(text, verdict.spans)),
            )
        )
    return ShownEntry(
        tuple(choices),
        tuple((name(call.model), call) for call in outcome.calls),
        tuple(ShownText(passage_label(place, each), each.text) for place, each in enumerate(passages)),
        tuple(ShownText(each.rule, each.text, each.characters - len(each.text)) for each in entry.left),
    )


def shown_evidence(exchange: Exchange) -> ShownEvidence:
    """Return what the page on a request's evidence shows, within bounds."""
    reason = exchange.not_checkable
    passages = [(passage_label(place, each), each.text) for place, each in enumerate(exchange.passages)]
    left = [(each.rule, left_text(exchange, each)) for each in exchange.left]
    return ShownEvidence(
        reason="" if reason is None else reason.value,
        awaits=awaits_citations(exchange),
        query=exchange.query[:_LONGEST_TEXT],
        figures=evidence_figures(exchange),
        passages=tuple(_bounded(label, text) for label, text in passages[:_MOST_TEXTS]),
        left=tuple(_bounded(label, text) for label, text in left[:_MOST_TEXTS]),
        more=max(0, len(passages) - _MOST_TEXTS) + max(0, len(left) - _MOST_TEXTS),
    )


def _bounded(label: str, text: str) -> ShownText:
    return ShownText(label, text[:_LONGEST_TEXT], max(0, len(text) - _LONGEST_TEXT))


def _shown_span(mark: Mark, text: str, passages: tuple[Passage, ...]) -> ShownSpan:
    span = mark.telling
    nearest = ""
    sentence = span.explanation.sentence if span.explanation else None
    if sentence is not None and span.passage is not None and span.passage < len(passages):
        nearest = passages[span.passage].text[slice(*sentence)]
    return ShownSpan(mark, span, text[mark.start : mark.end], nearest)


def _pieces(text: str, spans: tuple[Span, ...]) -> Iterator[tuple[str, Mark | None]]:
    """Yield ``text`` in order, cut at the marks of ``spans``."""
    at = 0
    for mark in marks_of(spans, length=len(text)):
        if mark.start > at:
            yield text[at : mark.start], None
        yield text[mark.start : mark.end], mark
        at = mark.end
    if at < len(text):
        yield text[at:], None
