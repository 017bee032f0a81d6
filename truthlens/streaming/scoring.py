"""Scores one streamed answer, part by part and as a whole, and puts what follows from it into the stream.

When to score is for ``driver`` to say, what becomes of sentences for the gate; here both are brought together with detection,
and the end of the stream is written.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

from truthlens.api.answer_citations import awaits_citations, with_citations
from truthlens.api.reasoning import reasoning_to_score
from truthlens.api.sse.chunk_edits import content_chunk, done_frame, final_chunk
from truthlens.api.sse.completeness import limited, reason_of
from truthlens.api.sse.frames import encode
from truthlens.core.records.calls import CallRecord
from truthlens.core.records.enums import Action, AnswerKind, OnUnchecked, Reason, Streaming, Trigger
from truthlens.core.records.exchange import Answer, Exchange
from truthlens.core.records.mitigation_result import Assessment
from truthlens.core.records.outcome import Outcome
from truthlens.core.records.plan import MARGIN_S, Plan
from truthlens.core.records.verdict import Verdict, unchecked
from truthlens.detection.engine import Engine
from truthlens.detection.incremental import Following
from truthlens.streaming.finish import Ending, Gated, answers_of, ending_of
from truthlens.streaming.frame_edits import STOP_REASON
from truthlens.streaming.gate import Gate
from truthlens.streaming.relay import Relay
from truthlens.streaming.types import ScoredParts, ScoringRequest, Search

# Text is looked at again for windows to score once it has grown by as much.
_AHEAD_CHARS = 256
_LEAST_TIME_S = 0.05


Examine = Callable[
    [Exchange, Sequence[Answer], Sequence[Verdict], float],
    Awaitable[tuple[Exchange, tuple[Verdict, ...], tuple[CallRecord, ...]]],
]
"""Retrieves evidence for whole answers and asks models about them, within so many seconds.

Gives the exchange with what was retrieved, the verdicts of both stages, and the calls.
"""


class StreamScorer:
    """What is known of one streamed answer's worth, and what is said about it within the stream.

    Args:
        plan: of mode lightweight.
        exchange: the request half.
        engine: scores and explains.
        relay: the stream.
        gate: what decides its frames; ``None`` for a stream that is observed.
        details: whether a verdict chunk is wanted.
        hold_s: how long text may be held in all.
        examine: asks the plan's models about whole answers; ``None`` where nobody can be asked.
        search: retrieves evidence for flagged sentences that a gate holds; ``None`` where nothing does.
        choose: gives the outcome its review id, where it is to be queued.
        detecting: entered for each scoring.
        clock: monotonic, in seconds.
    """

    def __init__(
        self,
        plan: Plan,
        exchange: Exchange,
        engine: Engine,
        relay: Relay,
        gate: Gate | None,
        *,
        details: bool,
        hold_s: float,
        clock: Callable[[], float],
        examine: Examine | None = None,
        search: Search | None = None,
        choose: Callable[[Outcome], Outcome] | None = None,
        detecting: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        self._examine = examine
        self._detecting = detecting
        self._choose = choose
        self._calls: tuple[CallRecord, ...] = ()
        self._plan = plan
        self._exchange = exchange
        self._awaits = awaits_citations(exchange)
        self._engine = engine
        self._clearing = None
        if search is not None and gate is not None and plan.retrieves(Trigger.UNSUPPORTED):
            from truthlens.streaming.clearing import Clearing

            self._clearing = Clearing(plan, engine, search, clock=clock)
        self._following = engine.follow(plan, exchange)
        self._relay = relay
        self._gate = gate
        self._details = details
        self._model = engine.model_name(plan)
        self._hold_s = hold_s
        self._clock = clock
        self._must_check = plan.streaming is Streaming.GATE and plan.on_unchecked is OnUnchecked.BLOCK
        self._scored: tuple[tuple[Answer, ...], tuple[Verdict, ...]] | None = None
        self._looked = 0
        self._ended_at: float | None = None
        self._longest_held_s = 0.0

    @property
    def exchange(self) -> Exchange:
        """The request half, with the evidence that came with the answer once something was scored."""
        return self._exchange

    @property
    def scored(self) -> bool:
        """Whether a scoring of whole answers has been made."""
        return self._scored is not None

    @property
    def beyond(self) -> Reason | None:
        """Why a stream that must be checked has left what can be checked; ``None`` where it has not."""
        if not self._must_check:
            return None
        if self._relay.overflowed:
            return Reason.TOO_LARGE
        return Reason.DIALECT if self._relay.transcript.unread else None

    @property
    def lag_s(self) -> float:
        """Seconds since the answer has ended."""
        now = self._clock()
        return now - self._since(now)

    @property
    def held_s(self) -> float:
        """The longest time for which text waited for its score, or its end until now."""
        return max(self._longest_held_s, self.lag_s)

    def answers(self, *, over: bool = False) -> tuple[Answer, ...]:
        """The answers so far, as the backend wrote them; ``over``: nothing follows, as far as can be told."""
        relay = self._relay
        return answers_of(relay.transcript, self._exchange, over=over, overflowed=relay.overflowed)

    def note_end(self) -> None:
        """The answer has ended: the verdict is late from now on."""
        if self._ended_at is None:
            self._ended_at = self._clock()

    # --- scoring ------------------------------------------------------------------------------------------

    def _follows(self) -> Following:
        """What scores the answers; evidence that comes with them counts if it was there before the first look."""
        if self._awaits:
            self._awaits = False
            cited = with_citations(self._exchange, self._relay.transcript.citations)
            if cited is not self._exchange:
                self._exchange = cited
                self._following = self._engine.follow(self._plan, cited)
        return self._following

    def due(self) -> bool:
        """Whether ``ahead`` has something to do that further text will not change."""
        if self._relay.text_length < self._looked + _AHEAD_CHARS:
            return False
        self._looked = self._relay.text_length
        return self._follows().due(self.answers())

    async def ahead(self) -> None:
        """Score what further text will not change."""
        with self._detecting():
            await self._follows().ahead(self.answers())

    async def whole(self) -> None:
        """Score the answers as they are, so that their end finds the verdict ready."""
        await self._verdicts(self.answers(over=True))

    async def ranges(self, gate: Gate, asks: Sequence[ScoringRequest]) -> None:
        """Score what the gate asks for, and let it decide."""
        oldest = gate.oldest if gate.oldest is not None else self._clock()
        time_s = self._time_s(oldest)
        over = (self._relay.ended or self._relay.finished) and not gate.behind
        scored = await (self._last_ranges(asks, time_s) if over else self._growing(asks, time_s))
        found = scored.verdicts
        if self._clearing is not None:
            # What came meanwhile has the time of one scoring left.
            found = await self._clearing.ranges(
                self._exchange, scored, time_s=self._left_s(oldest) - self._plan.timeout_s
            )
        gate.decide(asks, found)
        self.hold_end(gate)
        self._longest_held_s = max(self._longest_held_s, self._clock() - oldest)

    async def _growing(self, asks: Sequence[ScoringRequest], time_s: float) -> ScoredParts:
        """The parts that are asked for, of answers that go on."""
        choices = self._relay.transcript.choices
        answers = [Answer(ask.choice, choices[ask.choice].kind, ask.text) for ask in asks]
        ranges = [ask.ranges for ask in asks]
        with self._detecting():
            found = await self._follows().detect_ranges(answers, ranges, timeout_s=time_s)
        return ScoredParts(answers, ranges, found)

    async def _last_ranges(self, asks: Sequence[ScoringRequest], time_s: float) -> ScoredParts:
        """What is left of answers that have ended, out of one scoring with the verdicts on them."""
        answers = self.answers(over=True)
        asked = {ask.choice: ask for ask in asks}
        ranges = [_of_answer(asked[each.index]) if each.index in asked else () for each in answers]
        with self._detecting():
            followed = await self._follows().detect(answers, ranges, timeout_s=time_s)
        self._scored = (answers, followed.verdicts)
        places = {each.index: place for place, each in enumerate(answers)}
        mine = [places[ask.choice] for ask in asks]
        return ScoredParts(
            [answers[place] for place in mine],
            [ranges[place] for place in mine],
            [followed.ranges[place] for place in mine],
        )

    def hold_end(self, gate: Gate) -> None:
        """Where the gate has ended the stream, nothing behind that may leave before the verdict is known."""
        if gate.stop_entry is not None:
            self._relay.hold(gate.stop_entry)
            self.note_end()

    async def _verdicts(self, answers: tuple[Answer, ...]) -> tuple[Verdict, ...]:
        """The verdicts on whole answers, unless the last scoring gave them already."""
        if self._scored is None or self._scored[0] != answers:
            with self._detecting():
                followed = await self._follows().detect(answers, timeout_s=self._time_s())
            self._scored = (answers, followed.verdicts)
        return self._scored[1]

    async def _examined(
        self, answers: Sequence[Answer], verdicts: tuple[Verdict, ...]
    ) -> tuple[Verdict, ...]:
        """The verdicts with what is retrieved for whole answers and what models say of them, while the end may be held."""
        # A gate rules on sentences, and has retrieved what there was for them.
        retrieves = self._gate is None and self._plan.retrieves(Trigger.UNSUPPORTED)
        if self._examine is None or not (self._plan.asking or retrieves):
            return verdicts
        self._exchange, found, calls = await self._examine(self._exchange, answers, verdicts, self._left_s())
        self._calls += calls
        return found

    async def _reasoning(self, answers: Sequence[Answer]) -> tuple[Verdict | None, ...]:
        """The verdicts on the reasoning beside the answers, where the plan has it scored."""
        asked = reasoning_to_score(self._plan, answers)
        if not asked:
            return ()
        with self._detecting():
            followed = await self._follows().detect(list(asked.values()), timeout_s=self._time_s())
        found = dict(zip(asked, followed.verdicts, strict=True))
        return tuple(found.get(place) for place in range(len(answers)))

    def _since(self, now: float) -> float:
        """When the answer has ended; ``now`` where it has not."""
        return now if self._ended_at is None else self._ended_at

    def _left_s(self, since: float | None = None) -> float:
        """Seconds for which what is held since ``since``, or since the answer ended, may still be held."""
        now = self._clock()
        return max(_LEAST_TIME_S, (self._since(now) if since is None else since) + self._hold_s - now)

    def _time_s(self, since: float | None = None) -> float:
        """Seconds for one scoring of it: what waited for another has less left."""
        return min(self._plan.timeout_s, self._left_s(since))

    # --- the end ------------------------------------------------------------------------------------------

    async def finish(self, *, cut: Reason | None = None) -> Outcome:
        """Score the whole answers, and let the end of the stream go, or nothing more where it is ``cut``."""
        gate, relay = self._gate, self._relay
        reason = cut or reason_of(relay.transcript, overflowed=relay.overflowed)
        if reason is None and gate is not None:
            reason = gate.stopped_for
        first_answers = self.answers(over=True)
        gated = _gated(gate, cut=cut is not None) if gate is not None else None
        answers = first_answers
        if gated is not None:
            # Reasoning is not gated: what came in place of an answer has left.
            answers = tuple(
                answer
                if answer.kind is AnswerKind.REASONING
                else replace(answer, text=gated.texts.get(answer.index, ""))
                for answer in first_answers
            )
        first = limited(await self._verdicts(first_answers), reason)
        verdicts = first
        if answers != first_answers:
            kept = limited(await self._verdicts(answers), reason)
            # Of an answer that was withheld as a whole, what is known is the verdict on it; no place in it was received.
            verdicts = tuple(
                new if answer.text.strip() else _placeless(old)
                for answer, new, old in zip(answers, kept, first, strict=True)
            )
        if self._clearing is not None:
            self._exchange, verdicts = await self._clearing.whole(
                self._exchange, answers, verdicts, time_s=self._time_s()
            )
        if self._details:
            verdicts = await self._engine.explain(self._exchange, answers, verdicts, time_s=MARGIN_S / 2)
        verdicts = limited(await self._examined(answers, verdicts), reason)
        if answers == first_answers:
            first = verdicts
        assessment = Assessment(verdicts, first, calls=self._calls, reasoning=await self._reasoning(answers))
        ending = self._ending(answers, assessment, gated=gated, reason=reason)
        self._say(ending, ending.closing, gate, cut=cut is not None)
        return ending.outcome

    def give_up(self, reason: Reason, *, broken: bool = False) -> Outcome:
        """Conclude without a verdict, and let everything pass, or nothing more where the plan says so.

        What a gate has ruled on keeps its fate, unless the gate itself is ``broken``.
        """
        gate = None if broken else self._gate
        if gate is not None and not self._must_check:
            gate.let_pass()
        answers = self.answers(over=True)
        verdicts: tuple[Verdict, ...] = tuple(
            unchecked(reason, threshold=self._plan.threshold) for _ in answers
        )
        gated = Gated(stopped=self._must_check)
        if gate is not None:
            gated = _gated(gate, cut=self._must_check)
        ending = self._ending(answers, Assessment(verdicts, verdicts), gated=gated, reason=reason)
        self._say(ending, {}, gate, cut=self._must_check)
        if gate is None or not gate.stopped_choices:
            self._relay.open()
        return ending.outcome

    def let_go(self) -> Outcome:
        """Conclude where ``give_up`` failed: everything passes, or nothing more does, and nothing is said of it."""
        verdict = unchecked(Reason.DETECTOR_ERROR, threshold=self._plan.threshold)
        outcome = Outcome(self._plan, verdict, model=self._model)
        if self._must_check:
            self._relay.cut(done_frame(newline=self._relay.newline))
            return replace(outcome, action=Action.BLOCK)
        self._relay.open()
        return outcome

    def _ending(
        self, answers: Sequence[Answer], assessment: Assessment, *, gated: Gated | None, reason: Reason | None
    ) -> Ending:
        return ending_of(
            self._plan,
            self._exchange,
            answers,
            assessment,
            model=self._model,
            details=self._details,
            gated=gated,
            reason=reason,
            failed=self._relay.transcript.failed,
            choose=self._choose,
        )

    def _say(self, ending: Ending, closing: Mapping[int, str], gate: Gate | None, *, cut: bool) -> None:
        """Put the end into the stream, and let it go; ``closing`` is for answers that are not stopped."""
        relay, final = self._relay, b""
        if ending.details is not None:
            final = encode(final_chunk(relay.transcript, ending.details), newline=relay.newline)
        if cut:
            relay.cut(self._filtered() + final + done_frame(newline=relay.newline))
        elif gate is not None and gate.stop_entry is not None:
            relay.stop(gate.stop_entry, final + done_frame(newline=relay.newline))
        else:
            relay.close(closing, final)

    def _filtered(self) -> bytes:
        """Frames that finish every choice that has not finished for the client, as filtered."""
        relay = self._relay
        return b"".join(
            encode(
                content_chunk(relay.transcript, index, "", finish_reason=STOP_REASON), newline=relay.newline
            )
            for index in relay.unfinished()
            if self._gate is None or index not in self._gate.stopped_choices
        )


def _of_answer(ask: ScoringRequest) -> tuple[tuple[int, int], ...]:
    """The ranges of an ask as characters of the whole answer."""
    return tuple((start + ask.skipped, end + ask.skipped) for start, end in ask.ranges)


def _gated(gate: Gate, *, cut: bool = False) -> Gated:
    return Gated(
        texts={choice: gate.delivered(choice) for choice in gate.choices},
        insertions={choice: gate.insertions(choice) for choice in gate.choices},
        marked=gate.marked,
        withheld=gate.withheld,
        stopped=gate.stopped or gate.all_stopped or cut,
        logprobs_dropped=gate.logprobs_dropped,
        fields_dropped=gate.fields_dropped,
    )


def _placeless(verdict: Verdict) -> Verdict:
    """The verdict without anything that says where in the answer it was found."""
    results = tuple(replace(result, spans=(), claims=()) for result in verdict.results)
    return replace(verdict, spans=(), results=results)
