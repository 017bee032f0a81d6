"""A receiver of OTLP over gRPC and HTTP, of the official messages; it keeps what comes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import grpc
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as logs_pb
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as trace_pb

_PACKAGE = "opentelemetry.proto.collector"
_KINDS: dict[str, tuple[Any, Any]] = {
    "trace": (trace_pb.ExportTraceServiceRequest, trace_pb.ExportTraceServiceResponse),
    "logs": (logs_pb.ExportLogsServiceRequest, logs_pb.ExportLogsServiceResponse),
}
_PATHS = {"/v1/traces": "trace", "/v1/logs": "logs"}


class OtlpReceiver:
    """Both ports of one receiver; ``status`` is what it answers over HTTP."""

    def __init__(self) -> None:
        self.status = 200
        self.requests: list[Any] = []
        self.headers: list[dict[str, str]] = []
        self.raw = b""
        self.http_port = self.grpc_port = 0
        self._lock = threading.Lock()

    def take(self, kind: str, message: Any, headers: dict[str, str]) -> Any:
        """Keep a request, and return the reply to it."""
        with self._lock:
            self.requests.append(message)
            self.headers.append(headers)
            self.raw += message.SerializeToString()
        return _KINDS[kind][1]()

    @property
    def spans(self) -> list[Any]:
        """The spans so far, each with its service in front."""
        return [
            (attributes(group.resource)["service.name"], span)
            for request in list(self.requests)
            if isinstance(request, trace_pb.ExportTraceServiceRequest)
            for group in request.resource_spans
            for scope in group.scope_spans
            for span in scope.spans
        ]

    @property
    def records(self) -> list[Any]:
        """The log records so far."""
        return [
            record
            for request in list(self.requests)
            if isinstance(request, logs_pb.ExportLogsServiceRequest)
            for group in request.resource_logs
            for scope in group.scope_logs
            for record in scope.log_records
        ]


def attributes(message: Any) -> dict[str, Any]:
    """The attributes of a span, an event, a record or a resource."""
    found = {each.key: MessageToDict(each.value) for each in message.attributes}
    return {key: next(iter(value.values()), None) for key, value in found.items()}


@contextmanager
def receiving() -> Iterator[OtlpReceiver]:
    """A receiver on two free ports."""
    receiver = OtlpReceiver()
    server = grpc.server(ThreadPoolExecutor(2))
    for kind, (request, reply) in _KINDS.items():
        service = f"{_PACKAGE}.{kind}.v1.{kind.capitalize()}Service"
        handler = grpc.unary_unary_rpc_method_handler(
            _taking(receiver, kind), request.FromString, reply.SerializeToString
        )
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {"Export": handler}),))
    receiver.grpc_port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    web = ThreadingHTTPServer(("127.0.0.1", 0), _handler(receiver))
    receiver.http_port = web.server_port
    thread = threading.Thread(target=web.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield receiver
    finally:
        web.shutdown()
        web.server_close()
        thread.join()
        server.stop(None).wait()


def _taking(receiver: OtlpReceiver, kind: str) -> Callable[[Any, Any], Any]:
    return lambda message, context: receiver.take(kind, message, dict(context.invocation_metadata()))


def _handler(receiver: OtlpReceiver) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            kind = _PATHS[self.path]
            body = self.rfile.read(int(self.headers["content-length"]))
            reply = b""
            if receiver.status == 200:
                message = _KINDS[kind][0].FromString(body)
                headers = {key.lower(): value for key, value in self.headers.items()}
                reply = receiver.take(kind, message, headers).SerializeToString()
            self.send_response(receiver.status)
            self.send_header("content-type", "application/x-protobuf")
            self.send_header("content-length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, *_: object) -> None:
            return

    return Handler
