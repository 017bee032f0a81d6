"""What somebody meets who tries the commands for the first time: help, and what is said of mistakes."""

from __future__ import annotations

import io
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import typer

from tests.cli.test_cli import Result, run
from tests.fakes.ports import free_port
from tests.fakes.tiny_encoder import write_encoder
from truthlens.cli import command_line
from truthlens.demo import curl_lines
from truthlens.process.settings import shipped_policy

NUMBERS = {"two": 2, "three": 3, "four": 4, "five": 5, "six": 6}


def commands(command: object, *path: str) -> Iterator[tuple[tuple[str, ...], object]]:
    """Every command with the words that call it."""
    yield path, command
    for name, child in getattr(command, "commands", {}).items():
        yield from commands(child, *path, name)


ALL = dict(commands(typer.main.get_command(command_line())))


def plain(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("path", ALL, ids=" ".join)
def test_help_shows_every_bracket(path: tuple[str, ...]) -> None:
    """Of the command, of its options, and of the commands below it: what it is to be called with is all there."""
    command = ALL[path]
    texts = [command.help, *(getattr(parameter, "help", None) for parameter in command.params)]  # type: ignore[attr-defined]
    shown = plain(run(*path, "--help").stdout)
    assert all(plain(text) in shown for text in texts if text)


def test_some_help_has_brackets() -> None:
    """Else the test above would show nothing."""
    assert "pip install 'truthlens[train]'" in plain(run("train", "--help").stdout)
    assert "truthlens[eval]" in plain(run("eval", "--help").stdout)


def test_up_tells_how_many_lines_it_prints() -> None:
    """The help's number is that of the lines."""
    told = re.search(r"(\w+) lines to paste", plain(run("up", "--help").stdout))
    assert told
    assert NUMBERS[told[1]] == len(curl_lines("http://127.0.0.1:1"))


def run_server(*arguments: str) -> Result:
    """A command that starts an event loop, in a process of its own, with ports of its own where it is given none."""
    ports = {f"TRUTHLENS_{name}": f"127.0.0.1:{free_port()}" for name in ("EXTPROC", "CONSOLE", "LISTEN")}
    ended = subprocess.run(
        [sys.executable, "-m", "truthlens", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, **ports, "NO_COLOR": "1", "COLUMNS": "120"},
    )
    return Result(ended.returncode, ended.stdout, ended.stderr)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a file of each sort; its name has brackets."""
    folder = tmp_path / "[red]a[x]"
    folder.mkdir()
    (folder / "text.txt").write_text("Tea is free.")
    (folder / "bytes").write_bytes(b"\xff\xfe\x00\xd8")
    (folder / "policy.yaml").write_text("hallucination: {treshold: 0.5}\n")
    (folder / "broken.yaml").write_text("hallucination: {threshold: 1\n")
    (folder / "empty").mkdir()
    return folder


MISTAKES = [
    (("nonsense",), "nonsense"),
    (("detect", "--response", "{}/none.txt"), "{}/none.txt"),
    (("detect", "--response", "{}"), "Is a directory"),
    (("detect", "--response", "{}/bytes"), "{}/bytes is not UTF-8"),
    (("detect", "--context", "{}/bytes", "--response", "{}/text.txt"), "{}/bytes is not UTF-8"),
    (("detect", "--context", "{}/text.txt"), "--response"),
    (("detect", "--model", "nope", "--response", "{}/text.txt"), "'nope'"),
    (("detect", "--models", "{}/empty", "--response", "{}/text.txt"), "{}/empty holds none"),
    (("detect", "--config", "{}/broken.yaml", "--response", "{}/text.txt"), "{}/broken.yaml:2"),
    (("check", "{}/none.yaml"), "{}/none.yaml"),
    (("check", "{}"), "is a directory"),
    (("check", "{}/policy.yaml"), "{}/policy.yaml:1"),
    (("check", "{}/bytes"), "not UTF-8"),
    (("up", "--log-level", "loud"), "'loud'"),
    (("serve", "--log-level", "loud"), "'loud'"),
    (("up", "--listen", "127.0.0.1:99999"), "--listen"),
    (("up", "--upstream", "ftp://x"), "--upstream"),
    (("serve", "--console", "nonsense"), "--console"),
    (("serve", "--console-token-file", "{}/none"), "{}/none"),
    (("serve", "--console-token-file", "{}/bytes"), "{}/bytes"),
    (("models", "list", "--models", "{}/none"), "{}/none"),
    (("models", "export", "{}/empty"), "{}/empty"),
    (("models", "quantize", "{}/none"), "{}/none"),
    (("models", "pull"), "--known"),
    (("eval",), "files"),
    (("eval", "{}/none.jsonl"), "{}/none.jsonl"),
    (("eval", "{}/text.txt"), "line 1"),
    (("calibrate", "{}/text.txt"), "--max-miss-rate"),
    (("calibrate", "{}/text.txt", "--max-miss-rate", "0.1"), "line 1"),
    (("train", "--data", "{}/empty"), "{}/empty"),
    (("envoy-config", "--upstream", "nonsense"), "--upstream"),
    (("envoy-config", "--extproc", "nonsense"), "--extproc"),
]  # fmt: skip
# What a server finds only when its event loop runs; the others end before it would.
FOUND_LATE = [
    (("up", "--config", "{}/broken.yaml"), "{}/broken.yaml:2"),
    (("serve", "--console", "no.such.host.invalid:80"), "choose another address with --console"),
    (("serve", "--extproc", "unix:{}/none/socket"), "{}/none"),
    (("serve", "--models", "{}/empty", "--extproc", "unix:{}/s", "--console", "unix:{}/c"), "{}/empty holds none"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message", "start"),
    [
        *((*each, run) for each in MISTAKES),
        *(pytest.param(*each, run_server, marks=pytest.mark.slow) for each in FOUND_LATE),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_mistake_is_one_message_that_names_it(
    folder: Path, arguments: tuple[str, ...], message: str, start: Callable[..., Result]
) -> None:
    """The file, flag or value in question, with its brackets; a status that a script sees; no traceback."""
    words = [each.replace("{}", str(folder)) for each in arguments]
    result = start(*words)
    assert result.returncode in (1, 2)
    assert "Traceback" not in result.stderr
    told = result.stdout + result.stderr
    assert message.replace("{}", str(folder)) in told
    assert len([line for line in told.splitlines() if re.search("error", line, re.IGNORECASE)]) in (1, 2)


@pytest.mark.slow
def test_a_port_that_is_taken_is_told_with_its_flag() -> None:
    """Of each server that a command starts."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        for flag in ("--console", "--extproc"):
            result = run_server("serve", flag, address)
            assert result.returncode == 1
            assert f"{address} is taken by another process" in result.stderr
            assert flag in result.stderr


@pytest.mark.slow
def test_a_file_that_cannot_be_written_is_told(folder: Path) -> None:
    """With its path."""
    result = run_server("up", "--envoy-log", str(folder / "none" / "log"), "--console", f"unix:{folder}/c", "--extproc",
                 f"unix:{folder}/e", "--listen", f"127.0.0.1:{free_port()}")  # fmt: skip
    assert result.returncode == 1
    assert str(folder / "none" / "log") in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    "line",
    ["nonsense", "[1]", "{}", '{"context": "a"}', '{"context": "a", "response": 3}', '{"context": [1], "response": "a"}',
     '{"context": {"a": 1}, "response": "a"}', '{"context": "a", "query": 4, "response": "a"}'],
)  # fmt: skip
def test_a_line_that_is_no_row_is_told_with_its_number(line: str) -> None:
    """Nothing is scored that the row does not say, and none of its text is repeated."""
    result = run("detect", stdin=f"\n{line.replace('a', 'secret')}\n")
    assert result.returncode == 1
    assert "line 2" in result.stderr
    assert "response (text)" in result.stderr
    assert "secret" not in result.stderr


class Terminal(io.StringIO):
    """Standard input at which a person sits."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("arguments", [(), ("--json",), ("--response", "-")])
def test_detect_tells_a_person_what_it_waits_for(arguments: tuple[str, ...], tmp_path: Path) -> None:
    """On standard error, so that results stay clean; a program that pipes rows is told of the policy alone."""
    write_encoder(tmp_path / "truthlens-minilm-en-v2")
    row = json.dumps({"context": "Tea is free.", "response": "Tea is free."})
    waiting = run("detect", "--models", str(tmp_path), *arguments, stdin=Terminal(row))
    piped = run("detect", "--models", str(tmp_path), *arguments, stdin=row)
    assert "end with Ctrl-D" in waiting.stderr
    (told,) = piped.stderr.splitlines()
    assert told.startswith(
        f"policy {shipped_policy()}, decision default: encoder, numbers, contradictions, reader; threshold 0.6"
    )
    timeless = [re.sub(r'"duration_ms": [\d.]+', "", each.stdout) for each in (waiting, piped)]
    assert timeless[0] == timeless[1] != ""


@pytest.mark.parametrize(
    ("variable", "text", "message"),
    [("", None, "is empty"), (" \n", None, "is empty"), (None, "\n", "is empty"), ("a", "b", "both set")],
)
def test_a_token_that_is_none_does_not_open_the_console(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str | None, text: str | None, message: str
) -> None:
    """An empty secret is a mistake of whoever deploys, not a wish for none."""
    arguments = ["serve"]
    if variable is not None:
        monkeypatch.setenv("TRUTHLENS_CONSOLE_TOKEN", variable)
    if text is not None:
        (tmp_path / "token").write_text(text)
        arguments += ["--console-token-file", str(tmp_path / "token")]
    result = run(*arguments)
    assert result.returncode == 1
    assert message in result.stderr


def test_models_list_tells_kinds_apart() -> None:
    """Of the models that come with the package."""
    rows = {row["name"]: row["kind"] for row in json.loads(run("models", "list", "--json").stdout)}
    assert rows["truthlens-minilm-en-v2"] == "detector"
    assert rows["truthlens-similarity-en-v1"] == "similarity"
    shown = run("models", "list").stdout
    assert "detector" in shown
    assert "similarity" in shown


def test_a_folder_that_is_no_model_has_its_kind_and_its_error(tmp_path: Path) -> None:
    """Whichever of the two it would be."""
    for name in ("mine", "truthlens-similarity-en-v1"):
        (tmp_path / name).mkdir()
    rows = json.loads(run("models", "list", "--models", str(tmp_path), "--json").stdout)
    assert [(row["kind"], "error" in row) for row in rows] == [("detector", True), ("similarity", True)]


def test_check_says_ok_of_the_shipped_policy() -> None:
    """The first thing that is tried with a policy; below it stands what each decision scores with."""
    first, *plans = run("check", str(shipped_policy())).stdout.splitlines()
    assert first.endswith(": ok")
    assert "  default: encoder, numbers, contradictions, reader; threshold 0.6" in plans
    assert "  creative_writing: detection is off" in plans


def test_known_names_are_never_cut() -> None:
    """They are to be typed; a narrow terminal folds them."""
    assert "…" not in run("models", "pull", "--known", columns=80).stdout
