"""Say why a span is flagged, in our own words: no text of answers or evidence is ever part of it."""

from __future__ import annotations

from collections.abc import Sequence

from truthlens.core.records.explanation import Difference, DifferenceKind, SpanKind
from truthlens.detection.explain.span_kind import Standing

_ANOTHER = {
    DifferenceKind.NUMBER: "gives another number",
    DifferenceKind.DATE: "gives another date",
    DifferenceKind.NAME: "gives another name",
    DifferenceKind.NEGATION: "is affirmed where this is negated, or the other way round",
    DifferenceKind.OPPOSITE: "says the opposite",
    DifferenceKind.CERTAINTY: "says it with reserve",
}
_NOWHERE = {
    DifferenceKind.NUMBER: "a number",
    DifferenceKind.DATE: "a date",
    DifferenceKind.NAME: "a name",
    DifferenceKind.CITATION: "a citation",
}


def reason_for(kind: SpanKind, differences: Sequence[Difference], standing: Standing) -> str:
    """Return one sentence, without full stop, that says what ``kind`` rests on."""
    set_against = _listed(_ANOTHER, [each.kind for each in differences if each.evidence is not None])
    nowhere = _listed(_NOWHERE, [each.kind for each in differences if each.evidence is None])
    if kind is SpanKind.CONTRADICTED:
        if set_against:
            return f"the nearest sentence {set_against}"
        if standing.denies:
            return "it says that the evidence lacks something that the evidence speaks of"
        return "the evidence speaks of this matter in the same words, and puts them together differently"
    if kind is SpanKind.FABRICATED:
        if nowhere:
            return f"it gives {nowhere} that stands nowhere in the evidence"
        return "nothing in the evidence comes near"
    if standing.similarity <= 0.0:
        return "no sentence of the evidence shares a word of content with this one"
    if set_against:
        return f"the evidence speaks of the matter, and the nearest sentence {set_against}"
    if nowhere:
        return f"the evidence speaks of the matter, but {nowhere} of it stands nowhere there"
    if standing.absent > 0.0:
        return f"the evidence speaks of the matter, but {standing.absent:.0%} of the words flagged stand nowhere there"
    return "the words stand in the evidence, but no sentence says this"


def _listed(phrases: dict[DifferenceKind, str], kinds: Sequence[DifferenceKind]) -> str:
    return " and ".join(dict.fromkeys(phrases[kind] for kind in kinds if kind in phrases))
