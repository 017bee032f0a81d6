"""The source of evidence `folder`: searches its index, and keeps it up to date while the process runs."""

from __future__ import annotations

import asyncio
import threading
import time
import weakref
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import structlog

from truthlens.core.deadline import Deadline
from truthlens.core.errors import StartError, StoppedError, TruthLensError
from truthlens.core.records.retrieval import FoundPassage, Search, SearchResult
from truthlens.retrieval.interfaces import SourceError
from truthlens.retrieval.sources.folder.files import find_files
from truthlens.retrieval.sources.folder.formats import kind_of, missing_library
from truthlens.retrieval.sources.folder.index import IndexUnusableError, reading, search_index, setting
from truthlens.retrieval.sources.folder.options import FILTER_FIELDS, FolderOptions
from truthlens.retrieval.sources.folder.updating import UpdateReport, update_index

log = structlog.get_logger("truthlens.retrieval")

_LOOK_AGAIN_S = 5.0
# Looks at a folder in which nothing changes take at most this share of a core, or are so many seconds apart.
_LOOKING_SHARE = 0.02
_LONGEST_PAUSE_S = 60.0
# With more files the first index is not made beside the answers: `truthlens index` makes it.
_MOST_FILES_AT_START = 2000
_THREADS = 4


class FolderSource:
    """A folder of files, searched by their words.

    Args:
        name: of the source, in log lines.
        options: from the policy.
        base: the policy file's folder, for relative paths.
        look_again_s: seconds between two looks for changes.

    Raises:
        StartError: The folder cannot be read, or a library for files that it holds is missing.
    """

    def __init__(
        self, name: str, options: FolderOptions, *, base: Path, look_again_s: float = _LOOK_AGAIN_S
    ) -> None:
        root = options.root(base)
        found, _ = find_files(root, options.patterns, options.max_files)
        for kind in {kind_of(each.path) for each in found}:
            if library := missing_library(kind):
                raise StartError(
                    f"the folder {root} holds {kind} files, for which {library} is missing; install it with: "
                    "pip install 'truthlens[documents]', or leave them out of `patterns`"
                )
        self._follower = _Follower(name, root, options.index_file(base), options, look_again_s)
        if len(found) > _MOST_FILES_AT_START:
            self._follower.wait_for_command()
        self._pool = ThreadPoolExecutor(
            min(options.max_concurrency, _THREADS), thread_name_prefix=f"truthlens-folder-{name}"
        )
        # Nobody closes a source whose policy is replaced.
        self._finalizer = weakref.finalize(self, self._follower.stopped.set)
        self._thread = threading.Thread(
            target=self._follower.run, name=f"truthlens-index-{name}", daemon=True
        )
        self._thread.start()

    @property
    def revision(self) -> str:
        """Return what the files' contents come to, as they were at the last look."""
        return self._follower.revision

    async def search(self, search: Search, *, k: int, deadline: Deadline) -> Sequence[FoundPassage]:
        """Return the pieces that hold most of the words of a question or claim.

        ``filter`` may name the subfolder that they come from.

        Raises:
            SourceError: ``refused`` for another field of ``filter``, ``timeout``, or ``unavailable`` without
                an index.
        """
        if search.filter.keys() - FILTER_FIELDS:
            raise SourceError(SearchResult.REFUSED, "a folder can be filtered by the field 'folder' alone")
        given_up = threading.Event()

        def stop() -> bool:
            return given_up.is_set() or deadline.passed

        def searched() -> Sequence[FoundPassage]:
            if stop():
                raise StoppedError
            folder = search.filter.get("folder")
            return search_index(self._follower.file, search.text, k=k, folder=folder, stop=stop)

        try:
            # The thread looks at the deadline, too; a disk that hangs holds it longer.
            async with asyncio.timeout(deadline.remaining_s):
                return await asyncio.get_running_loop().run_in_executor(self._pool, searched)
        except (TimeoutError, StoppedError):
            raise SourceError(SearchResult.TIMEOUT) from None
        except IndexUnusableError as error:
            raise SourceError(SearchResult.UNAVAILABLE, self._follower.problem or str(error)) from error
        finally:
            given_up.set()

    async def aclose(self) -> None:
        """End the threads; an index that is being made stays as it was before."""
        self._finalizer()
        self._pool.shutdown(wait=False, cancel_futures=True)
        await asyncio.to_thread(self._thread.join)


class _Follower:
    """Keeps an index up to date on a thread; it does not hold the source, so that a dropped one ends it."""

    def __init__(
        self, name: str, root: Path, file: Path, options: FolderOptions, look_again_s: float
    ) -> None:
        self._log = log.bind(source=name)
        self.root, self.file, self._options, self._look_again_s = root, file, options, look_again_s
        self.stopped = threading.Event()
        # What the state of the index is while it cannot be searched.
        self.problem = "the index is being made"
        self.revision = ""
        self._makes = True
        self._told: object = None
        try:
            with reading(file) as connection:
                self.revision = setting(connection, "revision")
        except IndexUnusableError:
            pass

    def wait_for_command(self) -> None:
        """Make no index where there is none: there are too many files to read beside the answers."""
        self._makes = False
        if not self.revision:
            many = f"there are more than {_MOST_FILES_AT_START} files"
            self.problem = f"{many}; make the index with: truthlens index"
            self._tell(self.problem)

    def run(self) -> None:
        """Follow the folder until it is stopped."""
        rebuild = True
        while not self.stopped.is_set():
            began = time.monotonic()
            report = self._look(rebuild=rebuild) if self._makes or self.file.exists() else None
            pause = self._look_again_s
            if report is not None:
                rebuild = False
                if not report.read and not report.removed:
                    pause = max(pause, min((time.monotonic() - began) / _LOOKING_SHARE, _LONGEST_PAUSE_S))
            self.stopped.wait(pause)

    def _look(self, *, rebuild: bool) -> UpdateReport | None:
        """Bring the index up to date and return what it is now; ``None`` where that did not work."""
        try:
            report = update_index(
                self.root, self.file, self._options, rebuild=rebuild, stop=self.stopped.is_set
            )
        except StoppedError:
            return None
        except TruthLensError as error:
            self._tell(str(error))
            return None
        except OSError as error:
            self._tell(f"the index {self.file} cannot be made: {error.strerror or type(error).__name__}")
            return None
        self.revision, self.problem = report.revision, ""
        self._tell_of(report)
        return report

    def _tell_of(self, report: UpdateReport) -> None:
        reasons = Counter(each.reason for each in report.skipped)
        if report.read or report.removed or reasons != self._told:
            self._told = reasons
            self._log.info(
                "folder_indexed",
                files=report.files,
                passages=report.pieces,
                read=report.read,
                removed=report.removed,
                skipped=dict(reasons),
            )

    def _tell(self, problem: str) -> None:
        """Log what is wrong, once as long as it stays."""
        if self._told != problem:
            self._told = problem
            self._log.warning("folder_not_indexed", problem=problem)
