"""Decides what becomes of each frame of a gated stream, sentence by sentence.

Pure: no clock, no I/O, no detection. Frames are decided in their order, and finally: one that carries no text is decided
at once where nothing before it waits, since a stop takes back whatever stands behind it.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from truthlens.api.members.filter import Members
from truthlens.api.sse.chunk_edits import done_frame
from truthlens.api.sse.chunks import ChunkKind, Delta, Transcript
from truthlens.api.sse.fields import without_asides
from truthlens.api.sse.skeletons import Skeleton
from truthlens.core.records.enums import OnFlagged, OnUnchecked, Reason, Status
from truthlens.core.records.exchange import Exchange
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import Verdict
from truthlens.delivery.warning import mark_for, stop_notice, withheld_notice
from truthlens.streaming.frame_edits import Changes, cleaned, rewrite, unread
from truthlens.streaming.gated_choice import GatedChoice, SegmentDecision
from truthlens.streaming.types import ScoringRequest, StreamEntry

# So many choices are taken on with at once where they have much text.
_STEP_CHOICES = 4
_CONTEXT_CHARS = 8192
# So much of an answer is looked at to tell its script, for marks and notices.
_SCRIPT_CHARS = 2000
_UNNAMED = "unnamed"
# Nothing was to be checked there, so that nothing is blocked for it.
_NEVER_BLOCKED = (Reason.DISABLED, Reason.TOOL_CALL)


@dataclass(slots=True)
class _Group:
    """Frames that tear surrogate pairs between them are decided, and changed or not, together; ``end`` is the last's."""

    start: int
    end: int


@dataclass(slots=True)
class _Part:
    """The characters of a choice that a frame carries; a torn pair belongs to the frame with its first half."""

    start: int
    end: int
    group: _Group


@dataclass(slots=True)
class _Held:
    """An entry that is not decided yet. ``number`` is its place in the stream, ``since`` when it came."""

    entry: StreamEntry
    number: int
    since: float
    parts: dict[int, _Part] = field(default_factory=dict)


@dataclass(slots=True)
class _Track:
    """A choice and its frames.

    ``reach`` is where the text of its frames so far ends. ``torn`` is its last part where that ends within a pair.
    ``last`` is the last frame of the choice: where it was stopped, or the last that adds text or finishes it.
    """

    gated: GatedChoice
    reach: int = 0
    torn: _Part | None = None
    last: _Held | None = None
    finished: bool = False

    @property
    def stopped(self) -> bool:
        return self.gated.stopped_at is not None

    def stops_with(self, held: _Held) -> bool:
        return self.stopped and held is self.last

    def stops_before(self, held: _Held) -> bool:
        return self.stopped and self.last is not None and held.number > self.last.number

    @property
    def closed(self) -> bool:
        """Whether nothing of the choice is still to come or to be decided."""
        return self.stopped or (self.finished and self.gated.decided >= self.gated.choice.length)


class Gate:
    """One gated stream.

    Attributes:
        stopped: The gate has ended the stream: nothing behind ``stop_entry`` is delivered.
        stop_entry: The last entry that is, ``None`` while the stream has not been stopped.
        stopped_for: Why a choice could not be checked and was stopped for that.

    Args:
        plan: The exchange's plan.
        exchange: The request half.
        transcript: The stream so far, up to the entry that was taken last.
    """

    def __init__(self, plan: Plan, exchange: Exchange, transcript: Transcript) -> None:
        self.stopped = False
        self.stop_entry: StreamEntry | None = None
        self.stopped_for: Reason | None = None
        self._plan = plan
        self._logprobs_dropped = False
        # What is withheld must not leave in another place, and what must be checked not from where nobody looked.
        strict = plan.on_flagged is not OnFlagged.MARK or plan.on_unchecked is OnUnchecked.BLOCK
        self._members = Members(exchange.endpoint, streamed=True) if strict else None
        self._exchange = exchange
        self._transcript = transcript
        self._tracks: dict[int, _Track] = {}
        self._queue: deque[_Held] = deque()
        self._taken = 0
        self._results: Counter[str] = Counter()
        self._any_stopped = False
        self._passing = False
        # What the last entry shares with others that leaves as it is, and how many texts must not leave since.
        self._clean: tuple[Skeleton, int] | None = None

    @property
    def behind(self) -> bool:
        """Whether ``ask`` may give more without further text or time: there is text that it has not looked at."""
        return not self.stopped and any(
            not track.stopped and (track.gated.behind or track.gated.unasked)
            for track in self._tracks.values()
        )

    @property
    def next_expiry(self) -> float | None:
        """When ``ask`` will give more without further text, as far as time alone decides it; ``None`` for never."""
        since = [found for track in self._tracks.values() if (found := track.gated.waiting_since) is not None]
        return min(since) + self._plan.stream.max_hold_s if since and not self.stopped else None

    @property
    def oldest(self) -> float | None:
        """When the oldest entry came that is not decided, ``None`` where all are."""
        return self._queue[0].since if self._queue else None

    @property
    def results(self) -> Mapping[str, int]:
        """How many ranges were ``passed``, ``flagged`` and ``unchecked``.

        Unchecked are also frames that could not be read, and choices of which text passed that could not be scored.
        """
        counts = {name: self._results[name] for name in ("passed", "flagged", "unchecked")}
        counts["unchecked"] += sum(track.gated.unscored for track in self._tracks.values())
        return counts

    @property
    def stopped_choices(self) -> frozenset[int]:
        """Choices that were stopped: their further text must not leave, and they have their finish."""
        return frozenset(index for index, track in self._tracks.items() if track.stopped)

    @property
    def all_stopped(self) -> bool:
        """Whether every choice that has come was stopped."""
        return bool(self._tracks) and all(track.stopped for track in self._tracks.values())

    @property
    def choices(self) -> tuple[int, ...]:
        """The indexes of the choices seen, in the order they came."""
        return tuple(self._tracks)

    @property
    def withheld(self) -> frozenset[int]:
        """Choices from which text was withheld, or that were stopped."""
        return frozenset(index for index, track in self._tracks.items() if track.gated.withheld)

    @property
    def marked(self) -> frozenset[int]:
        """Choices with a mark."""
        return frozenset(index for index, track in self._tracks.items() if track.gated.marked)

    @property
    def logprobs_dropped(self) -> bool:
        """Whether log probabilities of the answer were taken out."""
        return self._logprobs_dropped or (self._members is not None and self._members.logprobs_dropped)

    @property
    def fields_dropped(self) -> bool:
        """Whether other members were taken out, which hold text that nobody scored or that was withheld."""
        return self._members is not None and self._members.dropped

    def delivered(self, choice: int) -> str:
        """The choice's answer as the client gets it so far, without the echo, marks and notices."""
        track = self._tracks.get(choice)
        return track.gated.delivered if track is not None else ""

    def insertions(self, choice: int) -> Sequence[tuple[int, str]]:
        """The choice's marks and notices, each with its place in ``delivered``; in order."""
        track = self._tracks.get(choice)
        return tuple(track.gated.insertions) if track is not None else ()

    def take(self, entry: StreamEntry, *, now: float) -> None:
        """Take in the next entry of the stream, which the transcript knows.

        Args:
            entry: Not decided; its output is set here or later.
            now: Monotonic, in seconds.
        """
        held = _Held(entry, self._taken, now)
        self._taken += 1
        if self.stopped:
            _drop(entry)
            return
        self._results["unchecked"] += entry.chunk.kind is ChunkKind.OPAQUE
        for delta in entry.chunk.deltas:
            self._read(held, delta, now)
        self._queue.append(held)
        self._release()

    def ask(self, *, now: float, ended: bool, pressed: bool = False) -> tuple[ScoringRequest, ...]:
        """What can be scored now: per choice its complete sentences, each given once, not too many at a time.

        Long text is taken in by several calls: see ``behind``. All that there is of a choice is given where it has finished, or where its oldest text has waited for
        ``max_hold_s``. What needs no score may be decided by it.

        Args:
            now: Monotonic, in seconds.
            ended: Whether the stream is over: all of every choice is given.
            pressed: Whether too much is held: what there is of a choice is given where it has no complete sentence.
        """
        if self.stopped:
            return ()
        if ended:
            # Halves of surrogate pairs stay alone.
            self._transcript.end()
        asks = []
        room = _STEP_CHOICES
        for index, track in self._tracks.items():
            gated = track.gated
            if gated.behind:
                if not room:
                    continue
                room -= 1
                gated.grow(now)
            ranges = gated.claim()
            since, too_long = gated.waiting_since, now - self._plan.stream.max_hold_s
            expired = since is not None and since <= too_long
            # Half a sentence is scored worse than a whole one: whole ones first, where they make room.
            over = ended or gated.choice.finished
            if not gated.behind and (over or expired or (pressed and not ranges)):
                gated.close(words_since=math.inf if over else too_long)
                ranges += gated.claim()
            if ranges:
                asks.append(_request(index, gated, ranges))
        self._release()
        return tuple(asks)

    def decide(self, asked: Sequence[ScoringRequest], verdicts: Sequence[Sequence[Verdict]]) -> None:
        """Decide what ``ask`` gave, and the entries that waited for it.

        Args:
            asked: What ``ask`` gave, all or some of it, in its order.
            verdicts: For each of these, one verdict for each of its ranges.

        Raises:
            ValueError: There are more or fewer verdicts than ranges, or a range is decided already.
        """
        for ask, found in zip(asked, verdicts, strict=True):
            for (start, end), verdict in zip(ask.ranges, found, strict=True):
                self._decide_range(ask, start, end, verdict)
        self._release()

    def let_pass(self) -> None:
        """Let all text pass that is not ruled on yet, and all that comes; what was ruled on keeps its fate."""
        self._passing = True
        for track in self._tracks.values():
            track.gated.let_pass()
        self._release()

    def _read(self, held: _Held, delta: Delta, now: float) -> None:
        """Take in what the entry adds to one choice."""
        track = self._track(delta.index)
        if track is None:
            return
        if delta.finish_reason is not None:
            track.finished = True
        elif not delta.text:
            return
        track.gated.grow(now)
        self._carry(held, delta, track)
        if not track.stopped:
            track.last = held

    def _track(self, index: int) -> _Track | None:
        """``None`` for a choice that the transcript does not know: a stream beyond its limit."""
        track = self._tracks.get(index)
        choice = self._transcript.choices.get(index)
        if track is None and choice is not None:
            gated = GatedChoice(choice, structured=self._exchange.structured, echoed=self._exchange.echoed)
            track = self._tracks[index] = _Track(gated)
            if self._passing:
                gated.let_pass()
        return track

    def _carry(self, held: _Held, delta: Delta, track: _Track) -> None:
        """Note which characters the entry carries."""
        choice = track.gated.choice
        own, reach = track.torn, held.entry.texts.get(delta.index, (0, track.reach))[1]
        if not delta.text:
            track.reach = max(track.reach, reach)
            return
        part = held.parts.get(delta.index)
        if part is None:
            joins = own is not None and "\udc00" <= delta.text[0] <= "\udfff"
            start = own.end if own is not None else track.reach
            group = own.group if own is not None and joins else _Group(start, start)
            part = held.parts[delta.index] = _Part(start, start, group)
        torn = "\ud800" <= delta.text[-1] <= "\udbff" and (choice.torn or choice.length > reach)
        part.end = part.group.end = max(part.start, reach + torn)
        track.torn = part if torn else None
        track.reach = reach

    def _decide_range(self, ask: ScoringRequest, start: int, end: int, verdict: Verdict) -> None:
        index, text = ask.choice, ask.text
        track = self._tracks[index]
        gated = track.gated
        near = text[max(0, end - _SCRIPT_CHARS) : end]
        fate, said = self._fate(verdict, near, gated)
        if not gated.rule(start + ask.offset, end + ask.offset, fate, said):
            return
        if self._members is not None and fate in (SegmentDecision.WITHHOLD, SegmentDecision.STOP):
            self._members.forbid(text[start:end])
            if self._members.forbids(self._transcript.model):
                # Our own chunks repeat it.
                self._transcript.model = _UNNAMED
        self._results["flagged" if verdict.flagged else "unchecked" if _is_unread(verdict) else "passed"] += 1
        if gated.stopped_at is not None:
            track.last = self._carrier(index, gated.stopped_at)
            self._any_stopped = True
            if not verdict.flagged:
                self.stopped_for = self.stopped_for or verdict.reason

    def _fate(self, verdict: Verdict, text: str, gated: GatedChoice) -> tuple[SegmentDecision, str]:
        """Return what becomes of a range, and its mark or notice.

        No text is pasted into an answer for a program, or into one that does not stand in the content. Half of an
        answer for a program is of no use to anybody: what has begun to leave leaves as a whole, unless what must be
        checked is not, or is wrong.
        """
        bare = gated.structured or gated.choice.elsewhere
        halved = gated.structured and gated.left and self._plan.on_unchecked is not OnUnchecked.BLOCK
        stop = self._plan.on_flagged is OnFlagged.STOP and verdict.flagged and not halved
        if stop or self._blocks(verdict):
            return SegmentDecision.STOP, "" if bare else stop_notice(
                self._plan, text, flagged=verdict.flagged
            )
        if not verdict.flagged:
            return SegmentDecision.KEEP, ""
        withholds = self._plan.on_flagged is OnFlagged.WITHHOLD
        if bare:
            return (SegmentDecision.STOP if withholds and not halved else SegmentDecision.KEEP), ""
        if withholds:
            return SegmentDecision.WITHHOLD, withheld_notice(self._plan, text)
        return SegmentDecision.MARK, mark_for(self._plan, text)

    def _blocks(self, verdict: Verdict) -> bool:
        if self._plan.on_unchecked is not OnUnchecked.BLOCK:
            return False
        if verdict.claims_nothing or verdict.reason in _NEVER_BLOCKED:
            return False
        return verdict.score is None or verdict.status is Status.PARTIAL

    def _carrier(self, index: int, place: int) -> _Held:
        """The entry that carries a character which was not decided until now."""
        for held in self._queue:
            part = held.parts.get(index)
            if part is not None and part.start <= place < part.end:
                return held
        raise AssertionError("an undecided character is carried by no held entry")

    def _release(self) -> None:
        """Decide the entries whose text is decided, in order, as far as the stream goes."""
        while not self._stop() and self._queue and self._is_ready(self._queue[0]):
            held = self._queue.popleft()
            if (output := self._output(held)) is not None:
                held.entry.output = output
            held.entry.decided = True

    def _is_ready(self, held: _Held) -> bool:
        return all(part.group.end <= self._tracks[index].gated.decided for index, part in held.parts.items())

    def _output(self, held: _Held) -> bytes | None:
        """What leaves of an entry, ``None`` for its own bytes."""
        output = self._edited(held)
        frame = held.entry.frame
        if self._members is None or frame.oversize:
            return output
        raw = frame.raw if output is None else output
        kept = without_asides(
            raw, self._members, lead=frame.lead if raw.startswith(frame.raw[: frame.lead]) else 0
        )
        return output if kept is raw else kept

    def _edited(self, held: _Held) -> bytes | None:
        texts: dict[int, str] = {}
        dropped, stopped = set(), set()
        for index in {delta.index for delta in held.entry.chunk.deltas}.intersection(self._tracks):
            track, part = self._tracks[index], held.parts.get(index)
            if track.stops_before(held):
                dropped.add(index)
                continue
            if track.stops_with(held):
                stopped.add(index)
            if part is not None and track.gated.touched(part.group.start, part.group.end):
                texts[index] = track.gated.rendered(part.start, part.end)
        withheld = () if self._plan.on_flagged is OnFlagged.MARK else frozenset(texts)
        changes = Changes(texts, dropped, stopped, withheld)
        if changes:
            deltas = held.entry.chunk.deltas
            self._logprobs_dropped |= any(delta.logprobs and changes.takes(delta.index) for delta in deltas)
            return rewrite(held.entry, changes, self._transcript, self._members)
        if self._members is None:
            return None
        match held.entry.chunk.kind:
            case ChunkKind.BLANK:
                return None
            case ChunkKind.OPAQUE:
                return unread(held.entry, self._members, self._transcript)
            case ChunkKind.DONE:
                return _marker(held.entry)
        return self._cleaned(held.entry, self._members)

    def _cleaned(self, entry: StreamEntry, members: Members) -> bytes | None:
        """What leaves of an entry whose texts stay; one that is like the last that was looked at needs no look."""
        if entry.skeleton is not None and self._clean == (entry.skeleton, members.forbidden):
            return None
        output = cleaned(entry, members, self._transcript)
        if output is None and entry.skeleton is not None and members.said_nothing:
            self._clean = (entry.skeleton, members.forbidden)
        return output

    def _stop(self) -> bool:
        """End the stream where every choice has ended, and one of them because it was stopped; whether it has."""
        if not self._any_stopped or self.stopped:
            return self.stopped
        tracks = self._tracks.values()
        if len(tracks) < max(self._exchange.choices, len(self._transcript.choices)):
            return False
        if not all(track.closed for track in tracks):
            return False
        last = max((track.last for track in tracks if track.last is not None), key=lambda held: held.number)
        if self._queue and self._queue[0].number <= last.number:
            return False
        self.stopped, self.stop_entry = True, last.entry
        while self._queue:
            _drop(self._queue.popleft().entry)
        return True


def _request(index: int, gated: GatedChoice, ranges: Sequence[tuple[int, int]]) -> ScoringRequest:
    # Of a long answer, what stands far before a sentence tells nothing of it.
    skipped = max(0, ranges[0][0] - gated.echo - _CONTEXT_CHARS)
    offset = gated.echo + skipped
    text = gated.choice.piece(offset, ranges[-1][1])
    places = tuple((start - offset, end - offset) for start, end in ranges)
    return ScoringRequest(index, text, places, offset, skipped)


def _drop(entry: StreamEntry) -> None:
    entry.output, entry.decided = b"", True


def _marker(entry: StreamEntry) -> bytes | None:
    """The marker of the end alone, where more stands in its frame; else ``None``."""
    frame = entry.frame
    return None if frame.data is None or frame.data.strip() == "[DONE]" else done_frame(newline=frame.newline)


def _is_unread(verdict: Verdict) -> bool:
    """Return whether nothing of a range was scored, or rules alone looked at it: the model failed, or does not read it."""
    coverage = verdict.coverage
    if verdict.score is None:
        return not verdict.claims_nothing
    if coverage is None:
        return any(result.score is None and not result.abstained for result in verdict.results)
    return coverage.answer_tokens > 0 == coverage.answer_tokens_scored
