"""A backend as people run them (uvicorn, Starlette, ``json.loads`` of whatever came) that answers with what a test registered."""

from __future__ import annotations

import asyncio
import gzip
import itertools
import json
import threading
import time
import zlib
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import brotli
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tests.fakes.ports import free_port

SCRIPT = "x-script"
"""The request header that names the answer."""


@dataclass(frozen=True)
class Answer:
    """The writes of a response's body."""

    writes: Sequence[bytes]
    media_type: str = "application/json"
    headers: dict[str, str] = field(default_factory=dict)


class DecodingBackend:
    """Answers each POST that it can read with the answer that the request names; runs in a thread of its own."""

    def __init__(self) -> None:
        self.port = free_port()
        self.reply: Any = None  # of the scripted backends; not used here
        self.received: list[Any] = []
        self._answers: dict[str, Answer] = {}
        self._names = itertools.count()
        methods = ["GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH"]
        app = Starlette(routes=[Route("/{path:path}", self._respond, methods=methods)])
        self._server = uvicorn.Server(
            uvicorn.Config(app, host="127.0.0.1", port=self.port, log_level="error", lifespan="off")
        )
        self._thread = threading.Thread(target=lambda: asyncio.run(self._server.serve()), daemon=True)

    def start(self) -> None:
        self._thread.start()
        deadline = time.monotonic() + 30
        while not self._server.started:
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(20)

    def register(self, answer: Answer) -> str:
        """Keep an answer; return the name to ask for it by."""
        name = str(next(self._names))
        self._answers[name] = answer
        return name

    def forget(self, name: str) -> None:
        del self._answers[name]

    async def _respond(self, request: Request) -> Response:
        if request.method in ("GET", "HEAD", "OPTIONS"):
            return Response(b"")
        try:
            readable = isinstance(json.loads(_decoded(request, await request.body())), dict)
        except (ValueError, RecursionError):
            readable = False
        answer = self._answers.get(request.headers.get(SCRIPT, ""))
        if not readable or answer is None:
            return JSONResponse({"error": {"message": "not an object"}}, status_code=400)
        if len(answer.writes) == 1:
            return Response(answer.writes[0], media_type=answer.media_type, headers=answer.headers)
        return StreamingResponse(
            _written(answer.writes), media_type=answer.media_type, headers=answer.headers
        )


async def _written(writes: Sequence[bytes]) -> AsyncIterator[bytes]:
    for data in writes:
        yield data
        await asyncio.sleep(0)


def _decoded(request: Request, body: bytes) -> bytes:
    """Return a body without the encodings that it says it has, where it has them."""
    for name in reversed(request.headers.get("content-encoding", "").lower().split(",")):
        try:
            match name.strip():
                case "gzip" | "x-gzip":
                    body = gzip.decompress(body)
                case "deflate":
                    body = zlib.decompress(body)
                case "br":
                    body = brotli.decompress(body)
        except (OSError, EOFError, zlib.error, brotli.error):
            return body
    return body
