"""The encoder's view of one exchange: its answers to windows, and from log-odds to spans and scores, again and again.

What the answers share is read once, and windows that further text did not change are run once. CPU-bound and
synchronous. It decides nothing: thresholds, fusion with other detectors and deadlines are the engine's.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from truthlens.core.errors import DetectorError
from truthlens.core.records import (
    Aggregation,
    Answer,
    Coverage,
    DetectorName,
    DetectorResult,
    Exchange,
    Reason,
    Span,
)
from truthlens.core.text import sentences
from truthlens.detection.claims import is_abstention
from truthlens.detection.detectors import Ranges
from truthlens.detection.fusion import span_max, spans_of
from truthlens.detection.layout import Layout
from truthlens.detection.manifest import InputFormat, Manifest
from truthlens.detection.memory import Odds, WindowMemory
from truthlens.detection.pairing import Chunk, chunks_of
from truthlens.detection.passages import Evidence
from truthlens.detection.reading import Reading, read_answer
from truthlens.detection.runtime import Stop, TokenModel
from truthlens.detection.scripts import readable
from truthlens.detection.windows import Windows, build_windows, lay_out, read_evidence

# English prose in word pieces; only says when looking again may be worth while.
_CHARACTERS_PER_TOKEN = 4.0
_LOOK_AGAIN = 64  # characters after which a sentence that was not over may be


@dataclass(frozen=True, slots=True, eq=False)
class _Prepared:
    """What the answers of an exchange share. ``read`` is the share of the evidence, by characters, in a script read."""

    passages: tuple[str, ...]
    evidence: Evidence
    layout: Layout
    read: float


@dataclass(frozen=True, slots=True)
class _Task:
    """One answer that is going to be scored; ``reason`` is set where only parts of it are."""

    answer: Answer
    windows: Windows
    # Share of the evidence, by characters, whose script the model reads.
    evidence_read: float
    reason: Reason | None


class EncoderFollower:
    """Scores the answers of one exchange any number of times; see ``detectors.Follower``.

    Args:
        exchange: query and passages.
        model: the loaded weights.
        tokenizer: the model's own.
        manifest: of the model.
        max_windows: most windows for one answer.
        most_bytes: what may be remembered of windows, see ``WindowMemory``; 0 for answers that are scored once.
    """

    def __init__(
        self,
        exchange: Exchange,
        *,
        model: TokenModel,
        tokenizer: Tokenizer,
        manifest: Manifest,
        max_windows: int,
        most_bytes: int,
    ) -> None:
        self.manifest = manifest
        self._exchange = exchange
        self._tokenizer = tokenizer
        self._max_windows = max_windows
        self._languages = manifest.languages or ("*",)
        self._memory = WindowMemory(model, most_bytes=most_bytes)
        self._prepared: _Prepared | Reason | None = None
        # By answer, the characters from which on `ahead` may find something.
        self._due: dict[int, float] = {}
        # By answer, the token behind the last chunk that was run ahead.
        self._closed: dict[int, int] = {}
        self._lock = threading.Lock()

    def due(self, answers: Sequence[Answer]) -> bool:
        """Whether the evidence is not read yet, or an answer may have got long enough for a further window."""
        prepared = self._prepared
        if not isinstance(prepared, _Prepared):
            return prepared is None and bool(answers)
        first = (prepared.layout.chunk_size + 1) * _CHARACTERS_PER_TOKEN
        return any(len(answer.text) >= self._due.get(answer.index, first) for answer in answers)

    def ahead(self, answers: Sequence[Answer], *, stop: Stop) -> None:
        """Read the evidence, and run the windows that further text of the answers will not change.

        Raises:
            DetectorError: the model failed, or ``stop`` said true; what was done by then is remembered.
        """
        with self._lock:
            prepared = self._prepare()
            if isinstance(prepared, Reason):
                return
            for answer in answers:
                if self.due([answer]):
                    self._due[answer.index] = self._run_ahead(prepared, answer, stop)

    def detect_all(
        self,
        answers: Sequence[Answer],
        ranges: Sequence[Ranges],
        *,
        aggregation: Aggregation | None,
        stop: Stop,
    ) -> list[DetectorResult]:
        """Score the answers so far, their windows batched together, and parts of them.

        Args:
            answers: only their text is looked at, and their ``index`` to know them again.
            ranges: per answer the parts that are scored by themselves.
            aggregation: how token scores become the response score; by default as the manifest says.
            stop: asked between windows; once true, nobody waits for the result.

        Returns:
            One result per answer, then one per range, answer by answer; see ``EncoderDetector.detect_all``.

        Raises:
            DetectorError: the model failed, or ``stop`` said true.
        """
        started = time.perf_counter()
        with self._lock:
            tasks: list[_Task | Reason] = []
            for answer, own in zip(answers, ranges, strict=True):
                if stop():
                    raise DetectorError("scoring was given up after its deadline")
                tasks.append(self._task(answer, own))
            asked = [(task.answer.index, task.windows.windows) for task in tasks if isinstance(task, _Task)]
            odds = iter(self._memory.log_odds(asked, stop=stop))
        chosen = aggregation or self.manifest.aggregation
        whole: list[DetectorResult] = []
        parts: list[DetectorResult] = []
        for task, own in zip(tasks, ranges, strict=True):
            if isinstance(task, Reason):
                whole.append(_nothing(task))
                parts.extend(_nothing(task) for _ in own)
                continue
            reading = self._read(task, next(odds))
            whole.append(
                self._result(task, reading, chosen) if task.reason is None else _nothing(task.reason)
            )
            parts.extend(self._result(task, reading, chosen, part=part) for part in own)
        duration_s = time.perf_counter() - started
        return [replace(result, duration_s=duration_s) for result in (*whole, *parts)]

    def _prepare(self) -> _Prepared | Reason:
        """What the answers share, or why none can be scored; made when first asked for."""
        if self._prepared is None:
            self._prepared = self._read_evidence()
        return self._prepared

    def _read_evidence(self) -> _Prepared | Reason:
        passages = evidence_texts(self._exchange)
        if not passages:
            return Reason.NO_CONTEXT
        foreign = [text for text in passages if not readable(text, self._languages)]
        if len(foreign) == len(passages):
            return Reason.LANGUAGE
        fmt, query = self.manifest.input, self._exchange.query
        evidence = read_evidence(self._tokenizer, fmt, passages)
        layout = lay_out(self._tokenizer, fmt, query=query, passages=passages, evidence=evidence)
        read = 1.0 - sum(map(len, foreign)) / sum(map(len, passages))
        return _Prepared(tuple(passages), evidence, layout, read)

    def _task(self, answer: Answer, ranges: Ranges) -> _Task | Reason:
        if not answer.text.strip():
            return Reason.EMPTY_ANSWER
        prepared = self._prepare()
        if isinstance(prepared, Reason):
            return prepared
        reason = None if readable(answer.text, self._languages) else Reason.LANGUAGE
        if reason and not any(readable(answer.text[start:end], self._languages) for start, end in ranges):
            return reason
        windows = self._windows(prepared, answer.text, self.manifest.input)
        if not len(windows.offsets):
            return Reason.EMPTY_ANSWER
        if not windows.windows:
            return Reason.TOO_LARGE
        return _Task(answer, windows, prepared.read, reason)

    def _windows(self, prepared: _Prepared, text: str, fmt: InputFormat) -> Windows:
        return build_windows(
            self._tokenizer,
            fmt,
            query=self._exchange.query,
            passages=prepared.passages,
            answer=text,
            max_windows=self._max_windows,
            evidence=prepared.evidence,
            layout=prepared.layout,
        )

    def _run_ahead(self, prepared: _Prepared, answer: Answer, stop: Stop) -> float:
        """The characters from which on there may be more to run."""
        text, fmt = answer.text, self.manifest.input
        if not self._memory.keeps(features=fmt.features is not None):
            return math.inf
        if not readable(text, self._languages):
            return len(text) + _LOOK_AGAIN
        ends = [end for _, end in self._tokenizer.encode(text, add_special_tokens=False).offsets]
        size, overlap = prepared.layout.chunk_size, fmt.answer_overlap
        closed = _closed(chunks_of(len(ends), size=size, overlap=overlap), ends, text)
        if closed > self._closed.get(answer.index, 0):
            # What runs ahead does not read the features, and making them would cost more than all else.
            windows = self._windows(prepared, text, fmt.model_copy(update={"features": None})).windows
            lasting = [window for window in windows if window.end <= closed]
            self._memory.fill(answer.index, lasting, stop=stop)
            self._closed[answer.index] = closed
            if not self._memory.keeps(features=fmt.features is not None):
                return math.inf
        next_end = closed + size - overlap if closed else size + 1
        return len(text) + max(_LOOK_AGAIN, (next_end - len(ends)) * len(text) / max(len(ends), 1))

    def _read(self, task: _Task, odds: Sequence[Odds]) -> Reading:
        return read_answer(
            task.windows.windows, odds, offsets=task.windows.offsets, text=task.answer.text,
            query=self._exchange.query, fmt=self.manifest.input, languages=self._languages,
        )  # fmt: skip

    def _result(
        self, task: _Task, reading: Reading, aggregation: Aggregation, *, part: tuple[int, int] | None = None
    ) -> DetectorResult:
        """What is said of the answer, or of ``part`` of it."""
        manifest = self.manifest
        start, end = part or (0, len(reading.text))
        own = slice(None) if part is None else _tokens_of(reading.offsets, start, end)
        p = reading.probabilities(temperature=manifest.temperature)[own]
        scored = reading.scored[own]
        unread = any(first < end and last > start for first, last in reading.unread)
        if part is not None and not scored.any():
            return _nothing(
                Reason.LANGUAGE if unread else Reason.TOO_LARGE if len(p) else Reason.EMPTY_ANSWER
            )
        spans = spans_of(p, reading.offsets[own], manifest.tau_span, reading.text)
        if part is not None:
            spans = tuple(_clipped(span, start, end) for span in spans)
        details: dict[str, float | str] = {
            "model": manifest.name,
            "aggregation": aggregation.value,
            "max_token": float(p.max(initial=0.0)),
            "top_span": span_max(spans),
        }
        return DetectorResult(
            detector=DetectorName.ENCODER,
            score=manifest.scoring.score(aggregation, p=p, spans=spans),
            spans=spans,
            coverage=_coverage(task, scored),
            reason=Reason.LANGUAGE if unread or task.evidence_read < 1.0 else None,
            explanation="the answer only abstains" if is_abstention(reading.text[start:end]) else "",
            details=MappingProxyType(details),
        )


def evidence_texts(exchange: Exchange) -> list[str]:
    """The texts of the passages that have any, each under its title: the model that answered saw both."""
    return [
        f"{passage.title}\n{passage.text}" if passage.title else passage.text
        for passage in exchange.passages
        if passage.text.strip()
    ]


def _nothing(reason: Reason) -> DetectorResult:
    return DetectorResult(DetectorName.ENCODER, None, reason=reason)


def _closed(chunks: Sequence[Chunk], ends: Sequence[int], text: str) -> int:
    """The token behind the last chunk that further text will not change; ``ends`` are where tokens end.

    Those are the chunks that end in a sentence that is over, for its words choose the evidence beside them.
    """
    ranges = sentences(text)
    open_from = ranges[-1][0] if ranges else 0
    return max((end for _, end in chunks if ends[end - 1] <= open_from), default=0)


def _tokens_of(offsets: NDArray[np.int64], start: int, end: int) -> slice:
    """The tokens that end within these characters; each token belongs to one of ranges that adjoin."""
    first, last = np.searchsorted(offsets[:, 1], [start, end], side="right")
    return slice(int(first), int(last))


def _clipped(span: Span, start: int, end: int) -> Span:
    return replace(span, start=max(span.start, start), end=min(span.end, end))


def _coverage(task: _Task, scored: NDArray[np.bool_]) -> Coverage:
    """The windows' coverage of these tokens, less what stands in a script that the model does not read."""
    coverage = task.windows.coverage
    seen = coverage.evidence_tokens_seen
    if task.evidence_read < 1.0:
        # By characters, because tokenising what nobody reads would only cost; never all of it.
        seen = min(math.floor(seen * task.evidence_read), coverage.evidence_tokens - 1)
    return replace(
        coverage,
        answer_tokens=len(scored),
        answer_tokens_scored=int(scored.sum()),
        evidence_tokens_seen=max(0, seen),
    )
