"""What is around an exchange turns bad: HTTP/2 clients that break off, clocks that jump, a disk that is full, many requests."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from tests.attack.backend import SCRIPT, Answer, DecodingBackend
from tests.attack.gateway import NIGHTLY, Target, says, shown
from tests.attack.texts import FALSE, PLAIN, TRUE, tells
from tests.integration.support.backend import Backend, completion
from tests.integration.support.stack import Stack, wait_for

pytestmark = pytest.mark.envoy

_POLICY = "hallucination: {threshold: 0.3, on_unchecked: block, streaming: buffer}\nreview: {keep_text: true, rules: [{name: flagged}]}\n"
_FAKETIME = next(iter(sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))), None)


def _stack(folder: Path, **options: Any) -> Stack:
    return Stack(folder, _POLICY, backend=cast("Backend", DecodingBackend()), **options)


def _started(stack: Stack) -> Iterator[Target]:
    try:
        stack.start()
        with Target(stack, cast("DecodingBackend", stack.backend)).opened() as target:
            yield target
    finally:
        stack.stop()


def _frames(text: str) -> list[bytes]:
    deltas = [{"choices": [{"index": 0, "delta": {"content": f"{word} "}}]} for word in text.split()]
    return [*(f"data: {json.dumps(delta)}\n\n".encode() for delta in deltas), b"data: [DONE]\n\n"]


def _metric(target: Target, name: str) -> float:
    """Return the sum of a metric's series."""
    lines = httpx.get(f"{target.stack.console_url}/metrics").text.splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith((f"{name}{{", f"{name} ")))


# --- HTTP/2 -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [200 if NIGHTLY else 40])
def test_streams_of_one_http2_connection_have_verdicts_of_their_own(holds_back: Target, count: int) -> None:
    """Many exchanges at once over one connection: none has another one's verdict, and none goes unchecked."""
    true, false = (
        holds_back.backend.register(Answer([json.dumps(completion(text)).encode()])) for text in (TRUE, FALSE)
    )

    async def ask_all() -> list[httpx.Response]:
        limits = httpx.Limits(max_connections=1)
        async with httpx.AsyncClient(http1=False, http2=True, timeout=90, limits=limits) as client:
            url = f"{holds_back.stack.url}/v1/chat/completions"
            names = [false if number % 2 else true for number in range(count)]
            return await asyncio.gather(
                *(client.post(url, json=PLAIN, headers={SCRIPT: name}) for name in names)
            )

    responses = asyncio.run(ask_all())
    assert {response.http_version for response in responses} == {"HTTP/2"}
    for number, response in enumerate(responses):
        told = says(response)
        assert told.get("status") == "checked", shown(response)
        assert told["detected"] == ("true" if number % 2 else "false"), shown(response)


def test_http2_clients_that_reset_their_streams_cost_nobody_else(by_header: Target) -> None:
    """A client that opens streams and resets them leaves no exchange behind, and others keep their verdicts."""
    name = by_header.backend.register(Answer(_frames(f"{TRUE} {FALSE}"), "text/event-stream"))

    async def reset_all() -> None:
        async with httpx.AsyncClient(http1=False, http2=True, timeout=90) as client:
            url = f"{by_header.stack.url}/v1/chat/completions"
            for number in range(200 if NIGHTLY else 30):
                sent = {SCRIPT: name, "x-domain": "withhold"}
                async with client.stream(
                    "POST", url, json={**PLAIN, "stream": True}, headers=sent
                ) as response:
                    if number % 2:
                        await anext(response.aiter_raw(), None)

    asyncio.run(reset_all())
    by_header.is_well()
    wait_for(lambda: _metric(by_header, "truthlens_inflight") == 0, "no exchange in flight")


def test_http2_headers_that_are_ours_are_removed(holds_back: Target) -> None:
    """A client's and a backend's ``x-truthlens-*`` are no verdict over HTTP/2 either."""
    forged = {"x-truthlens-status": "checked", "x-truthlens-score": "0.00"}
    name = holds_back.backend.register(Answer([json.dumps(completion(FALSE)).encode()], headers=forged))
    with httpx.Client(http1=False, http2=True, timeout=90) as client:
        response = client.post(
            f"{holds_back.stack.url}/v1/chat/completions", json=PLAIN, headers={SCRIPT: name, **forged}
        )
    assert says(response)["detected"] == "true", shown(response)
    assert response.headers.get_list("x-truthlens-score") != ["0.00"]


# --- clock ------------------------------------------------------------------------------------------------


@pytest.fixture
def clock(tmp_path: Path) -> Iterator[tuple[Target, Path]]:
    """A deployment whose sidecar reads the time that a file says."""
    if _FAKETIME is None:
        pytest.skip("libfaketime is not installed (apt-get install faketime); .ci/run installs it")
    said = tmp_path / "now"
    said.write_text("+0")
    environ = {
        "LD_PRELOAD": str(_FAKETIME),
        "FAKETIME_TIMESTAMP_FILE": str(said),
        "FAKETIME_NO_CACHE": "1",
        # What a machine's clock does when it is set: the monotonic one goes on.
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    database = ["--review-database", f"sqlite:///{tmp_path}/reviews.db"]
    for target in _started(_stack(tmp_path, arguments=database, environ=environ)):
        yield target, said


def test_a_clock_that_jumps_costs_no_verdict(clock: tuple[Target, Path]) -> None:
    """A day forward, ten years back, to the end of 2037: verdicts, deadlines and the queue do not depend on it."""
    target, said = clock
    flagged = 0
    for jump in ("+0", "+1d", "-10y", "+11y", "-1d", "+0"):
        said.write_text(jump)
        for text, detected in ((TRUE, "false"), (FALSE, "true")):
            response = target.ask(text)
            told = says(response)
            assert (told.get("status"), told.get("detected")) == ("checked", detected), (
                jump,
                shown(response),
            )
            assert 0 <= int(told["latency-ms"]) < 60_000, (jump, told)
        flagged += 1
        assert httpx.get(f"{target.stack.console_url}/readyz").status_code == 200
    _wait_written(target, flagged)
    target.is_well()


def _wait_written(target: Target, least: float) -> None:
    """Wait for so many entries of the review queue, of all that the sidecar has written."""
    wait_for(lambda: _metric(target, "truthlens_reviews_written_total") >= least, f"{least:g} entries")


# --- disk -------------------------------------------------------------------------------------------------


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of sixteen megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = os.geteuid() == 0 and shutil.which("mount") is not None
    if mounted:
        command = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(folder)]
        mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
    if not mounted:
        pytest.skip("a small file system cannot be mounted here: that needs root and the right to mount")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_full_disk_costs_entries_of_the_queue_and_no_answer(disk: Path, tmp_path: Path) -> None:
    """While the disk is full answers have their verdicts; when there is room again the queue goes on."""
    stack = _stack(tmp_path, arguments=["--review-database", f"sqlite:///{disk}/reviews.db"])
    for target in _started(stack):
        target.ask(FALSE)
        _wait_written(target, 1)
        filling = disk / "filling"
        with contextlib.suppress(OSError), filling.open("wb", buffering=0) as out:
            while True:
                out.write(b"x" * 4096)
        for _ in range(20):
            response = target.ask(FALSE)
            assert says(response).get("detected") == "true", shown(response)
        target.is_well()
        filling.unlink()
        written = _metric(target, "truthlens_reviews_written_total")
        target.ask(FALSE)
        _wait_written(target, written + 1)


# --- many -------------------------------------------------------------------------------------------------


def test_memory_is_flat_over_many_requests(holds_back: Target) -> None:
    """What one exchange takes is given back: the last requests cost no more memory than the first."""
    count = 20_000 if NIGHTLY else 400

    def ask(number: int) -> str:
        # Every text is another one, so that nothing that is kept by text stays small by chance.
        body = {
            **PLAIN,
            "messages": [{"role": "user", "content": f"{PLAIN['messages'][0]['content']} ({number})"}],
        }
        return says(holds_back.ask(f"{FALSE if number % 3 else TRUE} Number {number}.", body=body)).get(
            "status", "none"
        )

    with ThreadPoolExecutor(4) as pool:
        assert set(pool.map(ask, range(count // 4))) == {"checked"}
        warm = holds_back.memory()
        assert set(pool.map(ask, range(count // 4, count))) == {"checked"}
    grown = holds_back.memory() - warm
    assert grown < 60 << 20, f"{grown >> 20} MB more after {count} requests"


def test_an_invention_is_told_from_the_truth_here(holds_back: Target) -> None:
    """Else nothing here would show anything."""
    assert tells(FALSE.encode())
    assert says(holds_back.ask(TRUE))["detected"] == "false"
