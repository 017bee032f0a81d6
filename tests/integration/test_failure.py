"""The sidecar killed, drained and restarted under load; Envoy fails open or closed as it was told."""

from __future__ import annotations

import resource
import signal
import threading
import time
from collections import Counter
from typing import Any, Self

import httpx
import pytest

from tests.integration.support.backend import completion, json_reply
from tests.integration.support.stack import Stack
from tests.integration.support.streams.stage import metric, until
from tests.integration.test_bodies import GROUNDED, REQUEST

pytestmark = pytest.mark.envoy


class Load:
    """A few clients that keep asking; every answer is counted by status code and TruthLens status."""

    def __init__(self, stack: Stack, *, clients: int = 4) -> None:
        self.seen: Counter[tuple[int, str]] = Counter()
        self.wrong: list[str] = []
        self._stack = stack
        self._end = threading.Event()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._ask) for _ in range(clients)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        for thread in self._threads:
            thread.join(60)

    def _ask(self) -> None:
        with httpx.Client(timeout=30) as client:
            while not self._end.is_set():
                try:
                    response = client.post(f"{self._stack.url}/v1/chat/completions", json=REQUEST)
                except httpx.TransportError as error:
                    key = (0, type(error).__name__)
                else:
                    key = (response.status_code, response.headers.get("x-truthlens-status", "absent"))
                    self._look(response)
                with self._lock:
                    self.seen[key] += 1

    def _look(self, response: httpx.Response) -> None:
        status = response.headers.get("x-truthlens-status")
        if response.status_code == 200:
            if not response.json()["choices"][0]["message"]["content"].endswith(GROUNDED):
                self.wrong.append("text lost")
            if status == "unchecked" and response.headers.get("x-truthlens-reason") not in (
                "unavailable",
                "overloaded",
                "timeout",
            ):
                self.wrong.append(f"unchecked for {response.headers.get('x-truthlens-reason')}")
            if status not in ("checked", "unchecked"):
                self.wrong.append(f"status {status}")

    def wait(self, key: tuple[int, str], count: int = 5) -> None:
        """Until ``count`` more answers of this kind have come."""
        goal, deadline = self.seen[key] + count, time.monotonic() + 60
        while self.seen[key] < goal:
            assert time.monotonic() < deadline, f"no {key} answers; seen {self.seen}"
            time.sleep(0.02)


def start(stack: Stack, **options: Any) -> None:
    stack._options.update(options)
    stack.backend.reply = lambda _request: json_reply(completion(GROUNDED))
    stack.start()


def test_killed_under_load_it_fails_open_and_visibly(fresh_stack: Stack) -> None:
    """Answers keep coming while the sidecar is dead, marked as unavailable; after the restart they are checked again."""
    start(fresh_stack, failure_mode_allow=True)
    with Load(fresh_stack) as load:
        load.wait((200, "checked"))
        fresh_stack.kill_sidecar()
        load.wait((200, "unchecked"))
        fresh_stack.start_sidecar()
        load.wait((200, "checked"))
    assert not load.wrong
    assert set(load.seen) == {(200, "checked"), (200, "unchecked")}


def test_killed_under_load_it_fails_closed(fresh_stack: Stack) -> None:
    """With failure_mode_allow false no unchecked answer reaches a client; after the restart answers come again."""
    start(fresh_stack, failure_mode_allow=False)
    with Load(fresh_stack) as load:
        load.wait((200, "checked"))
        fresh_stack.kill_sidecar()
        load.wait((503, "unchecked"))
        fresh_stack.start_sidecar()
        load.wait((200, "checked"))
    assert not load.wrong
    assert (200, "unchecked") not in load.seen
    assert {status for status, _ in load.seen} <= {200, 503, 504}


def test_terminated_it_drains_without_losing_an_exchange(fresh_stack: Stack) -> None:
    """SIGTERM: Envoy is told first, exchanges in flight end with a verdict, the process ends by itself with 0."""
    start(fresh_stack, failure_mode_allow=True)
    with Load(fresh_stack) as load:
        load.wait((200, "checked"))
        assert fresh_stack.sidecar is not None
        fresh_stack.sidecar.send_signal(signal.SIGTERM)
        load.wait((200, "unchecked"))
        assert fresh_stack.sidecar.wait(60) == 0
    assert not load.wrong
    assert set(load.seen) == {(200, "checked"), (200, "unchecked")}


def test_a_bad_edit_keeps_the_old_policy_and_a_good_one_counts_at_once(fresh_stack: Stack) -> None:
    """Hot reload through the real gateway: threshold 0 flags everything; a broken file changes nothing but /readyz."""
    start(fresh_stack)
    relaxed = fresh_stack.policy.read_text()

    def detected() -> str:
        return fresh_stack.post(REQUEST).headers["x-truthlens-detected"]

    def reload_error() -> Any:
        return httpx.get(f"{fresh_stack.console_url}/readyz").json()["policy"]["last_error"]

    def put(text: str) -> None:
        # Whole: what is written in place can be seen empty, which is a failed reload of its own.
        new = fresh_stack.policy.with_suffix(".new")
        new.write_text(text)
        new.replace(fresh_stack.policy)

    def until(condition: Any) -> None:
        deadline = time.monotonic() + 30
        while not condition():
            assert time.monotonic() < deadline
            time.sleep(0.05)

    put(relaxed.replace("hallucination:\n", "hallucination:\n  threshold: 0.0\n", 1))
    until(lambda: detected() == "true")
    put("hallucination: {treshold: 0.5}\n")
    until(lambda: reload_error() is not None)
    assert "treshold" in reload_error()
    assert detected() == "true"
    assert httpx.get(f"{fresh_stack.console_url}/readyz").status_code == 200
    assert (
        'truthlens_policy_reloads_total{result="failed"} 1.0'
        in httpx.get(f"{fresh_stack.console_url}/metrics").text
    )
    put(relaxed.replace("hallucination:\n", "hallucination:\n  threshold: 1.0\n", 1))
    until(lambda: detected() == "false")
    assert reload_error() is None


def test_a_log_that_cannot_be_written_costs_no_verdict(stack: Stack) -> None:
    """As on a full disk: answers are checked as before, the lost lines are counted, and the log goes on when there is room."""
    stack.backend.reply = lambda _request: json_reply(completion(GROUNDED))
    assert stack.sidecar is not None
    usual = resource.prlimit(stack.sidecar.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(stack.sidecar.pid, resource.RLIMIT_FSIZE, (0, usual[1]))
    for _ in range(3):
        response = stack.post(REQUEST)
        assert (response.status_code, response.headers["x-truthlens-status"]) == (200, "checked")
    assert metric(stack, "truthlens_log_lines_lost_total") >= 3
    resource.prlimit(stack.sidecar.pid, resource.RLIMIT_FSIZE, usual)
    stack.post(REQUEST, headers={"x-request-id": "there-is-room"})
    until(lambda: "there-is-room" in (stack.folder / "sidecar.log").read_text(), "a line of the log")
