"""Acknowledge every message of a stream at once: the least that a Python processor can do.

Like ``bench/common/bare.py``, but the answer is asked for as ``STREAMED``. What TruthLens's streams are compared with.
"""

from __future__ import annotations

import argparse
import asyncio
from typing import Any

import grpc
import uvloop

from bench.common.bare import serve
from truthlens.gateway._pb import ext_proc_pb2 as pb


async def process(_requests: Any, context: grpc.aio.ServicerContext) -> None:
    try:
        while (message := await context.read()) is not grpc.aio.EOF:
            response = pb.ProcessingResponse()
            kind = message.WhichOneof("request")
            getattr(response, kind).response.SetInParent()
            if kind == "response_headers":
                header = response.response_headers.response.header_mutation.set_headers.add().header
                header.key, header.raw_value = "x-bare", b"1"
                response.mode_override.response_header_mode = pb.ProcessingMode.SEND
                response.mode_override.response_body_mode = pb.STREAMED
            await context.write(response)
    except asyncio.CancelledError:
        return


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    uvloop.run(serve(parser.parse_args().address, process))
