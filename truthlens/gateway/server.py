"""The gRPC server: ext_proc streams and ``grpc.health.v1``, on a TCP address or a unix socket, with or without TLS.

Health is answered on a port of its own as well (``health``), which does not depend on how busy the event loop is.

It carries a session's commands out and does nothing else: no policy, no HTTP. An ext_proc stream is never closed
cleanly before its exchange has ended, because Envoy takes a clean close as "let everything pass", whatever
``failure_mode_allow`` says; a stream that cannot go on is aborted with INTERNAL instead.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import grpc
import structlog
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from truthlens.core.errors import StartError
from truthlens.core.net import Address
from truthlens.exchange.ticket import Ticket
from truthlens.gateway import wire
from truthlens.gateway._pb import ext_proc_pb2 as pb
from truthlens.gateway.events import Event, MoreTime, Reply, RequestBody
from truthlens.gateway.health import HealthServer, Pulse
from truthlens.gateway.session import Assess, Open, ProtocolError, Session, State, StreamPiece
from truthlens.pipeline import Pipeline
from truthlens.streaming.driver import StreamDriver
from truthlens.streaming.types import Ack

if TYPE_CHECKING:
    from truthlens.gateway.certificates import Certificates

log = structlog.get_logger("truthlens.gateway")

_T = TypeVar("_T")

MAX_MESSAGE_BYTES = 128 << 20
_OPTIONS = [
    ("grpc.so_reuseport", 0),  # one endpoint a process: Envoy keeps one connection per worker and endpoint
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    # Envoy's keepalive pings come with and without streams; grpc's defaults would answer with GOAWAY.
    ("grpc.http2.min_ping_interval_without_data_ms", 1000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_ping_strikes", 0),
]
# Of one streamed body, what is read ahead of the work on it.
_INBOX_BYTES, _INBOX_MESSAGES = 64 << 10, 256
_SERVICES = ("", wire.SERVICE)
_LET_GO_S = 1.0
# Envoy takes acknowledgements as they come; who does not for so long is not there any more.
_STUCK_S = 60.0
# gRPC's and Envoy's own metadata; everything else was put on the route by the operator.
_OWN_METADATA = ("grpc-", ":", "user-agent", "te", "content-type", "x-envoy-", "x-forwarded-", "x-request-id",
                 "baggage", "b3", "x-b3-", "sw8", "x-datadog-")  # fmt: skip


class Server:
    """The ext_proc server of one process.

    Args:
        pipeline: what is asked.
        address: where it listens.
        certificates: TLS with these; ``None`` for plaintext.
        health_at: where health checks are answered on threads of their own; ``None`` for nowhere.
        socket_mode: who may use a unix socket, as permission bits; ``None`` for what the umask leaves.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        *,
        address: str,
        certificates: Certificates | None = None,
        health_at: Address | None = None,
        socket_mode: int | None = None,
    ) -> None:
        self._pipeline = pipeline
        self._certificates = certificates
        self._following: asyncio.Task[None] | None = None
        self._pulse = Pulse()
        self._beating: asyncio.Task[None] | None = None
        self._address = address
        self._health = health.aio.HealthServicer()
        self._server = grpc.aio.server(options=_OPTIONS)
        # Handlers of streams that may go on without us: see ``drain``.
        self._droppable: set[asyncio.Task[Any]] = set()
        handler = grpc.stream_stream_rpc_method_handler(
            self._process, pb.ProcessingRequest.FromString, pb.ProcessingResponse.SerializeToString
        )
        self._server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(wire.SERVICE, {"Process": handler}),)
        )
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self._server)
        try:
            with _files_of_mode(socket_mode):
                if certificates is None:
                    self.port = self._server.add_insecure_port(address)
                else:
                    self.port = self._server.add_secure_port(address, certificates.credentials())
        except RuntimeError as error:
            raise StartError(
                f"cannot listen for ext_proc on {address}: another process is there, or this one may not. Choose another"
                " address with --extproc"
            ) from error

        self._own_health: HealthServer | None = None
        if health_at is not None:
            self._own_health = HealthServer(
                self._pulse,
                address=health_at,
                credentials=None if certificates is None else certificates.credentials(),
                services=frozenset(_SERVICES),
            )

    async def start(self) -> None:
        """Accept streams; health stays NOT_SERVING until ``set_serving``."""
        await self.set_serving(False)
        self._beating = asyncio.create_task(self._pulse.keep_beating(self._pipeline.note_lag))
        if self._certificates is not None:
            self._following = asyncio.create_task(self._certificates.follow())
        if self._own_health is not None:
            self._own_health.start()
        await self._server.start()

    async def set_serving(self, serving: bool) -> None:
        """Tell Envoy's health check whether this process takes new exchanges."""
        status = (
            health_pb2.HealthCheckResponse.SERVING if serving else health_pb2.HealthCheckResponse.NOT_SERVING
        )
        self._pulse.serving = serving
        for service in _SERVICES:
            await self._health.set(service, status)

    async def drain(self, *, notice_s: float, grace_s: float) -> None:
        """Leave without losing an exchange.

        Args:
            notice_s: how long to report NOT_SERVING before new streams are refused; longer than Envoy's health
                check interval times its unhealthy threshold.
            grace_s: how long the exchanges in flight may then take. Shortly before it is over, streams that are only
                observed are let go by a clean close, upon which Envoy passes the rest of them; all others are cut.
        """
        await self.set_serving(False)
        await asyncio.sleep(notice_s)
        stopping = asyncio.ensure_future(self._server.stop(grace_s))
        await asyncio.wait({stopping}, timeout=max(0.0, grace_s - _LET_GO_S))
        for task in self._droppable:
            task.cancel()
        await stopping
        self._end_health()

    async def stop(self) -> None:
        """Stop at once."""
        await self._server.stop(0)
        self._end_health()

    def _end_health(self) -> None:
        for task in (self._beating, self._following):
            if task is not None:
                task.cancel()
        if self._own_health is not None:
            self._own_health.stop()

    async def _process(self, _requests: Any, context: grpc.aio.ServicerContext[Any, Any]) -> None:
        if self._certificates is not None and not self._certificates.accepts(context.auth_context):
            # No clean close: Envoy would take it as "let everything pass".
            await context.abort(
                grpc.StatusCode.PERMISSION_DENIED, "the client's certificate has no accepted name"
            )
        session = Session(self._pipeline)
        route = _route_metadata(context)
        stream = _Stream(context)
        try:
            while (message := await stream.read()) is not grpc.aio.EOF:
                event = wire.parse(message, route)
                reply = await self._step(session, event, stream)
                if reply is None:
                    return
                await context.write(wire.render(reply))
                if isinstance(event, RequestBody):
                    assert session.ticket is not None
                    prepared = await self._reading(
                        stream, session.ticket, session.ticket.size, self._pipeline.prepare(session.ticket)
                    )
                    if prepared is None:
                        return
                    session.ticket = prepared
                elif session.state is State.STREAM:
                    assert session.ticket is not None
                    with session.ticket.trace.within():
                        await self._follow(session, route, stream)
                    return
        except asyncio.CancelledError:
            # How Envoy ends most streams, finished or not; re-raising would only print a traceback.
            return
        except TimeoutError:
            log.error("ext_proc stream aborted: its acknowledgements are not taken", seconds=_STUCK_S)
            await context.abort(grpc.StatusCode.INTERNAL, "acknowledgements are not taken")
        except (ProtocolError, wire.WireError) as error:
            log.error("ext_proc stream aborted", error=str(error))
            await context.abort(grpc.StatusCode.INTERNAL, str(error))
        finally:
            stream.close()
            if not session.concluded and session.ticket is not None:
                self._pipeline.abandon(session.ticket)

    async def _follow(self, session: Session, route: Mapping[str, str], stream: _Stream) -> None:
        """Pass a streamed body on, piece by piece, until nobody reads it any more."""

        async def emit(ack: Ack) -> None:
            try:
                await stream.write(session.passed(ack.body, end=ack.end, outcome=flow.outcome))
            except grpc.aio.InternalError:
                # The client left while this was written, perhaps by the driver's own task: nobody reads the rest.
                log.info("ext_proc stream ended while it was written to")
                if task is not None:
                    task.cancel()

        assert session.ticket is not None
        task = asyncio.current_task()
        flow = self._pipeline.flow(session.ticket, emit)
        if task is not None and flow.droppable:
            self._droppable.add(task)
        inbox = _Inbox(stream, flow)
        try:
            while messages := await inbox.take():
                waited_s = inbox.waited_s
                for work in _batches(session, [wire.parse(message, route) for message in messages]):
                    if isinstance(work, list):
                        # An acknowledgement that nobody takes must not keep what is held for ever.
                        async with asyncio.timeout(_STUCK_S):
                            pieces = (piece.body for piece in work)
                            await flow.feed(*pieces, end=work[-1].end, waited_s=waited_s)
                    else:
                        await stream.write(work)
                if session.state is State.ENDED:
                    await flow.aclose()
        finally:
            if task is not None:
                self._droppable.discard(task)
            inbox.close()
            # Concluded and not yet acknowledged: the figures are written, whoever reads the rest.
            session.concluded = session.concluded or flow.outcome is not None
            await flow.aclose()

    async def _reading(
        self, stream: _Stream, ticket: Ticket, size: int, work: Coroutine[Any, Any, Ticket]
    ) -> Ticket | None:
        """The ticket after ``work`` on a request of ``size`` bytes, or ``None`` where the stream ended first."""
        if self._pipeline.reads_at_once(ticket, size):
            return await work  # two tasks and a wait would cost more than the reading
        return await stream.unless_it_ends(work)

    async def _step(self, session: Session, event: Any, stream: _Stream) -> Reply | None:
        """The reply to ``event``, or ``None`` where nobody waits for it any more."""
        result = session.receive(event)
        if isinstance(result, Open):
            opening = self._pipeline.open(result.ticket, result.body)
            opened = await self._reading(stream, result.ticket, len(result.body), opening)
            return None if opened is None else session.opened(opened)
        if isinstance(result, Assess):
            if (more_s := result.ticket.plan.override_s) is not None:
                await stream.write(MoreTime(more_s))
            conclusion = await stream.unless_it_ends(
                self._pipeline.assess(result.ticket, result.head, result.body)
            )
            return None if conclusion is None else session.assessed(conclusion)
        assert not isinstance(result, StreamPiece)
        return result


class _Stream:
    """One ext_proc stream, which may be read ahead while work is under way.

    Envoy tells of a client that went away by ending the stream, often as a plain half-close: only who reads notices.
    """

    def __init__(self, context: grpc.aio.ServicerContext[Any, Any]) -> None:
        self._context = context
        self._ahead: asyncio.Task[Any] | None = None

    async def read(self) -> Any:
        """The next message, or ``grpc.aio.EOF``."""
        ahead, self._ahead = self._ahead, None
        return await (self._context.read() if ahead is None else ahead)

    async def write(self, reply: Reply | MoreTime) -> None:
        """Send a message."""
        await self._context.write(wire.render(reply))

    async def unless_it_ends(self, work: Coroutine[Any, Any, _T]) -> _T | None:
        """The result of ``work``, or ``None`` where the stream ended first and the work was cancelled."""
        task = asyncio.create_task(work)
        self._ahead = self._ahead or asyncio.create_task(self._context.read())
        try:
            await asyncio.wait({task, self._ahead}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done() and self._ahead.result() is not grpc.aio.EOF:
                await asyncio.wait({task})
            return task.result() if task.done() else None
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task})

    def close(self) -> None:
        """Give up what is read ahead."""
        if self._ahead is not None:
            self._ahead.cancel()


class _Inbox:
    """Messages of a streamed body that have come: read while those before them are worked on, and taken all at once.

    As long as there is no room for them, one is read ahead, so that the end of the stream is noticed.
    """

    def __init__(self, stream: _Stream, flow: StreamDriver) -> None:
        self._stream = stream
        self._flow = flow
        self._messages: list[Any] = []
        self._size = 0
        self._since = 0.0
        self.waited_s = 0.0
        """How long the first of those waited that were taken last."""
        self._changed = asyncio.Event()
        self._task = asyncio.create_task(self._read())
        self._task.add_done_callback(self._note)

    async def take(self) -> list[Any]:
        """Wait for messages and return them; none where the stream has ended."""
        while not self._messages and not self._task.done():
            await self._wait()
        messages, self._messages, self._size = self._messages, [], 0
        self.waited_s = time.monotonic() - self._since if messages else 0.0
        self._note()
        if not messages:
            self._task.result()
        return messages

    def close(self) -> None:
        """Read no more."""
        self._task.cancel()

    async def _read(self) -> None:
        while (message := await self._stream.read()) is not grpc.aio.EOF:
            came = time.monotonic()
            while self._size >= _INBOX_BYTES or len(self._messages) >= _INBOX_MESSAGES:
                await self._wait()
            await self._flow.room()
            if not self._messages:
                self._since = came
            self._messages.append(message)
            self._size += len(message.response_body.body)
            self._note()

    async def _wait(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    def _note(self, ended: asyncio.Task[None] | None = None) -> None:
        if ended is not None and not ended.cancelled():
            ended.exception()  # looked at here also where nobody takes messages any more
        self._changed.set()


def _batches(session: Session, events: Sequence[Event]) -> Iterator[list[StreamPiece] | Reply]:
    """Yield pieces of the body that follow each other as one, and replies to whatever else stands between them."""
    pieces: list[StreamPiece] = []
    for event in events:
        result = session.receive(event)
        if isinstance(result, StreamPiece):
            pieces.append(result)
            continue
        assert not isinstance(result, Open | Assess)
        if pieces:
            yield pieces
            pieces = []
        yield result
    if pieces:
        yield pieces


def _route_metadata(context: grpc.aio.ServicerContext[Any, Any]) -> Mapping[str, str]:
    metadata: Callable[[], Any] = context.invocation_metadata
    return {
        key.lower(): value
        for key, value in metadata() or ()
        if isinstance(value, str) and not key.lower().startswith(_OWN_METADATA)
    }


@contextlib.contextmanager
def _files_of_mode(mode: int | None) -> Iterator[None]:
    """Let a socket have ``mode`` from the moment that it is there, so that nobody else is in time."""
    if mode is None:
        yield
        return
    before = os.umask(0o777 & ~mode)
    try:
        yield
    finally:
        os.umask(before)
