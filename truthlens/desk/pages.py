"""Render the console's pages: the templates with what every page shows, and reasons in words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from truthlens.core.records.enums import Reason
from truthlens.core.records.retrieval import SearchResult
from truthlens.delivery import format_score
from truthlens.desk.annotated import visible
from truthlens.process.access import csrf_token
from truthlens.process.access.pages import templates

FOLDER = Path(__file__).parent

_WHY = {
    Reason.DISABLED: "checking is switched off for it, or nothing is listed that could check it",
    Reason.NO_CONTEXT: "no evidence was found, or none that it can be compared with",
    Reason.RETRIEVAL_EMPTY: "the request holds no evidence, and the sources gave none",
    Reason.RETRIEVAL_FAILED: "the request holds no evidence, and a source could not be searched",
    Reason.UNSURE_CONTEXT: "it is not clear which part of the request is evidence",
    Reason.NOT_AN_ANSWER: "the request is a step of an application, not a question of a user",
    Reason.EMPTY_ANSWER: "the answer is empty, or nothing in it can be scored",
    Reason.TOOL_CALL: "the answer calls a tool and says nothing",
    Reason.DIALECT: "the request or the response is in a form that is not read",
    Reason.ENCODING: "the body's encoding cannot be read",
    Reason.TOO_LARGE: "a limit on size was reached",
    Reason.UPSTREAM_ERROR: "the model's server gave an error",
    Reason.DETECTOR_ERROR: "a detector failed",
    Reason.TIMEOUT: "the time for checking was over",
    Reason.OVERLOADED: "too much is being checked at present",
    Reason.LANGUAGE: "a detector does not read the answer's language",
    Reason.UNAVAILABLE: "something that a detector needs cannot be reached",
}

_SEARCHED = {
    SearchResult.OK: "",
    SearchResult.CACHED: "passages of an earlier search",
    SearchResult.EMPTY: "the source holds nothing on it",
    SearchResult.TIMEOUT: "no answer in time",
    SearchResult.UNAVAILABLE: "the source is down or failed",
    SearchResult.REFUSED: "key, rights or filter were refused",
    SearchResult.BAD_RESPONSE: "the source's answer could not be read",
    SearchResult.OVERLOADED: "no turn in time",
    SearchResult.CIRCUIT_OPEN: "not asked, because it failed several times in a row",
    SearchResult.NO_SCOPE: "not asked, because the value that its filter needs is missing",
}


class Pages:
    """The templates; ``state`` gives what ``/readyz`` says, for every page."""

    def __init__(self, state: Callable[[], Mapping[str, Any]]) -> None:
        self._state = state
        self._templates = templates()
        self._templates.filters |= {
            "score": format_score,
            "visible": visible,
            "described": described,
            "searched": _SEARCHED.__getitem__,
        }

    def page(self, request: Request, template: str, *, status: int = 200, **values: Any) -> Response:
        """Return a page made of ``template``; safe in any thread."""
        made = self._templates.get_template(template).render(
            state=self._state(), path=request.url.path, csrf=csrf_token(request), **values
        )
        return HTMLResponse(made, status_code=status)


def why(reason: Reason) -> str:
    """Return in a sentence why an answer was not, or not wholly, checked; without capital and full stop."""
    return _WHY[reason]


def described(reason: str) -> str:
    """Return the sentence for the value of a reason, ``""`` for a value that is none."""
    return _WHY[Reason(reason)] if reason in list(Reason) else ""
