"""Read files of captured exchanges, as ``process.capture.lines`` writes them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pydantic

from truthlens.core.errors import TruthLensError
from truthlens.core.records.calls import CallFailure, Role
from truthlens.core.records.exchange import RequestHead, ResponseHead
from truthlens.core.records.retrieval import SearchResult
from truthlens.process.capture.lines import FORMAT, FORMAT_KEY


class CaptureError(TruthLensError):
    """A file holds no captured exchanges that can be read; the message names file and line, and quotes no text."""


class _KeptModel(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(frozen=True)


class KeptRequest(_KeptModel):
    """What the client sent; ``body`` is its JSON."""

    method: str
    path: str
    headers: dict[str, str] = {}
    route: dict[str, str] = {}
    body: str

    @property
    def head(self) -> RequestHead:
        """All but the body."""
        return RequestHead(self.method, self.path, self.headers, self.route)


class KeptResponse(_KeptModel):
    """What the backend gave; ``body`` is JSON or an event stream."""

    status: int
    headers: dict[str, str] = {}
    body: str

    @property
    def head(self) -> ResponseHead:
        """All but the body."""
        return ResponseHead(self.status, self.headers)


class KeptReply(_KeptModel):
    """What a model said to what ``key`` stands for (``like`` without its figures), or why it said nothing."""

    key: str
    like: str = ""
    model: str
    role: Role
    text: str = ""
    finish_reason: str | None = None
    usage: tuple[int, int, bool, bool] = (0, 0, False, False)
    logprobs: tuple[tuple[str, float, tuple[tuple[str, float], ...]], ...] = ()
    failure: CallFailure | None = None
    code: str = ""
    window: int | None = None


class KeptPassage(_KeptModel):
    """A passage that a source gave."""

    text: str
    id: str = ""
    title: str = ""
    parent_id: str = ""
    score: float | None = None


class KeptSearch(_KeptModel):
    """What a search gave, or a use of a tool (``k`` 0)."""

    source: str
    text: str
    k: int
    result: SearchResult
    passages: tuple[KeptPassage, ...] = ()


class KeptTool(_KeptModel):
    """A tool that a source offered."""

    source: str
    name: str
    description: str = ""
    input_schema: dict[str, Any] = {}
    gives_evidence: bool = False


class KeptExchange(_KeptModel):
    """One captured exchange; ``outcome`` is what became of it (``process.capture.lines.outcome_content``)."""

    id: str
    time: str = ""
    redacted: bool = False
    request: KeptRequest
    response: KeptResponse | None
    replies: tuple[KeptReply, ...] = ()
    windows: dict[str, int | None] = {}
    tools: tuple[KeptTool, ...] = ()
    searches: tuple[KeptSearch, ...] = ()
    outcome: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Captured:
    """All exchanges of some files, in order; ``unfinished`` names the files whose last line was not written to its end."""

    exchanges: tuple[KeptExchange, ...]
    unfinished: tuple[str, ...] = ()
    scoring_versions: frozenset[int] = frozenset()


def read_captures(files: Sequence[Path], *, limit: int | None = None) -> Captured:
    """Return the exchanges of ``files``, plain or ``.gz``; of each the first ``limit``.

    Raises:
        CaptureError: a file is no capture, of another format, or has a line that cannot be read.
    """
    exchanges: list[KeptExchange] = []
    unfinished: list[str] = []
    versions: set[int] = set()
    for file in files:
        count = 0
        for number, line, whole in _lines(file):
            place = f"{file}, line {number}"
            try:
                read = json.loads(line)
            except (ValueError, RecursionError) as error:
                if not whole and number > 1:
                    unfinished.append(str(file))
                    break
                if number > 1:
                    raise CaptureError(
                        f"{place}: it is no JSON; the file was damaged or edited by hand"
                    ) from error
                read = None
            if isinstance(read, dict) and FORMAT_KEY in read:
                versions.add(_checked_header(read, place))
            elif number == 1:
                raise CaptureError(
                    f'{place}: it is no capture of TruthLens, which begins with a line {{"{FORMAT_KEY}": {FORMAT}, …}};'
                    " make one with `truthlens serve --capture FILE` or `truthlens capture`"
                )
            elif limit is None or count < limit:
                exchanges.append(_exchange(read, place))
                count += 1
    if not exchanges:
        raise CaptureError(f"{', '.join(map(str, files))}: there is no captured exchange in it")
    return Captured(tuple(exchanges), tuple(unfinished), frozenset(versions))


def _lines(file: Path) -> Iterator[tuple[int, str, bool]]:
    """Yield number, text and whether it was ended, of each line."""
    with gzip.open(file, "rb") if file.suffix == ".gz" else file.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            try:
                text = line.decode()
            except UnicodeDecodeError as error:
                if line.endswith(b"\n"):
                    raise CaptureError(f"{file}, line {number}: it is not UTF-8 text") from error
                text = ""  # cut within a character
            yield number, text, line.endswith(b"\n")


def _checked_header(read: dict[str, Any], place: str) -> int:
    """Return the scoring version of a run."""
    if read[FORMAT_KEY] != FORMAT:
        raise CaptureError(
            f"{place}: format {read[FORMAT_KEY]!r}, made by TruthLens {read.get('version')!r}; this one reads format {FORMAT};"
            " replay it with that version, or capture again"
        )
    scoring = read.get("scoring_version")
    return scoring if isinstance(scoring, int) else 0


def _exchange(read: Any, place: str) -> KeptExchange:
    try:
        return KeptExchange.model_validate(read)
    except pydantic.ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the line"
        raise CaptureError(
            f"{place}: {where}: {first['msg']}; the file was damaged or edited by hand"
        ) from error
