"""Score answers by the claims that say the contrary of the evidence in nearly its words, whole and while they are written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType

from truthlens.core.cancellation import StopCheck
from truthlens.core.errors import StoppedError
from truthlens.core.records.enums import DetectorName
from truthlens.core.records.exchange import Answer, Exchange
from truthlens.core.records.explanation import Difference, DifferenceKind, Explanation, SpanKind
from truthlens.core.records.verdict import Coverage, DetectorResult, Span
from truthlens.detection.detectors.contradictions.evidence import Evidence, Sentence, pieces
from truthlens.detection.detectors.contradictions.judge import Judgement, Kind, judge
from truthlens.detection.detectors.contradictions.reading import read
from truthlens.detection.rule_follower import RuleDetector, RuleFollower
from truthlens.text.claims.claims import claims
from truthlens.text.language import is_read, unread

MOST_ANSWER_CHARS, MOST_CLAIMS = 60_000, 600
_MOST_SPANS = 50
_CHARS_PER_TOKEN = 4
_LANGUAGES = ("en",)
SCORE = 0.95
"""Score of a contradiction: of the answers with one, about this share is wrong on the training twins (docs/detectors.md)."""

_REASONS = {
    Kind.NEGATION: "the evidence says the same with a negation more or less",
    Kind.OPPOSITE: "the evidence says the opposite of the same thing",
    Kind.SCALE: "the evidence says how many, how often or how binding in another way",
    Kind.COMPARISON: "the evidence compares the same things the other way round",
    Kind.ORDER: "the evidence gives the other order in time",
    Kind.ROLE: "the evidence gives the roles the other way round",
    Kind.UNIT: "the evidence gives the same number in another unit",
}
_SORTS = {
    Kind.NEGATION: DifferenceKind.NEGATION, Kind.SCALE: DifferenceKind.CERTAINTY, Kind.ROLE: DifferenceKind.NAME, Kind.UNIT: DifferenceKind.NUMBER,
}  # fmt: skip
_NOTHING = "no claim of the answer could be compared with a sentence of the evidence"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found of a claim of the answer, and in which sentence; a judgement's characters are those of the whole answer."""

    judgement: Judgement
    sentence: Sentence


class ContradictionDetector(RuleDetector):
    """Compares what the claims of an answer say with the sentences of the evidence that have nearly the same words."""

    model = ""

    def reads(self, exchange: Exchange, answer: Answer) -> bool:
        """Return whether the answer is in English."""
        return is_read(answer.text, unread(answer.text, _LANGUAGES, before=exchange.query))

    def follow(self, exchange: Exchange) -> ContradictionFollower:
        """Return a follower of the exchange's answers."""
        return ContradictionFollower(exchange)


class ContradictionFollower(RuleFollower):
    """Checks the claims of a growing answer, each part by itself; the evidence is read once."""

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._known: Evidence | None = None

    def part(self, answer: Answer, start: int, end: int, *, stop: StopCheck) -> DetectorResult:
        """Return the result on a part; one without a claim that can be compared abstains."""
        if self._known is None:
            self._known = Evidence(self._exchange.passages, stop=stop)
        findings, read_to = self._findings(self._known, answer.text, start, end, stop)
        size = sum(len(passage.text) for passage in self._exchange.passages)
        coverage = None
        if not self._known.complete or read_to < end:
            coverage = _coverage(end - start, read_to - start, size, is_whole=self._known.complete)
        if not findings:
            return DetectorResult(DetectorName.CONTRADICTIONS, None, abstained=True, explanation=_NOTHING)
        return _told(findings, coverage)

    def _findings(
        self, evidence: Evidence, text: str, start: int, end: int, stop: StopCheck
    ) -> tuple[list[Finding], int]:
        """Return what was found of the claims of a part, and the character up to which it was read."""
        last = min(end, start + MOST_ANSWER_CHARS)
        found: list[Finding] = []
        listed = claims(text[start:last]) if evidence.sentences else []
        for claim in listed[:MOST_CLAIMS]:
            if stop():
                raise StoppedError
            if not claim.factual or claim.row:
                continue
            for first, behind in pieces(text, start + claim.start, start + claim.end):
                finding = _finding(evidence, text, first, behind)
                if finding is not None:
                    found.append(finding)
        return found, last if len(listed) <= MOST_CLAIMS else start + listed[MOST_CLAIMS].start


def _finding(evidence: Evidence, text: str, start: int, end: int) -> Finding | None:
    """Return the contradiction of a claim, or what supports it: that goes before, unless it shares fewer words."""
    reading = read(text, start, end)
    if reading is None or not reading.content:
        return None
    told = [
        Finding(judgement, sentence)
        for sentence in evidence.nearest(reading)
        if (judgement := judge(reading, sentence.reading)) is not None
    ]
    return min(told, key=lambda each: (each.judgement.kind is not None, -each.judgement.shared), default=None)


def _told(findings: Sequence[Finding], coverage: Coverage | None) -> DetectorResult:
    against = [each for each in findings if each.judgement.kind is not None]
    spans = [span for each in against[:_MOST_SPANS] for span in _spans(each)]
    counts = Counter(each.judgement.kind for each in against)
    listed = ", ".join(f"{kind} ({count})" for kind, count in sorted(counts.items(), key=str))
    return DetectorResult(
        DetectorName.CONTRADICTIONS,
        SCORE if against else 0.0,
        spans=tuple(spans),
        coverage=coverage,
        explanation=f"claims that the evidence contradicts: {listed}"
        if against
        else "no claim is contradicted",
        details=MappingProxyType(
            {
                "compared_claims": len(findings),
                **{f"contradicted_by_{kind}": count for kind, count in counts.items()},
            }
        ),
    )


def _spans(finding: Finding) -> list[Span]:
    judgement, sentence = finding.judgement, finding.sentence
    assert judgement.kind is not None  # only contradictions are marked
    there = judgement.theirs[0] if judgement.theirs else None
    return [
        Span(
            start, end, SCORE, DetectorName.CONTRADICTIONS, passage=sentence.passage,
            explanation=Explanation(
                SpanKind.CONTRADICTED,
                confidence=SCORE,
                reason=_REASONS[judgement.kind],
                sentence=(sentence.start, sentence.end),
                similarity=round(judgement.shared, 4),
                differences=(Difference(_SORTS.get(judgement.kind, DifferenceKind.OPPOSITE), start, end, there),),
            ),
        )
        for start, end in judgement.mine
    ]  # fmt: skip


def _coverage(answer: int, scored: int, passages: int, *, is_whole: bool) -> Coverage:
    """Return how much was read, in tokens estimated by characters."""
    answer, scored, passages = (max(1, each // _CHARS_PER_TOKEN) for each in (answer, scored, passages))
    seen = passages if is_whole else passages - 1
    return Coverage(answer, min(answer, scored), passages, seen)
