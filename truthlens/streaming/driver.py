"""Drives one streamed answer: scores it while it is written, and sends each acknowledgement as soon as it may go.

At most one scoring is under way at a time. The order of messages is the relay's business, what becomes of sentences the
gate's; here they are only brought together with detection, with time and with room. Whatever happens, no message stays
unacknowledged for longer than the plan's hold and a moment: after a first acknowledgement Envoy's own timer is off.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import structlog

from truthlens.api.answer_citations import awaits_citations
from truthlens.core.records.enums import Reason, Streaming
from truthlens.core.records.exchange import Answer, Exchange
from truthlens.core.records.outcome import Outcome, ResponseRecord, StreamRecord
from truthlens.core.records.plan import MARGIN_S, Plan
from truthlens.detection.engine import Engine
from truthlens.streaming.gate import Gate
from truthlens.streaming.relay import Relay
from truthlens.streaming.scoring import Examine, StreamScorer
from truthlens.streaming.shares import Share
from truthlens.streaming.types import Ack, Search, StreamEntry

log = structlog.get_logger("truthlens.streaming")

Emit = Callable[[Ack], Awaitable[None]]
# Held bytes are reported in steps, because every chunk of every stream changes them.
_ACCOUNT_BYTES = 4096
# Between the end of a hold and the moment at which the stream is given up; less than what Envoy is given on top.
_GRACE_S = MARGIN_S / 2


class StreamDriver:
    """One streamed answer under ``observe`` or ``gate``.

    Args:
        plan: of mode lightweight.
        exchange: the request half.
        engine: scores and explains.
        details: whether a verdict chunk is wanted.
        max_bytes: of the stream, beyond which it is not checked.
        emit: sends one acknowledgement; called in order, one at a time.
        conclude: takes the outcome of the stream, once, before the acknowledgements that its end waited for.
        hold: counts bytes held (negative: let go); false where there is no room for more.
        share: its part of what all streams share.
        closed: told once, when all work has ended.
        examine: asks the plan's models about whole answers; ``None`` where nobody can be asked.
        search: retrieves evidence for flagged sentences that are held; ``None`` where nothing does.
        choose: gives the outcome its review id, where it is to be queued.
        detecting: entered for each scoring.
        clock: monotonic, in seconds.
    """

    def __init__(
        self,
        plan: Plan,
        exchange: Exchange,
        engine: Engine,
        *,
        details: bool,
        max_bytes: int,
        emit: Emit,
        conclude: Callable[[Outcome], None],
        hold: Callable[[int], bool],
        share: Share,
        closed: Callable[[], None],
        examine: Examine | None = None,
        search: Search | None = None,
        choose: Callable[[Outcome], Outcome] | None = None,
        detecting: Callable[[], AbstractContextManager[object]] = nullcontext,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._plan = plan
        self._emit = emit
        self._conclude = conclude
        self._hold = hold
        self._share = share
        self._closed: Callable[[], None] | None = closed
        self._clock = clock
        gated = plan.streaming is Streaming.GATE
        hold_s = plan.streamed_hold_s
        assert hold_s is not None, "whole answers are not followed"
        self._hold_s = hold_s
        # Until then text waits for its sentence, or the end for its verdict, if nothing is being scored.
        self._patience_s = plan.stream.max_hold_s if gated else plan.timeout_s
        self._relay = Relay(
            exchange.endpoint,
            choices=exchange.choices,
            gated=gated,
            max_bytes=max_bytes,
            cites=awaits_citations(exchange),
        )
        self._gate = Gate(plan, exchange, self._relay.transcript) if gated else None
        self._scorer = StreamScorer(
            plan,
            exchange,
            engine,
            self._relay,
            self._gate,
            details=details,
            hold_s=hold_s,
            examine=examine,
            search=search,
            choose=choose,
            detecting=detecting,
            clock=clock,
        )
        self._lock = asyncio.Lock()
        self._room = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._ahead: asyncio.Task[None] | None = None
        self._running: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._wakes_at = 0.0
        self._arrived: deque[float] = deque()  # when the messages came that are not acknowledged
        self._counted = 0
        self._waiting = 0
        self._most_held = 0
        self.outcome: Outcome | None = None
        """The outcome, once it is known; nothing is held for long from then on."""

    @property
    def concluded(self) -> bool:
        """Whether the outcome is known."""
        return self.outcome is not None

    @property
    def droppable(self) -> bool:
        """Whether the stream may go on without us as well as with us: nothing in it is withheld."""
        return self._gate is None

    async def feed(self, *messages: bytes, end: bool, waited_s: float = 0.0) -> None:
        """Take in the next messages, as one, each acknowledged by itself; give those after them once ``room`` has returned.

        ``end``: the last of them ends the body. ``waited_s``: how long they waited before; Envoy's time for them runs since then.
        """
        self._arrived += [self._clock() - waited_s] * len(messages)
        reading = self._relay.reading(messages, end=end, take=self._take)
        await self._share.turn(reading.next_bytes)
        for _ in reading:
            if reading.next_bytes:
                await self._share.turn(reading.next_bytes)
        if self._relay.ended:
            self._scorer.note_end()
        self._account()
        # What waits for nothing leaves first.
        await self._flush()
        self._advance()
        if self._arrived:
            await self._flush()

    @property
    def full(self) -> bool:
        """Whether so much is held that no more is to be read."""
        return self._task is not None and self._pressed

    @property
    def _pressed(self) -> bool:
        """Whether all is held that may be."""
        held, frames = self._relay.held_bytes, self._relay.held_frames
        return held >= self._plan.stream.max_hold_bytes or not self._share.has_room(held, frames)

    async def room(self) -> bool:
        """Wait for room for another message; true, once there is some."""
        while self.full:
            self._room.clear()
            await self._room.wait()
        return True

    async def aclose(self) -> None:
        """End all work; for a stream that has ended, or that nobody reads any more."""
        if self._timer is not None:
            self._timer.cancel()
        for task in self._running:
            task.cancel()
        try:
            if self._running:
                await asyncio.wait(self._running)
        finally:
            # Envoy resets a stream whenever it likes, and so may cancel whoever waits here.
            self._hold(-self._counted)
            self._counted = 0
            self._share.leave()
            closed, self._closed = self._closed, None
            if closed is not None:
                closed()

    @property
    def exchange(self) -> Exchange:
        """The request half, with the evidence that came with the answer."""
        return self._scorer.exchange

    def answers(self) -> tuple[Answer, ...]:
        """The answers so far, as the backend wrote them."""
        return self._scorer.answers()

    def _take(self, entry: StreamEntry) -> None:
        # What cannot be checked would pass: where that may not be, it stays undecided until the stream is cut.
        if self._gate is None or self._beyond() is not None:
            return
        try:
            self._gate.take(entry, now=self._clock())
        except Exception as error:  # noqa: BLE001 - see _fail
            self._fail(error)

    def _beyond(self) -> Reason | None:
        """Why the stream is to be cut, if it is."""
        return None if self.concluded else self._scorer.beyond

    def _advance(self) -> None:
        """Begin what can be done now, unless something is under way."""
        if self._task is not None:
            return
        try:
            if self.concluded:
                self._outwait()
            elif self._gate is not None:
                self._advance_gate(self._gate)
            else:
                self._advance_observed()
        except Exception as error:  # noqa: BLE001 - see _fail
            self._fail(error)

    def _advance_observed(self) -> None:
        relay = self._relay
        if relay.ended:
            self._start(self._finish)
            return
        if relay.finished and not self._scorer.scored:
            # The marker follows within moments as a rule, and finds the verdict ready.
            self._start(self._scorer.whole)
            return
        self._look_ahead()
        self._outwait()

    def _advance_gate(self, gate: Gate) -> None:
        relay, now = self._relay, self._clock()
        beyond = self._beyond()
        if beyond is not None:
            self._start(partial(self._finish, cut=beyond))
            return
        if self._is_late(self._hold_s + _GRACE_S):
            # More came at once than can be scored, a few sentences after the other.
            self._give_up(Reason.TIMEOUT)
            return
        late = self._is_late(self._patience_s)
        # While a message is being read, its own sentences are still to be found.
        asks = gate.ask(now=now, ended=relay.ended or late, pressed=not relay.unread and self._pressed)
        if gate.stopped:
            self._scorer.hold_end(gate)
            self._start(self._finish)
        elif asks:
            self._start(partial(self._scorer.ranges, gate, asks))
        elif gate.behind:
            # The rest of a long text is for the next look: others have their turn first.
            self._start(partial(asyncio.sleep, 0))
        elif relay.ended:
            self._start(self._finish)
        else:
            # While nothing is complete: the verdict on the whole answer needs more than its sentences did.
            self._look_ahead()
            self._outwait()

    def _look_ahead(self) -> None:
        """Score what further text will not change, if there is something."""
        if self._ahead is None and self._scorer.due():
            self._ahead = asyncio.create_task(self._scorer.ahead())
            self._running.add(self._ahead)
            self._ahead.add_done_callback(self._scored_ahead)

    def _outwait(self) -> None:
        """See that whatever is held for something that may never come has an end."""
        if not self._arrived:
            return
        if self._is_late(self._hold_s + _GRACE_S) and not self.concluded:
            self._give_up(Reason.TIMEOUT)
        if self._is_late(self._patience_s):
            self._relay.unwait()
            self._relay.carry()
        moments = [self._arrived[0] + self._patience_s, self._arrived[0] + self._hold_s + _GRACE_S]
        if self._gate is not None and self._gate.next_expiry is not None:
            moments.append(self._gate.next_expiry)
        now = self._clock()
        coming = [moment for moment in moments if moment > now]
        if coming:
            self._wake_at(min(coming))

    def _is_late(self, hold_s: float) -> bool:
        return bool(self._arrived) and self._clock() >= self._arrived[0] + hold_s

    def _scored_ahead(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._ahead = None

    def _wake_at(self, moment: float) -> None:
        if self._timer is not None:
            if self._wakes_at <= moment:
                return  # it looks again then
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._wakes_at = moment
        self._timer = loop.call_later(max(0.0, moment - self._clock()) + 0.001, self._wake)

    def _wake(self) -> None:
        """Look at what has waited; what needs no score is decided by that alone, and leaves."""
        self._timer = None
        if self._task is None:
            self._start(partial(asyncio.sleep, 0))

    def _start(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self._task = asyncio.create_task(self._run(work))
        # Its last acknowledgements are sent after it has made room for the next.
        self._running.add(self._task)
        self._task.add_done_callback(self._running.discard)

    async def _run(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        try:
            # Called here: a task that is cancelled before it begins leaves no coroutine behind.
            await work()
        except Exception as error:  # noqa: BLE001 - see _fail
            self._fail(error)
        finally:
            if self._task is asyncio.current_task():
                self._task = None
            self._room.set()
        # What was decided makes room before anybody asks whether there is some.
        await self._flush()
        self._advance()
        if self._arrived:
            await self._flush()

    def _fail(self, error: Exception) -> None:
        """The border of the stream: a failure of ours costs the verdict, and nothing stays held for it."""
        # The type alone: a message or a traceback may quote the text that was being assessed.
        log.error("scoring a stream failed", error=type(error).__name__, decision=self._plan.decision)
        if self.concluded:
            self._relay.open()
        else:
            self._give_up(Reason.DETECTOR_ERROR, broken=True)

    async def _flush(self) -> None:
        # Taken before the lock is waited for: who comes first there has the earlier ones.
        acks = self._relay.acks()
        if not acks:
            return
        try:
            async with self._lock:
                for ack in acks:
                    self._arrived.popleft()
                    await self._emit(ack)
        finally:
            self._account()
            self._room.set()

    async def _finish(self, *, cut: Reason | None = None) -> None:
        self._end(await self._scorer.finish(cut=cut))

    def _give_up(self, reason: Reason, *, broken: bool = False) -> None:
        """End the stream without a verdict, also where what made that necessary fails again."""
        try:
            outcome = self._scorer.give_up(reason, broken=broken)
        except Exception as error:  # noqa: BLE001 - see _fail
            log.error("ending a stream failed", error=type(error).__name__, decision=self._plan.decision)
            outcome = self._scorer.let_go()
        self._end(outcome)

    def _end(self, outcome: Outcome) -> None:
        record = StreamRecord(
            self._plan.streaming,
            lag_s=self._scorer.lag_s,
            held_s=self._scorer.held_s,
            held_bytes=self._most_held,
            sentences=dict(self._gate.results) if self._gate is not None else {},
        )
        relay = self._relay
        response = ResponseRecord(relay.total_bytes, relay.transcript.id, relay.transcript.usage)
        self.outcome = replace(outcome, stream=record, response=response, latency_s=record.held_s)
        self._conclude(self.outcome)

    def _account(self) -> None:
        """Report what is held: messages, a frame that has begun, and the text of the answers."""
        if self._closed is None:
            return
        held = self._relay.held_bytes
        self._most_held = max(self._most_held, held)
        fits = True
        if abs(held - self._waiting) >= _ACCOUNT_BYTES or not held:
            self._waiting = held
            fits = self._share.waits(held, self._relay.held_frames)
        held += self._relay.begun_bytes + self._relay.text_length + self._relay.reasoning_length
        grown = held - self._counted
        if abs(grown) >= _ACCOUNT_BYTES or not held:
            self._counted = held
            fits = (self._hold(grown) or grown <= 0) and fits
        if not fits and not self.concluded:
            if self._task is not None:
                self._task.cancel()
                self._task = None
            self._give_up(Reason.OVERLOADED)
