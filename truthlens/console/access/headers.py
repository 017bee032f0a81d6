"""What every response tells browsers that its pages may do."""

from __future__ import annotations

from truthlens.console.access.rules import FORM_TREES, within

_HEADERS = {
    # Nothing but what the console serves itself: no inline script or style, no frame around it, no form to
    # elsewhere.
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
        "form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
_FORM_HEADERS = {
    **_HEADERS,
    "content-security-policy": _HEADERS["content-security-policy"].replace(
        "form-action 'none'", "form-action 'self'"
    ),
    # Without a referrer browsers send `Origin: null` with a form.
    "referrer-policy": "same-origin",
}


def protective_headers(path: str) -> dict[str, str]:
    """Return the headers of all responses of ``path``."""
    return _FORM_HEADERS if within(path, FORM_TREES) else _HEADERS
