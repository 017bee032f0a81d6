"""Which requests get an answer that can be checked, one that cannot, or none, however they are spelled."""

from __future__ import annotations

import re
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.routing import Match, Route

from truthlens.api.paths import NO_ANSWERS, RequestKind, kind_of
from truthlens.core.net import Address, Upstream
from truthlens.envoy.config import EnvoySettings, envoy_config

CHAT, COMPLETIONS, INVOCATIONS = RequestKind.CHAT, RequestKind.COMPLETIONS, RequestKind.INVOCATIONS
DIALECT, NO_ANSWER = RequestKind.DIALECT, RequestKind.NO_ANSWER


def posted(path: str) -> RequestKind:
    return kind_of("POST", path, {})


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/v1/chat/completions", CHAT),
        ("/chat/completions", CHAT),
        ("/openai/deployments/x/chat/completions?api-version=1", CHAT),
        ("/openai/deployments/x/chat/completions/?api-version=1", CHAT),
        ("/v1/completions", COMPLETIONS),
        ("/completions/", COMPLETIONS),
        ("/completions#x", COMPLETIONS),
        ("/engines/embeddings/completions", COMPLETIONS),
        ("/invocations", INVOCATIONS),
        ("/endpoints/x/invocations", INVOCATIONS),
        # spelled oddly
        ("/%761/chat/completion%73", CHAT),
        ("/v1%2Fchat%2fcompletions", CHAT),
        ("/v1%252Fchat%25252Fcompletions", CHAT),
        ("//v1//chat//completions//", CHAT),
        ("/V1/Chat/Completions", CHAT),
        ("/v1/chat/completions;a=b", CHAT),
        ("/v1/chat;a=b/completions", CHAT),
        ("/v1/chat/completions%3Ba=b", CHAT),
        ("/v1/chat/completions%3Fx", CHAT),
        ("/v1/chat/completions%00/embeddings", CHAT),
        ("/v1\\chat\\completions", CHAT),
        ("/v1%5Cchat%5ccompletions", CHAT),
        ("/v1/embeddings/../chat/completions", CHAT),
        ("/v1/embeddings/%2e%2E/chat/completions", CHAT),
        ("/v1/embeddings/..%2fchat/completions", CHAT),
        ("/health/..;/v1/chat/completions", CHAT),
        ("/health/..;x=/v1/./chat/%2e/completions", CHAT),
        ("http://host/v1/chat/completions?x", CHAT),
        ("https://user@host:1/v1/%63hat/completions", CHAT),
        ("v1/chat/completions", CHAT),
        ("/v1/chat/completions%20", CHAT),
        # answers of other dialects, and all that nobody knows
        ("/api/chat", DIALECT),
        ("/api/generate", DIALECT),
        ("/v1/chat", DIALECT),
        ("/v2/chat", DIALECT),
        ("/v1/responses", DIALECT),
        ("/v1/responses/resp_1/cancel", DIALECT),
        ("/v1/messages", DIALECT),
        ("/v1/messages/batches", DIALECT),
        ("/v1/batches", DIALECT),
        ("/v1beta/models/x:generateContent", DIALECT),
        ("/v1beta/models/x:streamGenerateContent?alt=sse", DIALECT),
        ("/model/x/converse", DIALECT),
        ("/model/x/converse-stream", DIALECT),
        ("/model/x/invoke", DIALECT),
        ("/generate", DIALECT),
        ("/generate_stream", DIALECT),
        ("/v2/models/x/generate", DIALECT),
        ("/infill", DIALECT),
        ("/", DIALECT),
        ("", DIALECT),
        ("*", DIALECT),
        ("/..", DIALECT),
        ("/v1/chat/completionsx", DIALECT),
        ("/v1/mycompletions", DIALECT),
        ("/v1/chat/completions/chatcmpl-1", DIALECT),
        ("/anything?x=/v1/completions", DIALECT),
        # no answers, but spelled so that some server may read something else
        ("/v1/chat/completions/embeddings", DIALECT),
        ("/v1/responses/score", DIALECT),
        ("/vector_stores/completions", COMPLETIONS),
        ("/vector_stores/chat/search", DIALECT),
        ("/v1/%65mbeddings", DIALECT),
        ("//v1/embeddings", DIALECT),
        ("/v1/../v1/embeddings", DIALECT),
        ("/v1/./embeddings", DIALECT),
        ("/v1/embeddings;x", DIALECT),
        ("/v1/embeddings#x", DIALECT),
        ("/v1/embeddings\\..\\chat\\completions", CHAT),
        ("/v1/embeddings%00", DIALECT),
        ("/v1/embed\u017fings", DIALECT),
        ("/v1/\uff45mbeddings", DIALECT),
        ("http://host/v1/embeddings", DIALECT),
        ("embeddings", DIALECT),
        ("/v1/embeddings\n", DIALECT),
        # no answers
        ("/v1/embeddings", NO_ANSWER),
        ("/v1/embeddings/", NO_ANSWER),
        ("/v1/embeddings?x=/v1/chat/completions", NO_ANSWER),
        ("/V1/Embeddings", NO_ANSWER),
        ("/openai/deployments/x/embeddings?api-version=1", NO_ANSWER),
        ("/v2/rerank", NO_ANSWER),
        ("/score", NO_ANSWER),
        ("/v1/moderations", NO_ANSWER),
        ("/v1/chat/moderations", NO_ANSWER),
        ("/v1/audio/transcriptions", NO_ANSWER),
        ("/v1/images/generations", NO_ANSWER),
        ("/v1/files", NO_ANSWER),
        ("/v1/uploads/upload_1/parts", NO_ANSWER),
        ("/v1/vector_stores/vs_1/search", NO_ANSWER),
        ("/v1/vector_stores/vs_1/file_batches/b_1/cancel", NO_ANSWER),
        ("/v1/fine_tuning/jobs/ft:gpt@x/cancel", NO_ANSWER),
        ("/v1/messages/count_tokens", NO_ANSWER),
        ("/tokenize", NO_ANSWER),
        ("/metrics", NO_ANSWER),
        ("/v1/load_lora_adapter", NO_ANSWER),
    ],
)
def test_what_comes_back_for_a_post(path: str, kind: RequestKind) -> None:
    """Checked is what a lenient server would serve as such; no answer only what no server reads otherwise."""
    assert posted(path) is kind


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "DELETE"])
@pytest.mark.parametrize(
    "path", ["/v1/models", "/v1/chat/completions", "/v1/responses/r_1", "*", "/%zz;//.."]
)
def test_what_is_looked_up_is_no_answer(method: str, path: str) -> None:
    """On any path: a stored answer was checked when it was given, or was said not to be."""
    assert kind_of(method, path, {"accept": "*/*"}) is NO_ANSWER


@pytest.mark.parametrize(
    "method", ["POST", "PUT", "PATCH", "QUERY", "post", "get", "Get", "GET ", "TRACE", ""]
)
def test_every_other_method_may_bring_an_answer(method: str) -> None:
    """The path is what counts, also for methods that nobody knows."""
    assert kind_of(method, "/v1/chat/completions", {}) is CHAT
    assert kind_of(method, "/v1/unknown", {}) is DIALECT


@pytest.mark.parametrize(
    "name",
    [
        "x-http-method-override",
        "x-http-method",
        "x-method-override",
        "x_http_method_override",
        "x-http_method",
    ],
)
def test_a_request_that_names_another_method_is_not_looked_up(name: str) -> None:
    """Some servers go by the header."""
    assert kind_of("GET", "/v1/chat/completions", {name: "POST"}) is CHAT
    assert kind_of("GET", "/v1/models", {name: "get"}) is DIALECT


ROUTES = [Route(path, lambda _: None, methods=["POST"]) for path in ("/v1/chat/completions", "/api/chat")]
PIECES = ["/", "//", "\\", ".", "..", "/../", "/./", ";", ";a=b", "?", "#", "%", "%00", "%2e%2e", "%2F", "%5c", " ",
          "\uff0f", "v1", "chat", "completions", "embeddings", "health", "files", "score", "http://h", "api"]  # fmt: skip


def encoded(text: str, which: list[bool]) -> str:
    """Percent-encode the characters of ``text`` that ``which`` says."""
    return "".join(
        "".join(f"%{byte:02x}" for byte in char.encode()) if chosen else char
        for char, chosen in zip(text, which, strict=True)
    )


@st.composite
def spellings(draw: st.DrawFn) -> str:
    """A path of an answer, spelled anyhow, with anything around it."""
    text = draw(st.sampled_from(["/v1/chat/completions", "/api/chat"]))
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(text)))
        text = text[:place] + draw(st.sampled_from(PIECES)) + text[place:]
    for _ in range(draw(st.integers(0, 2))):
        text = encoded(text, draw(st.lists(st.booleans(), min_size=len(text), max_size=len(text))))
    return text


@given(spellings())
def test_no_spelling_of_an_answers_path_is_no_answer(path: str) -> None:
    """Whatever a decoding server routes to an answer is checked, or said not to be."""
    served = unquote(path.partition("?")[0])
    scope = {"type": "http", "method": "POST", "path": served}
    if any(route.matches(scope)[0] is Match.FULL for route in ROUTES):
        assert posted(path) in (CHAT, DIALECT)


@given(spellings())
def test_what_is_taken_for_no_answer_says_so_in_every_reading(path: str) -> None:
    """Decoding, cutting and lower-casing a path without an answer leads to none with one."""
    if posted(path) is NO_ANSWER:
        plain = path.partition("?")[0]
        assert plain == unquote(plain)
        assert not re.search(r"chat|completions|[;\\#%]|//|/\.\.?(/|$)", plain)


@given(st.text(max_size=60), st.text(max_size=8))
def test_any_text_has_a_kind(path: str, method: str) -> None:
    """The rule never raises."""
    assert kind_of(method, path, {}) in RequestKind


@given(
    st.sampled_from(["", "/v1", "/v2", "/v3", "/x"]),
    st.sampled_from([*NO_ANSWERS, "chat/completions", "messages", "unknown", "embeddings/x"]),
    st.sampled_from(["", "/", "//", "/x", ";", "%20"]),
)
def test_envoy_lets_nothing_past_that_the_rule_does_not(prefix: str, ending: str, tail: str) -> None:
    """The route on which Envoy asks nobody holds only paths without an answer."""
    listen = Address("127.0.0.1", 1)
    config = envoy_config(EnvoySettings(listen, [listen], Upstream("h", 1, tls=False)))
    manager = config["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
    _, passing, _ = manager["route_config"]["virtual_hosts"][0]["routes"]
    path = f"{prefix}/{ending}{tail}"
    if re.fullmatch(passing["match"]["safe_regex"]["regex"], path):
        assert posted(path) is NO_ANSWER
