"""Answers whose claims, groundings and stances are written by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from truthlens.core.records.enums import Status
from truthlens.core.records.verdict import Verdict
from truthlens.mitigation.premium.consensus.comparison import ClaimView, Comparison, Stance, Voice
from truthlens.text.claims.claims import claims

THRESHOLD = 0.5


def voice(text: str, *, model: str = "m", weight: float = 0.5, score: float | None = 0.2) -> Voice:
    """A voice with that answer and that response score."""
    status = Status.CHECKED if score is not None else Status.UNCHECKED
    return Voice(model, text, weight, Verdict(status, score=score, threshold=THRESHOLD))


def compared(
    voices: Sequence[Voice],
    *,
    groundings: Mapping[str, float] | None = None,
    pairs: Sequence[tuple[str, str]] = (),
    supported: Sequence[tuple[str, int]] = (),
    near: float = 0.1,
    unknown: Sequence[tuple[str, int]] = (),
    unscored: Sequence[str] = (),
) -> Comparison:
    """A comparison in which claims that are equal agree, and those of ``pairs`` dispute each other.

    ``groundings`` are by claim text, 0.9 where none is given; ``supported`` are claims that the voice with that index
    holds without saying them; ``near`` is the similarity of a claim to voices that are silent on it. ``unknown`` are
    claims of which it could not be told whether the voice with that index holds them, ``unscored`` those without a
    grounding.
    """
    found = [[claim for claim in claims(each.text) if claim.factual] for each in voices]
    disputed = {*pairs, *((right, left) for left, right in pairs)}
    views = []
    for one, own in enumerate(found):
        listed = []
        for claim in own:
            stances = []
            for other, theirs in enumerate(found):
                if other == one:
                    continue
                texts = [each.text for each in theirs]
                against = next((n for n, text in enumerate(texts) if (claim.text, text) in disputed), None)
                if (claim.text, other) in unknown:
                    stances.append(Stance(other, against, near, None))
                elif claim.text in texts:
                    stances.append(Stance(other, texts.index(claim.text), 1.0, 1.0))
                elif against is not None:
                    stances.append(Stance(other, against, 0.8, 0.1))
                elif (claim.text, other) in supported:
                    stances.append(Stance(other, None, near, 0.9))
                else:
                    stances.append(Stance(other, None, near, 0.1))
            grounding = 0.5 if claim.text in unscored else (groundings or {}).get(claim.text, 0.9)
            listed.append(ClaimView(claim, grounding, tuple(stances), scored=claim.text not in unscored))
        views.append(tuple(listed))
    return Comparison(tuple(voices), tuple(views))
