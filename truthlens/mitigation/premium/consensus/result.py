"""Turn the result of a consensus mechanism into one text: claims are kept, removed, replaced or added.

The wording of a claim is always a voice's own; nothing is rephrased, and a pronoun keeps whatever it pointed
to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from truthlens.mitigation.editing.splice import Edit, splice
from truthlens.mitigation.premium.consensus.comparison import ClaimView, Comparison


@dataclass(frozen=True, slots=True)
class Pick:
    """A claim of another answer: the index of the voice, and that of the claim in the voice's views."""

    voice: int
    view: int


@dataclass(frozen=True, slots=True)
class Agreement:
    """The answer that a mechanism makes of several.

    ``reached`` says that every factual claim of ``text`` is held by more than half of the voices, by weight.
    ``undecided`` are the first answer's views on which votes and groundings tie. ``replaced`` says that
    ``text`` contains another model's words.
    """

    text: str
    reached: bool
    undecided: tuple[int, ...] = ()
    replaced: bool = False


def mixed(
    comparison: Comparison,
    choices: Mapping[int, Pick | None],
    *,
    additions: Sequence[tuple[int, Pick]] = (),
    undecided: Sequence[int] = (),
) -> Agreement:
    """Return the first answer with some claims replaced (a pick), removed (``None``) or put in.

    A claim whose variant the text states already is removed instead. Where no factual claim would be left,
    the first answer stays, all of its claims undecided: what remained would be no answer.

    Args:
        comparison: the voices.
        choices: by the first answer's view what becomes of the claim; the others stay.
        additions: further claims, each with the first answer's view that it follows.
        undecided: views on which the mechanism could not decide.
    """
    first = comparison.views[0]
    kept = [place for place in range(len(first)) if place not in choices]
    stated = {_normal(first[place].claim.text) for place in kept}
    holders = [(0, first[place]) for place in kept]
    edits: list[Edit] = []
    borrowed = False
    for place, pick in sorted(choices.items()):
        claim = first[place].claim
        wording = worded(comparison, pick) if pick is not None else ""
        if pick is not None and _normal(wording) not in stated:
            stated.add(_normal(wording))
            holders.append((pick.voice, comparison.views[pick.voice][pick.view]))
            edits.append(Edit(claim.start, claim.end, wording))
            borrowed = True
        else:
            edits.append(Edit(claim.start, claim.end, ""))
    for place, pick in additions:
        wording = worded(comparison, pick)
        if _normal(wording) not in stated:
            stated.add(_normal(wording))
            holders.append((pick.voice, comparison.views[pick.voice][pick.view]))
            end = first[place].claim.end
            edits.append(Edit(end, end, wording))
            borrowed = True
    if first and not holders:
        return Agreement(comparison.voices[0].text, False, tuple(range(len(first))))
    reached = all(comparison.is_held(voice, view) for voice, view in holders)
    text = splice(comparison.voices[0].text, edits)
    return Agreement(text, reached and not undecided, tuple(sorted(undecided)), borrowed)


def variants(comparison: Comparison, view: ClaimView) -> list[Pick]:
    """Return other voices' claims that could replace ``view``: those that dispute it, of the same layout."""
    found = []
    for stance in view.stances:
        if not stance.disputes or stance.partner is None:
            continue
        other = comparison.views[stance.voice][stance.partner].claim
        if other.row == view.claim.row and other.text.count("|") == view.claim.text.count("|"):
            found.append(Pick(stance.voice, stance.partner))
    return found


def worded(comparison: Comparison, pick: Pick) -> str:
    """Return the words of a picked claim.

    A later clause of a sentence brings the whole sentence, so that its pronouns keep what they point to,
    unless another clause of it is ungrounded.
    """
    views = comparison.views[pick.voice]
    claim = views[pick.view].claim
    if claim.sentence is None or claim.start == claim.sentence[0]:
        return claim.text
    beside = [view for view in views if view.claim.sentence == claim.sentence]
    if all(comparison.is_grounded(view) for view in beside):
        return comparison.voices[pick.voice].text[slice(*claim.sentence)]
    return claim.text


def _normal(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".。!！;；")
