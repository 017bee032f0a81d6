"""The last exchanges, for the console: figures, positions and names from the configuration.

Texts of users, documents and models are kept only where the policy allows it
(``telemetry: {log_text: true}``).
"""

from __future__ import annotations

import secrets
import sys
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING

from truthlens.core.records.exchange import Exchange
from truthlens.core.records.mitigation_result import Correction
from truthlens.core.records.outcome import Outcome
from truthlens.core.records.retrieval import SearchRecord
from truthlens.core.records.verdict import Span, Verdict

if TYPE_CHECKING:
    from truthlens.core.records.agentic_run import AgenticRun, AgenticStep, CollectedPassage

# Of one exchange: what a page can show, and what a hostile answer cannot make large.
_MOST_CHOICES = 16
_MOST_SPANS = 100
_MOST_CLAIMS = 200
_MOST_DIFFERENCES = 20
_MOST_CALLS = 64
_LONGEST_NAME = 200
_MOST_TEXT_BYTES = 256 << 10
# Of what is no evidence: enough to see what it was.
_LONGEST_NOTE = 300
_MOST_LEFT = 50
_LONGEST_LEFT = 300
_MOST_SEARCHES = 40
_MOST_RETRIEVED = 200
# Of a run of mode agentic: a decision takes two or three steps.
_MOST_STEPS = 40
_LONGEST_SUMMARY = 120
_MOST_COLLECTED = 60
_LONGEST_COLLECTED = 300
# Roughly what the records take in memory, in bytes.
_ENTRY_BYTES, _RECORD_BYTES = 2048, 512


@dataclass(frozen=True, slots=True)
class RuleFigures:
    """How many texts of a request one rule (a code) took for evidence or left, and their characters together.

    ``source`` is where evidence came from, ``""`` for what was left.
    """

    rule: str
    source: str
    count: int
    characters: int


@dataclass(frozen=True, slots=True)
class EvidenceFigures:
    """What was taken as evidence of a request and what was left, by rule; ``query`` is the question's characters."""

    query: int
    passages: tuple[RuleFigures, ...]
    left: tuple[RuleFigures, ...]


@dataclass(frozen=True, slots=True)
class LeftExcerpt:
    """The beginning of a text that is no evidence; ``characters`` is the length of all of it."""

    rule: str
    text: str
    characters: int


@dataclass(frozen=True, slots=True)
class RecentExchange:
    """One ended exchange.

    ``id`` is unguessable, so that a reader who was given one page cannot ask for others. ``outcome`` has no
    body, and texts only where ``exchange`` is set, and then ``left`` too; ``evidence`` has figures of them, of a request
    that was read. ``searches`` were made for it; ``sources`` names, by a passage's place, where it was retrieved
    from. ``cut`` says that it had more choices, spans, claims, calls, searches or steps than
    are kept, and ``text_dropped`` that its texts were too large to keep.
    """

    id: str
    time: datetime
    outcome: Outcome
    request_id: str = ""
    exchange: Exchange | None = None
    left: tuple[LeftExcerpt, ...] = ()
    evidence: EvidenceFigures | None = None
    searches: tuple[SearchRecord, ...] = ()
    sources: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))
    spans: int = 0
    cut: bool = False
    text_dropped: bool = False

    def without_text(self) -> RecentExchange:
        """Return the entry as one whose texts were never kept."""
        return replace(
            self, outcome=_bounded(self.outcome, text=False), exchange=None, left=(), text_dropped=False
        )


class Recent:
    """The latest entries, newest first; bounded in number and in bytes."""

    def __init__(self, *, limit: int = 100, max_bytes: int = 8 << 20) -> None:
        self._limit, self._max_bytes = limit, max_bytes
        self._entries: OrderedDict[str, tuple[RecentExchange, int]] = OrderedDict()
        self._bytes = 0

    def add(
        self,
        outcome: Outcome,
        *,
        time: datetime,
        request_id: str = "",
        exchange: Exchange | None = None,
        keep_text: bool = False,
    ) -> None:
        """Add an ended exchange.

        Args:
            outcome: what became of it.
            time: when it ended.
            request_id: by which its log line is found.
            exchange: its request half, ``None`` where the request was not read.
            keep_text: whether the policy allows that texts are kept.
        """
        kept_exchange = exchange if keep_text else None
        left = _excerpts(exchange) if exchange is not None and keep_text else ()
        text_bytes = _text_bytes(outcome, kept_exchange, left) if kept_exchange is not None else None
        shown = _shown(kept_exchange) if kept_exchange is not None and text_bytes is not None else None
        kept = _bounded(outcome, text=shown is not None)
        evidence, searches, sources = _told_of(exchange)
        entry = RecentExchange(
            id=secrets.token_hex(8),
            time=time,
            outcome=kept,
            request_id=request_id,
            exchange=shown,
            left=left if shown is not None else (),
            evidence=evidence,
            searches=searches[:_MOST_SEARCHES],
            sources=sources,
            spans=sum(len(each.spans) for each in outcome.verdicts),
            cut=_records(kept) < _records(outcome) or len(searches) > _MOST_SEARCHES,
            text_dropped=kept_exchange is not None and shown is None,
        )
        records = _records(kept) + len(entry.searches) + len(sources)
        size = _ENTRY_BYTES + _RECORD_BYTES * records + (text_bytes or 0)
        self._entries[entry.id] = (entry, size)
        self._bytes += size
        while len(self._entries) > self._limit or (self._bytes > self._max_bytes and len(self._entries) > 1):
            _, (_, freed) = self._entries.popitem(last=False)
            self._bytes -= freed

    def entries(self) -> list[RecentExchange]:
        """Return the entries, newest first."""
        return [entry for entry, _ in reversed(self._entries.values())]

    def get(self, entry_id: str) -> RecentExchange | None:
        """Return the entry of that id, ``None`` where there is none, or none any more."""
        found = self._entries.get(entry_id)
        return found[0] if found else None


def evidence_figures(exchange: Exchange) -> EvidenceFigures:
    """Return what was taken as evidence of a request and what was left, in figures and codes alone."""
    taken = [(each.rule, each.provenance.value, len(each.text)) for each in exchange.passages]
    left = [(each.rule, "", each.end - each.start) for each in exchange.left]
    return EvidenceFigures(len(exchange.query), _by_rule(taken), _by_rule(left))


def _told_of(
    exchange: Exchange | None,
) -> tuple[EvidenceFigures | None, tuple[SearchRecord, ...], Mapping[int, str]]:
    """Return what of a request needs no leave: figures of its evidence, searches, sources of its passages."""
    if exchange is None:
        return None, (), {}
    found = ((place, each.source) for place, each in enumerate(exchange.passages) if each.source)
    sources = MappingProxyType(dict(islice(found, _MOST_RETRIEVED)))
    return evidence_figures(exchange), exchange.searches, sources


def _by_rule(texts: Iterable[tuple[str, str, int]]) -> tuple[RuleFigures, ...]:
    found: dict[tuple[str, str], list[int]] = {}
    for rule, source, size in texts:
        found.setdefault((rule, source), []).append(size)
    return tuple(RuleFigures(rule, source, len(sizes), sum(sizes)) for (rule, source), sizes in found.items())


def _excerpts(exchange: Exchange) -> tuple[LeftExcerpt, ...]:
    return tuple(
        LeftExcerpt(
            each.rule, exchange.messages[each.message].text[each.start :][:size], each.end - each.start
        )
        for each in exchange.left[:_MOST_LEFT]
        if each.message < len(exchange.messages)
        for size in [min(_LONGEST_LEFT, each.end - each.start)]
    )


def _shown(exchange: Exchange) -> Exchange:
    """Return ``exchange`` without the texts that no page shows."""
    return replace(exchange, model="", messages=(), echoed="", left=(), searches=())


def _bounded(outcome: Outcome, *, text: bool) -> Outcome:
    """Return ``outcome`` without its body, within an entry's bounds; texts only where they may be kept."""
    return replace(
        outcome,
        body=None,
        verdict=_bounded_verdict(outcome.verdict, text=text),
        verdicts=tuple(_bounded_verdict(each, text=text) for each in outcome.verdicts[:_MOST_CHOICES]),
        corrections=tuple(
            each and _bounded_correction(each, text=text) for each in outcome.corrections[:_MOST_CHOICES]
        ),
        calls=tuple(replace(call, model=call.model[:_LONGEST_NAME]) for call in outcome.calls[:_MOST_CALLS]),
        first=(),
        reasoned=(),
        answers=tuple(replace(each, lead="", reasoning="") for each in outcome.answers[:_MOST_CHOICES])
        if text
        else (),
    )


def _bounded_verdict(verdict: Verdict, *, text: bool) -> Verdict:
    if not verdict.spans and not verdict.results and not verdict.claims:
        return verdict
    # What single detectors found is in the spans of the whole; the strongest are kept, in the answer's order.
    strongest = sorted(verdict.spans, key=lambda span: -span.score)[:_MOST_SPANS]
    riskiest = sorted(verdict.claims, key=lambda claim: -(claim.risk or 0.0))[:_MOST_CLAIMS]
    return replace(
        verdict,
        spans=tuple(
            _bounded_span(each, text=text) for each in sorted(strongest, key=lambda span: span.start)
        ),
        results=tuple(
            replace(result, spans=(), claims=(), findings=(), report={}) for result in verdict.results
        ),
        # Keys of a JSON answer and what a database gives are texts.
        claims=tuple(
            claim if text else replace(claim, path="", reason="")
            for claim in sorted(riskiest, key=lambda claim: claim.start)
        ),
    )


def _bounded_span(span: Span, *, text: bool) -> Span:
    # What a model noted may repeat the texts that it read.
    span = replace(span, note=span.note[:_LONGEST_NOTE] if text else "")
    explanation = span.explanation
    if explanation is None or len(explanation.differences) <= _MOST_DIFFERENCES:
        return span
    differences = explanation.differences[:_MOST_DIFFERENCES]
    return replace(span, explanation=replace(explanation, differences=differences))


def _bounded_correction(correction: Correction, *, text: bool) -> Correction:
    # Text and verdict stand in the outcome's answers and verdicts as well.
    attempts = tuple(
        replace(each, model=each.model[:_LONGEST_NAME]) for each in correction.attempts[:_MOST_CALLS]
    )
    verdict = Verdict(correction.verdict.status)
    run = correction.run and _bounded_run(correction.run, text=text)
    return replace(correction, text="", verdict=verdict, attempts=attempts, sources=(), run=run)


def _bounded_run(run: AgenticRun, *, text: bool) -> AgenticRun:
    """Return a run without its answers, with what its tools gave: excerpts, or names of sources alone."""
    steps: list[AgenticStep] = []
    passages: list[CollectedPassage] = []
    for step in run.steps[:_MOST_STEPS]:
        first = len(passages)
        added = run.passages[slice(*step.passages)][: _MOST_COLLECTED - first]
        passages += (_bounded_passage(each, text=text) for each in added)
        summary = step.summary[:_LONGEST_SUMMARY]
        steps.append(replace(step, summary=summary, passages=(first, len(passages))))
    return replace(run, answer="", partial_answer="", steps=tuple(steps), passages=tuple(passages))


def _bounded_passage(passage: CollectedPassage, *, text: bool) -> CollectedPassage:
    return replace(
        passage,
        document_id=passage.document_id[:_LONGEST_NAME] if text else "",
        title=passage.title[:_LONGEST_NAME] if text else "",
        text=_excerpt(passage.text) if text else "",
        parent_id="",
        passage_id="",
    )


def _excerpt(text: str) -> str:
    return text if len(text) <= _LONGEST_COLLECTED else f"{text[:_LONGEST_COLLECTED]}…"


def _records(outcome: Outcome) -> int:
    """Return how many records hang on an outcome."""
    count = len(outcome.calls)
    for correction in outcome.corrections:
        if correction is not None:
            count += len(correction.attempts)
        if correction is not None and correction.run is not None:
            count += sum(1 + end - first for first, end in (step.passages for step in correction.run.steps))
    for verdict in outcome.verdicts:
        count += 2 + len(verdict.results) + len(verdict.spans) + len(verdict.claims)
        count += sum(len(span.explanation.differences) for span in verdict.spans if span.explanation)
    return count


def _text_bytes(outcome: Outcome, exchange: Exchange, left: Iterable[LeftExcerpt]) -> int | None:
    """Return the size of the texts in memory, ``None`` where they are too large to keep."""
    size = 0
    for text in (*_texts(outcome, exchange), *(each.text for each in left)):
        size += sys.getsizeof(text)
        if size > _MOST_TEXT_BYTES:
            return None
    return size


def _texts(outcome: Outcome, exchange: Exchange) -> Iterator[str]:
    yield exchange.query
    for answer in outcome.answers[:_MOST_CHOICES]:
        yield answer.text
    for passage in exchange.passages:
        yield from (passage.text, passage.title, passage.id)
    for correction in outcome.corrections[:_MOST_CHOICES]:
        if correction is not None and correction.run is not None:
            for each in _bounded_run(correction.run, text=True).passages:
                yield from (each.text, each.title, each.document_id)
