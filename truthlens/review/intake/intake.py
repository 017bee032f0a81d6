"""Take outcomes into the queue: which of them, and with what; the gateway's side of the review queue."""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from truthlens.core.records.enums import Action
from truthlens.core.records.exchange import Exchange
from truthlens.core.records.outcome import Outcome
from truthlens.core.review_settings import ReviewRule, ReviewSettings
from truthlens.core.risk import risk_of
from truthlens.review.entry.content import entry_of, found
from truthlens.review.entry.explanations import explained_outcome
from truthlens.review.intake.writer import ReviewWriter
from truthlens.review.records import NewEntry


@dataclass(frozen=True, slots=True)
class Selection:
    """Why an answer is queued: the rule's name, and its share of such answers, 0..1."""

    rule: str
    sample: float


EXPLAINED_PER_S = 20
"""Entries that are explained when they are made, a second: more would take the interpreter from the answers. The others are
explained when somebody reads them, where their texts are kept."""
_BURST = 5
# What an entry takes in memory beside its texts, in characters.
_OVERHEAD = 4_096


class ReviewIntake:
    """Chooses outcomes for review and hands them to the writer.

    Args:
        writer: makes and writes the entries in the background.
        draw: gives numbers in 0..1, 1 excluded, for rules that sample.
    """

    def __init__(self, writer: ReviewWriter, *, draw: Callable[[], float] = random.random) -> None:
        self._writer, self._draw = writer, draw
        self._explaining = _Budget(EXPLAINED_PER_S, _BURST)

    def chosen(self, outcome: Outcome, settings: ReviewSettings) -> Outcome:
        """Return ``outcome`` with ``review_id`` and ``review_rule`` where it is to be queued and there is room.

        Whoever got such an outcome hands it to ``queue`` once the exchange has ended.
        """
        selection = selected(outcome, settings, draw=self._draw)
        if selection is None or not self._writer.room():
            return outcome
        return replace(outcome, review_id=new_id(), review_rule=(selection.rule, selection.sample))

    def queue(
        self,
        outcome: Outcome,
        exchange: Exchange,
        settings: ReviewSettings,
        *,
        query_id: str,
        headers: Mapping[str, str],
    ) -> None:
        """Queue an outcome that was chosen; returns at once.

        Args:
            outcome: of the ended exchange.
            exchange: its request half.
            settings: of the policy that the exchange began with.
            query_id: the request's id, ``""`` where it has none.
            headers: the request's headers, by lower-case name.
        """
        created = time.time()
        # The request's other texts, and the body that went out, are not needed any more.
        outcome = replace(outcome, body=None, first=(), corrections=(), reasoned=())
        exchange = replace(exchange, messages=(), echoed="", left=())
        wanted = {name: headers[name] for name in ("traceparent", settings.user_header) if name in headers}

        def make() -> NewEntry:
            explain = self._explaining.takes()
            return entry_of(
                explained_outcome(outcome, exchange) if explain else outcome,
                exchange,
                settings,
                created=created,
                query_id=query_id,
                headers=wanted,
            )

        texts = (*(each.text for each in outcome.answers), *(each.text for each in exchange.passages))
        self._writer.submit(make, chars=_OVERHEAD + sum(map(len, texts)))


class _Budget:
    """So many a second, and ``burst`` at once after a pause; for one thread."""

    def __init__(self, rate: float, burst: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._burst, self._clock = rate, burst, clock
        self._left, self._at = burst, clock()

    def takes(self) -> bool:
        """Take one, where there is one."""
        now = self._clock()
        self._left = min(self._burst, self._left + (now - self._at) * self._rate)
        self._at = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True


def selected(outcome: Outcome, settings: ReviewSettings, *, draw: Callable[[], float]) -> Selection | None:
    """Return by which rule the answer of ``outcome`` is queued, ``None`` where it is not.

    Answers that were not scored, or were withheld, are never queued. ``draw`` gives a number in 0..1, 1 excluded, for rules that sample.
    """
    verdict = outcome.verdict
    if not settings.enabled or verdict.score is None or outcome.action is Action.BLOCK:
        return None
    for rule in settings.rules:
        if _applies(rule, outcome):
            return Selection(rule.name, rule.sample) if draw() < rule.sample else None
    return None


def new_id() -> str:
    """Return an unguessable id of an entry, as it stands in ``X-TruthLens-Review-Id``."""
    return f"rv_{secrets.token_hex(10)}"


def _applies(rule: ReviewRule, outcome: Outcome) -> bool:
    verdict = outcome.verdict
    results = [result for each in outcome.verdicts for result in each.results]
    # A detector that found a fact wrong wants a person to look, whatever the others make of the whole.
    flagged = verdict.flagged or any(result.for_review for result in results)
    assert verdict.score is not None
    return (
        (rule.flagged is None or rule.flagged == flagged)
        and (not rule.decisions or outcome.plan.decision in rule.decisions)
        and (not rule.levels or risk_of(verdict.score) in rule.levels)
        and (
            not rule.detectors
            or any(result.detector in rule.detectors and found(result) for result in results)
        )
    )
