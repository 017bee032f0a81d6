"""Build the page of one exchange from its entry: texts where they were kept, else positions alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass
from types import MappingProxyType

from truthlens.api.answer_citations import awaits_citations
from truthlens.core.records.agentic_run import AgenticRun, AgenticStep, AgenticStop, CollectedPassage
from truthlens.core.records.calls import CallRecord
from truthlens.core.records.claims import JudgedClaim
from truthlens.core.records.exchange import Exchange
from truthlens.core.records.mitigation_result import Attempt, Correction
from truthlens.core.records.verdict import Mark, Verdict, marks_by_detector
from truthlens.core.risk import ClaimLevel, claim_level
from truthlens.delivery import left_text
from truthlens.desk.annotated import AnnotatedAnswer, annotate, passage_label
from truthlens.telemetry.recent_exchanges import EvidenceFigures, RecentExchange, evidence_figures

# A model that the configuration does not name is one that a client's request names: its name is a client's
# text.
_BACKEND = "the backend's"
# Of a request that somebody pasted: what a page can show.
_MOST_TEXTS = 200
_LONGEST_TEXT = 2_000
_ENDED = MappingProxyType(
    {
        AgenticStop.ITERATIONS: "as many decisions were taken as are allowed",
        AgenticStop.TOKENS: "as many tokens were used as are allowed",
        AgenticStop.TIME: "the time of the run was over",
        AgenticStop.CIRCULAR: "the last three decisions were the same",
        AgenticStop.ACCEPTED: "the answer was accepted",
        AgenticStop.REJECTED: "there was nothing more to look for, and the answer was not accepted",
        AgenticStop.BUDGET: "the budget of the exchange was spent",
        AgenticStop.DEADLINE: "the time of the exchange was over",
        AgenticStop.CALL_FAILED: "a call to a model failed",
        AgenticStop.BAD_DECISION: "the model's decision could not be read",
        AgenticStop.SEARCH_FAILED: "nothing was found, and a search failed",
    }
)


@dataclass(frozen=True, slots=True)
class ShownStep:
    """A step of a run, with the texts that its tool added, where they were kept; ``gave`` counts them by source."""

    step: AgenticStep
    passages: tuple[CollectedPassage, ...]
    gave: str


@dataclass(frozen=True, slots=True)
class ShownRun:
    """A run of mode agentic; ``ended`` says in words why."""

    run: AgenticRun
    ended: str
    steps: tuple[ShownStep, ...]


@dataclass(frozen=True, slots=True)
class ShownChoice:
    """One choice of the answer; ``view`` shows its text beside the evidence, ``None`` where it was not kept."""

    index: int
    verdict: Verdict
    correction: Correction | None
    attempts: tuple[tuple[str, Attempt], ...]
    spans: tuple[Mark, ...]
    claims: tuple[tuple[JudgedClaim, ClaimLevel], ...]
    view: AnnotatedAnswer | None
    run: ShownRun | None = None


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
    return ShownEntry(
        tuple(_shown_choice(entry, place, name) for place in range(len(outcome.verdicts))),
        tuple((name(call.model), call) for call in outcome.calls),
        tuple(ShownText(passage_label(place, each), each.text) for place, each in enumerate(passages)),
        tuple(ShownText(each.rule, each.text, each.characters - len(each.text)) for each in entry.left),
    )


def _shown_choice(entry: RecentExchange, place: int, name: Callable[[str], str]) -> ShownChoice:
    outcome, even_threshold = entry.outcome, entry.outcome.plan.even_threshold
    verdict = outcome.verdicts[place]
    answer = outcome.answers[place] if place < len(outcome.answers) else None
    correction = outcome.corrections[place] if place < len(outcome.corrections) else None
    passages = entry.exchange.passages if entry.exchange else ()
    view = None
    if answer is not None:
        view = annotate(
            answer.text,
            verdict.spans,
            passages,
            even_threshold=even_threshold,
            claims=verdict.claims,
        )
    return ShownChoice(
        index=answer.index if answer else place,
        verdict=verdict,
        correction=correction,
        attempts=tuple((name(each.model), each) for each in (correction.attempts if correction else ())),
        spans=marks_by_detector(verdict.spans),
        claims=levels(verdict.claims, even_threshold),
        view=view,
        run=_shown_run(correction.run) if correction and correction.run else None,
    )


def _shown_run(run: AgenticRun) -> ShownRun:
    steps = []
    for step in run.steps:
        added = run.passages[slice(*step.passages)]
        told = [f"{count} of {name}" for name, count in Counter(each.source for each in added).items()]
        if cited := sum(each.cited for each in added):
            told.append(f"{cited} cited")
        steps.append(ShownStep(step, tuple(each for each in added if each.text), ", ".join(told)))
    return ShownRun(run, _ENDED[run.stop], tuple(steps))


def levels(
    claims: Iterable[JudgedClaim], even_threshold: float
) -> tuple[tuple[JudgedClaim, ClaimLevel], ...]:
    """Return ``claims``, each with how it is shown."""
    return tuple((claim, claim_level(claim.risk, even_threshold)) for claim in claims)


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
