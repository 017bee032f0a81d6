"""Tests of ``train --blind`` and of what reads its run: a blind model knows nothing that only the evidence tells."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from tests.fakes.tiny_base import labelled_rows, write_base, write_data
from tests.fakes.tiny_encoder import write_encoder
from truthlens.cli import main
from truthlens.core.errors import ModelError
from truthlens.lab.data.dataset import Example, read_examples
from truthlens.lab.evaluate.metrics import auroc
from truthlens.lab.train.blind import blinded, check_sight
from truthlens.lab.train.blind_model import load_blind

TWINS = """\
- id: gate
  question: Which tree is it?
  passage: "The keeper of the gate says that the tree is ⟦1: maple // willow⟧."
  facts:
    1:
      kind: detail
      answers:
        - near: "The tree is ⟦maple // willow⟧."
"""


def run(*arguments: object) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of one command, in this process."""
    out, err = io.StringIO(), io.StringIO()
    status = 0
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main([str(each) for each in arguments])
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else 1
    return status, out.getvalue(), err.getvalue()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data, a base, twins, and the run of a blind training in ``run``."""
    folder = tmp_path_factory.mktemp("blind")
    write_data(folder / "data", rows=60)
    write_base(folder / "base")
    (folder / "twins").mkdir()
    (folder / "twins" / "gate.yaml").write_text(TWINS, encoding="utf-8")
    status, out, err = run(*_training(folder), "--blind", "answer", "--run", folder / "run")
    assert status == 0, err
    assert "nothing exported" in out
    assert "ragtruth" in out
    return folder


def _training(folder: Path) -> list[object]:
    named = {"--data": "data", "--base": "base", "--twins": "twins", "--output": "model"}
    words = [word for flag, name in named.items() for word in (flag, folder / name)]
    return ["train", *words, "--epochs", "1", "--minutes", "0.2", "--limit", "20", "--threads", "1"]


def test_a_blind_run_exports_nothing(place: Path) -> None:
    """Run folder and figures are all; the summary says what was seen, and the twins were trained on."""
    summary = json.loads((place / "run" / "train.json").read_bytes())
    assert summary["settings"]["blind"] == "answer"
    assert summary["rows"]["twins"] > 0
    assert (place / "run" / "model.pt").is_file()
    assert not (place / "model").exists()


def test_a_blind_model_sees_no_evidence(place: Path) -> None:
    """The same answer has the same score whatever the evidence and the query are."""
    model = load_blind(place / "run")
    path = place / "rows.jsonl"
    rows = [
        {**labelled_rows(1)[0], "context": [text], "query": text} for text in ("maple", "a willow is here")
    ]
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    first, second = model(read_examples(path))
    assert first == second > 0.0


def test_blind_ranks_at_chance_where_only_the_evidence_tells(place: Path) -> None:
    """Answers that each stand against both evidences are ranked .5, whatever was learnt."""
    path = place / "twins.jsonl"
    rows = [
        {"context": [f"The tree is {tree}."], "response": "The tree is maple.", "label": int(tree != "maple")}
        for tree in ("maple", "willow")
    ]
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    examples = read_examples(path)
    assert auroc([row.label for row in examples], load_blind(place / "run")(examples)) == 0.5


def test_a_run_does_not_go_on_with_other_sight(place: Path) -> None:
    """A checkpoint of a blind training is none of one that sees, which says what to do."""
    status, _, err = run(*_training(place), "--run", place / "run")
    assert status == 1
    assert "--fresh" in err
    with pytest.raises(ModelError, match="--blind query"):
        check_sight("", "query", place)
    check_sight("query", "query", place)


def test_a_start_that_is_not_there_is_refused(place: Path) -> None:
    """Before anything is read; an empty one means the bare base."""
    status, _, err = run(*_training(place), "--start", place / "nowhere")
    assert status == 1
    assert "nowhere" in err.replace("\n", "")


def test_only_blind_runs_are_loaded(place: Path, tmp_path: Path) -> None:
    """A folder without a summary, or of a training that saw the evidence, is refused with the remedy."""
    with pytest.raises(ModelError, match="truthlens train --blind"):
        load_blind(tmp_path)
    (tmp_path / "train.json").write_text(json.dumps({"settings": {"blind": ""}}), encoding="utf-8")
    with pytest.raises(ModelError, match="saw the evidence"):
        load_blind(tmp_path)


@pytest.mark.parametrize(("blind", "query"), [("answer", ""), ("query", "Where?")])
def test_what_is_taken_away(blind: str, query: str) -> None:
    """Evidence always, the query where only the answer is to be seen; labels and spans stay."""
    row = Example("a", "s", "qa", "Where?", ("Here.",), "There.", 1, ((0, 5),), "g")
    (found,) = blinded([row], blind)  # type: ignore[arg-type]
    assert (found.context, found.query, found.response, found.spans) == ((), query, "There.", ((0, 5),))
    assert blinded([row], "") == [row]


def test_eval_says_what_is_gained_over_blind(place: Path, tmp_path: Path) -> None:
    """Both models on one file, side by side; twins pass the gate whatever the blind model learnt."""
    model = write_encoder(tmp_path / "tiny")
    twins, policy = place / "twins" / "gate.yaml", tmp_path / "encoder.yaml"
    policy.write_text("hallucination: {detectors: [encoder]}\n")
    asked = (
        "eval",
        twins,
        "--model",
        model,
        "--config",
        policy,
        "--blind",
        place / "run",
        "--resamples",
        "0",
    )
    status, out, err = run(*asked, "--json")
    assert status == 0, err
    found = json.loads(out)["pooled"]["blind"]
    assert (found["auroc"], found["twins"], found["passes"]) == (0.5, 0.5, True)
    assert found["gained"]["twins"] == 0.0
    status, out, _ = run(*asked)
    assert status == 0
    assert "blind gate passed" in out
    marked = tmp_path / "marked.jsonl"
    rows = [
        {"context": ["c"], "response": f"The tree is {'maple' if n % 2 else 'maple ' * 9}.", "label": n % 2}
        for n in range(8)
    ]
    marked.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    status, out, _ = run(
        "eval", marked, "--model", model, "--blind", place / "run", "--json", "--resamples", "0"
    )
    found = json.loads(out)["pooled"]["blind"]
    assert status == 0
    assert found["passes"] is (max(found["auroc"], found["pairwise"]) <= 0.55)
