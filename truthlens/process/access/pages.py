"""The pages of the access control: login, logout, and what a refused browser sees."""

from __future__ import annotations

import functools
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, JSONResponse, Response

import truthlens
from truthlens.process.access.rules import AccessError
from truthlens.process.access.users import User

if TYPE_CHECKING:
    import jinja2

_TITLES = {
    400: "The request cannot be used",
    401: "You are not logged in",
    403: "This is not allowed",
    415: "The request cannot be read",
    429: "Too many requests",
    502: "The identity provider does not answer",
}

signed_in: ContextVar[User | None] = ContextVar("signed_in", default=None)
"""The user of the request at hand, where the console knows them by a session that they can end."""


@functools.cache
def templates() -> jinja2.Environment:
    """Return the templates of all pages, the desk's; a process without pages never reads them."""
    import jinja2

    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(truthlens.__file__).parent / "desk" / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["signed_in"] = signed_in.get
    return made


def page(template: str, *, status: int = 200, **values: Any) -> HTMLResponse:
    """Render one of the templates of the access control."""
    return HTMLResponse(
        templates().get_template(f"access/{template}.html.j2").render(path="", **values), status_code=status
    )


def wants_page(headers: Headers) -> bool:
    """Return whether a browser asked for a page to show, and not a script or a program for data."""
    return (
        "text/html" in headers.get("accept", "") and headers.get("sec-fetch-mode", "navigate") == "navigate"
    )


def refusal(headers: Headers, error: AccessError, *, pages: bool = True) -> Response:
    """Return the response to a refused request: a page for browsers where there are ``pages``, JSON for all others."""
    response: Response
    if pages and wants_page(headers):
        response = page(
            "refused",
            status=error.status_code,
            title=_TITLES.get(error.status_code, "This did not work"),
            error=error,
        )
    else:
        body = {
            "message": error.detail,
            "type": "invalid_request_error",
            "param": None,
            "code": error.code,
        }
        response = JSONResponse({"error": body}, status_code=error.status_code)
    response.headers.update(error.headers or {})
    if "sec-fetch-site" in headers and not wants_page(headers):
        # A page's script has no use for the browser's own question for a password.
        del response.headers["www-authenticate"]
    return response
