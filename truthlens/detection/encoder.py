"""The encoder detector: a token classifier over [evidence, query, answer], from windows to spans and a score.

CPU-bound and synchronous; safe to use from several threads. It decides nothing: thresholds, fusion with other
detectors and deadlines are the engine's.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from truthlens.core.errors import DetectorError, ModelError
from truthlens.core.records import (
    Aggregation,
    Answer,
    Coverage,
    DetectorName,
    DetectorResult,
    Endpoint,
    Exchange,
    Passage,
    Provenance,
    Reason,
)
from truthlens.detection.claims import is_abstention
from truthlens.detection.fusion import span_max, spans_of
from truthlens.detection.manifest import Manifest
from truthlens.detection.passages import Evidence
from truthlens.detection.reading import read_answer
from truthlens.detection.runtime import Stop, TokenModel, never
from truthlens.detection.scripts import readable
from truthlens.detection.windows import Windows, build_windows, read_evidence

_WARM_UP_TEXT = "The reading room opens at nine and closes at six. "


@dataclass(frozen=True, slots=True)
class _Task:
    """One answer that is going to be scored."""

    answer: Answer
    windows: Windows
    # Share of the evidence, by characters, whose script the model reads.
    evidence_read: float


@dataclass(slots=True)
class _Shared:
    """What the answers of one exchange have in common, once the first of them needed it."""

    evidence: Evidence | None = None


class EncoderDetector:
    """Scores answers with a token classifier.

    Args:
        model: the loaded weights.
        tokenizer: the model's tokenizer, without padding and truncation.
        manifest: how the model's input is built and its output is read.
        max_windows: most windows for one answer; beyond that coverage is not complete.
    """

    name: str = DetectorName.ENCODER

    def __init__(
        self, model: TokenModel, tokenizer: Tokenizer, manifest: Manifest, *, max_windows: int = 256
    ) -> None:
        self.manifest = manifest
        self._model = model
        self._tokenizer = tokenizer
        self._max_windows = max_windows

    @property
    def model(self) -> str:
        """The model's name, from its manifest."""
        return self.manifest.name

    def detect(
        self,
        exchange: Exchange,
        answer: Answer,
        *,
        aggregation: Aggregation | None = None,
        stop: Stop = never,
    ) -> DetectorResult:
        """Score one answer; see ``detect_all``."""
        return self.detect_all(exchange, [answer], aggregation=aggregation, stop=stop)[0]

    def detect_all(
        self,
        exchange: Exchange,
        answers: Sequence[Answer],
        *,
        aggregation: Aggregation | None = None,
        stop: Stop = never,
    ) -> list[DetectorResult]:
        """Score the answers of one exchange, their windows batched together.

        Args:
            exchange: query and passages.
            answers: choices of the response; only their text is looked at.
            aggregation: how token scores become the response score; by default as the manifest says.
            stop: asked between batches; once true, nobody waits for the result.

        Returns:
            One result per answer, in order. A result without score says why in ``reason``: ``empty-answer``,
            ``no-context``, ``language`` (the model does not read the script of the answer or of any passage) or
            ``too-large`` (no token could be scored within bounds). A result with a score *and* reason
            ``language`` scored only what the model can read, which its coverage shows. ``duration_s`` is that of
            the whole call.

        Raises:
            DetectorError: the model failed, or ``stop`` said true.
        """
        started = time.perf_counter()
        tasks: list[_Task | Reason] = []
        shared = _Shared()
        for answer in answers:
            if stop():
                raise DetectorError("scoring was given up after its deadline")
            tasks.append(self._task(exchange, answer, shared))
        runnable = [task for task in tasks if isinstance(task, _Task)]
        flat = [window for task in runnable for window in task.windows.windows]
        odds = self._model.log_odds(flat, stop=stop) if flat else []
        chosen = aggregation or self.manifest.aggregation
        results: list[DetectorResult] = []
        for task in tasks:
            if isinstance(task, Reason):
                results.append(DetectorResult(self.name, None, reason=task))
                continue
            count = len(task.windows.windows)
            own, odds = odds[:count], odds[count:]
            results.append(self._result(exchange, task, own, chosen))
        duration_s = time.perf_counter() - started
        return [replace(result, duration_s=duration_s) for result in results]

    def reads(self, exchange: Exchange, answer: Answer) -> bool:
        """Whether the model reads the script of the answer and of any passage; cheap, and known before scoring."""
        languages = self.manifest.languages or ("*",)
        return readable(answer.text, languages) and any(
            readable(text, languages) for text in _evidence(exchange)
        )

    def warm_up(self) -> None:
        """Score a short and a longer text of our own, so that the first exchange meets warmed-up weights.

        Raises:
            ModelError: the model cannot score them.
        """
        for passages in (1, 12):
            evidence = tuple(Passage(_WARM_UP_TEXT * 2, Provenance.DOCUMENTS) for _ in range(passages))
            exchange = Exchange(Endpoint.CHAT, "", "When does the reading room open?", evidence)
            windows = self._windows(exchange, _WARM_UP_TEXT * passages, _Shared())
            try:
                self._model.log_odds(windows.windows)
            except DetectorError as error:
                raise ModelError(
                    f"model {self.model} ({self._model.name}) fails on a test text: {error}"
                ) from error

    def _task(self, exchange: Exchange, answer: Answer, shared: _Shared) -> _Task | Reason:
        languages = self.manifest.languages or ("*",)
        if not answer.text.strip():
            return Reason.EMPTY_ANSWER
        passages = _evidence(exchange)
        if not passages:
            return Reason.NO_CONTEXT
        foreign = [text for text in passages if not readable(text, languages)]
        if len(foreign) == len(passages) or not readable(answer.text, languages):
            return Reason.LANGUAGE
        windows = self._windows(exchange, answer.text, shared)
        if not len(windows.offsets):
            return Reason.EMPTY_ANSWER
        if not windows.windows:
            return Reason.TOO_LARGE
        return _Task(
            answer,
            windows,
            evidence_read=1.0 - sum(map(len, foreign)) / sum(map(len, passages)),
        )

    def _windows(self, exchange: Exchange, answer: str, shared: _Shared) -> Windows:
        if shared.evidence is None:
            shared.evidence = read_evidence(self._tokenizer, self.manifest.input, _evidence(exchange))
        return build_windows(
            self._tokenizer,
            self.manifest.input,
            query=exchange.query,
            passages=_evidence(exchange),
            answer=answer,
            max_windows=self._max_windows,
            evidence=shared.evidence,
        )

    def _result(
        self,
        exchange: Exchange,
        task: _Task,
        odds: Sequence[NDArray[np.float32]],
        aggregation: Aggregation,
    ) -> DetectorResult:
        text, offsets, manifest = task.answer.text, task.windows.offsets, self.manifest
        reading = read_answer(
            task.windows.windows, odds, offsets=offsets, text=text, query=exchange.query, fmt=manifest.input,
            languages=manifest.languages or ("*",),
        )  # fmt: skip
        p = reading.probabilities(temperature=manifest.temperature)
        spans = spans_of(p, offsets, manifest.tau_span, text)
        score = manifest.scoring.score(aggregation, p=p, spans=spans)
        details: dict[str, float | str] = {
            "model": manifest.name,
            "aggregation": aggregation.value,
            "max_token": float(p.max(initial=0.0)),
            "top_span": span_max(spans),
        }
        return DetectorResult(
            detector=self.name,
            score=score,
            spans=spans,
            coverage=_coverage(task, reading.scored),
            reason=Reason.LANGUAGE if reading.unread or task.evidence_read < 1.0 else None,
            explanation="the answer only abstains" if is_abstention(text) else "",
            details=MappingProxyType(details),
        )


def _evidence(exchange: Exchange) -> list[str]:
    """The texts of the passages that have any, each under its title: the model that answered saw both."""
    return [
        f"{passage.title}\n{passage.text}" if passage.title else passage.text
        for passage in exchange.passages
        if passage.text.strip()
    ]


def _coverage(task: _Task, scored: NDArray[np.bool_]) -> Coverage:
    """The windows' coverage, less what stands in a script that the model does not read."""
    coverage = task.windows.coverage
    seen = coverage.evidence_tokens_seen
    if task.evidence_read < 1.0:
        # By characters, because tokenising what nobody reads would only cost; never all of it.
        seen = min(math.floor(seen * task.evidence_read), coverage.evidence_tokens - 1)
    return replace(
        coverage,
        answer_tokens_scored=min(coverage.answer_tokens_scored, int(scored.sum())),
        evidence_tokens_seen=max(0, seen),
    )
