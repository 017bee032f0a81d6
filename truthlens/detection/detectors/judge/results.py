"""Make the detector's result of a judgement: quotes are located, rules merged, figures computed. Pure."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from types import MappingProxyType

from truthlens.core.records.enums import DetectorName, Risk
from truthlens.core.records.exchange import Answer, Exchange
from truthlens.core.records.explanation import SpanKind
from truthlens.core.records.verdict import DetectorResult, Span
from truthlens.core.risk import composite, decide, rule_part
from truthlens.detection.citation_sources import Sources
from truthlens.detection.detectors.judge.options import Options
from truthlens.detection.detectors.judge.replies import Judgement, TwoStage
from truthlens.detection.level_options import LevelFigures
from truthlens.text.word_forms import content_words

_ELLIPSIS = re.compile(r"\[?(?:\.{3,}|…+)\]?")
_QUOTES = "\"'“”‘’„‚«»「」『』`"
_ENDS = " \t\r\n.,;:!?。，；：！？、" + _QUOTES
_LEAST_LETTERS = 2
_MOST_PARTS = 5


class QuotableAnswer:
    """An answer, folded once so that many quotes can be looked up in it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._folded, self._places = _fold(text)

    def find(self, quote: str) -> tuple[int, int] | None:
        """Return the characters from the first to the last part of a quote, which may leave words out at an ellipsis."""
        parts = [part for each in _ELLIPSIS.split(quote) if (part := _fold(each.strip(_ENDS))[0])]
        if not parts or len(parts) > _MOST_PARTS or sum(map(str.isalnum, "".join(parts))) < _LEAST_LETTERS:
            return None
        start = end = -1
        at = 0
        for part in parts:
            place = self._place(part, at)
            if place < 0:
                return None
            at = place + len(part)
            start = self._places[place] if start < 0 else start
            end = self._places[at - 1] + 1
        return start, end

    def _place(self, part: str, at: int) -> int:
        while (place := self._folded.find(part, at)) >= 0:
            first, last = self._places[place], self._places[place + len(part) - 1] + 1
            if not (self._in_word(first) or self._in_word(last)):
                return place
            at = place + 1
        return -1

    def _in_word(self, border: int) -> bool:
        around = self._text[max(border - 1, 0) : border + 1]
        return border > 0 and len(around) == 2 and around.isascii() and around.isalnum()


_MOST_NOTE_CHARS = 200
_KINDS = {
    "unsupported_claims": SpanKind.UNSUPPORTED,
    "contradictory_info": SpanKind.CONTRADICTED,
    "over_extrapolation": SpanKind.OVER_EXTRAPOLATION,
}
_BRACKETS = "[]【】［］() \t\n"


def result_of(
    judgement: Judgement,
    exchange: Exchange,
    answer: Answer,
    citations: DetectorResult,
    options: Options,
) -> DetectorResult:
    """Return the result: the merged risk, spans of quotes that stand in the answer, and a floor by the level.

    ``citations`` is the result of that detector, an empty one where it has no score.
    """
    known, rule_risk = citations.details, citations.score or 0.0
    risk = max(judgement.risk, rule_risk)
    located, dropped, own_invalid = _checked(judgement, exchange, answer)
    invalid = merged(_listed(citations, "invalid_citations"), own_invalid)
    unsupported = len(set(located["unsupported_claims"].values()))
    counts = {
        name: int(float(known.get(name, 0)))
        for name in ("invalid_citations", "uncited_sentences", "valid_citations", "total_claims")
    }
    rules = LevelFigures(
        risk=rule_risk,
        ratio=float(known.get("citation_ratio", 1.0)),
        invalid=max(len(invalid), counts["invalid_citations"]),
        uncited=counts["uncited_sentences"],
        claims=counts["total_claims"],
    )
    level = level_of(judgement.risk, unsupported, rules, options)
    found = any(located.values())
    # Other located findings than unsupported claims are at least one doubtful claim each.
    level = Risk.MODERATE if level is Risk.LOW and found else level
    # What is located is a fact about the answer; a figure that a model gave is an estimate, and stays a score.
    floor = options.floor_of(level) if found or rules.invalid or rules.uncited else 0.0
    quality = composite(
        rule=rule_part(
            passages=len(exchange.passages),
            valid_citations=counts["valid_citations"],
            claims=rules.claims,
            addressed_share=addressed(exchange.query, answer.text),
        ),
        judge=judgement.score,
        dimensions=judgement.dimensions,
    )
    decision = decide(quality, max(risk, floor), low_risk=options.moderate_risk, high_risk=options.high_risk)
    details: dict[str, float | str] = {
        "risk": round(risk, 4),
        "judge_risk": round(judgement.risk, 4),
        "quality": round(quality, 4),
        "confidence": round(judgement.confidence, 4),
        "unsupported": unsupported,
        "invalid_citations": len(invalid),
        "quotes_dropped": dropped,
        "stages": 2 if options.two_stage else 1,
        "level": level.value,
        "decision": decision.value,
    }
    if isinstance(judgement, TwoStage):
        names = ("completeness", "relevance", "citation_quality", "consistency")
        details |= {name: round(value, 4) for name, value in zip(names, judgement.dimensions, strict=True)}
    spans = tuple(
        Span(start, end, max(risk, floor), DetectorName.JUDGE, note=_note(judgement, kind), kind=_KINDS[kind])
        for kind, places in located.items()
        for start, end in dict.fromkeys(places.values())
    )
    return DetectorResult(
        DetectorName.JUDGE,
        risk,
        spans=tuple(sorted(spans, key=lambda span: (span.start, span.end))),
        floor=floor,
        decision=decision,
        details=MappingProxyType(details),
        explanation=f"the judge gave a risk of {judgement.risk:.2f} and quoted {len(spans)} doubtful places",
        report=MappingProxyType(
            _report(judgement, located, invalid, uncited=_listed(citations, "uncited_sentences"))
        ),
    )


def _checked(
    judgement: Judgement, exchange: Exchange, answer: Answer
) -> tuple[dict[str, dict[str, tuple[int, int]]], int, list[str]]:
    """Return quotes with their places by kind, how many stand nowhere, and citations of no passage in the answer."""
    located: dict[str, dict[str, tuple[int, int]]] = {kind: {} for kind in _KINDS}
    if not isinstance(judgement, TwoStage):
        return located, 0, []
    text, dropped = QuotableAnswer(answer.text), 0
    for kind in _KINDS:
        for quote in getattr(judgement.hallucination, kind):
            place = text.find(quote)
            if place is None:
                dropped += 1
            else:
                located[kind][quote] = place
    sources = Sources(exchange)
    labels = merged(each.strip(_BRACKETS) for each in judgement.hallucination.invalid_citations)
    cited = [
        label for label in labels if label and (f"[{label}]" in answer.text or f"【{label}】" in answer.text)
    ]
    return located, dropped, [label for label in cited if not sources.knows(label)]


def _note(judgement: Judgement, kind: str) -> str:
    said = judgement.hallucination.notes if isinstance(judgement, TwoStage) else ""
    return " ".join(f"{kind.replace('_', ' ')}: {said or ''}".rstrip(": ").split())[:_MOST_NOTE_CHARS]


def _listed(citations: DetectorResult, name: str) -> list[str]:
    """Return a list of the report of ``citations``, empty where it has none."""
    listed = citations.report.get(name)
    return [each for each in listed if isinstance(each, str)] if isinstance(listed, list) else []


def _report(
    judgement: Judgement,
    located: dict[str, dict[str, tuple[int, int]]],
    invalid: list[str],
    *,
    uncited: list[str],
) -> dict[str, object]:
    report: dict[str, object] = judgement.model_dump(mode="json")
    if isinstance(judgement, TwoStage):
        checked = {kind: list(quotes) for kind, quotes in located.items()}
        report["hallucination"] = {
            **judgement.hallucination.model_dump(mode="json"),
            **checked,
            "invalid_citations": invalid,
            "uncited_sentences": uncited,
        }
    return report


def addressed(question: str, answer: str) -> float:
    """Return the share of the question's content words that the answer has, 1.0 for a question without any."""
    wanted = set(content_words(question))
    return len(wanted.intersection(content_words(answer))) / len(wanted) if wanted else 1.0


def merged(*lists: Iterable[str]) -> list[str]:
    """Return the union of lists, in order, each entry once."""
    return list(dict.fromkeys(entry for each in lists for entry in each))


def level_of(judge_risk: float, unsupported: int, rules: LevelFigures, options: Options) -> Risk:
    """Return high if the judge, a count of located claims or a rule says so, low only if all do."""
    level, _ = options.level_of(rules)
    if level is Risk.HIGH or judge_risk > options.high_risk or unsupported >= options.high_unsupported:
        return Risk.HIGH
    return Risk.MODERATE if judge_risk > options.moderate_risk or unsupported else level


def _fold(text: str) -> tuple[str, list[int]]:
    letters: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        for letter in unicodedata.normalize("NFKC", character).casefold():
            if not letter.isspace() and letter not in _QUOTES:
                letters.append(letter)
                places.append(place)
    return "".join(letters), places
