"""Render the console's pages: one environment of templates, and what every page shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jinja2
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from truthlens.console.access import csrf_token, signed_in
from truthlens.console.annotated import visible
from truthlens.delivery import format_score

FOLDER = Path(__file__).parent


class Pages:
    """The templates; ``state`` gives what ``/readyz`` says, for every page."""

    def __init__(self, state: Callable[[], Mapping[str, Any]]) -> None:
        self._state = state
        self._templates = jinja2.Environment(
            loader=jinja2.FileSystemLoader(FOLDER / "templates"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.globals["signed_in"] = signed_in.get
        self._templates.filters |= {"score": format_score, "visible": visible}

    def page(self, request: Request, template: str, *, status: int = 200, **values: Any) -> Response:
        """Return a page made of ``template``; safe in any thread."""
        made = self._templates.get_template(template).render(
            state=self._state(), path=request.url.path, csrf=csrf_token(request), **values
        )
        return HTMLResponse(made, status_code=status)
