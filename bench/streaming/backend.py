"""Serve streams whose last frame says when each token was written, so that a client can measure its delay.

Frames of tokens differ in their text alone, as those of vLLM do.

Deliberately as light as Python allows and in a process of its own: it takes its share of the machine on every
path alike. The request's header ``x-bench`` says what to write: ``{"tokens": 100, "interval_s": 0.02,
"first_s": 0.02, "stall_s": 0}``; token number n is due ``first_s + n * interval_s`` after the request,
however late the one before was. After the last token the finish frame and the done marker follow at once, or
``stall_s`` later. A request without ``stream`` gets the text whole.
"""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass
from typing import cast

import uvloop

from bench.common.script import command
from bench.streaming.texts import ENDLESS, WORDS

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_CHUNK = (
    '{"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1700000000,"model":"bench","choices":'
    '[{"index":0,"delta":%s,"logprobs":null,"finish_reason":%s}]%s}'
)


@dataclass(frozen=True, slots=True)
class Timing:
    """What a request asks for; times in seconds. ``endless``: no sentence ends."""

    tokens: int = 100
    interval_s: float = 0.02
    first_s: float = 0.02
    stall_s: float = 0.0
    endless: bool = False

    def word(self, number: int) -> str:
        """Return the token number ``number``."""
        words = ENDLESS if self.endless else WORDS
        return words[number % len(words)]


class Connection(asyncio.Protocol):
    """One keep-alive connection; requests come one after the other."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._buffer = b""
        self._transport: asyncio.Transport | None = None
        self._due: asyncio.TimerHandle | None = None
        self._sent: list[int] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def connection_lost(self, _error: Exception | None) -> None:
        """Stop writing."""
        if self._due is not None:
            self._due.cancel()

    def data_received(self, data: bytes) -> None:
        """Answer each request once its body is there."""
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            lines = self._buffer[:end].decode("latin-1").split("\r\n")[1:]
            headers = {
                name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
            }
            total = end + 4 + int(headers.get("content-length", 0))
            if len(self._buffer) < total:
                return
            body, self._buffer = self._buffer[end + 4 : total], self._buffer[total:]
            self._answer(headers, json.loads(body or b"{}"))

    def _answer(self, headers: dict[str, str], body: dict[str, object]) -> None:
        timing = Timing(**json.loads(headers.get("x-bench", "{}")))
        if body.get("stream"):
            assert self._transport is not None
            self._transport.write(HEAD)
            self._sent = []
            self._token(timing, 0, self._loop.time() + timing.first_s)
        else:
            self._whole(timing)

    def _token(self, timing: Timing, number: int, due: float) -> None:
        self._due = self._loop.call_at(due, self._write_token, timing, number, due)

    def _write_token(self, timing: Timing, number: int, due: float) -> None:
        delta = {"role": "assistant"} if number == 0 else {}
        self._sent.append(time.monotonic_ns())
        self._write(frame(json.dumps({**delta, "content": timing.word(number)}), "null"))
        if number + 1 < timing.tokens:
            self._token(timing, number + 1, due + timing.interval_s)
        elif timing.stall_s:
            self._due = self._loop.call_later(timing.stall_s, self._finish)
        else:
            self._finish()

    def _finish(self) -> None:
        self._write(frame("{}", '"stop"', f',"sent":{json.dumps(self._sent)}'))
        self._write(b"data: [DONE]\n\n")
        assert self._transport is not None
        self._transport.write(b"0\r\n\r\n")

    def _write(self, frame: bytes) -> None:
        assert self._transport is not None
        self._transport.write(b"%x\r\n%s\r\n" % (len(frame), frame))

    def _whole(self, timing: Timing) -> None:
        text = "".join(timing.word(number) for number in range(timing.tokens))
        message = {"role": "assistant", "content": text}
        value = {"id": "chatcmpl-bench", "object": "chat.completion", "created": 1700000000, "model": "bench",
                 "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}  # fmt: skip
        data = json.dumps(value).encode()
        assert self._transport is not None
        self._transport.write(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s"
            % (len(data), data)
        )


def frame(delta: str, finish: str, more: str = "") -> bytes:
    """Return a frame with one choice, and ``more`` members behind it."""
    return f"data: {_CHUNK % (delta, finish, more)}\n\n".encode()


async def main(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", port, backlog=512)
    await server.serve_forever()


if __name__ == "__main__":
    parser = command(__doc__, results=False)
    parser.add_argument("port", type=int)
    uvloop.run(main(parser.parse_args().port))
