"""Which paths need which role, take which bodies and have which limits: the console's one table of them.

And the error of a request that is refused.

A tree is a path with all that is below it. What is in no tree gets the strictest rule.
"""

from __future__ import annotations

from collections.abc import Mapping

from starlette.exceptions import HTTPException

from truthlens.process.access.users import Role

OPEN_PATHS = frozenset({"/healthz", "/readyz", "/metrics"})
"""For probes and Prometheus: no check at all. They hold figures and names from the configuration alone."""

PUBLIC_TREES = ("/login", "/static")
"""For whoever has still to log in. Host, origin and rate are checked."""

VIEWER_WRITES = ("/v1/detect", "/v1/evidence", "/v1/ask", "/evidence", "/playground", "/logout")
"""What a viewer may send a body to: it changes nothing that others see."""

FORM_TREES = ("/evidence", "/playground", "/reviews", "/login", "/logout")
"""Pages with forms: they take what forms send, only from the console's own pages. All others take JSON."""

UNCOUNTED_TREES = ("/v1",)
"""Scoring for programs: the gateway's own queue bounds it (503), so that requests are not counted by the minute.

``/v1/ask``, which costs calls to models, counts its own."""

SAFE_METHODS = frozenset({"GET", "HEAD"})
METHODS_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
FORM_TYPE = "application/x-www-form-urlencoded"
JSON_TYPE = "application/json"


def within(path: str, trees: tuple[str, ...]) -> bool:
    """Return whether ``path`` is in one of the trees."""
    return any(path == tree or path.startswith(f"{tree}/") for tree in trees)


def role_needed(method: str, path: str) -> Role:
    """Return the least role that may send such a request."""
    viewer = method in SAFE_METHODS or within(path, VIEWER_WRITES)
    return Role.VIEWER if viewer else Role.REVIEWER


def body_type(path: str) -> str:
    """Return the media type that a body sent to ``path`` must have."""
    return FORM_TYPE if within(path, FORM_TREES) else JSON_TYPE


def is_write(method: str, path: str) -> bool:
    """Return whether a request counts as a write for the rate limits."""
    return role_needed(method, path) > Role.VIEWER


class AccessError(HTTPException):
    """A request is refused.

    Args:
        status: of the response.
        message: what is wrong and what to do, for the user.
        code: a name for programs.
        headers: of the response.
    """

    def __init__(
        self, status: int, message: str, code: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status, message, headers)
        self.code = code
