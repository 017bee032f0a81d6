"""What a web page of somebody else could do to the console of an operator who looks at it."""

from __future__ import annotations

import json

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.attack.gateway import Target, attacks, shown

pytestmark = pytest.mark.envoy

_BODY = json.dumps({"context": ["Tea is free."], "response": "Tea is free."}).encode()
_JSON = "application/json"
_PAGES = (
    "/",
    "/healthz",
    "/readyz",
    "/metrics",
    "/v1/detect",
    "/nothing",
    "/static/../app.py",
    "/exchanges/1",
    "/reviews",
)


def _sent(
    target: Target, headers: list[tuple[str, str]], *, path: str = "/v1/detect", method: str = "POST"
) -> httpx.Response:
    return httpx.request(
        method,
        f"{target.stack.console_url}{path}",
        content=_BODY if method == "POST" else None,
        headers=headers,
        timeout=60,
    )


_LABEL = st.from_regex("[a-z]{1,8}", fullmatch=True)
_HOSTS = st.builds(
    lambda form, label, port: form.format(label=label, port=port),
    st.sampled_from(["{label}.example", "{label}.example:{port}", "localhost.{label}.example", "127.0.0.1.{label}.example:{port}", "localhost@{label}.example", "{label}.localhost.example",
                     "127.0.0.1:{port}.{label}.example", "127.0.0.1,{label}.example", "0x7f.1.{label}.example", "[::1].{label}.example", "{label}", "8.8.8.8:{port}"]),
    _LABEL,
    st.integers(1, 65535),
)  # fmt: skip
_TYPES = st.sampled_from(["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain; charset=application/json", "text/plain,application/json", "application/jsonx", "", "text/json"])  # fmt: skip


@attacks(ci=25, nightly=500)
@given(host=_HOSTS)
def test_a_name_that_points_here_is_not_served(by_header: Target, host: str) -> None:
    """A page of another site whose name was pointed at this machine reads and sends nothing."""
    for method, path in (("POST", "/v1/detect"), ("GET", "/")):
        response = _sent(by_header, [("host", host), ("content-type", _JSON)], method=method, path=path)
        assert 400 <= response.status_code < 500, shown(response, method, path, host)


@attacks(ci=25, nightly=500)
@given(
    origin=st.one_of(
        st.builds("{}://{}".format, st.sampled_from(["http", "https", "file", "chrome-extension"]), _HOSTS),
        st.sampled_from(["null", "file://", "", "http://", "localhost"]),
    )
)
def test_a_page_of_another_origin_gets_no_score(by_header: Target, origin: str) -> None:
    response = _sent(by_header, [("origin", origin), ("content-type", _JSON)])
    assert 400 <= response.status_code < 500, shown(response, origin)
    allowed = response.headers.get("access-control-allow-origin")
    assert allowed is None, shown(response, origin)


@attacks(ci=8, nightly=50)
@given(media_type=_TYPES)
def test_what_a_form_can_send_is_not_read(by_header: Target, media_type: str) -> None:
    """Only these a browser sends to other sites without asking first."""
    response = _sent(by_header, [("content-type", media_type)] if media_type else [])
    assert 400 <= response.status_code < 500, shown(response, media_type)


def test_the_operators_own_request_is_scored(by_header: Target) -> None:
    """Else nothing here would show anything."""
    for headers in (
        [],
        [("origin", by_header.stack.console_url)],
        [("host", f"localhost:{by_header.stack.console.port}")],
    ):
        response = _sent(by_header, [("content-type", _JSON), *headers])
        assert response.status_code == 200, shown(response, headers)


@pytest.mark.parametrize("path", _PAGES)
def test_every_response_forbids_what_browsers_would_allow(by_header: Target, path: str) -> None:
    """Errors and probes too."""
    for method in ("GET", "POST"):
        response = _sent(by_header, [("content-type", _JSON)], method=method, path=path)
        policy = response.headers.get("content-security-policy", "")
        assert "default-src 'none'" in policy or "default-src 'self'" in policy, shown(response, method, path)
        assert "'unsafe-" not in policy, shown(response, method, path)
        assert response.headers.get("x-content-type-options") == "nosniff", shown(response, method, path)
        assert response.headers.get("x-frame-options") in ("DENY", "SAMEORIGIN"), shown(
            response, method, path
        )
