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

import pydantic

from truthlens.core.cancellation import checkpoint
from truthlens.core.records.enums import Risk
from truthlens.detection.citations.sources import Sources
from truthlens.text.citations import Citation, CitedText, Labels, find_citations, looks_like_label
from truthlens.text.claims.claims import claims
from truthlens.text.spans import merge_ranges, trimmed

EMPTY = "Answer is empty, cannot detect hallucinations"
NO_CLAIMS = "No valid claims found, cannot detect hallucinations"
_BETWEEN_CITATIONS = re.compile(r"[ \t,;，；、]{0,4}")
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


class Options(pydantic.BaseModel):
    """Options of the detector. The defaults are the figures of the source."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

    method: Method = Method.CLAIMS
    require_citations: bool = pydantic.Field(default=False, strict=True)
    claim_chars: int = pydantic.Field(default=20, ge=0, le=10_000, strict=True)
    uncited_chars: int = pydantic.Field(default=50, ge=0, le=10_000, strict=True)
    excerpt_chars: int = pydantic.Field(default=100, ge=1, le=10_000, strict=True)
    reported: int = pydantic.Field(default=3, ge=0, le=100, strict=True)
    moderate_risk: float = pydantic.Field(default=0.3, ge=0, lt=1, allow_inf_nan=False)
    high_risk: float = pydantic.Field(default=0.6, ge=0, lt=1, allow_inf_nan=False)
    high_uncited: int = pydantic.Field(default=3, ge=1, le=10_000, strict=True)
    high_ratio: float = pydantic.Field(default=0.3, ge=0, le=1, allow_inf_nan=False)
    low_ratio: float = pydantic.Field(default=0.7, ge=0, le=1, allow_inf_nan=False)
    ratio_claims: int = pydantic.Field(default=3, ge=1, le=10_000, strict=True)
    check_support: bool = pydantic.Field(default=False, strict=True)
    over_extrapolation: Extrapolations = Extrapolations.COUNT

    @pydantic.model_validator(mode="after")
    def _in_order(self) -> Options:
        if self.moderate_risk >= self.high_risk:
            raise ValueError("moderate_risk must be below high_risk")
        if self.high_ratio > self.low_ratio:
            raise ValueError("high_ratio must not be above low_ratio")
        return self


@dataclass(frozen=True, slots=True)
class Sentence:
    """Characters of a sentence and what it cites: the passages of its valid citations, and whether it has any at all."""

    start: int
    end: int
    length: int
    factual: bool
    passages: tuple[int, ...] = ()
    cites: bool = False


@dataclass(frozen=True, slots=True)
class Report:
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
    sentences: tuple[Sentence, ...] = field(default=(), repr=False)

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


def report_on(text: str, sources: Sources, options: Options, *, query: str = "") -> Report:
    """Return the report on an answer."""
    if not text.strip():
        return Report(note=EMPTY)
    cited = find_citations(text, Labels(sources.knows, sources.resembles))
    compared = _compare(cited, sources, strict=options.require_citations or sources.countable)
    return _report(text, _sentences(text, cited, compared.places, query), compared, options)


@dataclass(slots=True)
class _Compared:
    """Labels of valid and invalid citations, each once; where the invalid ones stand; the passages of every citation."""

    valid: dict[str, None] = field(default_factory=dict)
    invalid: dict[str, None] = field(default_factory=dict)
    wrong: list[tuple[int, int]] = field(default_factory=list)
    places: list[tuple[int, ...]] = field(default_factory=list)
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
        compared.named += bool(found) or any("." in label for label in citation.labels)
        compared.places.append(tuple(dict.fromkeys(found)))
    return compared


def is_wrong(label: str, sources: Sources, *, strict: bool) -> bool:
    """Return whether a label that names no passage is invalid: beside ids or numbers every other one is, beside titles a file name."""
    if strict:
        return True
    return sources.named and "." in label and looks_like_label(label)


def _report(text: str, sentences: Sequence[Sentence], compared: _Compared, options: Options) -> Report:
    seed = options.method is Method.SEED
    counted = [each for each in sentences if each.length > options.claim_chars and (seed or each.factual)]
    uncited = [
        each
        for each in sentences
        if each.length > options.uncited_chars and not each.cites and (seed or each.factual)
    ]
    total = len(counted)
    supported = sum(bool(each.passages) for each in counted)
    seed_ratio = len(compared.valid) / max(total, 1)
    claims_risk = (total - supported) / total if total else 0.0
    ratio = seed_ratio if seed else supported / max(total, 1)
    # 3 of 10 are 0.3 and not more.
    by_seed = round(1.0 - min(seed_ratio, 1.0), 12) if total else 0.0
    risk = by_seed if seed else claims_risk
    cut = [
        (each.start, min(each.end, each.start + options.excerpt_chars))
        for each in uncited[: options.reported]
    ]
    figures = _Figures(risk, ratio, len(compared.invalid), len(uncited), total)
    level, codes = _level(figures, options)
    return Report(
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
        citations=len(compared.places),
        named=compared.named,
        sentences=tuple(sentences),
    )


@dataclass(frozen=True, slots=True)
class _Figures:
    risk: float
    ratio: float
    invalid: int
    uncited: int
    claims: int


def _level(figures: _Figures, options: Options) -> tuple[Risk, tuple[str, ...]]:
    """Return the level, and the codes of all that makes it so: high if any rule says so, low only if all do."""
    high = {
        "risk": figures.risk > options.high_risk,
        "invalid-citation": figures.invalid > 0,
        "uncited": figures.uncited >= options.high_uncited,
        "ratio": figures.claims >= options.ratio_claims and figures.ratio < options.high_ratio,
    }
    if codes := tuple(code for code, holds in high.items() if holds):
        return Risk.HIGH, codes
    moderate = {
        "risk": figures.risk > options.moderate_risk,
        "uncited": figures.uncited > 0,
        "ratio": figures.claims > 0 and figures.ratio < options.low_ratio,
    }
    codes = tuple(code for code, holds in moderate.items() if holds)
    return (Risk.MODERATE if codes else Risk.LOW), codes


def _sentences(text: str, cited: CitedText, places: Sequence[tuple[int, ...]], query: str) -> list[Sentence]:
    """Return the sentences outside of code and lists of sources, each with what it cites.

    Sentences are cut in the text without its citations, which may stand before a full stop or behind it.
    """
    bare = _Bare(text, [(each.start, each.end) for each in cited.citations], cited.listed)
    ranges: list[tuple[int, int, bool]] = []
    for claim in claims(bare.text, query=query):
        checkpoint()
        if not claim.factual and claim.text.lstrip().startswith(("```", "~~~")):
            continue
        start, end = claim.sentence or (claim.start, claim.end)
        here = bare.place(start), bare.place(end - 1) + 1
        if ranges and here[0] < ranges[-1][1]:
            ranges[-1] = (ranges[-1][0], max(here[1], ranges[-1][1]), ranges[-1][2] or claim.factual)
        else:
            ranges.append((*here, claim.factual))
    owned: list[list[int]] = [[] for _ in ranges]
    cites = [False] * len(ranges)
    listed = _Within(cited.listed)
    for citation, passages in zip(cited.citations, places, strict=True):
        if listed.holds(citation.start):
            continue
        owner = _owner(text, citation, ranges)
        if owner is not None:
            owned[owner] += passages
            cites[owner] = True
    return [
        Sentence(start, end, _length(text, start, end), factual, tuple(dict.fromkeys(own)), has)
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


class _Within:
    """Tells of places, in order, whether they lie in one of some ranges."""

    def __init__(self, ranges: Sequence[tuple[int, int]]) -> None:
        self._ranges = ranges

    def holds(self, place: int) -> bool:
        number = bisect_right(self._ranges, place, key=lambda each: each[0]) - 1
        return number >= 0 and place < self._ranges[number][1]


class _Bare:
    """A text without its citations and lines of sources, and where its characters stand in the whole text."""

    def __init__(
        self, text: str, citations: Sequence[tuple[int, int]], lines: Sequence[tuple[int, int]]
    ) -> None:
        parts: list[str] = []
        self._starts: list[int] = []
        self._origins: list[int] = []
        at = length = 0
        for start, end in merge_ranges((*_grouped(text, citations), *lines)):
            # What follows is not to grow together with what was before: "Nine.[1] Then" are two sentences.
            space = (
                "" if text[end : end + 1] in ("", " ", "\n", "\t", ".", ",", "。", "，", ";", ":") else " "
            )
            piece = text[at:start] + space
            self._starts.append(length)
            self._origins.append(at)
            parts.append(piece)
            length += len(piece)
            at = end
        self._starts.append(length)
        self._origins.append(at)
        parts.append(text[at:])
        self.text = "".join(parts)

    def place(self, character: int) -> int:
        """Return where a character of ``text`` stands in the whole text."""
        number = bisect_right(self._starts, character) - 1
        return self._origins[number] + character - self._starts[number]


def _grouped(text: str, citations: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the ranges of citations, those that stand side by side as one."""
    grouped: list[tuple[int, int]] = []
    for start, end in citations:
        if grouped and _BETWEEN_CITATIONS.fullmatch(text, grouped[-1][1], start):
            grouped[-1] = (grouped[-1][0], end)
        else:
            grouped.append((start, end))
    return grouped
