"""Hand entries to the database in the background: an answer never waits, and what is lost is counted."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import structlog

from truthlens.core.errors import TruthLensError
from truthlens.core.review_settings import ReviewSettings
from truthlens.review.records import NewEntry, QueueUnavailableError, ReviewStatus
from truthlens.review.store.queue import ReviewQueue

log = structlog.get_logger("truthlens.review")

MOST_WAITING = 2_000
"""Entries that wait in memory at most; about 64 MB at worst of common sizes."""
MOST_WAITING_CHARS = 64 << 20
BATCH = 100
_GATHER_S = 0.05
_RETRY_S = (0.5, 1.0, 2.0, 5.0)
_COUNT_S = 5.0
_CLEAN_S = 600.0
_STOP_S = 5.0
_LONG_S = 10.0
DAY_S = 86_400.0


@dataclass(frozen=True, slots=True)
class WriterFigures:
    """What became of entries since the start. ``waiting`` is what would be lost if the process were killed now.

    ``lost`` counts by cause: ``full`` (no room in memory), ``database`` (it refused the entry), ``content`` (it could not be made),
    ``stopped`` (the process ended first). ``failing`` says that the database does not take entries at present. ``statuses`` and
    ``oldest_pending`` (seconds since 1970) are those of the whole queue, a few seconds old, empty before the first look.
    """

    written: int
    waiting: int
    lost: dict[str, int]
    failing: bool
    statuses: dict[ReviewStatus, int]
    oldest_pending: float | None


class ReviewWriter:
    """A thread that makes entries, writes them in batches, deletes old ones, and counts.

    Args:
        queue: where to; its database may be out of order, then entries wait and the oldest are lost when there are too many.
        settings: the settings in force, for retention.
        observe_delay: is told for each batch how many seconds its first entry has waited.
    """

    def __init__(
        self,
        queue: ReviewQueue,
        settings: Callable[[], ReviewSettings],
        *,
        observe_delay: Callable[[float], object] = lambda _: None,
    ) -> None:
        self._queue, self._settings = queue, settings
        self._observe_delay = observe_delay
        self._waiting: deque[tuple[Callable[[], NewEntry], int, float]] = deque()
        self._chars = 0
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._ended = threading.Event()
        self._lost: Counter[str] = Counter()
        self._written = 0
        self._writing = 0
        self._since: float | None = None
        self._failing = False
        self._statuses: dict[ReviewStatus, int] = {}
        self._oldest_pending: float | None = None
        self._thread = threading.Thread(target=self._run, name="truthlens-review", daemon=True)

    def start(self) -> None:
        """Start the thread; the tables are brought up to date by it."""
        self._thread.start()

    def room(self) -> bool:
        """Return whether another entry is taken; counts one as lost where it is not."""
        with self._lock:
            full = len(self._waiting) >= MOST_WAITING or self._chars >= MOST_WAITING_CHARS
            if full:
                self._lost["full"] += 1
            return not full

    def submit(self, make: Callable[[], NewEntry], *, chars: int) -> None:
        """Take an entry for which there was room; returns at once.

        Args:
            make: makes the entry, off the caller's thread.
            chars: characters that it keeps in memory until it is written.
        """
        with self._lock:
            self._waiting.append((make, chars, time.monotonic()))
            self._chars += chars
            first = len(self._waiting) == 1
        if first:
            self._wake.set()

    def figures(self) -> WriterFigures:
        """Return what became of entries."""
        with self._lock:
            return WriterFigures(
                self._written,
                len(self._waiting) + self._writing,
                dict(self._lost),
                self._failing or self._hangs(),
                dict(self._statuses),
                self._oldest_pending,
            )

    def _hangs(self) -> bool:
        """Whether the thread has waited for the database for long: it neither takes entries nor refuses them."""
        return self._since is not None and time.monotonic() - self._since > _LONG_S

    def stop(self, *, time_s: float = _STOP_S) -> None:
        """Write what waits, within ``time_s`` seconds, and end; the rest is lost and counted."""
        self._ended.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(time_s)
        with self._lock:
            left = len(self._waiting) + self._writing
            self._lost["stopped"] += left
            self._waiting.clear()
        if left:
            log.warning("entries of the review queue are lost at the stop", entries=left)

    # --- the thread ---------------------------------------------------------------------------------------

    def _run(self) -> None:
        ready, failures, counted, cleaned = False, 0, 0.0, 0.0
        while True:
            self._since = time.monotonic()
            try:
                if not ready or self._queue.database.is_gone():
                    ready = False
                    self._queue.database.upgrade()
                    ready = True
                self._write_all()
                now = time.monotonic()
                if now - cleaned >= _CLEAN_S:
                    self._clean()
                    cleaned = now
                if now - counted >= _COUNT_S or not counted:
                    statuses, oldest = self._queue.counts(), self._queue.oldest_pending()
                    with self._lock:
                        self._statuses, self._oldest_pending = statuses, oldest
                    counted = now
                failures = 0
                self._note(failing=False)
            except Exception as error:  # noqa: BLE001 - the thread has to go on whatever a database does
                failures += 1
                self._note(failing=True, error=error)
            self._since = None
            if self._ended.is_set():
                if ready and not failures:
                    self._write_last()
                return
            if failures:
                self._ended.wait(_RETRY_S[min(failures, len(_RETRY_S)) - 1])
            elif self._wake.wait(_COUNT_S):
                self._wake.clear()
                # Others that come at the same time go into the same transaction.
                self._ended.wait(_GATHER_S)

    def _write_last(self) -> None:
        try:
            self._write_all()
        except Exception as error:  # noqa: BLE001 - the process ends; what is lost is counted by ``stop``
            self._note(failing=True, error=error)

    def _write_all(self) -> None:
        while batch := self._taken():
            made: deque[tuple[NewEntry, int, float]] = deque()
            for make, chars, since in batch:
                try:
                    made.append((make(), chars, since))
                except Exception as error:  # noqa: BLE001 - one entry that cannot be made must not hold up the others
                    log.error("an entry for review could not be made", error=type(error).__name__)
                    self._lose("content", 1)
            try:
                self._write(made)
            except QueueUnavailableError:
                self._put_back(made)
                raise
            with self._lock:
                self._writing, self._since = 0, time.monotonic()
            self._observe_delay(time.monotonic() - batch[0][2])

    def _write(self, made: deque[tuple[NewEntry, int, float]]) -> None:
        """Write entries, and take out of ``made`` those that are written or refused."""
        try:
            self._queue.add([entry for entry, _, _ in made])
        except QueueUnavailableError:
            raise
        except Exception as error:  # noqa: BLE001 - something about one of them; the others are fine
            log.error("entries for review are written one by one", error=type(error).__name__)
        else:
            self._count_written(len(made))
            made.clear()
        while made:
            try:
                self._queue.add([made[0][0]])
            except QueueUnavailableError:
                raise
            except Exception:  # noqa: BLE001
                self._lose("database", 1)
            else:
                self._count_written(1)
            made.popleft()

    def _count_written(self, count: int) -> None:
        with self._lock:
            self._written += count

    def _taken(self) -> list[tuple[Callable[[], NewEntry], int, float]]:
        with self._lock:
            batch = [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]
            self._chars -= sum(chars for _, chars, _ in batch)
            self._writing = len(batch)
            return batch

    def _put_back(self, made: Iterable[tuple[NewEntry, int, float]]) -> None:
        """Let entries wait again, as they were made: nothing is made, or counted as lost, twice."""
        again = [(partial(_same, entry), chars, since) for entry, chars, since in made]
        with self._lock:
            self._waiting.extendleft(reversed(again))
            self._chars += sum(chars for _, chars, _ in again)
            self._writing = 0

    def _lose(self, cause: str, count: int) -> None:
        with self._lock:
            self._lost[cause] += count

    def _clean(self) -> None:
        settings, now = self._settings(), time.time()
        while self._queue.drop_texts(before=now - settings.text_retention_days * DAY_S):
            self._write_all()
        while self._queue.delete_old(before=now - settings.retention_days * DAY_S):
            self._write_all()
        while self._queue.delete_beyond(settings.max_entries):
            self._write_all()

    def _note(self, *, failing: bool, error: Exception | None = None) -> None:
        if failing and not self._failing:
            log.error(
                "the review queue takes no entries at present; they wait in memory",
                error=str(error) if isinstance(error, TruthLensError) else type(error).__name__,
            )
        elif not failing and self._failing:
            log.info("the review queue takes entries again")
        self._failing = failing


def _same(entry: NewEntry) -> NewEntry:
    return entry
