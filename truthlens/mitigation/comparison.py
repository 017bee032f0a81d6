"""The records of several answers set side by side: voices, stances, views. They carry figures and decide nothing."""

from __future__ import annotations

from dataclasses import dataclass

from truthlens.core.records import Verdict
from truthlens.mitigation.claims import Claim

SUPPORTED = 0.5
"""Support from which a voice holds a claim."""

_DEFAULT_THRESHOLD = 0.5


@dataclass(frozen=True, slots=True)
class Voice:
    """One model's answer. ``weight`` is the model's reliability, 0..1; ``verdict`` its score against the evidence."""

    model: str
    text: str
    weight: float
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Stance:
    """What the voice with index ``voice`` says of a claim of another one.

    ``partner`` is the index (in that voice's views) of the claim that it is aligned with, or ``None``;
    ``similarity`` (0..1) is that of the partner, without one that of the nearest claim. ``support`` (0..1) is how
    far the voice's whole answer supports the claim. ``conflict`` says that the partner gives another figure, date
    or polarity.
    """

    voice: int
    partner: int | None
    similarity: float
    support: float
    conflict: bool = False

    @property
    def agrees(self) -> bool:
        """Whether the voice holds the claim: its answer supports it, and no figure differs."""
        return self.support >= SUPPORTED and not self.conflict

    @property
    def disputes(self) -> bool:
        """Whether the voice speaks of the same matter and does not hold the claim."""
        return self.partner is not None and not self.agrees

    @property
    def silent(self) -> bool:
        """Whether the voice says nothing of the matter."""
        return not self.agrees and not self.disputes


@dataclass(frozen=True, slots=True)
class ClaimView:
    """A factual claim with how well the evidence bears it (``grounding``, 0..1) and what the other voices say."""

    claim: Claim
    grounding: float
    stances: tuple[Stance, ...]

    @property
    def disputed(self) -> bool:
        """Whether any voice disputes it."""
        return any(stance.disputes for stance in self.stances)


@dataclass(frozen=True, slots=True)
class Comparison:
    """All voices' factual claims side by side; ``voices[0]`` is the first answer.

    ``notes`` has ``voices-cut`` or ``claims-cut`` where there were more than are compared.
    """

    voices: tuple[Voice, ...]
    views: tuple[tuple[ClaimView, ...], ...]
    notes: tuple[str, ...] = ()

    @property
    def threshold(self) -> float:
        """The score at which a claim counts as unsupported: the plan's, as the first answer's verdict has it."""
        return self.voices[0].verdict.threshold or _DEFAULT_THRESHOLD

    @property
    def significance(self) -> float:
        """Share (0..1) of the first answer's factual claims that are contested; 0.0 where it has none."""
        return len(self.contested()) / len(self.views[0]) if self.views[0] else 0.0

    def contested(self, voice: int = 0) -> list[int]:
        """The views of ``voice`` that another voice disputes, or that are ungrounded and held by no majority."""
        return [
            place
            for place, view in enumerate(self.views[voice])
            if view.disputed or (view.stances and self.votes(view) <= 0.5 and not self.is_grounded(view))
        ]

    def is_grounded(self, view: ClaimView) -> bool:
        """Whether the evidence supports a claim, by the plan's threshold."""
        return 1.0 - view.grounding < self.threshold

    def votes(self, view: ClaimView) -> float:
        """Share (0..1) of the voices that hold a claim, its own voice among them.

        Source: white paper 5.5.4, mechanism 1.
        """
        return (1 + sum(stance.agrees for stance in view.stances)) / len(self.voices)

    def held(self, voice: int, view: ClaimView) -> float:
        """Share (0..1) of the voices' weight that holds a claim of ``voice``; by count where all weights are zero."""
        total = sum(each.weight for each in self.voices)
        if total <= 0.0:
            return self.votes(view)
        holders = [voice, *(stance.voice for stance in view.stances if stance.agrees)]
        return sum(self.voices[holder].weight for holder in holders) / total
