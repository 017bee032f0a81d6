"""Define what the modes are given and what they return.

Mitigation never imports detection, telemetry or an HTTP library: scoring, comparing and asking come in as the
arguments of ``Tools``. A mode returns the best answer that it found, and never one that scores worse than the
first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

from truthlens.core.deadline import Deadline
from truthlens.core.records.calls import Ask, CallFailure, ModelSpec, Role
from truthlens.core.records.exchange import Answer, Exchange
from truthlens.core.records.mitigation_result import Attempt, CandidateFate, Correction, Stop
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import Verdict

__all__ = [
    "FIRST_SCORING_S",
    "STOPS",
    "Attempt",
    "CandidateFate",
    "Compare",
    "Correction",
    "Rescore",
    "Stop",
    "Task",
    "Tools",
    "failed",
]


class Rescore(Protocol):
    """Scores texts against the evidence of the exchange, with the plan's detectors and threshold."""

    async def __call__(self, texts: Sequence[str]) -> Sequence[Verdict]:
        """Return one verdict per text, in order; spans are offsets into that text. Never raises."""


class Compare(Protocol):
    """Compares texts with each other, without the evidence of the exchange."""

    async def similar(self, left: Sequence[str], right: Sequence[str]) -> Sequence[Sequence[float]]:
        """Return the semantic similarity of each left text to each right one, 0..1; shape (left, right)."""

    async def support(self, claims: Sequence[str], text: str) -> Sequence[float | None]:
        """Return how far ``text`` supports each claim, 0..1.

        This is 1 minus the detector's score with ``text`` as the only evidence.

        ``None`` for a claim that could not be scored.
        """


@dataclass(frozen=True, slots=True)
class Task:
    """One answer to be corrected.

    ``request`` is the client's JSON request as it was sent, ``model`` the model that answered it (already
    resolved where the request said ``auto``). ``verdict`` is what detection said of ``answer``. ``models``
    has the configured models by name; a name that is not in it is reached at the exchange's own backend.
    """

    plan: Plan
    exchange: Exchange
    request: Mapping[str, object]
    model: str
    answer: Answer
    verdict: Verdict
    models: Mapping[str, ModelSpec] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Tools:
    """All that a mode may use of the outside world."""

    ask: Ask
    rescore: Rescore
    compare: Compare
    deadline: Deadline


STOPS: Mapping[CallFailure, Stop] = MappingProxyType(
    {CallFailure.BUDGET: Stop.BUDGET, CallFailure.DEADLINE: Stop.DEADLINE}
)
"""Why a mode ends where a call failed for a reason that the next one would fail for too."""

FIRST_SCORING_S = 0.25
"""What a scoring is taken to need before one was timed."""


def failed(model: str, role: Role, code: str) -> Attempt:
    """Return the attempt of a call that gave no text, with the code of the reason."""
    return Attempt(model, role, CandidateFate.FAILED, reason=code)
