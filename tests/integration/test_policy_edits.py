"""Edits of the policy of a running server: a bad one changes nothing but what is said of it, the next good one counts."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.support.backend import completion, json_reply
from tests.integration.support.stack import Stack
from tests.integration.test_bodies import GROUNDED, REQUEST
from tests.policy.test_any_file import TEXTS
from truthlens.process.model_store import BUNDLED_MODEL
from truthlens.process.settings import models_folder

pytestmark = pytest.mark.envoy

GOOD = "hallucination: {{threshold: {}}}\n"
BAD = [name for name, (_, said) in TEXTS.items() if said]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A deployment whose backend always gives the same answer."""
    stack = Stack(tmp_path_factory.mktemp("edits"), GOOD.format(1.0))
    stack.backend.reply = lambda _request: json_reply(completion(GROUNDED))
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()


@pytest.fixture(autouse=True)
def good_file_at_the_start(stack: Stack) -> None:
    """What a test that failed has left behind fails no other one."""
    put_good(stack, 1.0)
    until(
        lambda: ready(stack)["last_error"] is None and detected(stack) == "false", "the good policy in force"
    )


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def put_good(stack: Stack, threshold: float) -> None:
    if stack.policy.is_dir():
        stack.policy.rmdir()
    elif not stack.policy.is_file():
        stack.policy.unlink(missing_ok=True)
    stack.policy.write_text(GOOD.format(threshold))


def ready(stack: Stack) -> dict[str, Any]:
    response = httpx.get(f"{stack.console_url}/readyz")
    assert response.status_code == 200
    policy: dict[str, Any] = response.json()["policy"]
    return policy


def detected(stack: Stack) -> str:
    return stack.post(REQUEST).headers.get("x-truthlens-detected", "unchecked")


def failed_reloads(stack: Stack) -> float:
    text = httpx.get(f"{stack.console_url}/metrics").text
    name = 'truthlens_policy_reloads_total{result="failed"} '
    return next((float(line.removeprefix(name)) for line in text.splitlines() if line.startswith(name)), 0.0)


def bad_then_good(stack: Stack, put: Callable[[Path], None], said: str) -> None:
    """The bad state is told and counted, answers are scored as before, and a good file is taken over."""
    before = failed_reloads(stack)
    put(stack.policy)
    # Not any error: what is told first may be a file that is still empty, on a machine that is slow to write it.
    until(lambda: said in (ready(stack)["last_error"] or ""), said)
    assert failed_reloads(stack) > before
    assert detected(stack) == "false"
    for threshold, flagged in ((0.0, "true"), (1.0, "false")):
        put_good(stack, threshold)
        until(lambda flagged=flagged: detected(stack) == flagged, f"threshold {threshold}")
    assert ready(stack)["last_error"] is None


@pytest.mark.parametrize("name", ["empty int", "word as bool", "word as date", "empty float", "nested groups",
                                  "merges of merges", "huge number", "no character", "a long comment"])  # fmt: skip
def test_a_text_that_cannot_be_used(stack: Stack, name: str) -> None:
    """No text of a policy file ends the process."""
    text, said = TEXTS[name]
    bad_then_good(stack, lambda path: path.write_text(text) and None, said)


def test_what_is_no_file(stack: Stack) -> None:
    """Nor does anything else that is put in the place of the file."""

    def gone(path: Path) -> None:
        path.unlink()

    def folder(path: Path) -> None:
        path.unlink()
        path.mkdir()

    def pipe(path: Path) -> None:
        path.unlink()
        os.mkfifo(path)

    for put, said in ((gone, "cannot be read"), (folder, "no regular file"), (pipe, "no regular file")):
        bad_then_good(stack, put, said)


def test_a_model_that_cannot_run_here(stack: Stack) -> None:
    """A policy whose model asks for a GPU is refused where there is none, with the decision that asks."""
    folder = models_folder(None) / BUNDLED_MODEL
    text = f"hallucination: {{model_id: '{folder}', use_cpu: false}}\n"
    bad_then_good(
        stack, lambda path: path.write_text(text) and None, ":1: hallucination: its model cannot be used here"
    )


def test_nothing_of_all_this_is_in_the_log_as_a_traceback(stack: Stack) -> None:
    """Failed reloads are log lines."""
    log = (stack.folder / "sidecar.log").read_text()
    assert "policy not reloaded" in log
    assert "Traceback" not in log
