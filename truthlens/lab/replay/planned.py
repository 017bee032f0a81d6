"""Capture a planned set: exchanges that are written down in a file, taken through a policy here, without a gateway."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pydantic

from truthlens.core.records.exchange import RequestHead, ResponseHead
from truthlens.lab.data.dataset import DataError, numbered_lines
from truthlens.lab.replay.passing import passed
from truthlens.process.capture.capture import Capture
from truthlens.process.composition import composed
from truthlens.process.settings import Settings
from truthlens.telemetry.metrics import Metrics

_JSON = {"content-type": "application/json"}


class _Chat(pydantic.BaseModel):
    """A request, and the response that it got: a completion, or the text of its answer."""

    request: dict[str, Any]
    response: dict[str, Any] | str
    path: str = "/v1/chat/completions"
    headers: dict[str, str] = {}
    route: dict[str, str] = {}


class _Labelled(pydantic.BaseModel):
    """A labelled row, or what ``detect`` reads: an answer with its evidence."""

    context: list[str] | str
    query: str = ""
    response: str


class PlannedExchange(pydantic.BaseModel):
    """A request and its response, as bytes of JSON."""

    head: RequestHead
    request: bytes
    response: bytes


def planned(files: Sequence[Path], *, limit: int | None = None) -> Iterator[PlannedExchange]:
    """Yield the exchanges of JSON lines, of each file the first ``limit``.

    Raises:
        DataError: a line is no exchange; the message has file and line.
    """
    for file in files:
        for count, (number, line) in enumerate(numbered_lines(file)):
            if limit is not None and count >= limit:
                break
            yield _read(line, f"{file}, line {number}")


async def capture_planned(
    exchanges: Iterable[PlannedExchange], settings: Settings, *, progress: Any = lambda: None
) -> tuple[int, int]:
    """Take exchanges through the policy of ``settings`` and capture them; return how many were, and how many were not.

    Raises:
        PolicyError: the policy cannot be used.
        StartError: the file cannot be written.
    """
    assert settings.capture is not None
    signals = Metrics()
    capture = Capture.opened(settings.capture, signals)
    built = await composed(settings, signals, capture.seams)
    count = 0
    try:
        for each in exchanges:
            await passed(built.pipeline, (each.head, each.request), (ResponseHead(200, _JSON), each.response))
            count += 1
            progress()
    finally:
        await built.aclose()
        capture.close()
    kept = capture.kept
    return kept, count - kept


def _read(line: str, place: str) -> PlannedExchange:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"{place}: it is no JSON") from error
    try:
        chat = (
            _Chat.model_validate(row)
            if isinstance(row, dict) and "request" in row
            else _chat(_Labelled.model_validate(row))
        )
    except pydantic.ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        where = ".".join(map(str, first["loc"])) or "the line"
        raise DataError(
            f'{place}: {where}: {first["msg"]}; a line is {{"request": {{…}}, "response": {{…}} or text}}, or {{"context", "query",'
            ' "response"}'
        ) from error
    head = RequestHead(
        "POST", chat.path, _JSON | {name.lower(): value for name, value in chat.headers.items()}, chat.route
    )
    response = chat.response
    if isinstance(response, str):
        message = {"role": "assistant", "content": response}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        response = {
            "id": "planned",
            "object": "chat.completion",
            "model": chat.request.get("model", ""),
            "choices": [choice],
        }
    return PlannedExchange(
        head=head, request=json.dumps(chat.request).encode(), response=json.dumps(response).encode()
    )


def _chat(row: _Labelled) -> _Chat:
    documents = [row.context] if isinstance(row.context, str) else row.context
    message = {"role": "user", "content": row.query}
    return _Chat(request={"messages": [message], "documents": documents}, response=row.response)
