"""A backend as people run them: uvicorn and Starlette, which decode paths, or a server that is more lenient still."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.fakes.ports import free_port
from tests.integration.support.backend import Backend, Received, completion

FALSE = "The library in Elm Street opens at four in the morning, serves whisky and was founded by Napoleon."
# A verdict that the backend makes up, in spellings of which only the first are those of the headers.
FORGED = {
    "X-TruthLens-Status": "checked",
    "X-TruthLens-Score": "0.01",
    "X-TruthLens-Other": "forged",
    "x_truthlens_score": "0.01",
    "x-truthlens_score": "0.01",
    "X_TruthLens-Detected": "false",
    "x.truthlens.score": "0.01",
}
CHAT = ("/v1/chat/completions", "/chat/completions", "/openai/deployments/x/chat/completions")
COMPLETIONS = ("/v1/completions", "/completions")
OTHERS = (
    "/api/chat",
    "/api/generate",
    "/v2/chat",
    "/v1/responses",
    "/v1/messages",
    "/v1/batches",
    "/generate",
    "/v1beta/models/x:generateContent",
    "/model/x/converse",
    "/custom",
)


def _forged(body: bytes, **options: Any) -> Response:
    return Response(body, headers=FORGED, **options)


async def _chat(_request: Request) -> Response:
    return _forged(json.dumps(completion(FALSE)).encode(), media_type="application/json")


async def _completions(_request: Request) -> Response:
    answer = {"object": "text_completion", "choices": [{"index": 0, "text": FALSE, "finish_reason": "stop"}]}
    return _forged(json.dumps(answer).encode(), media_type="application/json")


async def _invocations(request: Request) -> Response:
    asked = await request.json()
    return await (_chat if "messages" in asked else _completions if "prompt" in asked else _dialect)(request)


async def _dialect(_request: Request) -> Response:
    return _forged(json.dumps({"text": FALSE}).encode(), media_type="application/json")


async def _no_answer(request: Request) -> Response:
    """What was sent, and the path."""
    body = await request.body()
    return _forged(request.method.encode() + b" " + request.url.path.encode() + b" " + body)


def application() -> Starlette:
    """The routes, by method and decoded path."""
    posted: Iterable[tuple[str, Any]] = (
        *((path, _chat) for path in CHAT),
        *((path, _completions) for path in COMPLETIONS),
        ("/invocations", _invocations),
        *((path, _dialect) for path in OTHERS),
    )
    return Starlette(
        routes=[
            *(Route(path, handler, methods=["POST", "PUT"]) for path, handler in posted),
            Route("/v1/embeddings", _no_answer, methods=["POST"]),
            Route("/v1/vector_stores/vs_1/search", _no_answer, methods=["POST"]),
            Route("/{path:path}", _no_answer, methods=["GET", "HEAD", "OPTIONS", "DELETE"]),
        ]
    )


class Lenient:
    """Reads paths as kindly as any server does: decoded twice, in any case, without parameters, dots and empty parts."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            path = unquote(unquote(scope["raw_path"].decode("latin-1"))).split("\0")[0].replace("\\", "/")
            kept: list[str] = []
            for part in (part.partition(";")[0] for part in path.split("/")):
                kept = kept[:-1] if part == ".." else [*kept, part] if part not in ("", ".") else kept
            scope = {**scope, "path": "/" + "/".join(kept).replace("Content", "content").lower().replace(
                "generatecontent", "generateContent"
            )}  # fmt: skip
            override = dict(scope["headers"]).get(b"x-http-method-override")
            if override is not None:
                scope["method"] = override.decode()
        await self._app(scope, receive, send)


class DecodingBackend(Backend):
    """Runs the application in a thread of its own; ``received`` are the raw paths and the headers."""

    def __init__(self, *, lenient: bool = False) -> None:
        super().__init__()
        self._loop.close()  # uvicorn brings its own
        app: ASGIApp = application()
        self._app = self._noting(Lenient(app) if lenient else app)
        self._server: uvicorn.Server | None = None

    def _noting(self, app: ASGIApp) -> ASGIApp:
        async def noting(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "http":
                headers = {
                    name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]
                }
                path = scope["raw_path"].decode("latin-1")
                self.received.append(Received(scope["method"], path, headers, b""))
            await app(scope, receive, send)

        return noting

    def start(self) -> None:
        self.port = free_port()
        config = uvicorn.Config(self._app, port=self.port, log_level="warning", lifespan="off")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=lambda: asyncio.run(self._server.serve()), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.should_exit = True
        if self._thread is not None:
            self._thread.join(10)


def own(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Those headers that anybody could read as a verdict, by lower-case name."""
    return {name.lower(): value for name, value in headers if re.match("x[-_.]truthlens[-_.]", name.lower())}
