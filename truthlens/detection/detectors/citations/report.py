"""What the citations of one answer come to: which are valid, which claims have none, and the risk that follows.

Source: hallucination-guidelines, rule-based detection. ``Method.SEED`` is its formula to the letter; ``Method.CLAIMS``, the default,
counts claims and not ids, because six sentences that all rest on one source have a ratio of 1/6 there. Pure.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

import pydantic

from truthlens.core.cancellation import checkpoint
from truthlens.core.records.enums import Risk, Stricter
from truthlens.detection.citation_sources import Sources
from truthlens.detection.level_options import LevelFigures, LevelOptions
from truthlens.text.citations import Citation, CitedText, find_citations, looks_like_label
from truthlens.text.claims.claims import claims
from truthlens.text.spans import merge_ranges, touching, trimmed
from truthlens.text.without_citations import Cut, Unmarked

EMPTY = "Answer is empty, cannot detect hallucinations"
NO_CLAIMS = "No valid claims found, cannot detect hallucinations"
_BETWEEN_CITATIONS = re.compile(r"[ \t,;，；、]{0,4}")
_GOES_ON = ("", " ", "\n", "\t", ".", ",", "。", "，", ";", ":")
_END_MARKS = " \t\r\n.!?…。！？；;"


class Method(StrEnum):
    """How the risk is counted: by the share of claims without a valid citation, or by the source's own formula."""

    CLAIMS = "claims"
    SEED = "seed"


class Extrapolations(StrEnum):
    """What becomes of claims that are surer than the evidence: not looked for, counted, or findings with a floor."""

    OFF = "off"
    COUNT = "count"
    FLAG = "flag"


class Options(LevelOptions):
    """Options of the detector. The defaults are the figures of the source."""

    method: Annotated[Method, Stricter.UNKNOWN] = Method.CLAIMS
    require_citations: Annotated[bool, Stricter.HIGHER] = pydantic.Field(default=False, strict=True)
    claim_chars: Annotated[int, Stricter.UNKNOWN] = pydantic.Field(default=20, ge=0, le=10_000, strict=True)
    uncited_chars: Annotated[int, Stricter.LOWER] = pydantic.Field(default=50, ge=0, le=10_000, strict=True)
    excerpt_chars: Annotated[int, Stricter.HIGHER] = pydantic.Field(default=100, ge=1, le=10_000, strict=True)
    reported: Annotated[int, Stricter.HIGHER] = pydantic.Field(default=3, ge=0, le=100, strict=True)
    check_support: Annotated[bool, Stricter.HIGHER] = pydantic.Field(default=False, strict=True)
    over_extrapolation: Annotated[Extrapolations, Stricter.LATER] = Extrapolations.COUNT


@dataclass(frozen=True, slots=True)
class CitedSentence:
    """Characters of a sentence and what it cites: the passages of its valid citations, and whether it has any at all."""

    start: int
    end: int
    length: int
    factual: bool
    passages: tuple[int, ...] = ()
    cites: bool = False


@dataclass(frozen=True, slots=True)
class CitationReport:
    """The report on one answer; lists are in the answer's order, each id once.

    ``uncited`` are the ranges of the first long sentences without citation, cut short; ``uncited_count`` counts all.
    ``invalid`` are the places of citations that name no passage. ``ratio`` and ``risk`` are the method's, the others by both.
    """

    has_hallucination_risk: bool = False
    risk: float = 0.0
    valid_citations: tuple[str, ...] = ()
    invalid_citations: tuple[str, ...] = ()
    uncited_sentences: tuple[str, ...] = ()
    ratio: float = 0.0
    note: str = ""
    total_claims: int = 0
    uncited_count: int = 0
    seed_ratio: float = 0.0
    claims_risk: float = 0.0
    level: Risk = Risk.LOW
    codes: tuple[str, ...] = ()
    invalid: tuple[tuple[int, int], ...] = ()
    uncited: tuple[tuple[int, int], ...] = ()
    citations: int = 0
    named: int = 0
    sentences: tuple[CitedSentence, ...] = field(default=(), repr=False)

    def as_dict(self) -> dict[str, object]:
        """Return the report under the names of the source."""
        if self.note:
            return {
                "has_hallucination_risk": self.has_hallucination_risk,
                "hallucination_risk_score": self.risk,
                "note": self.note,
            }
        return {
            "has_hallucination_risk": self.has_hallucination_risk,
            "hallucination_risk_score": self.risk,
            "valid_citations": list(self.valid_citations),
            "invalid_citations": list(self.invalid_citations),
            "uncited_sentences": list(self.uncited_sentences),
            "citation_ratio": self.ratio,
        }


def report_on(text: str, sources: Sources, options: Options) -> CitationReport:
    """Return the report on an answer."""
    if not text.strip():
        return CitationReport(note=EMPTY)
    cited = find_citations(text, sources.labels)
    compared = _compare(cited, sources, strict=options.require_citations or sources.countable)
    return _report(text, _sentences(text, cited, compared.places), compared, options)


@dataclass(slots=True)
class _Compared:
    """Labels of valid and invalid citations, each once; where the invalid ones stand; the passages of every citation."""

    valid: dict[str, None] = field(default_factory=dict)
    invalid: dict[str, None] = field(default_factory=dict)
    wrong: list[tuple[int, int]] = field(default_factory=list)
    places: list[tuple[int, ...]] = field(default_factory=list)
    citations: int = 0
    named: int = 0


def _compare(cited: CitedText, sources: Sources, *, strict: bool) -> _Compared:
    compared = _Compared()
    for citation in cited.citations:
        checkpoint()
        found: list[int] = []
        wrong = False
        for label in citation.labels:
            passages = sources.find(label)
            found += passages
            if passages:
                compared.valid[label] = None
            elif not citation.free and is_wrong(label, sources, strict=strict):
                compared.invalid[label] = None
                wrong = True
        if wrong:
            compared.wrong.append((citation.start, citation.end))
        compared.citations += bool(citation.labels)
        compared.named += bool(found) or any("." in label for label in citation.labels)
        compared.places.append(tuple(dict.fromkeys(found)))
    return compared


def is_wrong(label: str, sources: Sources, *, strict: bool) -> bool:
    """Return whether a label that names no passage is invalid: beside ids or numbers every other one is, beside titles a file name."""
    if strict:
        return True
    return sources.named and "." in label and looks_like_label(label)


def _report(
    text: str, sentences: Sequence[CitedSentence], compared: _Compared, options: Options
) -> CitationReport:
    seed = options.method is Method.SEED
    judged = [each for each in sentences if seed or each.factual]
    counted = [each for each in judged if each.length > options.claim_chars]
    uncited = [each for each in judged if each.length > options.uncited_chars and not each.cites]
    total = len(counted)
    supported = sum(bool(each.passages) for each in counted)
    seed_ratio = len(compared.valid) / max(total, 1)
    claims_risk = (total - supported) / total if total else 0.0
    ratio, risk = supported / max(total, 1), claims_risk
    if seed:
        # 3 of 10 are 0.3 and not more.
        ratio, risk = seed_ratio, round(1.0 - min(seed_ratio, 1.0), 12) if total else 0.0
    cut = [
        (each.start, min(each.end, each.start + options.excerpt_chars))
        for each in uncited[: options.reported]
    ]
    level, codes = options.level_of(LevelFigures(risk, ratio, len(compared.invalid), len(uncited), total))
    return CitationReport(
        has_hallucination_risk=risk > options.moderate_risk,
        risk=risk,
        valid_citations=tuple(compared.valid),
        invalid_citations=tuple(compared.invalid),
        uncited_sentences=tuple(text[start:end] for start, end in cut),
        ratio=ratio,
        note="" if total or compared.invalid else NO_CLAIMS,
        total_claims=total,
        uncited_count=len(uncited),
        seed_ratio=seed_ratio,
        claims_risk=claims_risk,
        level=level,
        codes=codes,
        invalid=tuple(compared.wrong),
        uncited=tuple(cut),
        citations=compared.citations,
        named=compared.named,
        sentences=tuple(sentences),
    )


def _sentences(text: str, cited: CitedText, places: Sequence[tuple[int, ...]]) -> list[CitedSentence]:
    """Return the sentences outside of code and lists of sources, each with what it cites.

    Sentences are cut in the text without its citations, which may stand before a full stop or behind it.
    """
    bare = without_citations(text, cited)
    ranges: list[tuple[int, int, bool]] = []
    for claim in claims(bare.text):
        checkpoint()
        if not claim.factual and claim.text.lstrip().startswith(("```", "~~~")):
            continue
        start, end = claim.sentence or (claim.start, claim.end)
        here = bare.start(start), bare.end(end)
        if ranges and here[0] < ranges[-1][1]:
            ranges[-1] = (ranges[-1][0], max(here[1], ranges[-1][1]), ranges[-1][2] or claim.factual)
        else:
            ranges.append((*here, claim.factual))
    owned: list[list[int]] = [[] for _ in ranges]
    cites = [False] * len(ranges)
    listed = touching([(each.start, each.end) for each in cited.citations], cited.listed)
    for citation, passages, is_listed in zip(cited.citations, places, listed, strict=True):
        if is_listed or not citation.labels:
            continue
        owner = _owner(text, citation, ranges)
        if owner is not None:
            owned[owner] += passages
            cites[owner] = True
    return [
        CitedSentence(start, end, _length(text, start, end), factual, tuple(dict.fromkeys(own)), has)
        for (start, end, factual), own, has in zip(ranges, owned, cites, strict=True)
    ]


def _length(text: str, start: int, end: int) -> int:
    first, last = trimmed(text, start, end)
    while last > first and text[last - 1] in _END_MARKS:
        last -= 1
    return last - first


def _owner(text: str, citation: Citation, ranges: Sequence[tuple[int, int, bool]]) -> int | None:
    """Return the sentence that a citation is given for: the one that it stands in, else the one before it on its line.

    At the start of a line, and where the text goes on in small letters ("[1] says that"), it is the one behind.
    """
    before = bisect_right(ranges, citation.start, key=lambda each: each[0]) - 1
    if before >= 0 and citation.start < ranges[before][1]:
        return before
    behind = before + 1 if before + 1 < len(ranges) else None
    if behind is not None and text.find("\n", citation.end, ranges[behind][0]) >= 0:
        behind = None
    if before < 0:
        return behind
    if behind is not None:
        starts_line = text.find("\n", ranges[before][1], citation.start) >= 0
        if starts_line or text[ranges[behind][0]].islower():
            return behind
    return before


def without_citations(text: str, cited: CitedText) -> Unmarked:
    """Return the text without its citations, the white space before them and the lines that list sources."""
    places = _grouped(text, [(each.start, each.end) for each in cited.citations])
    ranges = merge_ranges((*((_before_space(text, start), end) for start, end in places), *cited.listed))
    # What follows is not to grow together with what was before: "Nine.[1] Then" are two sentences.
    return Unmarked(
        text, [Cut(start, end, "" if text[end : end + 1] in _GOES_ON else " ") for start, end in ranges]
    )


def _before_space(text: str, start: int) -> int:
    while start and text[start - 1] in " \t":
        start -= 1
    return start


def _grouped(text: str, citations: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the ranges of citations, those that stand side by side as one."""
    grouped: list[tuple[int, int]] = []
    for start, end in citations:
        if grouped and _BETWEEN_CITATIONS.fullmatch(text, grouped[-1][1], start):
            grouped[-1] = (grouped[-1][0], end)
        else:
            grouped.append((start, end))
    return grouped
