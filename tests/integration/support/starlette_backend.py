"""A backend on Starlette and uvicorn, which reads requests as most Python servers do: ``await request.json()``."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tests.fakes.ports import free_port
from tests.integration.support.backend import completion


class StarletteBackend:
    """Answers every POST whose body it can read with ``answer``; 400 else. Runs in a thread of its own."""

    def __init__(self, answer: str) -> None:
        self.received: list[bytes] = []
        self.port = free_port()
        self.reply: Callable[..., Any] | None = None  # of the scripted backends; not used here
        self._answer = answer
        app = Starlette(routes=[Route("/{path:path}", self._respond, methods=["GET", "POST"])])
        self._server = uvicorn.Server(
            uvicorn.Config(app, host="127.0.0.1", port=self.port, log_level="warning", lifespan="off")
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

    async def _respond(self, request: Request) -> Response:
        body = await request.body()
        try:
            value = await request.json()
        except ValueError:
            return JSONResponse({"error": {"message": "not JSON"}}, status_code=400)
        if not isinstance(value, dict):
            return JSONResponse({"error": {"message": "no object"}}, status_code=400)
        self.received.append(body)
        return JSONResponse(completion(self._answer))
