"""Decides what becomes of each frame of a gated stream, sentence by sentence.

Pure: no clock, no I/O, no detection. Frames are decided in their order, and finally: one that carries no text is decided
at once where nothing before it waits, since a stop takes back whatever stands behind it.
"""

from __future__ import annotations

import math
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from truthlens.core.errors import DialectError
from truthlens.core.plan import Plan
from truthlens.core.records import Exchange, OnFlagged, OnUnchecked, Reason, Status, Verdict
from truthlens.exchange.chunks import ChunkKind, Delta, Transcript
from truthlens.exchange.edits import strip
from truthlens.streaming.contract import Ask, Entry
from truthlens.streaming.gated_choice import Fate, GatedChoice
from truthlens.streaming.notices import mark_for, stop_notice, withheld_notice
from truthlens.streaming.rewriting import Changes, rebuilt, rewrite

# Nothing was to be checked there, so that nothing is blocked for it.
_NEVER_BLOCKED = (Reason.DISABLED, Reason.EMPTY_ANSWER, Reason.TOOL_CALL)


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

    entry: Entry
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
        logprobs_dropped: Whether log probabilities of the answer were taken out.

    Args:
        plan: The exchange's plan.
        exchange: The request half.
        transcript: The stream so far, up to the entry that was taken last.
    """

    def __init__(self, plan: Plan, exchange: Exchange, transcript: Transcript) -> None:
        self.stopped = False
        self.stop_entry: Entry | None = None
        self.stopped_for: Reason | None = None
        self.logprobs_dropped = False
        self._plan = plan
        self._exchange = exchange
        self._transcript = transcript
        self._tracks: dict[int, _Track] = {}
        self._queue: deque[_Held] = deque()
        self._taken = 0
        self._results: Counter[str] = Counter()
        self._any_stopped = False
        self._passing = False

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

    def delivered(self, choice: int) -> str:
        """The choice's answer as the client gets it so far, without the echo, marks and notices."""
        track = self._tracks.get(choice)
        return track.gated.delivered if track is not None else ""

    def insertions(self, choice: int) -> Sequence[tuple[int, str]]:
        """The choice's marks and notices, each with its place in ``delivered``; in order."""
        track = self._tracks.get(choice)
        return tuple(track.gated.insertions) if track is not None else ()

    def take(self, entry: Entry, *, now: float) -> None:
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

    def ask(self, *, now: float, ended: bool, pressed: bool = False) -> tuple[Ask, ...]:
        """What can be scored now: per choice its complete sentences, each given once.

        All that there is of a choice is given where it has finished, or where its oldest text has waited for
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
            for track in self._tracks.values():
                track.gated.grow(now)
        asks = []
        for index, track in self._tracks.items():
            gated = track.gated
            ranges = gated.claim()
            since, too_long = gated.waiting_since, now - self._plan.stream.max_hold_s
            expired = since is not None and since <= too_long
            # Half a sentence is judged worse than a whole one: whole ones first, where they make room.
            over = ended or gated.choice.finished
            if over or expired or (pressed and not ranges):
                gated.close(words_since=math.inf if over else too_long)
                ranges += gated.claim()
            if ranges:
                echo = gated.echo
                text = gated.choice.text[echo : ranges[-1][1]]
                asks.append(Ask(index, text, tuple((start - echo, end - echo) for start, end in ranges)))
        self._release()
        return tuple(asks)

    def decide(self, asked: Sequence[Ask], verdicts: Sequence[Sequence[Verdict]]) -> None:
        """Decide what ``ask`` gave, and the entries that waited for it.

        Args:
            asked: What ``ask`` gave, all or some of it, in its order.
            verdicts: For each of these, one verdict for each of its ranges.

        Raises:
            ValueError: There are more or fewer verdicts than ranges, or a range is decided already.
        """
        for ask, judged in zip(asked, verdicts, strict=True):
            for (start, end), verdict in zip(ask.ranges, judged, strict=True):
                self._judge(ask.choice, start, end, ask.text[:end], verdict)
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

    def _judge(self, index: int, start: int, end: int, text: str, verdict: Verdict) -> None:
        track = self._tracks[index]
        gated = track.gated
        bare = gated.structured or gated.choice.elsewhere
        fate, said = self._fate(verdict, text, bare=bare)
        if not gated.rule(start + gated.echo, end + gated.echo, fate, said):
            return
        result = "unchecked" if verdict.score is None else "flagged" if verdict.flagged else "passed"
        self._results[result] += 1
        if gated.stopped_at is not None:
            track.last = self._carrier(index, gated.stopped_at)
            self._any_stopped = True
            if not verdict.flagged:
                self.stopped_for = self.stopped_for or verdict.reason

    def _fate(self, verdict: Verdict, text: str, *, bare: bool) -> tuple[Fate, str]:
        """What becomes of a range, and its mark or notice.

        No text is pasted into a ``bare`` answer: one for a program, or one that does not stand in the content.
        """
        stop = self._plan.stream.on_flagged is OnFlagged.STOP and verdict.flagged
        if stop or self._blocks(verdict):
            return Fate.STOP, "" if bare else stop_notice(self._plan, text, flagged=verdict.flagged)
        if not verdict.flagged:
            return Fate.KEEP, ""
        withholds = self._plan.stream.on_flagged is OnFlagged.WITHHOLD
        if bare:
            return (Fate.STOP if withholds else Fate.KEEP), ""
        if withholds:
            return Fate.WITHHOLD, withheld_notice(self._plan, text)
        return Fate.MARK, mark_for(self._plan, text)

    def _blocks(self, verdict: Verdict) -> bool:
        if self._plan.on_unchecked is not OnUnchecked.BLOCK or verdict.reason in _NEVER_BLOCKED:
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
        texts: dict[int, str] = {}
        dropped, stopped = set(), set()
        for index in {delta.index for delta in held.entry.chunk.deltas}.intersection(self._tracks):
            track, part = self._tracks[index], held.parts.get(index)
            if track.stopped and track.last is not None and held.number > track.last.number:
                dropped.add(index)
                continue
            if track.stopped and held is track.last:
                stopped.add(index)
            if part is not None and track.gated.touched(part.group.start, part.group.end):
                texts[index] = track.gated.rendered(part.start, part.end)
        changes = Changes(texts, dropped, stopped)
        if changes:
            self.logprobs_dropped = self.logprobs_dropped or any(
                delta.logprobs and (delta.index in texts or delta.index in dropped)
                for delta in held.entry.chunk.deltas
            )
            return rewrite(held.entry, changes, self._transcript)
        return self._without_silent_logprobs(held.entry)

    def _without_silent_logprobs(self, entry: Entry) -> bytes | None:
        """The frame without log probabilities of text that is still to come: they would tell what may be withheld."""
        silent = [delta.index for delta in entry.chunk.deltas if delta.logprobs and not delta.text]
        if not silent or self._plan.stream.on_flagged is OnFlagged.MARK:
            return None
        try:
            stripped = strip(entry.frame, logprobs=silent)
        except DialectError:
            self.logprobs_dropped = True
            return rebuilt(entry, Changes(), self._transcript)
        self.logprobs_dropped = self.logprobs_dropped or stripped is not entry.frame
        return None if stripped is entry.frame else stripped.raw

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


def _drop(entry: Entry) -> None:
    entry.output, entry.decided = b"", True
