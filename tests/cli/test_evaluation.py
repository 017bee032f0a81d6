"""The command ``eval`` with a tiny model."""

from __future__ import annotations

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.tiny_encoder import write_encoder
from truthlens.cli import main


def run(*arguments: str) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of one command, in this process."""
    out, err = io.StringIO(), io.StringIO()
    status = 0
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setenv("COLUMNS", "80")
        patch.setenv("NO_COLOR", "1")
        try:
            main(arguments)
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return status, out.getvalue(), err.getvalue()


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A tiny model folder."""
    return str(write_encoder(tmp_path_factory.mktemp("tiny")))


def _row(number: int, *, source: str = "made", quality: str = "good") -> dict[str, Any]:
    wrong = number % 2
    answer = f"The lamp stands in the {'Zorblax' if wrong else 'hall'}."
    return {
        "query": "Where is the lamp?", "context": ["The lamp stands in the hall."], "response": answer, "label": wrong,
        "spans": [{"start": 23, "end": 30}] if wrong else [], "group": str(number // 2), "source": source, "task": "qa",
        "quality": quality,
    }  # fmt: skip


def _file(folder: Path, rows: list[dict[str, Any]], name: str = "rows.jsonl") -> str:
    path = folder / name
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return str(path)


def test_json_has_the_keys_of_the_contract(tmp_path: Path, model: str) -> None:
    """One object on standard output; progress goes to standard error; the tiny model finds every wrong word."""
    file = _file(tmp_path, [_row(number) for number in range(6)])
    status, out, err = run("eval", file, "--json", "--model", model, "--resamples", "20")
    assert status == 0
    result = json.loads(out)
    (found,) = result["files"]
    assert found["file"] == file
    assert set(found["example"]) == {"precision", "recall", "f1", "auroc", "auprc", "threshold"}
    assert (found["rows"], found["example"]["f1"], found["span"]["f1"], found["char"]["f1"]) == (6, 1, 1, 1)
    assert found["token"]["f1"] == 1.0
    assert set(found["latency_ms"]) == {"p50", "p99", "per_1000_tokens"}
    assert len(found["reliability"]) == 15
    assert result["model"] == "tiny"
    assert result["aggregation"] == "span_noisy_or"
    assert "6/6" in err


def test_tables_fit_on_a_narrow_terminal(tmp_path: Path, model: str) -> None:
    """A row a file, one for all of them, and a table by source; nothing is cut."""
    files = [
        _file(tmp_path, [_row(number, source="first") for number in range(4)]),
        _file(tmp_path, [_row(number, source="second") for number in range(4)], "more.jsonl"),
    ]
    status, out, _ = run("eval", *files, "--model", model, "--resamples", "0")
    assert status == 0
    for word in ("rows", "more", "all files", "first", "second", "AUROC", "char F1", "ms/1k", "optimistic"):
        assert word in out
    assert "…" not in out
    assert max(map(len, out.splitlines())) <= 80


def test_a_report_repeats_the_command(tmp_path: Path, model: str) -> None:
    """Markdown, JSON and pictures in the folder, with the options that were given."""
    file = _file(tmp_path, [_row(number) for number in range(6)])
    folder = tmp_path / "report"
    status, out, _ = run(
        "eval", file, "--report", str(folder), "--model", model, "--base-rate", "0.18", "--resamples", "20"
    )
    assert status == 0
    assert "report.md" in out
    text = (folder / "report.md").read_text(encoding="utf-8")
    assert f"truthlens eval {file} --model {model} --base-rate 0.18 --resamples 20 --report {folder}" in text
    assert (folder / "roc.png").is_file()
    assert json.loads((folder / "figures.json").read_text(encoding="utf-8"))["base_rate"] == 0.18


def test_quality_leaves_rows_out(tmp_path: Path, model: str) -> None:
    """Only the good rows are scored, and the others are counted."""
    file = _file(tmp_path, [_row(0), _row(1), _row(2, quality="truncated")])
    status, out, _ = run("eval", file, "--quality", "good", "--json", "--model", model, "--resamples", "0")
    (found,) = json.loads(out)["files"]
    assert (status, found["rows"], found["left_out"]) == (0, 2, 1)


def test_a_wrong_row_is_one_message_with_file_and_line(tmp_path: Path, model: str) -> None:
    """No traceback, and nothing was scored before."""
    good = _file(tmp_path, [_row(0)])
    bad = _file(tmp_path, [_row(0), {"context": "no list", "response": "r", "label": 0}], "bad.jsonl")
    status, out, err = run("eval", good, bad, "--model", model)
    assert status == 1
    assert "bad.jsonl, line 2" in err.replace("\n", "")
    assert "Traceback" not in err
    assert "1/1" not in err
    assert out == ""


@pytest.mark.parametrize(
    "wrong", [("--base-rate", "0"), ("--threshold", "2"), ("--quality", "best"), ("--resamples", "-1")]
)
def test_values_out_of_range_are_refused(tmp_path: Path, wrong: tuple[str, str]) -> None:
    """Usage errors, before anything is loaded."""
    status, _, err = run("eval", _file(tmp_path, [_row(0)]), *wrong)
    assert status == 2
    assert wrong[0] in err


def test_a_report_without_matplotlib_fails_before_scoring(
    tmp_path: Path, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message names the extra; no progress was shown."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    file = _file(tmp_path, [_row(0), _row(1)])
    status, _, err = run("eval", file, "--report", str(tmp_path / "report"), "--model", model)
    assert status == 1
    assert "truthlens[eval]" in err
    assert "2/2" not in err


POLICY = """\
hallucination:
  threshold: 0.45
  detectors: [encoder, {name: citations, require_citations: true}]
"""
TWINS = """\
- id: lamp
  question: Where is the lamp?
  passage: "The lamp stands in the ⟦1: hall // Zorblax⟧."
  facts:
    1:
      kind: place
      answers:
        - near: "The lamp stands in the ⟦hall // Zorblax⟧."
        - free: "You find the lamp by going to the ⟦hall // Zorblax⟧."
"""


def test_the_whole_list_of_a_policy_is_measured(tmp_path: Path, model: str) -> None:
    """Threshold and detectors are the policy's; each detector has its figures alone and left out."""
    config = tmp_path / "policy.yaml"
    config.write_text(POLICY, encoding="utf-8")
    file = _file(tmp_path, [_row(number) for number in range(6)])
    asked = ("eval", file, "--model", model, "--config", str(config), "--resamples", "20")
    status, out, err = run(*asked, "--json")
    assert status == 0, err
    result = json.loads(out)
    assert (result["threshold"], result["config"], result["decision"]) == (0.45, str(config), "default")
    assert [one["name"] for one in result["detectors"]] == ["encoder", "citations"]
    found = result["pooled"]["detectors"]
    assert found["each"]["encoder"]["alone"]["auroc"] == 1.0
    assert found["each"]["encoder"]["left_out"]["auroc"] < 1.0
    assert found["each"]["citations"]["abstained"] == 0.0
    status, out, _ = run(*asked, "--report", str(tmp_path / "report"))
    assert status == 0
    for word in ("without", "alone", "citations", "pairwise", "abst."):
        assert word in out
    assert max(map(len, out.splitlines()[:-1])) <= 80
    text = (tmp_path / "report" / "report.md").read_text(encoding="utf-8")
    assert "## What each detector adds" in text
    assert "## Rankings" in text


def test_twin_files_stand_beside_json_lines(tmp_path: Path, model: str) -> None:
    """Their kinds and styles are told; a model that reads the answer alone ranks twins at chance, but for a tie where one is a quotation."""
    twins = tmp_path / "twins.yaml"
    twins.write_text(TWINS, encoding="utf-8")
    file = _file(
        tmp_path, [{**_row(number), "type": "invented", "model": f"m{number // 4}"} for number in range(8)]
    )
    alone = tmp_path / "encoder.yaml"
    alone.write_text("hallucination: {detectors: [encoder]}\n")
    given = ("eval", str(twins), file, "--model", model, "--config", str(alone))
    status, out, err = run(*given, "--json", "--resamples", "0")
    assert status == 0, err
    first, second = json.loads(out)["files"]
    assert (first["rows"], first["ranking"]["twins"], first["ranking"]["twins_rows"]) == (8, 0.625, 4)
    assert sorted(first["styles"]) == ["free", "near"]
    assert first["types"]["place"]["unsupported"] == 4
    assert second["types"]["invented"]["flagged"] == 1.0
    assert second["within_generators"] == {"auroc": 1.0, "generators": 2, "pairs": 8}
    status, out, _ = run(*given, "--resamples", "20")
    assert status == 0
    for word in ("place", "near", "within each of 2 generators 1.000", "twins"):
        assert word in out
    assert max(map(len, out.splitlines())) <= 80


def test_a_damaged_twin_file_is_one_message(tmp_path: Path, model: str) -> None:
    """File and group are named, and nothing is scored."""
    twins = tmp_path / "twins.yaml"
    twins.write_text("- id: a\n", encoding="utf-8")
    status, out, err = run("eval", str(twins), "--model", model)
    assert (status, out) == (1, "")
    assert "twins.yaml, group 1" in err.replace("\n", "")


@pytest.mark.parametrize("given", [False, True])
def test_a_decision_is_one_of_the_policy(tmp_path: Path, model: str, *, given: bool) -> None:
    """Of the one that is given or of the shipped one; another name is told before anything is scored."""
    config = tmp_path / "policy.yaml"
    config.write_text(POLICY, encoding="utf-8")
    asked = (
        "eval",
        _file(tmp_path, [_row(0)]),
        "--model",
        model,
        *(("--config", str(config)) if given else ()),
    )
    status, _, err = run(*asked, "--decision", "careful")
    assert status == 1
    assert "no decision 'careful'" in err.replace("\n", " ")


def test_a_folder_that_is_no_blind_run_is_refused(tmp_path: Path, model: str) -> None:
    """Before anything is scored, with the command that makes one."""
    file = _file(tmp_path, [_row(0), _row(1)])
    status, _, err = run("eval", file, "--model", model, "--blind", str(tmp_path))
    assert status == 1
    assert "truthlens train --blind" in err.replace("\n", " ")
    assert "2/2" not in err
