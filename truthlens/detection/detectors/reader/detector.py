"""Judge each claim of an answer with the reader: a claim and the few sentences that bear on it, three outcomes.

Claims are read in batches, and each once for an exchange: a growing answer costs its new claims alone. A claim that is a whole sentence
of the evidence, word for word, is not read. CPU-bound and synchronous; it decides nothing beyond a claim.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from types import MappingProxyType

from truthlens.core.cancellation import StopCheck
from truthlens.core.records.claims import ClaimOutcome, Finding
from truthlens.core.records.enums import DetectorName, Reason
from truthlens.core.records.exchange import Answer, Exchange
from truthlens.core.records.verdict import DetectorResult
from truthlens.detection.claims.claim_risk import quotation
from truthlens.detection.claims.quotations import Quotations
from truthlens.detection.detectors.encoder.session import evidence_texts
from truthlens.detection.detectors.reader.inputs import ReaderEvidence, ReaderInput
from truthlens.detection.detectors.reader.model import Reader
from truthlens.detection.rule_follower import RuleDetector, RuleFollower
from truthlens.text.claims.claims import Claim, scored_claims
from truthlens.text.language import is_read, readable, unread
from truthlens.text.values.quantities import typed_values
from truthlens.text.words import words

_OUTCOMES = (ClaimOutcome.SUPPORTED, ClaimOutcome.CONTRADICTED, ClaimOutcome.NOT_STATED)
# Of one exchange; claims beyond are read anew.
_MOST_REMEMBERED = 4_000
_AT_ONCE = 8
# An answer that has grown by so many characters may have another whole claim.
_AHEAD_CHARS = 160
_EVEN = 0.5


class ReaderDetector(RuleDetector):
    """Judges the claims of answers with one reader, in languages that it knows; safe in several threads.

    Args:
        reader: the loaded model.
        max_claims: how many claims of an answer, or of a part of a growing one, it reads; further ones make it ``too-large``.
        time_s: seconds of reading for an exchange, less than its time limit: what is late is lost with the findings of all detectors.
    """

    name: str = DetectorName.READER

    def __init__(self, reader: Reader, *, max_claims: int = 64, time_s: float = math.inf) -> None:
        self._reader, self._max_claims, self._time_s = reader, max_claims, time_s

    @property
    def model(self) -> str:
        """Name of the reader."""
        return self._reader.manifest.name

    def reads(self, exchange: Exchange, answer: Answer) -> bool:
        """Return whether the reader knows the language of the answer and of any passage."""
        languages = self._reader.manifest.languages
        foreign = unread(answer.text, languages, before=exchange.query)
        return is_read(answer.text, foreign) and any(
            readable(text, languages) for text in evidence_texts(exchange)
        )

    def follow(self, exchange: Exchange) -> ReaderFollower:
        """Return a scorer for the answers of ``exchange`` while they grow."""
        return ReaderFollower(
            exchange,
            self._reader,
            reads=partial(self.reads, exchange),
            max_claims=self._max_claims,
            time_s=self._time_s,
        )


class ReaderFollower(RuleFollower):
    """Judges the claims of the answers of one exchange, each once; the evidence is read when the first claim comes.

    Args:
        exchange: query and passages.
        reader: the loaded model.
        reads: tells whether the reader knows the language of an answer.
        max_claims: of a part of an answer.
        time_s: of the exchange.
    """

    def __init__(
        self,
        exchange: Exchange,
        reader: Reader,
        *,
        reads: Callable[[Answer], bool],
        max_claims: int,
        time_s: float,
    ) -> None:
        self._exchange, self._reader, self._reads = exchange, reader, reads
        self._max_claims, self._quotations = max_claims, Quotations(exchange.passages)
        self._read: dict[str, _Reading] = {}
        self._left_s = time_s
        # By answer, the characters from which on there may be something to read ahead.
        self._due: dict[int, int] = {}
        self._lock = threading.Lock()

    def due(self, answers: Sequence[Answer]) -> bool:
        """Return whether an answer may have grown by a claim."""
        return any(len(answer.text) >= self._due.get(answer.index, _AHEAD_CHARS) for answer in answers)

    def ahead(self, answers: Sequence[Answer], *, stop: StopCheck) -> None:
        """Read the claims that further text will not change: all but the last one of each answer.

        Nobody waits for this, so that it takes nothing of the exchange's time.
        """
        for answer in answers:
            if not self.due([answer]):
                continue
            self._due[answer.index] = len(answer.text) + _AHEAD_CHARS
            if self._reads(answer):
                self._read_ahead(answer.text, scored_claims(answer.text)[:-1][: self._max_claims], stop)

    def _read_ahead(self, text: str, found: Sequence[Claim], stop: StopCheck) -> None:
        # A few at a time: whoever waits for a verdict meanwhile waits for these alone.
        for first in range(0, len(found), _AT_ONCE):
            with self._lock:
                left_s = self._left_s
                try:
                    self._readings(text, found[first : first + _AT_ONCE], stop)
                finally:
                    self._left_s = left_s

    def part(self, answer: Answer, start: int, end: int, *, stop: StopCheck) -> DetectorResult:
        """Return the result on characters ``start`` to ``end`` of the answer."""
        text = answer.text[start:end]
        found = scored_claims(text) if self._reads(answer) else []
        if not found or not any(passage.text.strip() for passage in self._exchange.passages):
            return DetectorResult(
                DetectorName.READER, None, abstained=True, revision=self._reader.manifest.revision
            )
        with self._lock:
            readings, unread = self._readings(text, found, stop)
            if len(self._read) > _MOST_REMEMBERED:
                self._read.clear()
        findings = tuple(
            Finding(
                claim.start + start,
                claim.end + start,
                each.risk,
                each.outcome,
                each.passage,
                each.sentence,
                apart=min(each.risk, _EVEN) if each.rewrites else None,
                read=self._evidence.share,
            )
            for claim, each in readings
        )
        details: dict[str, str | float] = {
            "model": self._reader.manifest.name,
            "claims": float(len(findings)),
        }
        reason = None
        if unread:
            details["unread_claims"] = float(unread)
            reason = Reason.TOO_LARGE
        risks = [each.risk for each in findings]
        return DetectorResult(
            DetectorName.READER,
            max(risks, default=0.0) if risks or not unread else None,
            reason=reason,
            findings=findings,
            details=MappingProxyType(details),
            revision=self._reader.manifest.revision,
        )

    def _readings(
        self, text: str, found: Sequence[Claim], stop: StopCheck
    ) -> tuple[list[tuple[Claim, _Reading]], int]:
        """Return the claims of ``text`` that were read, each with its reading, and how many were left out. Quotations need none."""
        unquoted = [each for each in found if quotation(each, text, self._quotations.find) is None]
        self._read_new([claim.text for claim in unquoted[: self._max_claims]], stop)
        read = [(claim, self._read[claim.text]) for claim in unquoted if claim.text in self._read]
        return read, len(unquoted) - len(read)

    def _read_new(self, texts: Sequence[str], stop: StopCheck) -> None:
        """Read those of ``texts`` that were not read before, as far as the exchange's time allows."""
        new = [text for text in dict.fromkeys(texts) if text not in self._read]
        for first in range(0, len(new), _AT_ONCE):
            part = new[first : first + _AT_ONCE]
            if self._left_s <= 0.0:
                return
            began = time.monotonic()
            inputs = [self._evidence.input_for(text, query=self._exchange.query) for text in part]
            probabilities = self._reader.read(inputs, stop=stop)
            for text, each, row in zip(part, inputs, probabilities, strict=True):
                self._read[text] = _Reading(
                    float(1.0 - row[0]),
                    _OUTCOMES[int(row.argmax())],
                    *self._decides(text, each),
                    rewrites=not self._has_values(text),
                )
            self._left_s -= time.monotonic() - began

    def _has_values(self, text: str) -> bool:
        """Return whether the evidence has all values of a claim as they are written there."""
        return all(
            _written(text[value.start : value.end]) in self._written_evidence for value in typed_values(text)
        )

    def _decides(self, text: str, read: ReaderInput) -> tuple[int | None, tuple[int, int] | None]:
        """Return passage and characters of the sentence that shares most with a claim, of those that were read with it."""
        own = {word.stem for word in words(text) if not word.stop}
        best, most = None, 0
        for number in read.sentences:
            sentence = self._evidence.sentences[number]
            passage, lead = self._places[sentence.passage]
            if sentence.start < lead:
                continue
            there = self._exchange.passages[passage].text[sentence.start - lead : sentence.end - lead]
            shared = len(own & {word.stem for word in words(there)})
            if shared > most:
                best, most = (passage, (sentence.start - lead, sentence.end - lead)), shared
        return best or (None, None)

    @cached_property
    def _written_evidence(self) -> str:
        return "".join(_written(each.text) for each in self._evidence.sentences)

    @cached_property
    def _evidence(self) -> ReaderEvidence:
        passages = self._exchange.passages
        texts = [self._lead(number) + passages[number].text for number, _ in self._places]
        return ReaderEvidence(self._reader.tokenizer, self._reader.manifest.input, texts)

    @cached_property
    def _places(self) -> list[tuple[int, int]]:
        """Of each text that is read: its passage's number, and where the passage's own text begins in it."""
        return [
            (number, len(self._lead(number)))
            for number, passage in enumerate(self._exchange.passages)
            if passage.text.strip()
        ]

    def _lead(self, number: int) -> str:
        title = self._exchange.passages[number].title
        return f"{title}\n" if title else ""


_MARKS = ".,;:!?()[]\"'“”"


@dataclass(frozen=True, slots=True)
class _Reading:
    risk: float
    outcome: ClaimOutcome
    passage: int | None
    sentence: tuple[int, int] | None
    rewrites: bool = False
    """Whether its values may be those of the evidence, written in another way: the reader cannot know that 18:00 is 6 p.m."""


def _written(text: str) -> str:
    """Return a text so that one that is written alike within another is a part of it: words apart from the marks that end them."""
    words_alone = (word.strip(_MARKS) for word in text.casefold().split())
    return f" {' '.join(filter(None, words_alone))} "
