"""Make the detector's result of a judgement: quotes are located, rules merged, figures computed. Pure."""

from __future__ import annotations

from types import MappingProxyType

from truthlens.core.records.enums import DetectorName, Risk
from truthlens.core.records.exchange import Answer, Exchange
from truthlens.core.records.verdict import DetectorResult, Span
from truthlens.detection.citations.sources import Sources
from truthlens.detection.judge import composite, levels
from truthlens.detection.judge.quotes import QuotableAnswer
from truthlens.detection.judge.replies import Judgement, TwoStage

_MOST_NOTE_CHARS = 200
_KINDS = ("unsupported_claims", "contradictory_info", "over_extrapolation")
_BRACKETS = "[]【】［］() \t\n"


def result_of(
    judgement: Judgement, exchange: Exchange, answer: Answer, citations: DetectorResult | None, *, calls: int
) -> DetectorResult:
    """Return the result: the merged risk, spans of quotes that stand in the answer, and a floor by the level."""
    ran = citations is not None and citations.score is not None and not citations.abstained
    rules = citations if ran else None
    known = {} if rules is None else rules.details
    rule_risk = None if rules is None or "citation_ratio" not in known else rules.score
    risk = composite.merged_risk(judgement.risk, None if rules is None else rules.score)
    located, dropped, invalid = _checked(judgement, exchange, answer)
    figures = levels.Figures(
        judge_risk=judgement.risk,
        unsupported=len(set(located["unsupported_claims"].values())),
        rule_risk=rule_risk,
        invalid=max(len(invalid), int(float(known.get("invalid_citations", 0)))),
        uncited=int(float(known.get("uncited_sentences", 0))),
        ratio=float(known["citation_ratio"]) if "citation_ratio" in known else None,
        claims=int(float(known.get("total_claims", 0))),
    )
    level = levels.level_of(figures)
    found = any(located.values())
    # Other located findings than unsupported claims are at least one doubtful claim each.
    level = Risk.MODERATE if level is Risk.LOW and found else level
    # What is located is a fact about the answer; a figure that a model gave is an estimate, and stays a score.
    listed = found or figures.invalid or figures.uncited
    floor = levels.floor_of(level) if listed else 0.0
    quality = composite.composite(
        rule=composite.rule_part(
            passages=len(exchange.passages),
            valid_citations=int(float(known.get("valid_citations", 0))),
            claims=figures.claims,
            addressed_share=composite.addressed(exchange.query, answer.text),
        ),
        judge=judgement.score,
        dimensions=judgement.dimensions,
    )
    details: dict[str, float | str] = {
        "risk": round(risk, 4),
        "judge_risk": round(judgement.risk, 4),
        "quality": round(quality, 4),
        "confidence": round(judgement.confidence, 4),
        "unsupported": figures.unsupported,
        "invalid_citations": len(invalid),
        "quotes_dropped": dropped,
        "stages": calls,
        "level": level.value,
        "decision": composite.decide(quality, max(risk, floor)),
    }
    if isinstance(judgement, TwoStage):
        names = ("completeness", "relevance", "citation_quality", "consistency")
        details |= {name: round(value, 4) for name, value in zip(names, judgement.dimensions, strict=True)}
    spans = tuple(
        Span(start, end, max(risk, floor), DetectorName.JUDGE, note=_note(judgement, kind))
        for kind, places in located.items()
        for start, end in dict.fromkeys(places.values())
    )
    return DetectorResult(
        DetectorName.JUDGE,
        risk,
        spans=tuple(sorted(spans, key=lambda span: (span.start, span.end))),
        floor=floor,
        details=MappingProxyType(details),
        explanation=f"the judge gave a risk of {judgement.risk:.2f} and quoted {len(spans)} doubtful places",
        report=MappingProxyType(_report(judgement, located, invalid)),
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
    labels = composite.merged(each.strip(_BRACKETS) for each in judgement.hallucination.invalid_citations)
    cited = [
        label for label in labels if label and (f"[{label}]" in answer.text or f"【{label}】" in answer.text)
    ]
    return located, dropped, [label for label in cited if not sources.knows(label)]


def _note(judgement: Judgement, kind: str) -> str:
    said = judgement.hallucination.notes if isinstance(judgement, TwoStage) else ""
    return " ".join(f"{kind.replace('_', ' ')}: {said or ''}".rstrip(": ").split())[:_MOST_NOTE_CHARS]


def _report(
    judgement: Judgement, located: dict[str, dict[str, tuple[int, int]]], invalid: list[str]
) -> dict[str, object]:
    report: dict[str, object] = judgement.model_dump(mode="json")
    if isinstance(judgement, TwoStage):
        checked = {kind: list(quotes) for kind, quotes in located.items()}
        report["hallucination"] = {
            **judgement.hallucination.model_dump(mode="json"),
            **checked,
            "invalid_citations": invalid,
        }
    return report
