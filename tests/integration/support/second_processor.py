"""Another external processor, as people have them beside TruthLens: it routes requests by a word of the body.

``topic:NAME`` anywhere in a request's body becomes the request header ``x-domain: NAME``. Everything else passes as it is:
headers, bodies in any mode, trailers. What it was sent goes to a file, one JSON line a message.

In full duplex it does as endpoint pickers of inference schedulers do: it answers a request's headers once it has the whole body,
which it then gives back in pieces, and passes an answer piece by piece.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
from pathlib import Path
from typing import Any

import grpc
from google.protobuf.internal.encoder import _VarintBytes

from truthlens.gateway import wire
from truthlens.gateway._pb import ext_proc_pb2 as pb

_TOPIC = re.compile(rb"topic:([a-z-]+)")
_PIECE = 64 << 10
_OPTIONS = [("grpc.max_receive_message_length", 64 << 20), ("grpc.max_send_message_length", 64 << 20),
            ("grpc.http2.min_ping_interval_without_data_ms", 1000), ("grpc.http2.max_ping_strikes", 0)]  # fmt: skip


class SecondProcessor:
    """Acknowledges every message at once, response headers after ``late_s``."""

    def __init__(self, messages: Path, *, late_s: float) -> None:
        self._messages = messages
        self._late_s = late_s

    async def process(self, _requests: Any, context: grpc.aio.ServicerContext[Any, Any]) -> None:
        """One exchange."""
        held = bytearray()
        duplex = False
        try:
            while (message := await context.read()) is not grpc.aio.EOF:
                phase = message.WhichOneof("request")
                body = getattr(message, phase).body if phase.endswith("_body") else b""
                self._note(phase, len(body))
                duplex = duplex or message.protocol_config.request_body_mode == pb.FULL_DUPLEX_STREAMED
                if duplex and phase.startswith("request_") and phase != "request_trailers":
                    held += body
                    if getattr(message, phase).end_of_stream:
                        await context.write(_routed(bytes(held)))
                        for start in range(0, len(held), _PIECE) if phase == "request_body" else ():
                            end = start + _PIECE >= len(held)
                            await context.write(
                                _given_back(phase, bytes(held[start : start + _PIECE]), end=end)
                            )
                    continue
                if duplex and phase == "response_body":
                    await context.write(_given_back(phase, body, end=message.response_body.end_of_stream))
                    continue
                response = pb.ProcessingResponse()
                getattr(response, phase).SetInParent()
                if phase == "request_body" and (topic := _TOPIC.search(body)):
                    mutation = response.request_body.response.header_mutation
                    header = mutation.set_headers.add().header
                    header.key, header.raw_value = "x-domain", topic[1]
                if phase == "response_headers":
                    await asyncio.sleep(self._late_s)
                await context.write(response)
        except asyncio.CancelledError:
            return

    def _note(self, phase: str, size: int) -> None:
        with self._messages.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"phase": phase, "bytes": size}) + "\n")


def _routed(body: bytes) -> pb.ProcessingResponse:
    response = pb.ProcessingResponse()
    response.request_headers.SetInParent()
    if topic := _TOPIC.search(body):
        header = response.request_headers.response.header_mutation.set_headers.add().header
        header.key, header.raw_value = "x-domain", topic[1]
    return response


def _given_back(phase: str, body: bytes, *, end: bool) -> pb.ProcessingResponse:
    """A piece of a body in full duplex: field 3 of BodyMutation, of the shape of HttpBody, which our own protocol has no use for."""
    response = pb.ProcessingResponse()
    piece = pb.HttpBody(body=body, end_of_stream=end).SerializeToString()
    mutation = getattr(response, phase).response.body_mutation
    mutation.MergeFromString(b"\x1a" + _VarintBytes(len(piece)) + piece)
    return response


async def main(address: str, processor: SecondProcessor) -> None:
    """Serve until the process ends."""
    server = grpc.aio.server(options=_OPTIONS)
    handler = grpc.stream_stream_rpc_method_handler(
        processor.process, pb.ProcessingRequest.FromString, pb.ProcessingResponse.SerializeToString
    )
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(wire.SERVICE, {"Process": handler}),)
    )
    server.add_insecure_port(address)
    await server.start()
    await server.wait_for_termination()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("messages", type=Path)
    parser.add_argument("--late", type=float, default=0.0)
    asked = parser.parse_args()
    asyncio.run(main(asked.address, SecondProcessor(asked.messages, late_s=asked.late)))
