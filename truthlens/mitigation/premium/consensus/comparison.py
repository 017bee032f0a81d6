"""The records of several answers set side by side: voices, stances, views.

They carry figures and decide nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from truthlens.core.records.verdict import Verdict
from truthlens.text.claims.claims import Claim

SUPPORTED = 0.5
"""Support from which a voice holds a claim."""

MAJORITY = 0.5
"""Share of the voices' weight that must be exceeded for a claim to be held by them."""

_DEFAULT_THRESHOLD = 0.5


@dataclass(frozen=True, slots=True)
class Voice:
    """One model's answer.

    ``weight`` is the model's reliability, 0..1; ``verdict`` its score against the evidence.
    """

    model: str
    text: str
    weight: float
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Stance:
    """What the voice with index ``voice`` says of a claim of another one.

    ``partner`` is the index (in that voice's views) of the claim that it is aligned with, or ``None``;
    ``similarity`` (0..1) is that of the partner, without one that of the nearest claim. ``support`` (0..1) is
    how far the voice's whole answer supports the claim, ``None`` where that could not be scored: then the
    voice neither holds the claim nor is silent, and disputes it only in a ``conflict``, where the partner
    gives another figure, date or polarity.
    """

    voice: int
    partner: int | None
    similarity: float
    support: float | None
    conflict: bool = False

    @property
    def known(self) -> bool:
        """Whether there is anything to tell what the voice says of the claim."""
        return self.support is not None or self.conflict

    @property
    def agrees(self) -> bool:
        """Whether the voice holds the claim: its answer supports it, and no figure differs."""
        return self.support is not None and self.support >= SUPPORTED and not self.conflict

    @property
    def disputes(self) -> bool:
        """Whether the voice is about the same subject and does not hold the claim."""
        return self.known and self.partner is not None and not self.agrees

    @property
    def silent(self) -> bool:
        """Whether the voice says nothing of the matter."""
        return self.known and not self.agrees and not self.disputes


@dataclass(frozen=True, slots=True)
class ClaimView:
    """A factual claim with how well the evidence supports it (``grounding``, 0..1) and what other voices say.

    ``scored`` is false where the grounding is unknown, and then it is 0.5.
    """

    claim: Claim
    grounding: float
    stances: tuple[Stance, ...]
    scored: bool = True

    @property
    def known(self) -> bool:
        """Whether it could be scored, and compared with every other voice."""
        return self.scored and all(stance.known for stance in self.stances)

    @property
    def disputed(self) -> bool:
        """Whether any voice disputes it."""
        return any(stance.disputes for stance in self.stances)


@dataclass(frozen=True, slots=True)
class Comparison:
    """All voices' factual claims side by side; ``voices[0]`` is the first answer.

    ``notes`` has ``voices-cut`` or ``claims-cut`` where there were more than are compared, and
    ``comparison-incomplete`` where not all that is compared of the first answer is known.
    """

    voices: tuple[Voice, ...]
    views: tuple[tuple[ClaimView, ...], ...]
    notes: tuple[str, ...] = ()

    @property
    def threshold(self) -> float:
        """The score from which a claim is unsupported: the plan's, as in the first answer's verdict."""
        return self.voices[0].verdict.threshold or _DEFAULT_THRESHOLD

    @property
    def significance(self) -> float:
        """Share (0..1) of the first answer's factual claims that are contested; 0.0 where it has none."""
        return len(self.contested()) / len(self.views[0]) if self.views[0] else 0.0

    def contested(self) -> list[int]:
        """Return the first answer's views that others dispute, or that are ungrounded without a majority.

        A claim of which too little is known is not contested.
        """
        return [
            place
            for place, view in enumerate(self.views[0])
            if view.disputed
            or (view.stances and view.known and self.votes(view) <= MAJORITY and self.is_ungrounded(view))
        ]

    def is_grounded(self, view: ClaimView) -> bool:
        """Return whether the evidence supports a claim, by the plan's threshold."""
        return view.scored and 1.0 - view.grounding < self.threshold

    def is_ungrounded(self, view: ClaimView) -> bool:
        """Return whether the evidence does not support a claim, by the plan's threshold; false if unknown."""
        return view.scored and 1.0 - view.grounding >= self.threshold

    def votes(self, view: ClaimView) -> float:
        """Return the share (0..1) of the voices that hold a claim, its own voice among them.

        Source: white paper 5.5.4, mechanism 1.
        """
        return (1 + sum(stance.agrees for stance in view.stances)) / len(self.voices)

    def held(self, voice: int, view: ClaimView) -> float:
        """Return the share (0..1) of weight that holds a claim of ``voice``.

        By count where all weights are zero.
        """
        total = sum(each.weight for each in self.voices)
        if total <= 0.0:
            return self.votes(view)
        holders = [voice, *(stance.voice for stance in view.stances if stance.agrees)]
        return sum(self.voices[holder].weight for holder in holders) / total

    def is_held(self, voice: int, view: ClaimView) -> bool:
        """Return whether most of the voices' weight holds a claim of ``voice``; false if unknown."""
        return view.known and self.held(voice, view) > MAJORITY
