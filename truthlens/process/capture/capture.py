"""Capture the exchanges of a process while they pass; whatever fails here costs the capture, never the exchange.

The parts that an exchange goes through are given ones in their place that note what they see on the recording of the
exchange (``recording.current``). It is written when the exchange has ended, on a thread of its own.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import structlog

from truthlens.core.deadline import Deadline
from truthlens.core.errors import CallError
from truthlens.core.records.calls import Completion, ModelRequest
from truthlens.core.records.exchange import Exchange, RequestHead, ResponseHead
from truthlens.core.records.outcome import Outcome
from truthlens.core.records.retrieval import FoundPassage, SearchRecord, SearchResult, SourceTool
from truthlens.exchange.concluding import Concluder
from truthlens.exchange.ticket import Conclusion, Ticket
from truthlens.llm.client import LlmClient
from truthlens.llm.loop_guard import MARK_HEADER
from truthlens.pipeline import Pipeline
from truthlens.policy import Policy
from truthlens.process.capture.cleaning import Cleaner
from truthlens.process.capture.files import CaptureFile, CaptureWriter
from truthlens.process.capture.lines import exchange_line, header_line
from truthlens.process.capture.recording import FoundBySearch, Recording, called_with, current
from truthlens.process.composition import Seams
from truthlens.process.settings import CaptureSettings
from truthlens.retrieval.interfaces import SourceError
from truthlens.retrieval.retriever import Asker, Retriever
from truthlens.streaming.driver import StreamDriver
from truthlens.telemetry.metrics import Metrics

log = structlog.get_logger("truthlens.capture")

MOST_HELD_BYTES = 64 << 20
"""Bytes of exchanges that are being captured or written at most."""


class Capture:
    """Takes a share of the exchanges of a process to a file.

    Args:
        settings: which of them, and where to.
        file: is written.
        signals: counts them.
        draw: gives numbers in 0..1, 1 excluded.
    """

    def __init__(
        self,
        settings: CaptureSettings,
        file: CaptureFile,
        signals: Metrics,
        *,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._settings, self._signals, self._draw = settings, signals, draw
        self._held = self._begun = 0
        self._writer = CaptureWriter(file, self._written)
        self._broken = False
        self.kept = 0
        """Exchanges that were written."""

    @classmethod
    def opened(cls, settings: CaptureSettings, signals: Metrics) -> Capture:
        """Return what captures by ``settings``.

        Raises:
            StartError: the file cannot be used.
        """
        file = CaptureFile(settings, partial(header_line, settings.sample))
        return cls(settings, file, signals)

    @property
    def seams(self) -> Seams:
        """What is put in the place of parts of the process."""
        return Seams(
            pipeline=partial(CapturingPipeline, capture=self),
            client=RecordingClient,
            retriever=RecordingRetriever,
        )

    def begin(self, head: RequestHead) -> Recording | None:
        """Return the recording of an exchange that begins, ``None`` where it is not captured."""
        most = self._settings.most_exchanges
        # A call of our own that comes back through the gateway is no exchange of a client.
        if MARK_HEADER in head.headers or (most is not None and self._begun >= most):
            return None
        if self._draw() >= self._settings.sample:
            return None
        self._begun += 1
        if self._begun == most:
            log.info("the last exchange to be captured has begun", exchanges=most)
        return Recording(head, time.time(), self._takes)

    def end(self, recording: Recording, policy: Policy, outcome: Outcome) -> None:
        """Write an exchange that has ended; returns at once."""
        if recording.request is None and not recording.lost:
            recording.lost = "unread"
        if recording.lost:
            self._written(recording.size, recording.lost)
            return
        self._writer.submit(
            lambda: exchange_line(recording, outcome, policy, _cleaner(policy)), recording.size
        )

    def drop(self, recording: Recording) -> None:
        """Forget an exchange whose end nobody sees."""
        self._written(recording.size, "abandoned")

    def failed(self, error: Exception) -> None:
        """Note that capturing an exchange failed by a mistake of ours."""
        self._signals.captured.labels("failed").inc()
        if not self._broken:
            # The type alone: a message may quote the text.
            log.error("capturing an exchange failed", error=type(error).__name__)
        self._broken = True

    def close(self) -> None:
        """Write what waits, and end."""
        self._writer.close()

    def _takes(self, size: int) -> bool:
        if self._held + size > MOST_HELD_BYTES:
            return False
        self._held += size
        return True

    def _written(self, size: int, lost: str) -> None:
        self._held -= size
        self.kept += not lost
        self._signals.captured.labels(lost or "kept").inc()


class CapturingPipeline(Pipeline):
    """The pipeline of a process that captures; its exchanges go through it as through any."""

    def __init__(self, *parts: Any, capture: Capture, **named: Any) -> None:
        super().__init__(*parts, **named)
        self._capture = capture
        self._concluder = TellingConcluder(self._concluder, self._ended)
        self.driver = _RecordedDriver

    def admit(self, head: RequestHead) -> Ticket:
        """As ``Pipeline.admit``; from here on the exchange's tasks know its recording."""
        ticket = super().admit(head)
        recording = None
        if not ticket.no_answer:
            try:
                recording = self._capture.begin(head)
            except Exception as error:  # noqa: BLE001 - the border of the capture: the exchange goes on
                self._capture.failed(error)
        current.set(recording)
        return ticket

    async def open(self, ticket: Ticket, body: bytes) -> Ticket:
        """As ``Pipeline.open``."""
        if (recording := current.get()) is not None:
            recording.note_request(body)
        return await super().open(ticket, body)

    async def assess(self, ticket: Ticket, head: ResponseHead, body: bytes) -> Conclusion:
        """As ``Pipeline.assess``."""
        if (recording := current.get()) is not None:
            recording.note_response(head, (body,))
        return await super().assess(ticket, head, body)

    def abandon(self, ticket: Ticket) -> None:
        """As ``Pipeline.abandon``."""
        super().abandon(ticket)
        if (recording := current.get()) is not None and not recording.ended:
            recording.ended = True
            self._capture.drop(recording)

    def _ended(self, ticket: Ticket, outcome: Outcome, _exchange: Exchange | None) -> None:
        recording = current.get()
        if recording is None or recording.ended:
            return
        recording.ended = True
        try:
            self._capture.end(recording, ticket.policy, outcome)
        except Exception as error:  # noqa: BLE001 - the border of the capture: the exchange goes on
            self._capture.failed(error)


class TellingConcluder(Concluder):
    """Concludes as another one does, and tells what became of the exchange."""

    def __init__(self, other: Concluder, tell: Callable[[Ticket, Outcome, Exchange | None], None]) -> None:
        self._other, self._tell = other, tell

    def chosen(self, ticket: Ticket, outcome: Outcome) -> Outcome:
        """As the other does."""
        return self._other.chosen(ticket, outcome)

    def conclude(self, ticket: Ticket, outcome: Outcome, exchange: Exchange | None) -> Conclusion:
        """As the other does."""
        conclusion = self._other.conclude(ticket, outcome, exchange)
        self._tell(ticket, conclusion.outcome, exchange)
        return conclusion


class _RecordedDriver(StreamDriver):
    """A stream whose pieces are noted as they come."""

    _HEAD = ResponseHead(200, {"content-type": "text/event-stream"})

    async def feed(self, *messages: bytes, end: bool, waited_s: float = 0.0) -> None:
        if (recording := current.get()) is not None and not self.concluded:
            recording.note_response(self._HEAD, messages)
        await super().feed(*messages, end=end, waited_s=waited_s)


class RecordingClient(LlmClient):
    """Asks models, and notes what they say."""

    async def complete(self, request: ModelRequest, **how: Any) -> Completion:
        """As ``LlmClient.complete``."""
        recording = current.get()
        try:
            said = await super().complete(request, **how)
        except CallError as error:
            if recording is not None:
                recording.note_reply(request, error)
            raise
        if recording is not None:
            recording.note_reply(request, said)
        return said

    async def window(self, request: ModelRequest, *args: Any, **how: Any) -> int | None:
        """As ``LlmClient.window``."""
        found = await super().window(request, *args, **how)
        if (recording := current.get()) is not None:
            recording.windows[request.model] = found
        return found


class RecordingRetriever(Retriever):
    """Searches sources, and notes what they give."""

    async def search_one(
        self, name: str, text: str, k: int, deadline: Deadline, asker: Asker
    ) -> tuple[SearchRecord, tuple[FoundPassage, ...]]:
        """As ``Retriever.search_one``."""
        record, passages = await super().search_one(name, text, k, deadline, asker)
        _note(FoundBySearch(name, text, k, record.result, passages))
        return record, passages

    async def tools(self, sources: Sequence[str], *, deadline: Deadline) -> tuple[SourceTool, ...]:
        """As ``Retriever.tools``."""
        found = await super().tools(sources, deadline=deadline)
        if (recording := current.get()) is not None:
            recording.tools += found
        return found

    async def call_tool(
        self, tool: SourceTool, arguments: Mapping[str, Any], *, deadline: Deadline
    ) -> tuple[FoundPassage, ...]:
        """As ``Retriever.call_tool``."""
        text = called_with(tool, arguments)
        try:
            passages = await super().call_tool(tool, arguments, deadline=deadline)
        except SourceError as error:
            _note(FoundBySearch(tool.source, text, 0, error.result, ()))
            raise
        _note(FoundBySearch(tool.source, text, 0, SearchResult.OK, passages))
        return passages


def _note(found: FoundBySearch) -> None:
    if (recording := current.get()) is not None:
        recording.note_search(found)


def _cleaner(policy: Policy) -> Cleaner:
    """Return what cleans texts as the policy says, and takes out the keys that it names."""
    options = [*(policy.models or {}).values(), *(each.options for each in policy.sources.values())]
    names = {getattr(each, "api_key_env", None) for each in options}
    return Cleaner(policy.review, (os.environ.get(name, "").strip() for name in names if name))
