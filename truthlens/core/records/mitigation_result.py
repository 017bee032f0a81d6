"""The frozen records of what was done about an unsupported answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from truthlens.core.records.calls import CallRecord, Role
from truthlens.core.records.enums import Mode
from truthlens.core.records.exchange import Answer, Exchange
from truthlens.core.records.verdict import Verdict

if TYPE_CHECKING:
    from truthlens.core.records.agentic_run import AgenticRun

OWN_VERIFIER = "own-verifier"
"""Note of an exchange in which a model is to judge the answer that it gave."""


class Stop(StrEnum):
    """Why a mode ended."""

    CLEAN = "clean"
    CONVERGED = "converged"
    NO_GAIN = "no-gain"
    RELEASED = "released"
    MAX_ITERATIONS = "max-iterations"
    DEADLINE = "deadline"
    BUDGET = "budget"
    CALL_FAILED = "call-failed"
    AGREED = "agreed"
    DECIDED = "decided"
    UNDECIDED = "undecided"
    FAILED = "failed"


class CandidateFate(StrEnum):
    """What became of one candidate text."""

    BETTER = "better"
    WORSE = "worse"
    UNCHANGED = "unchanged"
    REJECTED = "rejected"
    FAILED = "failed"


_REWRITERS = frozenset({Role.REFINER, Role.JUDGE})


@dataclass(frozen=True, slots=True)
class Attempt:
    """One candidate for the answer, in the order in which they came.

    ``score`` is its response score, ``None`` where it was not scored. ``reason`` is a code: of ``CallFailure`` where
    the fate is ``failed``, of ``candidate_checks.rejection`` where it is ``rejected``, else ``""``.
    """

    model: str
    role: Role
    fate: CandidateFate
    score: float | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class CollectedSource:
    """What an answer of mode agentic could cite, by its id there; source ``request`` is the client."""

    id: str
    source: str
    title: str = ""
    cited: bool = False


@dataclass(frozen=True, slots=True)
class Correction:
    """The answer to deliver, without any disclaimer.

    ``text`` and ``verdict`` are the first answer's own where nothing better was found. ``replaced`` says that another
    model's words stand in ``text``. ``consensus`` is whether the models agreed on it, ``None`` where none was asked.
    ``notes`` are codes for ``truthlens.notes``. Of mode agentic ``cause`` is why its run ended (``AgenticStop``),
    ``iterations`` how many decisions it took, ``sources`` what it had to cite, and ``run`` all of it.
    """

    text: str
    verdict: Verdict
    mode: Mode
    stop: Stop
    attempts: tuple[Attempt, ...] = ()
    replaced: bool = False
    consensus: bool | None = None
    notes: tuple[str, ...] = ()
    cause: str = ""
    iterations: int = 0
    sources: tuple[CollectedSource, ...] = ()
    run: AgenticRun | None = None

    @property
    def rounds(self) -> int:
        """Return the refinement rounds: how often a model wrote a text to stand in the answer's place.

        Of mode agentic it is the decisions. Second opinions, checks and turns of a debate are calls and no
        rounds, nor is a call that gave nothing.
        """
        return self.iterations or sum(
            each.role in _REWRITERS and each.fate is not CandidateFate.FAILED for each in self.attempts
        )


@dataclass(frozen=True, slots=True)
class Assessment:
    """The verdicts on the texts that the client gets, and what was done to get there.

    ``first`` are the verdicts on the backend's own answers, ``mode`` the one that ran; ``corrections`` has one entry per
    answer, ``None`` where no mode worked on it, or is empty. ``mitigation_s`` is the time after the first detection.
    ``reasoning`` has the verdict on each answer's reasoning, ``None`` where none was scored, or is empty. ``exchange`` is the
    request half with the evidence that was retrieved for the answers, ``None`` where nobody looked for any.
    """

    verdicts: tuple[Verdict, ...]
    first: tuple[Verdict, ...]
    mode: Mode = Mode.LIGHTWEIGHT
    corrections: tuple[Correction | None, ...] = ()
    calls: tuple[CallRecord, ...] = ()
    mitigation_s: float = 0.0
    notes: tuple[str, ...] = ()
    reasoning: tuple[Verdict | None, ...] = ()
    exchange: Exchange | None = None

    def delivered(self, answers: Sequence[Answer]) -> tuple[Answer, ...]:
        """The backend's ``answers`` with the corrected texts in their place."""
        corrections = self.corrections or (None,) * len(answers)
        return tuple(
            answer if each is None else replace(answer, text=each.text)
            for answer, each in zip(answers, corrections, strict=True)
        )
