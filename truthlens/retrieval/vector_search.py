"""Hold what sources that search by vectors share: options, bounds of passages, threads."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Literal, TypeVar

import pydantic

from truthlens.core.deadline import Deadline
from truthlens.core.records.retrieval import FoundPassage, SearchResult
from truthlens.core.registry import SourceOptions
from truthlens.retrieval.embeddings import EmbeddingOptions
from truthlens.retrieval.interfaces import SourceError

MOST_TEXT_CHARS = 8_000
"""Of a longer text so many characters are given."""

MOST_TITLE_CHARS = 500
MOST_ID_CHARS = 500

_T = TypeVar("_T")


class VectorSourceOptions(SourceOptions):
    """Options of a source that searches by vectors."""

    auth: Literal["none"] = pydantic.Field(
        default="none", description="none: the client's own Authorization header never goes to this source."
    )
    embeddings: EmbeddingOptions | None = pydantic.Field(
        default=None,
        description="The server that makes vectors of questions, the one that made those of the passages;"
        " without it the bundled sentence model does (English, 384 dimensions).",
    )


@asynccontextmanager
async def in_time(deadline: Deadline) -> AsyncIterator[None]:
    """Cancel what runs inside at the deadline.

    Raises:
        SourceError: the time was over.
    """
    try:
        async with asyncio.timeout(deadline.remaining_s):
            yield
    except TimeoutError:
        raise SourceError(SearchResult.TIMEOUT) from None


def found_passage(
    text: str, id_: str, *, title: object, parent_id: object, score: float
) -> FoundPassage | None:
    """Return a passage within bounds; a title that is no text is left out.

    It is ``None`` where there is no text, or where the score is no number, as that of a stored vector of zeros.

    Raises:
        SourceError: an id is empty or longer than ``MOST_ID_CHARS``.
    """
    if not text.strip() or not math.isfinite(score):
        return None
    parent = "" if parent_id is None else str(parent_id)
    if not id_ or len(id_) > MOST_ID_CHARS or len(parent) > MOST_ID_CHARS:
        raise SourceError(
            SearchResult.BAD_RESPONSE, f"an id is empty or longer than {MOST_ID_CHARS} characters"
        )
    heading = title[:MOST_TITLE_CHARS] if isinstance(title, str) else ""
    return FoundPassage(text[:MOST_TEXT_CHARS], id_, heading, parent, score)


class BlockingCalls:
    """Runs calls that block on threads of its own.

    Args:
        name: of the threads.
        threads: how many calls run at once.
        waiting: how many more may wait; further ones are refused at once.
    """

    def __init__(self, name: str, *, threads: int, waiting: int) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._places = threading.Semaphore(threads + waiting)
        self._closed = False

    async def run(self, call: Callable[[], _T]) -> _T:
        """Return what ``call`` returns; cancelled, a call that waits never runs, and one that runs is left.

        Raises:
            SourceError: too many calls wait, or the threads are closed.
        """
        if not self._places.acquire(blocking=False):
            raise SourceError(SearchResult.OVERLOADED, "too many searches wait for a thread")
        try:
            future = self._pool.submit(call)
        except RuntimeError:
            self._places.release()
            raise SourceError(SearchResult.UNAVAILABLE, "the source is closed") from None
        future.add_done_callback(lambda _: self._places.release())
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if future.cancelled() and task is not None and not task.cancelling():
                raise SourceError(SearchResult.UNAVAILABLE, "the source was closed") from None
            raise

    async def aclose(self, last: Callable[[], object] | None = None) -> None:
        """Take no more calls; threads end when their calls do.

        Args:
            last: called after all others, and waited for; without it those that wait never run.
        """
        closed, self._closed = self._closed, True
        if last is not None and not closed:
            future = self._pool.submit(last)
            self._pool.shutdown(wait=False)
            await asyncio.wrap_future(future)
        self._pool.shutdown(wait=False, cancel_futures=True)
