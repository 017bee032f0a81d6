"""Score the answers of one exchange incrementally, from windows to spans and scores.

What the answers share is read once, and windows that further text did not change are run once. Parts of an
answer that grows are scored in narrow windows of their own, which are not kept. CPU-bound and synchronous. It
decides nothing: thresholds, fusion with other detectors and deadlines are the engine's.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain

from tokenizers import Tokenizer

from truthlens.core.cancellation import StopCheck
from truthlens.core.errors import DetectorError
from truthlens.core.records.enums import Aggregation, Reason
from truthlens.core.records.exchange import Answer, Exchange
from truthlens.core.records.verdict import DetectorResult
from truthlens.detection.detectors.encoder.results import Scored, nothing, result_of
from truthlens.detection.detectors.encoder.token_scores import read_answer
from truthlens.detection.detectors.encoder.views import View, excerpt_of, near, view_of
from truthlens.detection.detectors.encoder.window_cache import Odds, WindowMemory
from truthlens.detection.interfaces import Ranges
from truthlens.detection.models.inputs.assignment import Chunk, chunks_of
from truthlens.detection.models.inputs.evidence_tokens import EvidenceTokens
from truthlens.detection.models.inputs.layout import Layout
from truthlens.detection.models.inputs.manifest import InputFormat, Manifest
from truthlens.detection.models.inputs.tokens import encode
from truthlens.detection.models.inputs.value_wordings import ValueWordings
from truthlens.detection.models.inputs.windows import Window, Windows, build_windows, lay_out, read_evidence
from truthlens.detection.models.runtime import TokenModel
from truthlens.text.language import is_read, readable, unread
from truthlens.text.sentences_v1 import sentences_v1

# English prose in word pieces; only says when looking again may be worth while.
_CHARACTERS_PER_TOKEN = 4.0
_MOST_REREAD = 20_000  # characters of an answer in which JSON is looked for anew with each of its parts
_LOOK_AGAIN = 64  # characters after which a sentence that was not over may be


@dataclass(frozen=True, slots=True, eq=False)
class _Prepared:
    """What the answers of an exchange share. ``read`` is the share of the evidence, by characters, in a language read."""

    evidence: EvidenceTokens
    layout: Layout
    read: float


@dataclass(frozen=True, slots=True)
class _Task:
    """One answer that is going to be scored; ``reason`` is set where only parts of it are."""

    answer: Answer
    windows: Windows
    # Share of the evidence, by characters, whose language the model reads.
    evidence_read: float
    reason: Reason | None
    silent: Ranges
    values: Ranges


class EncoderFollower:
    """Scores the answers of one exchange any number of times; see ``interfaces.Follower``.

    Args:
        exchange: query and passages.
        model: the loaded weights.
        tokenizer: the model's own.
        manifest: of the model.
        max_windows: most windows for one answer.
        most_bytes: what may be remembered of windows, see ``WindowMemory``; 0 for answers that are scored
            once.
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
        self._passing = WindowMemory(model, most_bytes=0)
        self._prepared: _Prepared | Reason | None = None
        # By answer, the characters from which on `ahead` may find something.
        self._due: dict[int, float] = {}
        # By answer, the token behind the last chunk that was run ahead.
        self._closed: dict[int, int] = {}
        # Of what is remembered; parts are scored without waiting for it.
        self._lock = threading.Lock()
        self._preparing = threading.Lock()
        self._passages = evidence_texts(exchange)
        self._wordings = ValueWordings(self._passages)

    def due(self, answers: Sequence[Answer]) -> bool:
        """Return whether the evidence is not read yet, or an answer may have grown by a window."""
        prepared = self._prepared
        if not isinstance(prepared, _Prepared):
            return prepared is None and bool(answers)
        first = (prepared.layout.chunk_size + 1) * _CHARACTERS_PER_TOKEN
        return any(len(answer.text) >= self._due.get(answer.index, first) for answer in answers)

    def ahead(self, answers: Sequence[Answer], *, stop: StopCheck) -> None:
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
                    further = self._run_ahead(prepared, view_of(answer, (), self._wordings).answer, stop)
                    self._due[answer.index] = len(answer.text) + further

    def detect_all(
        self,
        answers: Sequence[Answer],
        ranges: Sequence[Ranges],
        *,
        aggregation: Aggregation | None,
        stop: StopCheck,
    ) -> list[DetectorResult]:
        """Score the answers so far, their windows batched together, and parts of them.

        Args:
            answers: only their text is looked at, and their ``index`` to know them again.
            ranges: per answer the parts that are scored by themselves.
            aggregation: how token scores become the response score; by default as the manifest says.
            stop: called between windows; once it returns true, the result is no longer needed.

        Returns:
            One result per answer, then one per range, answer by answer; see ``EncoderDetector.detect_all``.

        Raises:
            DetectorError: the model failed, or ``stop`` said true.
        """
        started = time.perf_counter()
        views = [view_of(answer, own, self._wordings) for answer, own in zip(answers, ranges, strict=True)]
        with self._lock:
            tasks = self._tasks(views, stop)
            odds = self._memory.log_odds(_asked(tasks), stop=stop)
        scored = self._scored(tasks, odds)
        whole = [self._whole(view, each, aggregation) for view, each in zip(views, scored, strict=True)]
        parts = [self._parts(view, each, aggregation) for view, each in zip(views, scored, strict=True)]
        return _timed([*whole, *chain(*parts)], started)

    def detect_ranges(
        self,
        answers: Sequence[Answer],
        ranges: Sequence[Ranges],
        *,
        aggregation: Aggregation | None,
        stop: StopCheck,
    ) -> list[DetectorResult]:
        """Score parts of the answers so far, each in the context of the text right before; see ``views``.

        Nothing is remembered, and nothing that is remembered is waited for; arguments as of ``detect_all``.

        Returns:
            One result per range, answer by answer. Spans are characters of the answer; the coverage is that
            of the part, with the evidence that was chosen for it.

        Raises:
            DetectorError: the model failed, or ``stop`` said true.
        """
        started = time.perf_counter()
        views = [
            view_of(answer, own, self._wordings) if len(answer.text) <= _MOST_REREAD else View(answer, own)
            for answer, own in zip(answers, ranges, strict=True)
            if own
        ]
        excerpts = [excerpt_of(view.answer, view.ranges) for view in views]
        excerpted = [near(view, excerpt) for view, excerpt in zip(views, excerpts, strict=True)]
        tasks = self._tasks(excerpted, stop)
        odds = self._passing.log_odds(_asked(tasks), stop=stop)
        parts = [
            view.sourced(part.shifted(excerpt.start))
            for view, excerpt, own, each in zip(
                views, excerpts, excerpted, self._scored(tasks, odds), strict=True
            )
            for part in self._parts(own, each, aggregation)
        ]
        return _timed(parts, started)

    def _prepare(self) -> _Prepared | Reason:
        """Return what the answers share, or why none can be scored; computed on the first call."""
        with self._preparing:
            if self._prepared is None:
                self._prepared = self._read_evidence()
            return self._prepared

    def _read_evidence(self) -> _Prepared | Reason:
        passages = self._passages
        if not passages:
            return Reason.NO_CONTEXT
        foreign = [text for text in passages if not readable(text, self._languages)]
        if len(foreign) == len(passages):
            return Reason.LANGUAGE
        fmt, query = self.manifest.input, self._exchange.query
        evidence = read_evidence(self._tokenizer, fmt, passages)
        layout = lay_out(self._tokenizer, fmt, query=query, passages=passages, evidence=evidence)
        read = 1.0 - sum(map(len, foreign)) / sum(map(len, passages))
        return _Prepared(evidence, layout, read)

    def _tasks(self, views: Sequence[View], stop: StopCheck) -> list[_Task | Reason]:
        """Return what is to be scored of each answer, or why nothing is."""
        tasks = []
        for view in views:
            if stop():
                raise DetectorError("scoring was given up after its deadline")
            tasks.append(self._task(view))
        return tasks

    def _task(self, view: View) -> _Task | Reason:
        answer, ranges = view.answer, view.ranges
        if not answer.text.strip():
            return Reason.EMPTY_ANSWER
        prepared = self._prepare()
        if isinstance(prepared, Reason):
            return prepared
        foreign = unread(answer.text, self._languages, before=self._exchange.query)
        reason = None if is_read(answer.text, foreign) else Reason.LANGUAGE
        if reason and all(_within(part, foreign) for part in ranges):
            return reason
        windows = self._windows(prepared, answer.text, self.manifest.input)
        if not len(windows.offsets):
            return Reason.EMPTY_ANSWER
        if not windows.windows:
            return Reason.TOO_LARGE
        return _Task(answer, windows, prepared.read, reason, view.silent, view.values)

    def _windows(self, prepared: _Prepared, text: str, fmt: InputFormat, *, after: int = 0) -> Windows:
        return build_windows(
            self._tokenizer,
            fmt,
            query=self._exchange.query,
            passages=self._passages,
            answer=text,
            max_windows=self._max_windows,
            evidence=prepared.evidence,
            layout=prepared.layout,
            after=after,
        )

    def _run_ahead(self, prepared: _Prepared, answer: Answer, stop: StopCheck) -> float:
        """Run the complete windows ahead; return how many more characters may give a new one."""
        text, fmt = answer.text, self.manifest.input
        if not self._memory.keeps(features=fmt.features is not None):
            return math.inf
        if not is_read(text, unread(text, self._languages, before=self._exchange.query)):
            return _LOOK_AGAIN
        ends = encode(self._tokenizer, text)[1][:, 1].tolist()
        size, overlap = prepared.layout.chunk_size, fmt.answer_overlap
        closed = _closed(chunks_of(len(ends), size=size, overlap=overlap), ends, text)
        before = self._closed.get(answer.index, 0)
        if closed > before:
            # What runs ahead does not read the features, and making them would cost more than all else.
            plain = fmt.model_copy(update={"features": None})
            windows = self._windows(prepared, text, plain, after=before).windows
            lasting = [window for window in windows if window.end <= closed]
            self._memory.fill(answer.index, lasting, stop=stop)
            self._closed[answer.index] = closed
            if not self._memory.keeps(features=fmt.features is not None):
                return math.inf
        next_end = closed + size - overlap if closed else size + 1
        return max(_LOOK_AGAIN, (next_end - len(ends)) * len(text) / max(len(ends), 1))

    def _scored(
        self, tasks: Sequence[_Task | Reason], odds: Sequence[Sequence[Odds]]
    ) -> list[Scored | Reason]:
        """Return the token scores of each task, from the odds of those that have windows.

        The reason where there are none.
        """
        found = iter(odds)
        return [task if isinstance(task, Reason) else self._read(task, next(found)) for task in tasks]

    def _read(self, task: _Task, odds: Sequence[Odds]) -> Scored:
        windows = task.windows
        reading = read_answer(
            windows.windows, odds, offsets=windows.offsets, text=task.answer.text,
            query=self._exchange.query, fmt=self.manifest.input, languages=self._languages, silent=task.silent,
            values=task.values,
        )  # fmt: skip
        return Scored(reading, windows.coverage, task.evidence_read, task.reason)

    def _whole(self, view: View, scored: Scored | Reason, aggregation: Aggregation | None) -> DetectorResult:
        if isinstance(scored, Reason):
            return nothing(scored, text=view.answer.text, evidence=self._passages)
        if scored.reason is not None:
            return nothing(scored.reason, text=view.answer.text, evidence=self._passages)
        claims = view.claims[0] if view.claims is not None else None
        chosen = aggregation or self.manifest.aggregation
        return view.sourced(result_of(scored, self.manifest, chosen, claims=claims))

    def _parts(
        self, view: View, scored: Scored | Reason, aggregation: Aggregation | None
    ) -> list[DetectorResult]:
        chosen = aggregation or self.manifest.aggregation
        results = []
        for number, (start, end) in enumerate(view.ranges, 1):
            if start == end:
                results.append(nothing(Reason.EMPTY_ANSWER))
            elif isinstance(scored, Reason):
                results.append(nothing(scored, text=view.answer.text[start:end], evidence=self._passages))
            else:
                claims = view.claims[number] if view.claims is not None else None
                part = result_of(scored, self.manifest, chosen, part=(start, end), claims=claims)
                results.append(view.sourced(part))
        return results


def evidence_texts(exchange: Exchange) -> list[str]:
    """Return the texts of the passages that have any, each under its title.

    The model that answered saw both.
    """
    return [
        f"{passage.title}\n{passage.text}" if passage.title else passage.text
        for passage in exchange.passages
        if passage.text.strip()
    ]


def _within(part: tuple[int, int], ranges: Ranges) -> bool:
    return any(start <= part[0] and part[1] <= end for start, end in ranges)


def _closed(chunks: Sequence[Chunk], ends: Sequence[int], text: str) -> int:
    """Return the token after the last chunk that further text will not change; ``ends`` are where tokens end.

    Those are the chunks that end in a sentence that is over, for its words choose the evidence that goes with
    them.
    """
    ranges = sentences_v1(text)
    open_from = ranges[-1][0] if ranges else 0
    return max((end for _, end in chunks if ends[end - 1] <= open_from), default=0)


def _asked(tasks: Sequence[_Task | Reason]) -> list[tuple[int, Sequence[Window]]]:
    return [(task.answer.index, task.windows.windows) for task in tasks if isinstance(task, _Task)]


def _timed(results: Sequence[DetectorResult], started: float) -> list[DetectorResult]:
    duration_s = time.perf_counter() - started
    return [replace(result, duration_s=duration_s) for result in results]
