"""A small application behind the console's access control: it says who asks, and takes changes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import parse_qsl

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from truthlens.process.access import (
    AccessControl,
    AccessError,
    Security,
    check_csrf,
    csrf_token,
    refusal,
    user_of,
)
from truthlens.process.settings import Access

PATHS = (
    "/",
    "/healthz",
    "/readyz",
    "/metrics",
    "/evidence",
    "/playground",
    "/playground/ask",
    "/reviews",
    "/reviews/1/labels",
    "/api/reviews",
    "/api/reviews/1",
    "/v1/detect",
    "/v1/evidence",
    "/v1/ask",
)


async def _show(request: Request) -> Response:
    if request.url.path in ("/healthz", "/readyz", "/metrics"):
        return Response("ok")
    if request.url.path.startswith(("/reviews", "/api/")) and request.method != "GET":
        form = dict(parse_qsl((await request.body()).decode()))
        check_csrf(request, form.get("csrf"))
    user = user_of(request)
    return JSONResponse({"name": user.name, "role": user.role, "csrf": csrf_token(request)})


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, AccessError)
    return refusal(request.headers, error)


@asynccontextmanager
async def client_of(
    access: Access, *, url: str = "http://localhost:8088", peer: str | None = "127.0.0.1"
) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the application, whose connection comes from ``peer`` (``None``: a unix socket)."""
    control = AccessControl(access)
    methods = ["GET", "POST", "PUT", "PATCH", "DELETE"]
    routes = [Route(path, _show, methods=methods) for path in PATHS]
    app = Security(
        Starlette(routes=[*routes, *control.routes], exception_handlers={AccessError: _refused}),
        control=control,
    )

    async def connected(scope, receive, send):  # type: ignore[no-untyped-def]
        if peer is None:
            scope["client"] = None
        await app(scope, receive, send)

    transport = httpx.ASGITransport(connected, client=(peer or "unused", 40000))
    async with httpx.AsyncClient(transport=transport, base_url=url) as client:
        yield client
