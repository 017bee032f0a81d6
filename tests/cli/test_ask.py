"""``truthlens ask``: a scripted model on localhost, a small folder, and the shipped policy's detectors."""

from __future__ import annotations

import contextlib
import http.server
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from tests.cli.test_cli import Result, run
from tests.fakes.agentic_parts import act, judged, search
from tests.fakes.llm_backends import chat
from tests.fakes.ports import free_port
from truthlens.mitigation.agentic.synthesis import NO_INFORMATION

QUESTION = "How fast does the pump run?"
CITED = "The pump runs at 600 rpm [pump.md#1]."
Reply = str | int | bytes
ROOT = Path(__file__).parents[2]


class Server:
    """Gives its replies in order (a text, an HTTP status, or a body) while ``held`` is set."""

    def __init__(self, held: threading.Event) -> None:
        self.replies: list[Reply] = []
        self.requests: list[tuple[dict[str, Any], str | None]] = []
        self.asked = threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                outer.requests.append((body, self.headers["authorization"]))
                outer.asked.set()
                held.wait(60)
                reply = outer.replies.pop(0) if outer.replies else 404
                data = reply if isinstance(reply, bytes) else json.dumps(chat(reply)).encode()
                self.send_response(reply if isinstance(reply, int) else 200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                with contextlib.suppress(ConnectionError):
                    self.wfile.write(data)

            def log_message(self, *args: Any) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def held() -> Iterator[threading.Event]:
    """Set while the server answers; a test that clears it keeps the answers back."""
    event = threading.Event()
    event.set()
    yield event
    event.set()


@pytest.fixture
def server(held: threading.Event) -> Iterator[Server]:
    """A scripted model."""
    made = Server(held)
    yield made
    made.stop()


@pytest.fixture
def docs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of two documents; indexes and logging are this test's own."""
    folder = tmp_path / "manual[1]"
    folder.mkdir()
    (folder / "pump.md").write_text("# Data sheet\n\nThe pump runs at 600 rpm.\n")
    (folder / "tea.md").write_text("# Tea\n\nTea is free.\n")
    monkeypatch.setattr("truthlens.retrieval.sources.folder.options.state_folder", lambda: tmp_path / "state")
    for name in ("UPSTREAM", "BASE_URL", "CHAT_MODEL", "CONFIG"):
        monkeypatch.delenv(f"TRUTHLENS_{name}", raising=False)
    yield folder
    structlog.reset_defaults()


def asked(server: Server, docs: Path, *more: str, replies: tuple[Reply, ...] = ()) -> Result:
    """The command on the folder, with the model's replies."""
    server.replies = list(replies)
    return run("ask", "--docs", str(docs), "--model", "m", "--base-url", server.url, QUESTION, *more)


def test_an_accepted_answer_has_its_sources_and_its_verdict(
    server: Server, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The steps go to a terminal's standard error, the key to the server alone."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("ASK_KEY", "sk-secret")
    replies = (search(), act("synthesize"), CITED, *judged())
    result = asked(server, docs, "--api-key-env", "ASK_KEY", replies=replies)
    assert result.returncode == 0
    lines = result.stdout.splitlines()
    assert lines[:4] == [CITED, "", "sources:", "  [pump.md#1] Data sheet (docs)"]
    assert lines[5].startswith("check: not detected, score 0.")
    assert "execute_tool text_search  0." in result.stderr
    assert "should_accept_answer" in result.stderr
    assert {key for _, key in server.requests} == {"Bearer sk-secret"}
    assert "sk-secret" not in result.stdout + result.stderr


@pytest.mark.usefixtures("docs")
def test_the_readme_shows_what_the_command_prints(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its question and folder, with a model that writes its answer; a score may move, but not across the threshold."""
    section = (
        (ROOT / "README.md").read_text().partition("## Ask your own documents\n")[2].partition("\n## ")[0]
    )
    command, shown = re.findall(r"```(?:sh)?\n(.*?)```", section, re.DOTALL)
    variables, asked_for = command.splitlines()
    for each in shlex.split(variables)[1:]:
        monkeypatch.setenv(*each.split("=", 1))
    monkeypatch.setenv("TRUTHLENS_BASE_URL", server.url)
    monkeypatch.chdir(ROOT)
    program, *words = shlex.split(asked_for)
    server.replies = [search("block answers"), act("synthesize"), shown.splitlines()[0], *judged()]
    result = run(*words)
    assert (program, result.returncode) == (".venv/bin/truthlens", 0)
    score = re.compile(r"score \d\.\d\d")
    assert score.sub("score", result.stdout) == score.sub("score", shown)


def test_what_contradicts_the_passages_is_flagged(server: Server, docs: Path) -> None:
    """Also where the model that wrote it finds it good: the detectors have the last word."""
    wrong = CITED.replace("600", "900")
    replies = (search(), act("synthesize"), wrong, *judged())
    result = asked(server, docs, replies=replies)
    lines = result.stdout.splitlines()
    assert lines[5].startswith("check: detected, score ")
    assert lines[6].startswith("  contradicted risk ")
    assert lines[6].endswith(wrong)
    unchecked = asked(server, docs, "--no-check", replies=replies).stdout
    assert unchecked == "\n".join([*lines[:4], ""])


def test_one_json_object_tells_all(server: Server, docs: Path) -> None:
    """Nothing else is on standard output, and nothing at all on standard error that is no terminal."""
    result = asked(server, docs, "--json", replies=(search(), act("synthesize"), CITED, *judged()))
    shown = json.loads(result.stdout)
    assert (result.returncode, result.stderr) == (0, "")
    assert {name: shown[name] for name in ("answer", "accepted", "stop", "failure", "iterations")} == {
        "answer": CITED,
        "accepted": True,
        "stop": "accepted",
        "failure": None,
        "iterations": 2,
    }
    assert shown["tokens"] == 5 * 18
    assert shown["sources"] == [{"id": "pump.md#1", "title": "Data sheet", "source": "docs", "cited": True}]
    assert [step["tool"] for step in shown["steps"] if step["tool"]] == ["text_search"]
    assert all(set(step) == {"node", "tool", "seconds", "summary"} for step in shown["steps"])
    assert (shown["verdict"]["decision"], shown["verdict"]["detected"]) == ("default", False)
    assert shown["verdict"]["score"] < shown["verdict"]["threshold"]


def test_nothing_found_is_the_exact_sentence(server: Server, docs: Path) -> None:
    """It claims nothing, so that nothing is checked."""
    replies = (search("zygote"), act("finish"))
    result = asked(server, docs, "--json", replies=replies)
    shown = json.loads(result.stdout)
    assert (result.returncode, shown["answer"], shown["verdict"]) == (0, NO_INFORMATION, None)
    assert shown["sources"] == []


def test_limits_and_rejections_have_a_status_of_their_own(
    server: Server, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """3, with what stopped the run; the fallback answer is shown and checked."""
    bad = judged(0.9, 0.1, unsupported_claims=["speed", "rpm"])
    rejected = asked(server, docs, replies=(search(), act("finish"), CITED, *bad, "It runs [pump.md#1]."))
    assert (rejected.returncode, server.replies) == (3, [])
    assert rejected.stdout.startswith("It runs [pump.md#1].\n\nsources:\n")
    assert "\nnot accepted: rejected\n" in rejected.stdout
    monkeypatch.setenv("AGENTIC_MAX_ITERATIONS", "1")
    result = asked(server, docs, replies=(search(), CITED))
    assert result.returncode == 3
    assert result.stdout.startswith(CITED)
    assert "\nnot accepted: iterations\n" in result.stdout
    assert "\ncheck: not detected" in result.stdout
    monkeypatch.setenv("AGENTIC_MAX_TOKENS", "1")
    assert asked(server, docs, replies=(search(),)).stdout == "not accepted: tokens; there is no answer\n"
    monkeypatch.setenv("AGENTIC_MAX_TOKENS", "many")
    refused = asked(server, docs)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "AGENTIC_MAX_TOKENS" in refused.stderr


@pytest.mark.parametrize(
    ("replies", "stop", "told"),
    [
        (("no JSON", "none again"), "bad-decision", "did not reply in the form that was asked for"),
        ((b"<html>", b"<html>", b"<html>", b"<html>"), "call-failed", "gave no answer: bad-response"),
        ((401,), "call-failed", "gave no answer: http-401"),
        ((search(), act("synthesize"), 404), "call-failed", "gave no answer: http-404"),
    ],
)
def test_bad_replies_are_an_error(
    server: Server, docs: Path, replies: tuple[Reply, ...], stop: str, told: str
) -> None:
    """Status 1 and one line; the object on standard output says how far it came."""
    result = asked(server, docs, "--json", replies=replies)
    shown = json.loads(result.stdout)
    assert (result.returncode, shown["stop"], shown["accepted"], shown["answer"]) == (1, stop, False, "")
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("error: the model 'm' ")
    assert told in result.stderr


def test_a_server_that_is_down_is_an_error(docs: Path) -> None:
    """One line, with its address."""
    url = f"http://127.0.0.1:{free_port()}/v1"
    result = run("ask", "--docs", str(docs), "--model", "m", "--base-url", url, QUESTION)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == (
        f"error: the model 'm' at {url} gave no answer: connection; is its server running?\n"
    )


POLICY = """
models: [{name: small, base_url: URL}, {name: other, base_url: URL}]
sources:
- {name: manuals, type: folder, path: DOCS, filter: {folder: team}}
- {name: notes, type: folder, path: DOCS}
"""


def test_the_sources_and_models_of_a_policy_are_used(server: Server, docs: Path, tmp_path: Path) -> None:
    """A source with a filter is searched for what --scope says alone."""
    (docs / "red").mkdir()
    (docs / "red" / "pump.md").write_text("The red pump runs at 700 rpm.\n")
    policy = tmp_path / "policy.yaml"
    policy.write_text(POLICY.replace("URL", server.url).replace("DOCS", json.dumps(docs.name)))
    common = ("ask", "--config", str(policy), "--model", "other", "--json", "--no-check", QUESTION)
    written = "The red pump runs at 700 rpm [red/pump.md#1]."
    for more, ids, answer in (
        (("--source", "manuals", "--scope", "team=red"), {"red/pump.md#1"}, written),
        (("--source", "notes"), {"red/pump.md#1", "pump.md#1"}, CITED),
    ):
        server.replies = [search(), act("synthesize"), answer, *judged()]
        shown = json.loads(run(*common, *more).stdout)
        assert {each["id"] for each in shown["sources"]} == ids
        assert {body["model"] for body, _ in server.requests} == {"other"}
    policy.write_text(
        policy.read_text() + "hallucination: {agentic: {max_iterations: 1, tools: [text_search]}}\n"
    )
    server.replies = [search(), CITED]
    limited = json.loads(run(*common, "--source", "notes").stdout)
    assert (limited["stop"], limited["iterations"]) == ("iterations", 1)
    policy.write_text(policy.read_text().replace("max_iterations: 1,", ""))
    server.replies = [search(), act("finish")]
    result = run(*common, "--source", "manuals")
    assert (result.returncode, json.loads(result.stdout)["stop"]) == (1, "search-failed")
    assert result.stderr.endswith(
        "error: not all sources could be searched (manuals: no-scope), and nothing was found\n"
    )
    for more, told in (
        (("--source", "wiki"), "there is no source 'wiki'; there are: manuals, notes"),
        (("--model", "third"), "the policy has no model 'third'; it has: small, other"),
    ):
        result = run(*common, *more)
        assert (result.returncode, result.stderr.count("\n")) == (1, 1)
        assert told in result.stderr


def test_what_is_missing_is_one_line(docs: Path, tmp_path: Path) -> None:
    """Status 1 before any model is asked."""
    (tmp_path / "empty").mkdir()
    there = ("--docs", str(docs))
    to = ("--base-url", "http://127.0.0.1:9/v1")
    for arguments, told in (
        ((*there, *to), "no model is given; name one with --model NAME"),
        ((*there, "--model", "m"), "the model 'm' has no address; give --base-url URL"),
        ((*there, "--model", "m", *to, "--api-key-env", "ASK_NO_KEY"), "ASK_NO_KEY holds no key"),
        (("--docs", str(tmp_path / "nowhere"), "--model", "m", *to), "nowhere cannot be read"),
        (("--docs", str(tmp_path / "empty"), "--model", "m", *to), "empty holds no file with text"),
        (("--model", "m", *to), "there is nothing to search; give --docs DIR"),
        ((*there, "--source", "wiki", "--model", "m", *to), "there is no source 'wiki'; there are: docs"),
    ):
        result = run("ask", *arguments, QUESTION)
        assert (result.returncode, result.stdout, result.stderr.count("\n")) == (1, "", 1), told
        assert result.stderr.startswith("error: ")
        assert told in result.stderr


def test_an_interrupt_ends_it(server: Server, held: threading.Event, docs: Path, tmp_path: Path) -> None:
    """While the model is asked: no traceback, no answer, and a status that is none of its own."""
    held.clear()
    command = ("ask", "--docs", str(docs), "--model", "m", "--base-url", server.url, QUESTION)
    environ = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}
    with subprocess.Popen(
        [sys.executable, "-m", "truthlens", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environ,
        # A shell's background job ignores interrupts, and so would all that it starts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    ) as process:
        try:
            assert server.asked.wait(60)
            process.send_signal(signal.SIGINT)
            stdout, stderr = process.communicate(timeout=60)
        finally:
            process.kill()
    assert process.returncode in (1, 130)
    assert stdout == ""
    assert "Traceback" not in stderr
