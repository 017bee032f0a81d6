"""TruthLens behind a router of requests, two ext_proc filters in one chain: nothing is lost, and the router's word counts."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.ports import free_port
from tests.integration.support.backend import Raw, completion, http, json_reply
from tests.integration.support.models import BAD, GOOD, request
from tests.integration.support.stack import Stack, wait_for
from tests.integration.support.streams.stage import LiveClient, read_back
from tests.integration.support.streams.streams import DONE, Framing, answer, chunk, sse
from truthlens.core.net import Address
from truthlens.envoy.config import EnvoySettings, render
from truthlens.envoy.ports import is_listening

pytestmark = pytest.mark.envoy

NOTICE, WARNING = "(withheld)", "Check this."
POLICY = f"""\
trusted_headers: [x-domain]
hallucination: {{default_mode: lightweight, detectors: [encoder], threshold: 0.6, warning_template: "{WARNING}"}}
signals:
  domains:
    - {{name: gate, headers: {{x-domain: [gate]}}}}
    - {{name: observe, headers: {{x-domain: [observe]}}}}
    - {{name: disabled, headers: {{x-domain: [disabled]}}}}
decisions:
  - name: gate
    priority: 30
    rules: {{type: domain, name: gate}}
    plugins:
      - type: hallucination
        configuration: {{streaming: gate, on_flagged: withhold, stream: {{max_hold_s: 60, notice_template: "{NOTICE}"}}}}
  - name: observe
    priority: 20
    rules: {{type: domain, name: observe}}
    plugins: [{{type: hallucination, configuration: {{streaming: observe}}}}]
  - name: disabled
    priority: 10
    rules: {{type: domain, name: disabled}}
    plugins: [{{type: hallucination, configuration: {{enabled: false}}}}]
"""
_FILTER = "envoy.filters.http.ext_proc/router"
_LARGE = 3 << 20
_PAD = 48 << 10
# A router that thinks about the headers of an answer, where its filter sends them.
_LATE_S = 0.05


class RouterStack(Stack):
    """A deployment with a second processor in front, or ``behind``; ``modes`` of its filter in place of the shipped ones.

    What is behind TruthLens cannot choose its decision: there the default one gates.
    """

    def __init__(self, folder: Path, *, modes: dict[str, str] | None = None, behind: bool = False) -> None:
        self.behind = behind
        self.router = Address("127.0.0.1", free_port())
        self.modes = modes or {}
        self._process: subprocess.Popen[bytes] | None = None
        # The subject is what is lost, not what a busy machine has no time for.
        slow = POLICY.replace("threshold:", "timeout_s: 30, threshold:", 1)
        if behind:
            gate = f'streaming: gate, on_flagged: withhold, stream: {{max_hold_s: 60, notice_template: "{NOTICE}"}}'
            slow = slow.partition("signals:")[0].replace("threshold:", f"{gate}, threshold:")
        super().__init__(folder, slow, router=self.router, message_timeout_s=90.0, patient=True)

    def bootstrap(self, settings: EnvoySettings) -> str:
        config = json.loads(render(settings))
        listener = config["static_resources"]["listeners"][0]
        manager = listener["filter_chains"][0]["filters"][0]["typed_config"]
        (router,) = [entry for entry in manager["http_filters"] if entry["name"] == _FILTER]
        router["typed_config"]["processing_mode"].update(self.modes)
        if self.behind:
            filters = manager["http_filters"]
            filters.remove(router)
            filters.insert(-1, router)
        if self.modes.get("response_body_mode") == "FULL_DUPLEX_STREAMED":
            router["typed_config"]["failure_mode_allow"] = False  # Envoy has given the pieces away
        return json.dumps(config)

    def start(self) -> None:
        command = [sys.executable, "-m", "tests.integration.support.second_processor", str(self.router)]
        with (self.folder / "router.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, str(self._messages), "--late", str(_LATE_S)], stdout=log, stderr=log
            )
        wait_for(lambda: is_listening(self.router), "the router listening")
        super().start()

    def stop(self) -> None:
        self.kill_router()
        super().stop()

    def kill_router(self) -> None:
        """End the second processor and wait for it."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(20)

    @property
    def _messages(self) -> Path:
        return self.folder / "router.jsonl"

    def seen(self) -> Counter[str]:
        """Bytes of bodies that the second processor was sent, by phase."""
        found: Counter[str] = Counter()
        for line in self._messages.read_text().splitlines():
            message = json.loads(line)
            found[message["phase"]] += message["bytes"]
        return found


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RouterStack]:
    """The shipped configuration, for all tests that do not break it."""
    yield from _running(RouterStack(tmp_path_factory.mktemp("two")))


def _running(stack: RouterStack) -> Iterator[RouterStack]:
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()


def ask(
    stack: RouterStack, topic: str, reply: Callable[..., Raw] | Raw, *, stream: bool = True, **fields: Any
) -> LiveClient:
    """The whole answer to a request about ``topic``."""
    stack.backend.reply = reply if callable(reply) else lambda _request: reply
    asked = request("scripted-model", stream=stream, user=f"topic:{topic}", **fields)
    with LiveClient(stack.listen, asked, {}) as client:
        client.rest()
        assert not client.broken
        return client


def padded(frames: Sequence[bytes], size: int) -> list[bytes]:
    """The frames, and behind the last text chunks that say nothing, ``size`` bytes in all.

    Not among the text: what is held beyond ``max_hold_bytes`` is scored as far as it has come, and half a sentence may
    have another score than the whole.
    """
    # An address: no other text in a member that nobody knows passes a gate.
    pads = [chunk([], padding="data:image/png;base64," + "p" * _PAD) for _ in range(size // _PAD)]
    return [*frames[:-2], *pads, *frames[-2:]]


# --- the router's word ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("topic", ["gate", "observe", "disabled"])
def test_the_header_that_the_router_sets_picks_the_decision(deployment: RouterStack, topic: str) -> None:
    """The router reads the body, TruthLens the header that the router makes of it, and the backend gets both."""
    client = ask(deployment, topic, sse(answer(GOOD)))
    assert client.says("decision") == topic
    assert deployment.backend.received[-1].headers["x-domain"] == topic
    assert deployment.seen()["request_body"] > 0


def test_the_header_of_a_client_counts_for_nothing(deployment: RouterStack) -> None:
    """Neither for TruthLens nor for the backend, where the router says nothing."""
    deployment.backend.reply = lambda _request: json_reply(completion(GOOD))
    response = deployment.post(request("scripted-model"), headers={"x-domain": "disabled"})
    assert response.headers["x-truthlens-decision"] == "default"
    assert response.headers["x-truthlens-status"] == "checked"
    assert "x-domain" not in deployment.backend.received[-1].headers


def test_without_the_router_answers_are_checked_by_the_default_decision(tmp_path: Path) -> None:
    """The router's filter fails open, TruthLens's goes on, and the client's own header still counts for nothing."""
    for stack in _running(RouterStack(tmp_path)):
        stack.kill_router()
        stack.backend.reply = lambda _request: json_reply(completion(BAD))
        response = stack.post(request("scripted-model"), headers={"x-domain": "disabled"})
        assert response.headers["x-truthlens-decision"] == "default"
        assert response.headers["x-truthlens-detected"] == "true"
        assert response.json()["choices"][0]["message"]["content"].startswith(WARNING)
        assert stack.stat("http.llm.ext_proc.router.failure_mode_allowed") == 1
        assert stack.stat("http.llm.ext_proc.failure_mode_allowed") == 0


# --- bodies ---------------------------------------------------------------------------------------------------

VARIANTS: dict[str, dict[str, str]] = {
    "shipped": {},
    "streamed-bodies": {"response_header_mode": "SEND", "response_body_mode": "STREAMED"},
    "buffered-bodies": {"response_header_mode": "SEND", "response_body_mode": "BUFFERED"},
}


@pytest.fixture(scope="module", params=VARIANTS)
def variant(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RouterStack]:
    """A router that leaves answers alone, and routers that process them too."""
    modes = VARIANTS[request.param]
    yield from _running(RouterStack(tmp_path_factory.mktemp(request.param), modes=modes))


# --- an endpoint picker, in full duplex both ways --------------------------------------------------------------

PICKER = {
    "request_body_mode": "FULL_DUPLEX_STREAMED",
    "request_trailer_mode": "SEND",
    "response_header_mode": "SEND",
    "response_body_mode": "FULL_DUPLEX_STREAMED",
    "response_trailer_mode": "SEND",
}


@pytest.fixture(scope="module")
def picker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RouterStack]:
    """Before TruthLens in the list."""
    yield from _running(RouterStack(tmp_path_factory.mktemp("picker"), modes=PICKER))


@pytest.fixture(scope="module")
def picker_behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RouterStack]:
    """Behind TruthLens, right before Envoy's own router."""
    yield from _running(RouterStack(tmp_path_factory.mktemp("behind"), modes=PICKER, behind=True))


@pytest.fixture(params=["picker", "picker_behind"])
def any_picker(request: pytest.FixtureRequest) -> RouterStack:
    """In each place."""
    stack: RouterStack = request.getfixturevalue(request.param)
    return stack


def test_json_of_several_mib_passes_a_picker_uncut(any_picker: RouterStack) -> None:
    """Request and answer; and an answer that is changed."""
    picker = any_picker
    body = json.dumps(completion(GOOD, padding="p" * _LARGE)).encode()
    client = ask(picker, "gate", http(body), stream=False, padding="q" * _LARGE)
    assert client.body == body
    assert client.says("status") == "checked"
    sent = picker.backend.received[-1]
    assert len(json.loads(sent.body)["padding"]) == _LARGE
    assert sent.headers["x-domain"] == "gate"
    client = ask(picker, "none", json_reply(completion(BAD, padding="p" * _LARGE)), stream=False)
    assert client.says("detected") == "true"
    assert len(json.loads(client.body)["padding"]) == _LARGE


@pytest.mark.parametrize("framing", Framing)
def test_streams_of_several_mib_pass_a_picker_uncut(any_picker: RouterStack, framing: Framing) -> None:
    """Bit by bit, and at once, side by side; held back by a gate."""
    picker = any_picker
    frames = padded(answer(GOOD), _LARGE)
    assert ask(picker, "gate", sse(frames, framing=framing, pause_s=0.001)).body == b"".join(frames)

    def once(_number: int) -> bytes:
        return ask(picker, "gate", sse([b"".join(frames)], framing=framing)).body

    with ThreadPoolExecutor(4) as pool:
        assert all(body == b"".join(frames) for body in pool.map(once, range(12)))


def test_what_is_withheld_is_withheld_beside_a_picker_too(any_picker: RouterStack) -> None:
    """The flagged sentence is gone, the other stays, and the stream is whole."""
    _withheld(any_picker)


@pytest.mark.parametrize("size", [0, _LARGE], ids=["small", "large"])
def test_json_passes_both_filters_byte_for_byte(variant: RouterStack, size: int) -> None:
    """Request and answer, as long as nothing is flagged."""
    body = json.dumps(completion(GOOD, padding="p" * size)).encode()
    client = ask(variant, "gate", http(body), stream=False, padding="q" * size)
    assert client.body == body
    assert (client.says("status"), client.says("detected")) == ("checked", "false")
    assert len(json.loads(variant.backend.received[-1].body)["padding"]) == size


def test_a_json_answer_that_is_changed_arrives_whole(variant: RouterStack) -> None:
    """The warning makes it longer; where a length is told, it is right: Envoy tells none where a filter streams bodies."""
    client = ask(variant, "gate", json_reply(completion(BAD, padding="p" * _LARGE)), stream=False)
    changed = json.loads(client.body)
    assert changed["choices"][0]["message"]["content"].startswith(WARNING)
    assert len(changed["padding"]) == _LARGE
    streamed = variant.modes.get("response_body_mode") == "STREAMED"
    assert client.headers.get("content-length") == (None if streamed else str(len(client.body)))


@pytest.mark.parametrize("topic", ["gate", "observe", "disabled"])
@pytest.mark.parametrize("framing", Framing)
@pytest.mark.parametrize("size", [0, _LARGE], ids=["small", "large"])
def test_streams_pass_both_filters_byte_for_byte(
    variant: RouterStack, topic: str, framing: Framing, size: int
) -> None:
    """Whether they come at once or bit by bit, and however their end is told."""
    frames = padded(answer(GOOD), size)
    for pause_s in (0.0, 0.001):
        client = ask(variant, topic, sse(frames, framing=framing, pause_s=pause_s))
        assert client.body == b"".join(frames)


def test_instant_streams_side_by_side_lose_nothing(variant: RouterStack) -> None:
    """Sixty answers that the backend has ready at once, four at a time: here the order of events is left to chance."""
    frames = padded(answer(GOOD), _LARGE)

    def once(_number: int) -> bytes:
        return ask(variant, "gate", sse([b"".join(frames)])).body

    with ThreadPoolExecutor(4) as pool:
        assert all(body == b"".join(frames) for body in pool.map(once, range(60)))


def test_what_is_withheld_from_a_stream_is_withheld_behind_a_router_too(variant: RouterStack) -> None:
    """The flagged sentence is gone, the other stays, and the stream is whole."""
    _withheld(variant)


def _withheld(stack: RouterStack) -> None:
    asked: list[LiveClient] = []

    def admitted() -> bool:
        asked.append(ask(stack, "gate", sse(padded(answer(BAD), _LARGE), framing=Framing.LENGTH)))
        return asked[-1].says("reason") != "overloaded"

    # Behind streams that kept it busy it refuses one more, and says so.
    wait_for(admitted, "room for a stream")
    client = asked[-1]
    told = read_back(client.body)
    assert told.texts[0].startswith(NOTICE)
    assert told.texts[0].endswith("An international one costs 40 dollars.")
    assert told.finish == {0: "stop"}
    assert client.body.endswith(DONE)
    assert client.body.count(b'"padding"') == _LARGE // _PAD


def test_a_router_of_answers_gets_what_truthlens_lets_through(variant: RouterStack) -> None:
    """Answers pass TruthLens first: a router that processes them gets them changed."""
    before = variant.seen()["response_body"]
    client = ask(variant, "gate", sse(answer(BAD)))
    processes = "response_body_mode" in variant.modes
    assert variant.seen()["response_body"] - before == (len(client.body) if processes else 0)
