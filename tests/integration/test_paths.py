"""However a request's path is spelled, a backend that decodes paths gives no answer past the check; the rest passes."""

from __future__ import annotations

import http.client
import json
import re
import socket
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from tests.api.test_paths import spellings
from tests.integration.support.decoding_backend import FALSE, OTHERS, DecodingBackend, own
from tests.integration.support.stack import Stack, wait_for
from tests.integration.support.streams.stage import metric
from tests.integration.test_bodies import REQUEST
from truthlens.envoy.config import FAIL_OPEN_HEADERS

pytestmark = pytest.mark.envoy

POLICY = "hallucination: {default_mode: lightweight, detectors: [encoder], on_unchecked: block}\n"
PROMPT = {"prompt": REQUEST["messages"][0]["content"]}


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    own: dict[str, str]
    body: bytes


def send(
    stack: Stack,
    path: str,
    body: object = REQUEST,
    *,
    method: str = "POST",
    headers: Mapping[str, str] | None = None,
) -> Reply:
    """One request with exactly this target."""
    connection = http.client.HTTPConnection("127.0.0.1", stack.listen.port, timeout=60)
    content = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    try:
        connection.request(method, path, content, {"content-type": "application/json", **(headers or {})})
        response = connection.getresponse()
        found = {name.lower(): value for name, value in response.getheaders()}
        return Reply(response.status, found, own(response.getheaders()), response.read())
    finally:
        connection.close()


@pytest.fixture(scope="module", params=[False, True], ids=["starlette", "lenient"])
def stack(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A deployment that refuses what cannot be checked, before a server that decodes paths."""
    stack = Stack(tmp_path_factory.mktemp("paths"), POLICY, backend=DecodingBackend(lenient=request.param))
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()


SPELLINGS = [
    "/v1/chat/completions",
    "/%761/chat/completion%73",
    "/v1%2Fchat%2Fcompletions",
    "/v1%252Fchat%252Fcompletions",
    "/v1/chat/completion%2573",
    "/chat/completions/",
    "/completions/",
    "/openai/deployments/x/chat/completions/?api-version=1",
    "/V1/Chat/Completions",
    "/chat/completions;a=b",
    "/v1/chat/completions;a=b",
    "/v1/chat;a=b/completions",
    "/v1/chat/completions%3Ba=b",
    "//v1//chat//completions",
    "/v1/./chat/completions/.",
    "/v1/embeddings/../chat/completions",
    "/v1/embeddings/%2e%2e/chat/completions",
    "/v1/embeddings/..%2fchat/completions",
    "/v1/embeddings/%252e%252e/chat/completions",
    "/v1/embeddings/..;/chat/completions",
    "/health/..;/v1/chat/completions",
    "/v1/chat/completions/embeddings/..",
    "/v1\\chat\\completions",
    "/v1/embeddings\\..\\chat\\completions",
    "/v1%5Cchat%5Ccompletions",
    "/v1/chat/completions%00",
    "/v1/chat/completions%2500/embeddings",
    "/v1/chat/completions?x=/v1/embeddings",
    "/v1/chat/completions%3Fx=/v1/embeddings",
    "/v1/chat/completions#/v1/embeddings",
    "http://host/v1/%63hat/completions",
    "/invocations",
    "/invocations/",
    *OTHERS,
    *(path + "/" for path in OTHERS),
    *(path.upper() for path in OTHERS),
    *("/v1/files/..%2f.." + path for path in OTHERS),
]


@pytest.mark.parametrize("method", ["POST", "PUT"])
@pytest.mark.parametrize("path", SPELLINGS)
def test_no_spelling_of_a_path_gets_an_answer_past_the_check(stack: Stack, path: str, method: str) -> None:
    """It is checked and flagged, refused, or no answer at all; a forged verdict never leaves."""
    for body in (REQUEST, PROMPT):
        reply = send(stack, path, body, method=method)
        if FALSE.encode() in reply.body:
            assert reply.status == 200
            assert (reply.own["x-truthlens-status"], reply.own["x-truthlens-detected"]) == ("checked", "true")
            assert float(reply.own["x-truthlens-score"]) > 0.5
        else:
            assert reply.status >= 300
            assert "x-truthlens-score" not in reply.own
        assert not [name for name in reply.own if not name.startswith("x-truthlens-")]
        assert "x-truthlens-other" not in reply.own


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(spellings())
def test_no_made_up_spelling_gets_an_answer_past_the_check(stack: Stack, path: str) -> None:
    """Pieces of other paths, dots, parameters and escapes anywhere in the path of an answer."""
    if not re.fullmatch("(/|http://)[!-~]*", path):
        return  # no target of a request
    reply = send(stack, path)
    assert FALSE.encode() not in reply.body or reply.own["x-truthlens-status"] == "checked"
    passed = reply.body.startswith(b"POST /v1/embeddings ")
    assert reply.status >= 300 or "x-truthlens-status" in reply.own or passed


@pytest.mark.parametrize("path", ["/%761/chat/completion%73", "/v1%2Fchat%2Fcompletions", "/invocations"])
def test_what_the_backend_serves_as_chat_is_checked(stack: Stack, path: str) -> None:
    """Not only refused: an answer that can be read is scored."""
    assert send(stack, path).own["x-truthlens-status"] == "checked"


def test_a_path_of_both_apis_is_told_apart_by_the_body(stack: Stack) -> None:
    """Chat and completions are checked; what is neither is refused."""
    assert send(stack, "/invocations", PROMPT).own["x-truthlens-detected"] == "true"
    refused = send(stack, "/invocations", {"inputs": "x"})
    assert (refused.status, refused.own["x-truthlens-reason"]) == (424, "dialect")


PASSING = [
    ("GET", "/v1/models", None),
    ("GET", "/v1/models?after=%2Fv1%2Fchat%2Fcompletions", None),
    ("GET", "/v1/chat/completions/chatcmpl-1", None),
    ("HEAD", "/v1/models", None),
    ("DELETE", "/v1/files/file-1", None),
    ("OPTIONS", "/v1/chat/completions", None),
    ("POST", "/v1/embeddings", b'{"input": "Where is the library?"}'),
    ("POST", "/v1/embeddings?x=1", b"\x00\xff"),
    ("POST", "/v1/vector_stores/vs_1/search", b'{"query": "library"}'),
]


@pytest.mark.parametrize(("method", "path", "body"), PASSING)
def test_what_gets_no_answer_passes_as_it_is(
    stack: Stack, method: str, path: str, body: bytes | None
) -> None:
    """Not refused, not counted, not listed, and without a word of ours or of the backend in our name."""
    before = len(stack.log_lines()), metric(stack, "truthlens_unchecked_total")
    preflight = {"origin": "https://app.example", "access-control-request-method": "POST"}
    reply = send(stack, path, body, method=method, headers=preflight)
    assert (reply.status, reply.own) == (200, {})
    sent = path.partition("?")[0]
    echoed = f"{method} {sent} ".encode() + (body or b"")
    assert reply.body == (b"" if method == "HEAD" else echoed)
    assert (len(stack.log_lines()), metric(stack, "truthlens_unchecked_total")) == before
    assert metric(stack, "truthlens_abandoned_total") == 0


def test_no_header_in_our_name_reaches_the_backend(stack: Stack) -> None:
    """On any route, however it is spelled, and none by which a server takes a GET for a POST."""
    forged = {"x-truthlens-score": "0.0", "x_truthlens_details": "spans", "X-TruthLens_Decision": "weak"}
    override = {
        "x-http-method-override": "POST",
        "X_HTTP_Method": "POST",
        "X-Original-URL": "/v1/chat/completions",
    }
    override["x-keep"] = "1"
    for method, path in (
        ("POST", "/v1/chat/completions"),
        ("POST", "/v1/embeddings"),
        ("GET", "/v1/chat/completions"),
    ):
        reply = send(stack, path, method=method, headers={**forged, **override})
        seen = stack.backend.received[-1].headers
        assert own(seen.items()) == {}
        assert seen["x-keep"] == "1"
        assert not [name for name in seen if "method" in name or "url" in name]
        assert method == "POST" or FALSE.encode() not in reply.body


LOCAL = {
    "websocket": "GET /v1/realtime HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n",
    "upgrade of a post": "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: x\r\n",
    "no host": "POST /v1/chat/completions HTTP/1.1\r\n",
    "fragment": "POST /v1/chat/completions#x HTTP/1.1\r\nhost: x\r\n",
    "no path": "OPTIONS * HTTP/1.1\r\nhost: x\r\n",
    "NUL": "POST /v1/chat%00 HTTP/1.1\r\nhost: x\r\n",
    "connect": "CONNECT x:1 HTTP/1.1\r\nhost: x:1\r\n",
    "HTTP/1.0": "POST /v1/chat/completions HTTP/1.0\r\n",
}


@pytest.mark.parametrize("head", LOCAL.values(), ids=LOCAL)
def test_what_envoy_answers_itself_is_no_fault(stack: Stack, head: str) -> None:
    """The sidecar never saw the request; it lets the error pass and says nothing of it, nor in the log."""
    with socket.create_connection(("127.0.0.1", stack.listen.port), timeout=60) as client:
        client.sendall(f"{head}content-length: 0\r\n\r\n".encode())
        status = client.recv(1 << 16).split(b" ")[1]
    assert status in (b"400", b"403", b"404")
    # The stream of this exchange has ended, whatever it was, once a later one has.
    logged = len(stack.log_lines())
    send(stack, "/v1/chat/completions")
    wait_for(lambda: len(stack.log_lines()) > logged, "the later exchange's line")
    assert "out of step" not in (stack.folder / "sidecar.log").read_text()
    assert stack.stat("http.llm.ext_proc.streams_failed") == 0


@pytest.mark.parametrize("fails_open", [True, False])
def test_without_a_sidecar_only_answers_are_held_back_or_marked(tmp_path: Path, fails_open: bool) -> None:
    """No forged verdict leaves then either, and what gets no answer passes in both cases."""
    stack = Stack(tmp_path, POLICY, backend=DecodingBackend(), failure_mode_allow=fails_open)
    try:
        stack.start()
        stack.kill_sidecar()
        stack.wait_healthy(False)
        for path in ("/v1/chat/completions", "/%761/chat/completion%73", "/v1/responses"):
            reply = send(stack, path)
            assert reply.status == (200 if fails_open else 503)
            assert reply.own == FAIL_OPEN_HEADERS
        for method, path, body in PASSING[:-1]:
            reply = send(stack, path, body, method=method)
            assert (reply.status, reply.own) == (200, {})
    finally:
        stack.stop()
