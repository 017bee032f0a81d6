"""Score answers by their citations, whole and while they are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

from truthlens.core.cancellation import StopCheck
from truthlens.core.records.enums import Aggregation, DetectorName, Reason, Risk
from truthlens.core.records.exchange import Answer, Exchange
from truthlens.core.records.explanation import Difference, DifferenceKind, Explanation, SpanKind
from truthlens.core.records.verdict import DetectorResult, Span
from truthlens.detection.citations.extrapolation import Extrapolation, extrapolations
from truthlens.detection.citations.report import Extrapolations, Options, Report, is_wrong, report_on
from truthlens.detection.citations.sources import Sources
from truthlens.detection.citations.support import Support, WrongCitation
from truthlens.detection.interfaces import Detector
from truthlens.detection.rule_follower import RuleFollower
from truthlens.text.citations import Labels, fence_after, find_citations
from truthlens.text.sentence_marks import has_known_sentences

# A level begins above its limit.
_ABOVE = 0.001
# Characters before and behind a part that tell whether a bracket in it is a citation.
_AROUND = 400
_MOST_SPANS = 100


class CitationDetector:
    """Compares the citations of answers with the ids, numbers and titles of the passages.

    Args:
        options: what the policy says.
        encoder: says whether a passage supports a sentence; ``None`` to leave that out.
    """

    model = ""

    def __init__(self, options: Options, encoder: Detector | None = None) -> None:
        self.options = options
        self._support = None if encoder is None else Support(encoder)

    def reads(self, exchange: Exchange, answer: Answer) -> bool:
        """Return whether the answer's claims can be counted.

        Labels are read in any language, and so are claims where the marks that end a sentence are known: Hindi, Urdu and
        Thai have others, or none.
        """
        return has_known_sentences(answer.text)

    def detect_all(
        self,
        exchange: Exchange,
        answers: Sequence[Answer],
        *,
        aggregation: Aggregation | None,
        stop: StopCheck,
    ) -> list[DetectorResult]:
        """Return one result per answer; one abstains where nothing says that it has to cite, or where it claims nothing."""
        return self.follow(exchange).detect_whole(answers, stop=stop)

    def follow(self, exchange: Exchange) -> CitationFollower:
        """Return a follower of the exchange's answers."""
        return CitationFollower(self, exchange)

    def floor_of(self, level: Risk) -> float:
        """Return the lower end of a level."""
        match level:
            case Risk.HIGH:
                return min(1.0, self.options.high_risk + _ABOVE)
            case Risk.MODERATE:
                return min(1.0, self.options.moderate_risk + _ABOVE)
            case Risk.LOW:
                return 0.0

    def invalid_span(self, start: int, end: int) -> Span:
        """Return the span of a citation that names no passage: a fact, at the lower end of high."""
        return Span(
            start,
            end,
            self.floor_of(Risk.HIGH),
            DetectorName.CITATIONS,
            explanation=Explanation(
                SpanKind.INVALID_CITATION,
                confidence=1.0,
                reason="it cites a source that is not among the passages",
                differences=(Difference(DifferenceKind.CITATION, start, end),),
            ),
            shown=(start, end),
        )

    def result(
        self, exchange: Exchange, sources: Sources, answer: Answer, *, stop: StopCheck
    ) -> DetectorResult:
        """Return the result on a whole answer to an exchange whose sources are known."""
        if not (self.options.require_citations or sources.labelled or sources.numbered or sources.named):
            return _abstained("no passage has an id that the prompt shows")
        report = report_on(answer.text, sources, self.options, query=exchange.query)
        asked = self.options.require_citations or sources.labelled
        # Numbers and titles are no demand to cite; an answer that uses them has to get them right.
        if not asked and not (report.citations if sources.numbered else report.named):
            return _abstained("the answer cites nothing, and the prompt gave its passages no ids")
        if report.note and not report.invalid:
            return _abstained(report.note)
        if not self.reads(exchange, answer):
            return self._labels_alone(report)
        wrong = (
            self._support.wrong(exchange, answer, report, stop=stop)
            if self._support is not None and self.options.check_support
            else []
        )
        spans = [self.invalid_span(start, end) for start, end in report.invalid[:_MOST_SPANS]]
        spans += [self._uncited_span(start, end) for start, end in report.uncited]
        spans += [self._wrong_span(each) for each in wrong]
        surer = self._surer(exchange, answer, report, stop)
        if self.options.over_extrapolation is Extrapolations.FLAG:
            spans += [self._surer_span(each) for each in surer[:_MOST_SPANS]]
        floor = max(self.floor_of(report.level), *(span.score for span in spans), 0.0)
        return DetectorResult(
            DetectorName.CITATIONS,
            report.risk,
            spans=tuple(sorted(spans, key=lambda span: (span.start, span.end))),
            floor=floor,
            explanation=_summary(report, len(wrong), len(surer)),
            details=MappingProxyType(self._details(report, len(wrong), len(surer))),
        )

    def _labels_alone(self, report: Report) -> DetectorResult:
        """Return the result on an answer whose claims cannot be counted: its invalid citations, or that it is not read."""
        spans = tuple(self.invalid_span(start, end) for start, end in report.invalid[:_MOST_SPANS])
        if not spans:
            return DetectorResult(DetectorName.CITATIONS, None, reason=Reason.LANGUAGE)
        return DetectorResult(
            DetectorName.CITATIONS,
            0.0,
            spans=spans,
            floor=self.floor_of(Risk.HIGH),
            reason=Reason.LANGUAGE,
            explanation=f"{_counted(len(report.invalid_citations), 'citation')} of no passage; claims were not counted",
            details=MappingProxyType({"invalid_citations": len(report.invalid_citations)}),
        )

    def _surer(
        self, exchange: Exchange, answer: Answer, report: Report, stop: StopCheck
    ) -> list[Extrapolation]:
        if self.options.over_extrapolation is Extrapolations.OFF:
            return []
        return extrapolations(answer.text, report, exchange.passages, stop=stop)

    def _details(self, report: Report, wrong: int, surer: int) -> dict[str, float | str]:
        flags = self.options.over_extrapolation is Extrapolations.FLAG
        codes = (*report.codes, *(("wrong-citation",) if wrong else ()))
        details: dict[str, float | str] = {
            "method": self.options.method.value,
            "level": report.level.value,
            "has_hallucination_risk": float(report.has_hallucination_risk),
            "hallucination_risk_score": round(report.risk, 4),
            "valid_citations": len(report.valid_citations),
            "invalid_citations": len(report.invalid_citations),
            "uncited_sentences": report.uncited_count,
            "citation_ratio": round(report.ratio, 4),
            "total_claims": report.total_claims,
            "risk_by_claims": round(report.claims_risk, 4),
            "risk_by_seed": round(1.0 - min(report.seed_ratio, 1.0), 4) if report.total_claims else 0.0,
            "codes": " ".join((*codes, *((SpanKind.OVER_EXTRAPOLATION.value,) if surer and flags else ()))),
        }
        if self.options.over_extrapolation is not Extrapolations.OFF:
            details["over_extrapolations"] = surer
        if self.options.check_support:
            details["wrong_citations"] = wrong
        return details

    def _surer_span(self, found: Extrapolation) -> Span:
        return Span(
            *found.word,
            self.floor_of(Risk.MODERATE),
            DetectorName.CITATIONS,
            passage=found.passage,
            explanation=Explanation(
                SpanKind.OVER_EXTRAPOLATION,
                confidence=1.0,
                reason="the nearest sentence says this with reserve",
                sentence=found.sentence,
                similarity=found.similarity,
                differences=(Difference(DifferenceKind.CERTAINTY, *found.word, found.hedge),),
            ),
        )

    def _uncited_span(self, start: int, end: int) -> Span:
        return Span(
            start,
            end,
            self.floor_of(Risk.MODERATE),
            DetectorName.CITATIONS,
            explanation=Explanation(
                SpanKind.UNCITED, confidence=1.0, reason="it claims something and cites no source"
            ),
            shown=(start, end),
        )

    def _wrong_span(self, found: WrongCitation) -> Span:
        elsewhere = found.other is not None
        reason = "the source that it cites does not say this" + (", another one does" if elsewhere else "")
        return Span(
            found.start,
            found.end,
            max(self.floor_of(Risk.MODERATE), self.floor_of(Risk.HIGH) if elsewhere else 0.0),
            DetectorName.CITATIONS,
            passage=found.other if elsewhere else found.cited,
            explanation=Explanation(SpanKind.WRONG_CITATION, confidence=found.confidence, reason=reason),
            shown=(found.start, found.end),
        )


@dataclass(slots=True)
class _Progress:
    """How far the lines of an answer were read, and whether the last one begun is within a block of code."""

    line: int = 0
    fenced: bool = False


class CitationFollower(RuleFollower):
    """Checks the citations of a growing answer, each part from the text near it.

    A part is judged by its invalid citations alone. What is not cited shows at the end: a citation may stand behind the full
    stop, in the part that follows.
    """

    def __init__(self, detector: CitationDetector, exchange: Exchange) -> None:
        self._detector = detector
        self._exchange = exchange
        self._progress: dict[int, _Progress] = {}

    def whole(self, answer: Answer, *, stop: StopCheck) -> DetectorResult:
        """Return the result on the answer as if it were whole."""
        return self._detector.result(self._exchange, self._sources, answer, stop=stop)

    def part(self, answer: Answer, start: int, end: int, *, stop: StopCheck) -> DetectorResult:
        """Return the result on a part: by invalid citations, 0 without one."""
        sources, options = self._sources, self._detector.options
        strict = options.require_citations or sources.countable
        if not (strict or sources.named):
            return _abstained("no passage has an id that the prompt shows")
        first, fenced = self._line_before(answer, start)
        first = max(first, start - _AROUND)
        # From its text near by; positions are moved back.
        near = answer.text[first : end + _AROUND]
        cited = find_citations(near, Labels(sources.knows, sources.resembles), fenced=fenced)
        spans: list[Span] = []
        for each in cited.citations:
            at, last = each.start + first, each.end + first
            wrong = any(
                not sources.knows(label) and is_wrong(label, sources, strict=strict) for label in each.labels
            )
            if start <= at and last <= end and not each.free and wrong and len(spans) < _MOST_SPANS:
                spans.append(self._detector.invalid_span(at, last))
        floor = self._detector.floor_of(Risk.HIGH) if spans else 0.0
        return DetectorResult(DetectorName.CITATIONS, 0.0, spans=tuple(spans), floor=floor)

    @cached_property
    def _sources(self) -> Sources:
        return Sources(self._exchange)

    def _line_before(self, answer: Answer, start: int) -> tuple[int, bool]:
        """Return where the line of a character begins, and whether within a block of code; every line is read once."""
        progress = self._progress.setdefault(answer.index, _Progress())
        if start < progress.line:
            progress.line, progress.fenced = 0, False
        last = answer.text.rfind("\n", progress.line, start) + 1
        if last > progress.line:
            progress.fenced = fence_after(answer.text, progress.line, last, fenced=progress.fenced)
            progress.line = last
        return progress.line, progress.fenced


def _abstained(why: str) -> DetectorResult:
    return DetectorResult(DetectorName.CITATIONS, None, abstained=True, explanation=why)


def _summary(report: Report, wrong: int, surer: int) -> str:
    parts = [
        f"{_counted(report.total_claims, 'claim')}, {_counted(len(report.valid_citations), 'source')} cited"
    ]
    if report.invalid_citations:
        parts.append(f"{_counted(len(report.invalid_citations), 'citation')} of no passage")
    if report.uncited_count:
        parts.append(f"{_counted(report.uncited_count, 'long sentence')} without a citation")
    if wrong:
        parts.append(f"{_counted(wrong, 'citation')} of a passage that does not say it")
    if surer:
        parts.append(f"{_counted(surer, 'claim')} surer than the evidence")
    return "; ".join(parts)


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
