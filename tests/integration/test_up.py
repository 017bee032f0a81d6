"""``truthlens up`` as a newcomer runs it: real Envoy, bundled model, demo backend, the official client."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import openai
import pytest

from tests.integration.support.stack import free_port, wait_for
from truthlens.delivery import HEADER_NAMES
from truthlens.demo import BY_NAME, chat_request
from truthlens.process.settings import shipped_policy

pytestmark = pytest.mark.envoy

WARNING = "⚠️ **Note**"


class Up:
    """A running ``truthlens up`` with a copy of the shipped policy."""

    def __init__(self, folder: Path) -> None:
        self.policy = folder / "policy.yaml"
        self.policy.write_text(shipped_policy().read_text(encoding="utf-8"), encoding="utf-8")
        self.url, self.console = f"http://127.0.0.1:{free_port()}", f"http://127.0.0.1:{free_port()}"
        self.output = folder / "up.log"
        with self.output.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "truthlens", "up", "--config", str(self.policy),
                 "--listen", self.url.removeprefix("http://"), "--console", self.console.removeprefix("http://"),
                 "--extproc", f"127.0.0.1:{free_port()}", "--workers", "1"],
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "COLUMNS": "200"},
            )  # fmt: skip
        wait_for(self._is_up, "truthlens up")

    def _is_up(self) -> bool:
        assert self.process.poll() is None, self.output.read_text()
        return "\ncurl" in self.output.read_text()

    def stop(self) -> int:
        """Ctrl-C; the exit status."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(60)


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """One deployment for the module."""
    running = Up(tmp_path_factory.mktemp("up"))
    yield running
    if running.process.poll() is None:
        running.process.kill()
        running.process.wait()


@pytest.fixture
def client(up: Up) -> Iterator[openai.OpenAI]:
    """The official client, pointed at the gateway."""
    with openai.OpenAI(base_url=f"{up.url}/v1", api_key="not-needed", max_retries=0) as client:
        yield client


def ask(client: openai.OpenAI, name: str, variant: str, **headers: str) -> tuple[str, httpx.Headers]:
    """Content and headers of one demo conversation's answer."""
    request = chat_request(BY_NAME[name], model=f"demo-{variant}")
    extra = {key: request.pop(key) for key in list(request) if key not in ("model", "messages")}
    raw = client.chat.completions.with_raw_response.create(
        **request, extra_body=extra, extra_headers={k.replace("_", "-"): v for k, v in headers.items()}
    )
    return raw.parse().choices[0].message.content or "", raw.headers


def test_a_grounded_answer_passes_with_all_headers(client: openai.OpenAI) -> None:
    """The text is the backend's; every header of the contract that applies is there, with a legal value."""
    content, headers = ask(client, "wire-fee", "grounded")
    assert content == BY_NAME["wire-fee"].grounded
    assert headers["x-truthlens-enabled"] == "true"
    assert headers["x-truthlens-status"] == "checked"
    assert headers["x-truthlens-detected"] == "false"
    assert headers["x-truthlens-action"] == "pass"
    assert headers["x-truthlens-mode"] == "lightweight"
    assert headers["x-truthlens-iterations"] == "0"
    assert re.fullmatch(r"[01]\.\d\d", headers["x-truthlens-score"])
    assert headers["x-truthlens-latency-ms"].isdigit()
    assert headers["x-truthlens-risk"] in ("low", "moderate", "high")
    assert headers["x-truthlens-decision"]
    absent = {f"x-truthlens-{name}" for name in ("reason", "initial-score", "review-id", "shadow-action")}
    assert {name for name in headers if name.startswith("x-truthlens-")} == set(HEADER_NAMES) - absent


def test_an_ungrounded_answer_carries_the_warning(client: openai.OpenAI) -> None:
    """The warning stands before the backend's text, and the headers say detected."""
    content, headers = ask(client, "ibuprofen-dose", "ungrounded")
    assert content.startswith(WARNING)
    assert content.endswith(BY_NAME["ibuprofen-dose"].ungrounded)
    assert headers["x-truthlens-detected"] == "true"
    assert headers["x-truthlens-action"] == "warn"
    assert headers["x-truthlens-decision"] == "medical_assistant"


def test_the_printed_lines_work_as_they_stand(up: Up) -> None:
    """Each curl line is run by a shell, as a newcomer pastes it."""
    lines = [line for line in up.output.read_text().splitlines() if line.startswith("curl ")]
    assert len(lines) == 4
    replies = [
        subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, timeout=60, check=True).stdout
        for line in lines
    ]
    assert "x-truthlens-detected: false" in replies[0]
    assert "x-truthlens-detected: true" in replies[1]
    assert '"spans"' in replies[1]
    assert "x-truthlens-reason: no-context" in replies[2]
    assert "x-truthlens-status: pending" in replies[3]
    verdict, done = replies[3].strip().split("\n\n")[-2:]
    assert json.loads(verdict.removeprefix("data: "))["truthlens"]["detected"] is True
    assert done == "data: [DONE]"


def test_a_chinese_answer_is_not_scored_by_an_english_model(client: openai.OpenAI) -> None:
    """The bundled model does not read Chinese, and says so in place of a made-up score."""
    name = next(c.name for c in BY_NAME.values() if re.search("[\u4e00-\u9fff]", c.ungrounded))
    content, headers = ask(client, name, "ungrounded")
    assert content == BY_NAME[name].ungrounded
    assert headers["x-truthlens-reason"] == "language"
    assert "x-truthlens-score" not in headers


def test_editing_the_threshold_changes_the_next_answer(up: Up, client: openai.OpenAI) -> None:
    """The newcomer's first edit: everything above 0 is flagged."""
    assert ask(client, "wire-fee", "grounded")[1]["x-truthlens-detected"] == "false"
    text = up.policy.read_text(encoding="utf-8")
    up.policy.write_text(re.sub(r"threshold: 0\.\d+", "threshold: 0.0", text), encoding="utf-8")
    deadline = time.monotonic() + 30
    while ask(client, "wire-fee", "grounded")[1]["x-truthlens-detected"] == "false":
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert ask(client, "wire-fee", "grounded")[0].startswith(WARNING)
    up.policy.write_text(text, encoding="utf-8")


def test_the_console_shows_what_happened(up: Up) -> None:
    """The page lists the exchanges of this test."""
    page = httpx.get(up.console).text
    assert "medical_assistant" in page.replace("<wbr>", "")
    assert httpx.get(f"{up.console}/readyz").json()["ready"] is True


def test_ctrl_c_ends_everything(up: Up) -> None:
    """Envoy, sidecar and demo end; the status is 0; the ports are free again."""
    assert up.stop() == 0
    assert "Traceback" not in up.output.read_text()
    with pytest.raises(httpx.ConnectError):
        httpx.get(up.url)
