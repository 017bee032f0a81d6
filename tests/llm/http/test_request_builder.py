"""Where a call goes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.llm_backends import asking
from truthlens.core.errors import CallError
from truthlens.core.records.calls import CallFailure
from truthlens.core.records.enums import Endpoint
from truthlens.llm.http.request_builder import address

UPSTREAM = "http://backend:8000/prefix"
CHAT, PLAIN = Endpoint.CHAT, Endpoint.COMPLETIONS


@pytest.mark.parametrize(
    ("endpoint", "own", "base_url", "path", "expected"),
    [
        (CHAT, False, "https://api.example/v1", None, "https://api.example/v1/chat/completions"),
        (PLAIN, False, "https://api.example/v1/", None, "https://api.example/v1/completions"),
        (
            CHAT,
            True,
            "https://api.example/v1",
            "/x/chat/completions",
            "https://api.example/v1/chat/completions",
        ),
        (CHAT, False, None, "/x/v1/chat/completions", f"{UPSTREAM}/v1/chat/completions"),
        (PLAIN, False, None, None, f"{UPSTREAM}/v1/completions"),
        (CHAT, True, None, None, f"{UPSTREAM}/v1/chat/completions"),
        (
            CHAT,
            True,
            None,
            "/x/chat/completions?api-version=3#top",
            f"{UPSTREAM}/x/chat/completions?api-version=3",
        ),
        (CHAT, True, None, "http://evil.example/v1/chat/completions", f"{UPSTREAM}/v1/chat/completions"),
        (
            CHAT,
            True,
            None,
            "//evil.example/v1/chat/completions",
            f"{UPSTREAM}//evil.example/v1/chat/completions",
        ),
        # A chat prompt of our own about an answer that came from the completions API.
        (CHAT, True, None, "/v1/completions", f"{UPSTREAM}/v1/chat/completions"),
        (PLAIN, True, None, "/v1/chat/completions/", f"{UPSTREAM}/v1/completions"),
        # One path for both.
        (CHAT, True, None, "/x/invocations/?a=1", f"{UPSTREAM}/x/invocations?a=1"),
        (PLAIN, True, None, "/invocations", f"{UPSTREAM}/invocations"),
        (PLAIN, False, None, "/invocations", f"{UPSTREAM}/v1/completions"),
    ],
)
def test_an_address_is_the_base_url_or_the_upstream_with_the_path_of_the_endpoint(
    endpoint: Endpoint, own: bool, base_url: str | None, path: str | None, expected: str
) -> None:
    url = address(asking(own=own, endpoint=endpoint), base_url=base_url, upstream=UPSTREAM, path=path)
    assert str(url) == expected


@pytest.mark.parametrize(
    ("upstream", "base_url", "path"),
    [
        (None, None, None),
        ("ftp://backend", None, None),
        (None, "not a url", None),
        (None, "http://", None),
        ("http://back\x00end", None, None),
        ("http://backend", None, "/v1/../admin/chat/completions"),
        ("http://backend", None, "/v1/%2e%2e/chat/completions"),
        ("http://backend", None, "/v1/embeddings"),
        ("http://backend", None, "@evil/chat/completions"),
    ],
)
def test_without_a_usable_address_there_is_no_backend(
    upstream: str | None, base_url: str | None, path: str | None
) -> None:
    with pytest.raises(CallError) as caught:
        address(asking(own=True), base_url=base_url, upstream=upstream, path=path)
    assert caught.value.failure is CallFailure.NO_BACKEND
    assert "evil" not in str(caught.value)


@given(st.text())
def test_no_path_leads_to_another_host(path: str) -> None:
    for tail in ("", "/chat/completions"):
        try:
            url = address(asking(own=True), base_url=None, upstream="http://backend:8000/p", path=path + tail)
        except CallError:
            continue
        assert (url.scheme, url.host, url.port) == ("http", "backend", 8000)
        assert url.path.startswith("/p")
