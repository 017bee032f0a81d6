"""The command line: help, errors, checks and scoring with a tiny model."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fakes.tiny_encoder import write_encoder
from truthlens.cli import main


@dataclass(frozen=True)
class Result:
    returncode: int
    stdout: str
    stderr: str


def run(*arguments: str, stdin: str | io.StringIO = "", columns: int = 120) -> Result:
    """One command, in this process."""
    out, err = io.StringIO(), io.StringIO()
    status = 0
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "stdin", io.StringIO(stdin) if isinstance(stdin, str) else stdin)
        patch.setenv("COLUMNS", str(columns))
        patch.setenv("NO_COLOR", "1")
        try:
            main(arguments)
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return Result(status, out.getvalue(), err.getvalue())


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A models folder with one tiny model under the bundled one's name."""
    folder = tmp_path_factory.mktemp("models")
    write_encoder(folder / "truthlens-minilm-en-v1")
    return folder


@pytest.mark.parametrize(
    "command",
    [
        (),
        ("up",),
        ("serve",),
        ("check",),
        ("calibrate",),
        ("detect",),
        ("eval",),
        ("train",),
        ("models", "list"),
        ("models", "pull"),
        ("models", "export"),
        ("models", "quantize"),
        ("envoy-config",),
    ],
)
def test_every_command_has_help(command: tuple[str, ...]) -> None:
    """--help works and says more than the usage line."""
    result = run(*command, "--help")
    assert result.returncode == 0
    assert len(result.stdout.splitlines()) > 8
    assert "Traceback" not in result.stderr


def test_serving_imports_no_training_library() -> None:
    """torch, transformers and onnx stay out of the serving process."""
    code = (
        "import truthlens.cli, sys; print([m for m in ('torch', 'transformers', 'onnx') if m in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert result.stdout.strip() == "[]"


def test_check_reports_mistakes_with_their_place(tmp_path: Path) -> None:
    """Exit status 1 and one line a mistake; a sound file says ok."""
    bad = tmp_path / "bad.yaml"
    bad.write_text("hallucination:\n  treshold: 0.5\n")
    result = run("check", str(bad))
    assert result.returncode == 1
    assert f"{bad}:2:" in result.stdout
    assert "threshold" in result.stdout
    good = tmp_path / "good.yaml"
    good.write_text("hallucination: {threshold: 0.5}\n")
    assert run("check", str(good)).returncode == 0


def test_an_expected_error_is_one_message(tmp_path: Path) -> None:
    """No traceback for a bad address or a policy that cannot be used."""
    for arguments in (
        ("serve", "--extproc", "nonsense"),
        ("up", "--upstream", "nonsense"),
        ("serve", "--tls-cert", str(__file__)),
    ):
        result = run(*arguments)
        assert result.returncode == 1
        assert "error:" in result.stderr
        assert "Traceback" not in result.stderr


def test_detect_scores_files_and_json_lines(shelf: Path, tmp_path: Path) -> None:
    """With --exit-code the status tells: 0 nothing detected, 2 detected, 3 unchecked."""
    context, answer = tmp_path / "c.txt", tmp_path / "a.txt"
    context.write_text("Tea is free.")
    answer.write_text("Tea is Zorblax.")
    result = run(
        "detect",
        "--models",
        str(shelf),
        "--context",
        str(context),
        "--response",
        str(answer),
        "--json",
        "--exit-code",
    )
    verdict = json.loads(result.stdout)
    assert (result.returncode, verdict["detected"]) == (2, True)
    assert answer.read_text()[verdict["spans"][0]["start"] : verdict["spans"][0]["end"]] == "Zorblax"
    rows = '{"context": "Tea is free.", "query": "", "response": "Tea is free."}\n'
    clean = run("detect", "--models", str(shelf), "--json", "--exit-code", stdin=rows)
    assert (clean.returncode, json.loads(clean.stdout)["detected"]) == (0, False)
    none = run(
        "detect",
        "--models",
        str(shelf),
        "--json",
        "--exit-code",
        stdin='{"context": [], "response": "Tea."}\n',
    )
    assert (none.returncode, json.loads(none.stdout)["reason"]) == (3, "no-context")
    assert (
        run(
            "detect", "--models", str(shelf), "--json", stdin=rows.replace('Tea is free."}', 'Zorblax."}')
        ).returncode
        == 0
    )
    two = ("--context", str(context), str(context), "--response", str(answer))
    assert run("detect", "--models", str(shelf), *two).returncode == 0
    broken = run("detect", "--models", str(shelf), stdin="{}\n")
    assert broken.returncode == 1
    assert "line 1" in broken.stderr


def test_models_list_tells_what_is_there(shelf: Path) -> None:
    """Name, window and aggregation from the manifest."""
    (row,) = json.loads(run("models", "list", "--models", str(shelf), "--json").stdout)
    assert (row["name"], row["max_tokens"], row["aggregation"]) == ("tiny", 64, "span_noisy_or")


def test_a_model_that_is_not_there_names_those_that_are(shelf: Path) -> None:
    """The message lists the shelf."""
    result = run(
        "detect", "--models", str(shelf), "--model", "nope", stdin='{"context": "x", "response": "x"}\n'
    )
    assert result.returncode == 1
    assert "truthlens-minilm-en-v1" in result.stderr


def test_envoy_config_is_json_with_an_endpoint_a_process() -> None:
    """Repeated --extproc gives as many endpoints."""
    result = run("envoy-config", "--extproc", "127.0.0.1:1", "--extproc", "127.0.0.1:2", "--fail-closed")
    sidecar = json.loads(result.stdout)["static_resources"]["clusters"][1]
    assert len(sidecar["load_assignment"]["endpoints"][0]["lb_endpoints"]) == 2


def test_envoy_config_puts_a_router_first() -> None:
    """With the header that only it may set; names of headers are taken in any case."""
    result = run("envoy-config", "--router", "127.0.0.1:3", "--router-header", "X-Tier")
    listener = json.loads(result.stdout)["static_resources"]["listeners"][0]
    first, second, *_ = listener["filter_chains"][0]["filters"][0]["typed_config"]["http_filters"]
    assert first["typed_config"]["mutations"]["request_mutations"] == [{"remove": "x-tier"}]
    assert second["name"] == "envoy.filters.http.ext_proc/router"
