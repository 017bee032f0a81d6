"""Streams of every mode through a real Envoy, read by the official clients and byte for byte at the socket."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.integration.support.models import BAD, GOOD, request
from tests.integration.support.stack import Stack
from tests.integration.support.streams import streams
from tests.integration.support.streams.gateway import policy_of
from tests.integration.support.streams.streams import DONE, ODD_CUTS, Framing, StreamingModel
from tests.sdk.readers import Job, NodeReader, PythonReader, RawAnswer, Read, Reader, read_raw, why_no_node
from truthlens.core.records.enums import Endpoint

pytestmark = pytest.mark.envoy

MARK, NOTICE, WARNING = " (?)", "(withheld)", "Check this."
_TEMPLATES = f'stream: {{warning: false, mark_template: "{MARK}", notice_template: "{NOTICE}"}}'
MODES = {
    "observe": "mode: lightweight, streaming: observe",
    "gate-mark": f"mode: lightweight, streaming: gate, on_flagged: mark, {_TEMPLATES}",
    "gate-withhold": f"mode: lightweight, streaming: gate, on_flagged: withhold, {_TEMPLATES}",
    "gate-stop": f"mode: lightweight, streaming: gate, on_flagged: stop, {_TEMPLATES}",
    "buffer": "mode: lightweight, streaming: buffer",
    "buffer-standard": "mode: standard, streaming: buffer",
}
LIVE = [mode for mode in MODES if not mode.startswith("buffer")]
QUIET = "quiet"  # observes, flags everything, and says so nowhere in the stream
CLEAN, FAIR, FLAGGED = "0.999", "0.6", "0.0"
CLIENTS = {
    "openai-python": PythonReader,
    "openai-node": lambda url: NodeReader("openai.mjs", url),
    "ai-node": lambda url: NodeReader("ai.mjs", url),
}
# The ai package has one way to read, and knows one choice.
of_many_choices = pytest.mark.parametrize("client", ["openai-python", "openai-node"], indirect=True)
SLOW_S = 0.005


def _policy() -> str:
    plans = {
        f"{mode}-{threshold}": f"{keys}, threshold: {threshold}, warning_template: {WARNING}"
        for mode, keys in MODES.items()
        for threshold in (CLEAN, FAIR, FLAGGED)
    }
    plans[QUIET] = f"streaming: observe, stream: {{warning: false}}, threshold: {FLAGGED}"
    return policy_of({name.replace(".", "-"): keys for name, keys in plans.items()})


def job(
    plan: str,
    *,
    endpoint: Endpoint = Endpoint.CHAT,
    usage: bool = False,
    details: bool = False,
    helper: bool = False,
    **fields: Any,
) -> Job:
    """A question with evidence, under one plan of the policy."""
    body = request("scripted-model", **fields)
    if endpoint is Endpoint.COMPLETIONS:
        body["prompt"] = body.pop("messages")[0]["content"]
    headers = {"x-domain": plan.replace(".", "-")}
    if details:
        headers["x-truthlens-details"] = "spans"
    return Job(endpoint, body, headers, usage=usage, helper=helper)


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Backend, sidecar and Envoy, for all tests of the module."""
    stack = Stack(tmp_path_factory.mktemp("streams"), _policy())
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()


@pytest.fixture
def model(deployment: Stack) -> StreamingModel:
    """What the backend streams: an answer that the evidence supports."""
    model = StreamingModel((GOOD,), corrected=GOOD)
    deployment.backend.reply = model
    return model


@dataclass(frozen=True)
class Client:
    """The same client twice: through the gateway, and straight to the backend."""

    through: Reader
    direct: Reader


@pytest.fixture(scope="module", params=CLIENTS)
def client(request: pytest.FixtureRequest, deployment: Stack) -> Iterator[Client]:
    """Each of the official clients in turn."""
    if request.param.endswith("node") and (reason := why_no_node()):
        pytest.skip(reason)
    start = CLIENTS[request.param]
    client = Client(start(deployment.url), start(f"http://127.0.0.1:{deployment.backend.port}"))
    yield client
    client.through.close()
    client.direct.close()


@pytest.fixture
def raw(deployment: Stack) -> Callable[[Job], RawAnswer]:
    """Reads a stream through the gateway, byte for byte."""
    return lambda job: read_raw(deployment.listen.host, deployment.listen.port, job)


# --- official clients -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("usage", [False, True], ids=["plain", "usage"])
@pytest.mark.parametrize("endpoint", list(Endpoint))
@pytest.mark.parametrize("mode", MODES)
def test_a_clean_stream_reads_as_without_truthlens(
    client: Client, model: StreamingModel, mode: str, endpoint: Endpoint, usage: bool
) -> None:
    """Text, finish reason, usage and number of chunks: the client cannot tell the difference."""
    asked = job(f"{mode}-{CLEAN}", endpoint=endpoint, usage=usage)
    read = client.through.read(asked)
    assert read == client.direct.read(asked)
    assert read.error is None
    assert read.texts == {0: GOOD}
    assert (read.usage is not None) is usage


@pytest.mark.parametrize("endpoint", list(Endpoint))
@pytest.mark.parametrize("mode", MODES)
def test_the_verdict_is_one_chunk_more(
    client: Client, model: StreamingModel, mode: str, endpoint: Endpoint
) -> None:
    """The clients read past it, and show it to who looks."""
    asked = job(f"{mode}-{CLEAN}", endpoint=endpoint, usage=True, details=True)
    read = client.through.read(asked)
    plain = client.direct.read(asked)
    assert read.truthlens is not None
    assert read.truthlens["status"] == "checked"
    assert replace(read, chunks=read.chunks - 1, truthlens=None) == plain


def _warned_after(read: Read) -> None:
    assert read.texts[0].startswith(BAD)
    assert read.texts[0].endswith(WARNING)


def _warned_before(read: Read) -> None:
    assert read.texts[0].startswith(WARNING)
    assert read.texts[0].endswith(BAD)


def _marked(read: Read) -> None:
    assert read.texts[0].count(MARK) == 2
    assert read.texts[0].endswith(MARK)
    assert read.texts[0].replace(MARK, "") == BAD


def _withheld(read: Read) -> None:
    assert read.texts[0].strip() == NOTICE


def _stopped(read: Read) -> None:
    assert read.texts[0].strip() == NOTICE
    assert read.finish[0] == "content_filter"


FLAGGED_READS = {
    "observe": _warned_after,
    "gate-mark": _marked,
    "gate-withhold": _withheld,
    "gate-stop": _stopped,
    "buffer": _warned_before,
}


@pytest.mark.parametrize("usage", [False, True], ids=["plain", "usage"])
@pytest.mark.parametrize("endpoint", list(Endpoint))
@pytest.mark.parametrize("mode", FLAGGED_READS)
def test_a_flagged_stream_is_read_without_error(
    client: Client, model: StreamingModel, mode: str, endpoint: Endpoint, usage: bool
) -> None:
    """What was done to it is in the text, and the stream ends as the API says."""
    model.texts = (BAD,)
    read = client.through.read(job(f"{mode}-{FLAGGED}", endpoint=endpoint, usage=usage))
    assert read.error is None
    FLAGGED_READS[mode](read)
    if mode != "gate-stop":
        assert read.finish == {0: "stop"}
        assert (read.usage is not None) is usage


@pytest.mark.parametrize("endpoint", list(Endpoint))
def test_a_corrected_stream_reads_as_the_better_answer(
    client: Client, model: StreamingModel, endpoint: Endpoint
) -> None:
    """The same model's correction, streamed again under the first call's usage."""
    model.texts = (BAD,)
    asked = job(f"buffer-standard-{FAIR}", endpoint=endpoint, usage=True)
    read = client.through.read(asked)
    assert read.error is None
    assert read.texts == {0: GOOD}
    assert read.finish == {0: "stop"}
    assert read.usage == client.direct.read(asked).usage


@of_many_choices
@pytest.mark.parametrize("mode", MODES)
def test_the_accumulating_helpers_take_every_mode(client: Client, model: StreamingModel, mode: str) -> None:
    """They follow the protocol more closely than a reader of chunks: two choices, the verdict and usage among them."""
    model.texts = (GOOD, GOOD)
    asked = job(f"{mode}-{CLEAN}", n=2, usage=True, details=True, helper=True)
    read = client.through.read(asked)
    assert read.error is None
    assert read.texts == {0: GOOD, 1: GOOD}
    assert read.finish == {0: "stop", 1: "stop"}
    assert read.usage is not None
    assert read.usage == client.direct.read(asked).usage
    assert read.truthlens is not None
    assert len(read.truthlens["choices"]) == 2


@pytest.mark.parametrize("plan", [CLEAN, FLAGGED])
@pytest.mark.parametrize("mode", MODES)
def test_thoughts_tool_calls_and_errors_arrive(
    client: Client, model: StreamingModel, mode: str, plan: str
) -> None:
    """Reasoning is passed on, a tool call is never touched, the backend's error reaches the client as one."""
    model.frames = lambda _body, _endpoint: streams.reasoning_answer("Let me see.", GOOD)
    asked = job(f"{mode}-{plan}")
    assert client.through.read(asked).reasoning == "Let me see."
    model.frames = lambda _body, _endpoint: streams.tool_call()
    assert client.through.read(asked) == client.direct.read(asked)
    if (mode, plan) == ("gate-stop", FLAGGED):
        return  # the stream ends before the backend fails
    model.frames = lambda _body, _endpoint: streams.broken_off(GOOD)
    assert "out of memory" in (client.through.read(asked).error or "")


# --- bytes ----------------------------------------------------------------------------------------------------

Frames = Callable[[dict[str, Any], Endpoint], list[bytes]]


def _plain(_body: dict[str, Any], endpoint: Endpoint) -> list[bytes]:
    return streams.answer(GOOD, endpoint=endpoint)


@dataclass(frozen=True)
class Style:
    """A way to write a stream."""

    frames: Frames = _plain
    framing: Framing = Framing.CHUNKED
    cuts: tuple[int, ...] = ()
    pause_s: float = 0.0


STYLES = {
    "frame-by-frame": Style(),
    "slow": Style(pause_s=SLOW_S),
    "content-length": Style(framing=Framing.LENGTH),
    "until-close": Style(framing=Framing.CLOSE),
    "odd-cuts": Style(cuts=ODD_CUTS, pause_s=0.001),
    "one-write": Style(cuts=(1 << 20,)),
    "crlf": Style(
        lambda _b, e: streams.with_newlines(streams.answer(GOOD, endpoint=e), b"\r\n"), cuts=ODD_CUTS
    ),
    "comments": Style(lambda _b, e: streams.with_comments(streams.answer(GOOD, endpoint=e))),
    "usage": Style(lambda _b, e: streams.answer(GOOD, endpoint=e, usage=True)),
    "two-choices": Style(lambda _b, e: streams.answer(GOOD, f"{GOOD}\n\n{GOOD}", endpoint=e), cuts=(100,)),
    "unicode": Style(lambda _b, e: streams.answer(f"☕ {GOOD} 🙂", endpoint=e), cuts=(3,)),
    "surrogates": Style(lambda _b, e: streams.answer(f"{GOOD} 🙂 {GOOD}", endpoint=e, escaped=True)),
    "no-done": Style(lambda _b, e: streams.answer(GOOD, endpoint=e)[:-1]),
    "unfinished": Style(lambda _b, e: streams.answer(GOOD, endpoint=e)[:-3]),
    "reasoning": Style(lambda _b, _e: streams.reasoning_answer("Let me see.", GOOD)),
    "tool-call": Style(lambda _b, _e: streams.tool_call()),
    "error": Style(lambda _b, _e: streams.broken_off(GOOD)),
    "garbage": Style(lambda _b, e: [*streams.answer(GOOD, endpoint=e)[:-1], b"data: {not json\n\n", DONE]),
    "empty": Style(lambda _b, _e: []),
}


def _apply(model: StreamingModel, style: Style) -> None:
    model.frames, model.framing, model.cuts = style.frames, style.framing, style.cuts
    model.pause_s = style.pause_s


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("mode", MODES)
def test_a_clean_stream_is_the_backends_own_bytes(
    raw: Callable[[Job], RawAnswer], model: StreamingModel, mode: str, style: str
) -> None:
    """Not one byte of a stream changes in which nothing is flagged."""
    _apply(model, STYLES[style])
    answer = raw(job(f"{mode}-{CLEAN}"))
    assert answer.body == model.written[-1]
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"


@pytest.mark.parametrize("style", ["frame-by-frame", "odd-cuts", "usage", "one-write"])
@pytest.mark.parametrize("mode", MODES)
def test_completions_are_the_backends_own_bytes_too(
    raw: Callable[[Job], RawAnswer], model: StreamingModel, mode: str, style: str
) -> None:
    _apply(model, STYLES[style])
    answer = raw(job(f"{mode}-{CLEAN}", endpoint=Endpoint.COMPLETIONS))
    assert answer.body == model.written[-1]


@pytest.mark.parametrize("style", ["frame-by-frame", "odd-cuts", "usage", "crlf", "content-length"])
@pytest.mark.parametrize("mode", MODES)
def test_the_verdict_is_the_only_frame_that_is_added(
    raw: Callable[[Job], RawAnswer], model: StreamingModel, mode: str, style: str
) -> None:
    """It stands before the done marker and the usage, written with the stream's own line ends."""
    _apply(model, STYLES[style])
    body = raw(job(f"{mode}-{CLEAN}", details=True)).body
    newline = b"\r\n" if style == "crlf" else b"\n"
    done = DONE.replace(b"\n", newline)
    written = model.written[-1]
    before = written.removesuffix(done)
    if style == "usage":
        before = before[: before.rindex(b"data:")]
    assert body.startswith(before)
    assert body.endswith(written.removeprefix(before))
    frame = body.removeprefix(before).removesuffix(written.removeprefix(before))
    assert frame.endswith(2 * newline)
    assert frame.count(newline) == 2
    verdict = json.loads(frame.removeprefix(b"data:"))
    assert verdict["choices"] == []
    assert verdict["id"] == "stream-1"
    assert verdict["truthlens"]["status"] == "checked"


def test_an_observed_stream_keeps_its_bytes_where_no_warning_is_wanted(
    raw: Callable[[Job], RawAnswer], model: StreamingModel
) -> None:
    model.texts = (BAD,)
    assert raw(job(QUIET)).body == model.written[-1]


@pytest.mark.parametrize("mode", MODES)
def test_a_flagged_tool_call_keeps_its_bytes(
    raw: Callable[[Job], RawAnswer], model: StreamingModel, mode: str
) -> None:
    model.frames = lambda _body, _endpoint: streams.tool_call()
    assert raw(job(f"{mode}-{FLAGGED}")).body == model.written[-1]


@pytest.mark.parametrize("mode", MODES)
def test_many_streams_at_once_keep_their_bytes(
    raw: Callable[[Job], RawAnswer], model: StreamingModel, mode: str
) -> None:
    """Twelve slow streams side by side: nothing lost, doubled, reordered or mixed up."""
    _apply(model, STYLES["odd-cuts"])
    jobs = [job(f"{mode}-{CLEAN}") for _ in range(12)]
    with ThreadPoolExecutor(len(jobs)) as pool:
        bodies = [answer.body for answer in pool.map(raw, jobs)]
    assert bodies == [model.written[-1]] * len(jobs)


# --- headers and what a gate does -----------------------------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_headers_say_what_is_known_when_they_leave(
    raw: Callable[[Job], RawAnswer], model: StreamingModel, mode: str
) -> None:
    """A live stream's verdict is pending; a buffered one has its score."""
    headers = raw(job(f"{mode}-{CLEAN}")).headers
    assert headers["x-truthlens-enabled"] == "true"
    assert headers["x-truthlens-decision"] == f"{mode}-{CLEAN}".replace(".", "-")
    if mode in LIVE:
        assert headers["x-truthlens-status"] == "pending"
        assert "x-truthlens-score" not in headers
    else:
        assert headers["x-truthlens-status"] == "checked"
        assert float(headers["x-truthlens-score"]) < float(CLEAN)
    assert "x-truthlens-reason" not in headers


def test_only_the_sentence_that_the_evidence_denies_is_marked(client: Client, model: StreamingModel) -> None:
    """The bundled model scores each sentence by itself."""
    model.texts = (BAD,)
    wrong, right = BAD.split(". ")
    read = client.through.read(job(f"gate-mark-{FAIR}"))
    assert read.texts == {0: f"{wrong}.{MARK} {right}"}


@of_many_choices
def test_one_choice_is_stopped_and_the_other_ends(client: Client, model: StreamingModel) -> None:
    """Of two interleaved choices each has its own fate."""
    model.texts = (BAD, GOOD)
    read = client.through.read(job(f"gate-stop-{FAIR}", n=2))
    assert read.error is None
    assert read.texts == {0: NOTICE, 1: GOOD}
    assert read.finish == {0: "content_filter", 1: "stop"}
