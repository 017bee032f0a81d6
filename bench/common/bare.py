"""The least that a Python external processor can do: acknowledge every message.

What TruthLens is compared with.

Asks for both bodies like TruthLens, or for none where the request has ``x-domain: bypass``, and sets one
response header. It health-checks as serving and knows no policy, no JSON and no log.
"""

from __future__ import annotations

import argparse
import asyncio
from typing import Any

import grpc
import uvloop
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from truthlens.gateway import wire
from truthlens.gateway._pb import ext_proc_pb2 as pb


async def process(_requests: Any, context: grpc.aio.ServicerContext) -> None:
    bypass = False
    try:
        while (message := await context.read()) is not grpc.aio.EOF:
            response = pb.ProcessingResponse()
            match message.WhichOneof("request"):
                case "request_headers":
                    bypass = any(
                        h.key == "x-domain" and h.raw_value == b"bypass"
                        for h in message.request_headers.headers.headers
                    )
                    response.request_headers.response.SetInParent()
                    if bypass:
                        response.mode_override.response_header_mode = pb.ProcessingMode.SEND
                case "request_body":
                    response.request_body.response.SetInParent()
                case "response_headers":
                    header = response.response_headers.response.header_mutation.set_headers.add().header
                    header.key, header.raw_value = "x-bare", b"1"
                    if not bypass:
                        response.mode_override.response_header_mode = pb.ProcessingMode.SEND
                        response.mode_override.response_body_mode = pb.BUFFERED
                case "response_body":
                    header = response.response_body.response.header_mutation.set_headers.add().header
                    header.key, header.raw_value = "x-bare-body", b"1"
            await context.write(response)
    except asyncio.CancelledError:
        return


async def serve(address: str, process: Any = process) -> None:
    """Serve ``process`` for ever."""
    server = grpc.aio.server(options=[("grpc.so_reuseport", 0), ("grpc.http2.max_ping_strikes", 0)])
    handler = grpc.stream_stream_rpc_method_handler(
        process, pb.ProcessingRequest.FromString, pb.ProcessingResponse.SerializeToString
    )
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(wire.SERVICE, {"Process": handler}),)
    )
    servicer = health.aio.HealthServicer()
    await servicer.set("", health_pb2.HealthCheckResponse.SERVING)
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    server.add_insecure_port(address)
    await server.start()
    await server.wait_for_termination()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    uvloop.run(serve(parser.parse_args().address))
