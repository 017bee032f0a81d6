"""Streams under way while the sidecar is killed, drained, stopped or reloaded, and while their clients are slow."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.integration.support.chaos.rounds import complaints, resident_mb
from tests.integration.support.models import GOOD
from tests.integration.support.stack import Stack
from tests.integration.support.streams.gateway import (
    MARK,
    NOTICE,
    RIGHT,
    WARNING,
    WRONG,
    Gateway,
    policy,
    sentence_ends,
)
from tests.integration.support.streams.stage import (
    LiveClient,
    Scene,
    SteppedBackend,
    envoy_stats,
    metric,
    read_back,
    until,
)
from tests.integration.support.streams.streams import answer, chunk, sse
from truthlens.core.records.enums import Endpoint

pytestmark = pytest.mark.envoy

HELD = 4
TEXT = f"{WRONG} {RIGHT} {GOOD}"
_PAUSED = "cluster.llm_backend.upstream_flow_control_paused_reading_total"
SAID = {"observe": WRONG, "mark-patient": WRONG + MARK, "withhold-patient": NOTICE}


def _deployed(folder: pytest.TempPathFactory, *, failure_mode_allow: bool) -> Iterator[Gateway]:
    stack = Stack(
        folder.mktemp("failing"),
        policy(),
        backend=SteppedBackend(),
        arguments=("--drain-notice", "0.1", "--drain-grace", "4"),
        failure_mode_allow=failure_mode_allow,
        message_timeout_s=6.0,
    )
    try:
        stack.start()
        yield Gateway(stack)
    finally:
        stack.stop()


@pytest.fixture(scope="module")
def fails_open(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A deployment that fails open."""
    yield from _deployed(tmp_path_factory, failure_mode_allow=True)


@pytest.fixture(scope="module")
def fails_closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """A deployment that fails closed."""
    yield from _deployed(tmp_path_factory, failure_mode_allow=False)


@pytest.fixture
def opening(fails_open: Gateway) -> Iterator[Gateway]:
    """The one that fails open, up and running; afterwards it is not the worse for what the test did to it."""
    yield from _running(fails_open)


@pytest.fixture
def closing(fails_closed: Gateway) -> Iterator[Gateway]:
    """The same of the one that fails closed."""
    yield from _running(fails_closed)


def _running(gateway: Gateway) -> Iterator[Gateway]:
    assert gateway.stack.sidecar is not None
    if gateway.stack.sidecar.poll() is not None:
        gateway.stack.start_sidecar()
    gateway.stack.wait_healthy()
    yield gateway
    assert not complaints(gateway.stack)
    stats = envoy_stats(gateway.stack)
    assert (stats["spurious_msgs_received"], stats["rejected_header_mutations"]) == (0, 0)


class Play:
    """Streams that are under way at once, each a little beyond the end of its first sentence, which has left."""

    def __init__(self, gateway: Gateway, stack: ExitStack, *plans: str) -> None:
        self.scenes = {plan: Scene(answer(TEXT)) for plan in plans}
        self.clients: dict[str, LiveClient] = {}
        self.cut = sentence_ends(next(iter(self.scenes.values())).frames)[0]
        before = _unanswered(gateway)
        for plan, scene in self.scenes.items():
            self.clients[plan] = stack.enter_context(gateway.open(plan, scene, details=True))
            for _ in range(self.cut + HELD):
                gateway.step(scene)
            self.clients[plan].until(b"(withheld)" if plan.startswith("withhold") else b"surch")
        held = HELD * sum(plan != "observe" for plan in plans)
        until(lambda: _unanswered(gateway) == before + held, "all that is scored has left")
        gateway.stack.backend.reply = lambda _request: sse(answer(GOOD))

    def held(self, plan: str) -> bytes:
        """What the backend has written and will write of the sentences behind the first."""
        return b"".join(self.scenes[plan].frames[self.cut :])


def _unanswered(gateway: Gateway) -> int:
    """Messages that Envoy has sent to the sidecar and got no answer to."""
    stats = envoy_stats(gateway.stack)
    return stats["stream_msgs_sent"] - stats["stream_msgs_received"]


def test_killed_it_loses_nothing_where_it_fails_open(opening: Gateway) -> None:
    """What was held leaves as the backend wrote it, once, and so does the rest; the next stream is checked again."""
    with ExitStack() as stack:
        play = Play(opening, stack, *SAID)
        opening.stack.kill_sidecar()
        for plan, client in play.clients.items():
            client.until(play.scenes[plan].frames[play.cut + HELD - 1])
            play.scenes[plan].rest()
            body = client.rest()
            assert not client.broken
            assert body.endswith(play.held(plan))
            assert read_back(body).texts == {0: TEXT.replace(WRONG, SAID[plan])}
        assert play.clients["observe"].body == play.scenes["observe"].written
    opening.stack.start_sidecar()
    opening.stack.wait_healthy()
    # The health check has a connection of its own; the workers' come back within moments of it.
    until(lambda: opening.told("mark", sse(answer(GOOD)), details=True).verdicts, "a checked stream")


def test_killed_it_breaks_streams_off_where_it_fails_closed(closing: Gateway) -> None:
    """Nothing that was held has left."""
    with ExitStack() as stack:
        play = Play(closing, stack, *SAID)
        closing.stack.kill_sidecar()
        for plan, client in play.clients.items():
            body = client.rest()
            play.scenes[plan].rest()
            assert client.broken
            if plan == "observe":
                assert play.scenes[plan].written.startswith(body)
            else:
                assert read_back(body).texts[0].strip() == SAID[plan]


@pytest.mark.parametrize("mode", ["opening", "closing"])
def test_drained_it_loses_nothing_that_it_may_not_lose(request: pytest.FixtureRequest, mode: str) -> None:
    """What ends within the grace has its verdict; observed streams go on without us; gated ones fail as they should."""
    gateway: Gateway = request.getfixturevalue(mode)
    with ExitStack() as stack:
        short = Play(gateway, stack, *SAID)
        long = Play(gateway, stack, *SAID)
        assert gateway.stack.sidecar is not None
        gateway.stack.sidecar.send_signal(signal.SIGTERM)
        until(lambda: envoy_stats(gateway.stack)["cluster.truthlens.membership_healthy"] == 0, "draining")
        for plan, client in short.clients.items():
            short.scenes[plan].rest()
            read = read_back(client.rest())
            assert not client.broken
            assert read.verdict["status"] == "checked"
            assert read.texts[0].startswith(TEXT.replace(WRONG, SAID[plan]).partition(GOOD)[0])
        assert gateway.stack.sidecar.wait(60) == 0
        for plan, client in long.clients.items():
            long.scenes[plan].rest()
            body = client.rest()
            assert client.broken is (mode == "closing" and plan != "observe")
            if client.broken:
                assert read_back(body).texts[0].strip() == SAID[plan]
            else:
                assert body.endswith(long.held(plan))
                assert read_back(body).texts == {0: TEXT.replace(WRONG, SAID[plan])}


def test_a_sidecar_that_hangs_holds_nothing_for_longer_than_envoy_waits(opening: Gateway) -> None:
    """And when it comes to again, nobody is hurt."""
    with ExitStack() as stack:
        play = Play(opening, stack, "mark-patient")
        assert opening.stack.sidecar is not None
        opening.stack.sidecar.send_signal(signal.SIGSTOP)
        try:
            play.scenes["mark-patient"].rest()
            client = play.clients["mark-patient"]
            body = client.rest()
            assert not client.broken
            assert body.endswith(play.held("mark-patient"))
        finally:
            opening.stack.sidecar.send_signal(signal.SIGCONT)
    until(lambda: metric(opening.stack, "truthlens_streams") == 0, "no stream left")
    opening.stack.wait_healthy()
    assert (
        read_back(opening.read("mark", sse(answer(GOOD)), details=True).body).verdict["status"] == "checked"
    )


def _edited(gateway: Gateway, edit: Callable[[str], str]) -> None:
    """Change the policy, and wait until it is in force."""
    stack = gateway.stack
    before = metric(stack, "truthlens_policy_reloads_total", result="ok")
    stack.policy.write_text(edit(stack.policy.read_text()))
    until(lambda: metric(stack, "truthlens_policy_reloads_total", result="ok") > before, "a reload")


def test_a_stream_keeps_the_plan_that_it_began_with(opening: Gateway) -> None:
    with ExitStack() as stack:
        play = Play(opening, stack, "mark-patient")
        _edited(opening, lambda text: text.replace(MARK, " (new mark)"))
        play.scenes["mark-patient"].rest()
        client = play.clients["mark-patient"]
        assert client.rest().count(MARK.encode()) == 1
        assert b"(new mark)" not in client.body
    assert b"(new mark)" in opening.read("mark", sse(answer(WRONG))).body
    _edited(opening, lambda text: text.replace(" (new mark)", MARK))


@pytest.mark.parametrize("plan", ["observe", "mark"])
def test_a_slow_client_of_a_fast_backend_costs_no_memory_of_ours(opening: Gateway, plan: str) -> None:
    """120 MB that nobody reads yet wait in Envoy and in the backend; what is passed on is let go of."""
    thought = chunk([{"index": 0, "delta": {"reasoning_content": "hm " * 3000}, "finish_reason": None}])
    frames = answer(GOOD)
    frames[1:1] = [thought] * (120_000_000 // len(thought))
    before, paused = resident_mb(opening.stack), envoy_stats(opening.stack)[_PAUSED]
    with opening.open(plan, sse(frames)) as client:
        client.until(b"hm hm")
        until(lambda: envoy_stats(opening.stack)[_PAUSED] > paused, "Envoy reads no more of the backend")
        assert resident_mb(opening.stack) < before + 110
        # Reasoning may turn out to stand in place of an answer, so it is kept, as far as a body is read at all.
        assert metric(opening.stack, "truthlens_held_bytes") < 18_000_000
        body = client.rest()
        assert not client.broken
    assert body == b"".join(frames)
    assert resident_mb(opening.stack) < before + 110


_LIMITS = "limits: {max_body_bytes: 20000, max_held_bytes: 60000}\n"


@pytest.mark.parametrize("endpoint", list(Endpoint))
def test_beyond_its_bounds_a_stream_passes_whole_or_is_cut_as_the_plan_says(
    opening: Gateway, endpoint: Endpoint
) -> None:
    """A body that is too large is checked no further, and says so."""
    _edited(opening, lambda text: _LIMITS + text)
    text = " ".join([GOOD] * 12)
    frames = answer(text, endpoint=endpoint)
    assert len(b"".join(frames)) > 40_000
    for plan in ("observe", "mark"):
        read = opening.told(plan, sse(frames), endpoint=endpoint, details=True)
        # Nothing is known of a stream whose first message is too large already.
        assert read.verdict["status"] in ("partial", "unchecked")
        assert read.verdict["reason"] == "too-large"
        # A sentence that the bound cuts through may be marked where it does.
        assert read.texts[0].removesuffix(f"\n\n{WARNING}").replace(MARK, "") == text
    read = opening.told("block", sse(frames), endpoint=endpoint, details=True)
    assert read.finish == {0: "content_filter"}
    assert (read.done, read.verdict["action"]) == (1, "block")
    assert text.startswith(read.texts[0])
    _edited(opening, lambda text: text.removeprefix(_LIMITS))
