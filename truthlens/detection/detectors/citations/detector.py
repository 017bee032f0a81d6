"""Score answers by their citations, whole and while they are written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType

from truthlens.core.cancellation import StopCheck
from truthlens.core.errors import StoppedError
from truthlens.core.records.enums import DetectorName, Reason, Risk
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.explanation import Difference, DifferenceKind, Explanation, SpanKind
from truthlens.core.records.verdict import DetectorResult, Span
from truthlens.detection.citation_sources import Sources
from truthlens.detection.detectors.citations.report import (
    CitationReport,
    Extrapolations,
    Options,
    is_wrong,
    report_on,
)
from truthlens.detection.detectors.citations.support import Support, WrongCitation
from truthlens.detection.explain.evidence_search import EvidenceSentences
from truthlens.detection.interfaces import Detector
from truthlens.detection.models.inputs.lexical import keys_of
from truthlens.detection.rule_follower import RuleDetector, RuleFollower
from truthlens.text.citations import fence_after, find_citations
from truthlens.text.claims.hedges import overreach
from truthlens.text.language import has_known_sentences
from truthlens.text.words import words

# Characters before and behind a part that tell whether a bracket in it is a citation.
_AROUND = 400
_MOST_SPANS = 100
_MOST_SENTENCES = 200
# Share of a sentence's words that the nearest one must hold: below it, both speak of different things.
_LEAST_SIMILARITY = 0.4


@dataclass(frozen=True, slots=True)
class Extrapolation:
    """The certain word of a sentence of the answer, and the sentence of a passage that hedges."""

    word: tuple[int, int]
    passage: int
    sentence: tuple[int, int]
    hedge: tuple[int, int]
    similarity: float


class CitationDetector(RuleDetector):
    """Compares the citations of answers with the ids, numbers and titles of the passages.

    It abstains where nothing says that an answer has to cite, or where one claims nothing.

    Args:
        options: what the policy says.
        encoder: says whether a passage supports a sentence, where the options ask for that.
    """

    model = ""
    reads_marks = True

    def __init__(self, options: Options, encoder: Detector | None = None) -> None:
        self.options = options
        self._support = Support(encoder) if encoder is not None and options.check_support else None

    def reads(self, exchange: Exchange, answer: Answer) -> bool:
        """Return whether the answer's claims can be counted.

        Labels are read in any language, and so are claims where the marks that end a sentence are known: Hindi, Urdu and
        Thai have others, or none.
        """
        return has_known_sentences(answer.text)

    def follow(self, exchange: Exchange) -> CitationFollower:
        """Return a follower of the exchange's answers."""
        return CitationFollower(self, exchange)

    def invalid_span(self, start: int, end: int) -> Span:
        """Return the span of a citation that names no passage: a fact, at the lower end of high."""
        explanation = Explanation(
            SpanKind.INVALID_CITATION,
            confidence=1.0,
            reason="it cites a source that is not among the passages",
            differences=(Difference(DifferenceKind.CITATION, start, end),),
        )
        return self._span((start, end), Risk.HIGH, explanation)

    def result(
        self, exchange: Exchange, sources: Sources, answer: Answer, *, stop: StopCheck
    ) -> DetectorResult:
        """Return the result on a whole answer to an exchange whose sources are known."""
        if not (self.options.require_citations or sources.labelled or sources.numbered or sources.named):
            return _abstained("no passage has an id that the prompt shows")
        report = report_on(answer.text, sources, self.options)
        asked = self.options.require_citations or sources.labelled
        # Numbers and titles are no demand to cite; an answer that uses them has to get them right.
        if not asked and not (report.citations if sources.numbered else report.named):
            return _abstained("the answer cites nothing, and the prompt gave its passages no ids")
        if report.note and not report.invalid:
            return replace(_abstained(report.note), report=MappingProxyType(report.as_dict()))
        if not self.reads(exchange, answer):
            return self._labels_alone(report)
        wrong = self._support.wrong(exchange, answer, report, stop=stop) if self._support else []
        surer = self._surer(exchange, answer, report, stop)
        spans = self._spans(report, wrong, surer)
        floor = max(self.options.floor_of(report.level), *(span.score for span in spans), 0.0)
        return DetectorResult(
            DetectorName.CITATIONS,
            report.risk,
            spans=spans,
            floor=floor,
            explanation=_summary(report, len(wrong), len(surer)),
            details=MappingProxyType(self._details(report, len(wrong), len(surer))),
            report=MappingProxyType(report.as_dict()),
        )

    def _labels_alone(self, report: CitationReport) -> DetectorResult:
        """Return the result on an answer whose claims cannot be counted: its invalid citations, or that it is not read."""
        spans = tuple(self.invalid_span(start, end) for start, end in report.invalid[:_MOST_SPANS])
        if not spans:
            return DetectorResult(DetectorName.CITATIONS, None, reason=Reason.LANGUAGE)
        return DetectorResult(
            DetectorName.CITATIONS,
            0.0,
            spans=spans,
            floor=self.options.floor_of(Risk.HIGH),
            reason=Reason.LANGUAGE,
            explanation=f"{_counted(len(report.invalid_citations), 'citation')} of no passage; claims were not counted",
            details=MappingProxyType({"invalid_citations": len(report.invalid_citations)}),
            report=MappingProxyType({"invalid_citations": list(report.invalid_citations)}),
        )

    def _surer(
        self, exchange: Exchange, answer: Answer, report: CitationReport, stop: StopCheck
    ) -> list[Extrapolation]:
        if self.options.over_extrapolation is Extrapolations.OFF:
            return []
        return extrapolations(answer.text, report, exchange.passages, stop=stop)

    def _details(self, report: CitationReport, wrong: int, surer: int) -> dict[str, float | str]:
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

    def _spans(
        self, report: CitationReport, wrong: Sequence[WrongCitation], surer: Sequence[Extrapolation]
    ) -> tuple[Span, ...]:
        """Return the spans of all that was found, in order."""
        spans = [self.invalid_span(*place) for place in report.invalid[:_MOST_SPANS]]
        reason = "it claims something and cites no source"
        uncited = Explanation(SpanKind.UNCITED, confidence=1.0, reason=reason)
        spans += [self._span(place, Risk.MODERATE, uncited) for place in report.uncited]
        reason = "the source that it cites does not say this, another one does"
        for each in wrong:
            why = Explanation(SpanKind.WRONG_CITATION, confidence=each.confidence, reason=reason)
            spans.append(self._span((each.start, each.end), Risk.HIGH, why, passage=each.other))
        if self.options.over_extrapolation is Extrapolations.FLAG:
            spans += [self._surer_span(each) for each in surer[:_MOST_SPANS]]
        return tuple(sorted(spans, key=lambda span: (span.start, span.end)))

    def _surer_span(self, found: Extrapolation) -> Span:
        explanation = Explanation(
            SpanKind.OVER_EXTRAPOLATION,
            confidence=1.0,
            reason="the nearest sentence says this with reserve",
            sentence=found.sentence,
            similarity=found.similarity,
            differences=(Difference(DifferenceKind.CERTAINTY, *found.word, found.hedge),),
        )
        span = self._span(found.word, Risk.MODERATE, explanation, passage=found.passage)
        return replace(span, shown=None)

    def _span(
        self, place: tuple[int, int], level: Risk, explanation: Explanation, *, passage: int | None = None
    ) -> Span:
        floor = self.options.floor_of(level)
        return Span(
            *place, floor, DetectorName.CITATIONS, passage=passage, explanation=explanation, shown=place
        )


@dataclass(slots=True)
class _Progress:
    """How far the lines of an answer were read, and the fence of the block of code that this is in."""

    line: int = 0
    fence: str = ""


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
        first, fence = self._line_before(answer, start)
        first = max(first, start - _AROUND)
        # From its text near by; positions are moved back.
        near = answer.text[first : end + _AROUND]
        cited = find_citations(near, sources.labels, fence=fence)
        spans: list[Span] = []
        for each in cited.citations:
            at, last = each.start + first, each.end + first
            wrong = any(
                not sources.knows(label) and is_wrong(label, sources, strict=strict) for label in each.labels
            )
            if start <= at and last <= end and not each.free and wrong and len(spans) < _MOST_SPANS:
                spans.append(self._detector.invalid_span(at, last))
        floor = self._detector.options.floor_of(Risk.HIGH) if spans else 0.0
        return DetectorResult(DetectorName.CITATIONS, 0.0, spans=tuple(spans), floor=floor)

    @cached_property
    def _sources(self) -> Sources:
        return Sources(self._exchange)

    def _line_before(self, answer: Answer, start: int) -> tuple[int, str]:
        """Return where the line of a character begins, and the fence of its block of code; cheap."""
        progress = self._progress.setdefault(answer.index, _Progress())
        if start < progress.line:
            progress.line, progress.fence = 0, ""
        last = answer.text.rfind("\n", progress.line, start) + 1
        if last > progress.line:
            progress.fence = fence_after(answer.text, progress.line, last, progress.fence)
            progress.line = last
        return progress.line, progress.fence


def _abstained(why: str) -> DetectorResult:
    return DetectorResult(DetectorName.CITATIONS, None, abstained=True, explanation=why)


def _summary(report: CitationReport, wrong: int, surer: int) -> str:
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


def extrapolations(
    text: str, report: CitationReport, passages: Sequence[Passage], *, stop: StopCheck
) -> list[Extrapolation]:
    """Return the sentences of ``report`` on ``text`` that claim with certainty what the evidence hedges, in order.

    Source: hallucination-guidelines, over-extrapolation.

    Raises:
        StoppedError: ``stop`` said true.
    """
    evidence = EvidenceSentences(passages)
    found: list[Extrapolation] = []
    for sentence in [each for each in report.sentences if each.factual][:_MOST_SENTENCES]:
        if stop():
            raise StoppedError
        claim = text[sentence.start : sentence.end]
        weights = {keys_of(word)[0]: 1.0 for word in words(claim) if not word.stop}
        match = evidence.nearest(weights, context={})
        if match is None or match.similarity < _LEAST_SIMILARITY:
            continue
        place = match.sentence
        against = overreach(claim, passages[place.passage].text[place.start : place.end])
        if against is None:
            continue
        found.append(
            Extrapolation(
                (sentence.start + against.start, sentence.start + against.end),
                place.passage,
                (place.start, place.end),
                (place.start + against.evidence[0], place.start + against.evidence[1]),
                match.similarity,
            )
        )
    return found
