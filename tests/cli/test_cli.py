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

from tests.fakes.ports import free_port
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
    write_encoder(folder / "truthlens-minilm-en-v2")
    return folder


@pytest.mark.parametrize(
    "command",
    [
        (),
        ("up",),
        ("serve",),
        ("check",),
        ("doctor",),
        ("calibrate",),
        ("detect",),
        ("ask",),
        ("evidence",),
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
    """What makes, cuts and fetches models stays out of the serving process, also where the bundled one is loaded."""
    code = (
        "import sys, truthlens.process.app, truthlens.cli; from truthlens.detection.detectors.encoder.loading import load_encoder\n"
        "from truthlens.process.settings import models_folder; load_encoder(models_folder() / 'truthlens-minilm-en-v2')\n"
        "print(sorted({'torch', 'transformers', 'onnx', 'huggingface_hub'} & sys.modules.keys()))"
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


def test_check_names_what_clients_reach(tmp_path: Path) -> None:
    """Each decision to which the words of a client lead, with the conditions that they fill."""
    file = tmp_path / "policy.yaml"
    rules = "{type: keyword, name: medical_terms}"
    file.write_text(
        f"decisions: [{{name: health, rules: {rules}, plugins: [{{type: hallucination, configuration: {{threshold: 0.3}}}}]}}]\n"
    )
    assert run("check", str(file)).stdout.splitlines()[-1] == (
        "  health: encoder, numbers, contradictions, reader; threshold 0.3; "
        "a client can reach it by what it sends (keyword medical_terms)"
    )


ON_A_GPU = """\
decisions:
- name: a
  rules: {type: model, name: m}
  plugins: [{type: hallucination, configuration: {model_id: SHELF/truthlens-minilm-en-v2, use_cpu: false}}]
"""


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        (ON_A_GPU, 2, "cannot run on a GPU"),
        ("hallucination: {model_id: SHELF}\n", 1, "cannot be used here"),
        ("hallucination:\n  default_mode: premium\n  premium: {verification_models: [b]}\n", 1, "similarity"),
    ],
)
def test_check_refuses_what_the_server_refuses(
    shelf: Path, tmp_path: Path, text: str, line: int, said: str
) -> None:
    """A model that is missing, damaged or cannot run here: one line, the same from both, and status 1."""
    policy = tmp_path / "p.yaml"
    policy.write_text(text.replace("SHELF", str(shelf)))
    checked = run("check", str(policy), "--models", str(shelf))
    assert checked.returncode == 1
    (told, *_) = checked.stdout.splitlines()
    assert told.startswith(f"{policy}:{line}: ")
    assert said in told
    ports = ("--extproc", f"127.0.0.1:{free_port()}", "--console", f"127.0.0.1:{free_port()}")
    served = run("serve", "--config", str(policy), "--models", str(shelf), *ports)
    assert served.returncode == 1
    assert told in served.stderr


def test_check_warns_of_what_the_server_warns_of(
    shelf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key that is not set, and a place for a model that is not followed."""
    policy = tmp_path / "p.yaml"
    policy.write_text(
        "hallucination: {default_mode: premium, use_cpu: false, premium: {judge_model: j}}\n"
        "models:\n- {name: j, base_url: 'http://j/v1', api_key_env: SOME_KEY}\n"
    )
    monkeypatch.delenv("SOME_KEY", raising=False)
    result = run("check", str(policy), "--models", str(shelf))
    assert result.returncode == 0
    assert f"{policy}:3: warning: models[0]: the environment variable 'SOME_KEY' is not set" in result.stdout
    assert (
        f"{policy}:1: warning: hallucination: use_cpu is false, but its model runs on the CPU"
        in result.stdout
    )
    assert run("check", str(policy), "--models", str(shelf), "--strict").returncode == 1
    monkeypatch.setenv("SOME_KEY", "x")
    assert "SOME_KEY" not in run("check", str(policy), "--models", str(shelf)).stdout


def test_check_needs_the_bundled_model_as_the_server_does(tmp_path: Path) -> None:
    """Without its folder the server does not start."""
    policy = tmp_path / "p.yaml"
    policy.write_text("hallucination: {}\n")
    result = run("check", str(policy), "--models", str(tmp_path))
    assert result.returncode == 1
    assert "truthlens-minilm-en-v2" in result.stdout


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
    (span,) = verdict["spans"]
    (marked,) = span["marked"]
    assert answer.read_text()[span["start"] : span["end"]] == span["text"] == "Tea is Zorblax."
    assert answer.read_text()[marked["start"] : marked["end"]] == "Zorblax"
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
    assert "truthlens-minilm-en-v2" in result.stderr


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


def test_envoy_config_has_an_admin_interface_where_asked() -> None:
    """At the address or URL that is given, and none by default."""
    assert "admin" not in json.loads(run("envoy-config").stdout)
    for given in ("127.0.0.1:9901", "http://127.0.0.1:9901/"):
        asked = json.loads(run("envoy-config", "--envoy-admin", given).stdout)
        assert asked["admin"]["address"]["socket_address"] == {"address": "127.0.0.1", "port_value": 9901}
    refused = run("envoy-config", "--envoy-admin", "nonsense")
    assert refused.returncode == 1
    assert "--envoy-admin" in refused.stderr
