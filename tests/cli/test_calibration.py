"""``calibrate``: from labelled answers to a record and a policy, with a tiny model."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.fakes.tiny_encoder import write_encoder
from truthlens.cli import calibration
from truthlens.cli.policy import check
from truthlens.core.errors import TruthLensError
from truthlens.policy import load_policy
from truthlens.policy.plans.threshold_record import ThresholdRecord

BUNDLED = "truthlens-minilm-en-v2"
# Log-odds of the words that answers are made of: each wrong word has a score of its own.
WORDS = {f"wrong{n}": -3.0 + 0.25 * n for n in range(24)}
POLICY = """\
# The house policy.
hallucination:
  threshold: 0.6   # for everyone

decisions:
  - name: careful            # health
    rules: {type: domain, name: healthcare}
    plugins:
      - type: hallucination
        configuration: {on_unchecked: block}   # strict
"""


@dataclass(frozen=True)
class Result:
    status: int
    stdout: str
    error: str


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A models folder with one tiny model under the bundled one's name."""
    folder = tmp_path_factory.mktemp("models")
    write_encoder(folder / BUNDLED, odds=WORDS, manifest={"aggregation": "noisy_or", "tau_token": 0.0})
    return folder


@pytest.fixture
def labelled(tmp_path: Path) -> Path:
    """48 answers from 24 texts: per text one with a wrong word and one without."""
    rows: list[dict[str, Any]] = []
    for number, word in enumerate(WORDS):
        context = [f"Room {number} opens at nine."]
        rows.append({"context": context, "query": "", "response": f"Tea is {word}.", "label": 1})
        rows.append({"context": context, "query": "", "response": "Tea is free.", "label": 0})
    path = tmp_path / "labelled.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "policy.yaml"
    path.write_text(POLICY)
    return path


def run(command: Callable[..., None], *arguments: object) -> Result:
    """One command by itself, in this process."""
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command()(command)
    out, err = io.StringIO(), io.StringIO()
    status, message = 0, ""
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        for name in ("TRUTHLENS_CONFIG", "TRUTHLENS_MODEL"):
            patch.delenv(name, raising=False)
        patch.setenv("NO_COLOR", "1")
        patch.setenv("COLUMNS", "120")
        try:
            app([str(argument) for argument in arguments])
        except TruthLensError as error:
            status, message = 1, str(error)
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else 1
    return Result(status, out.getvalue(), message + err.getvalue())


def calibrate(*arguments: object) -> Result:
    return run(calibration.calibrate, *arguments)


def record_of(path: Path) -> ThresholdRecord:
    return ThresholdRecord.read(path.read_bytes())


def test_a_miss_rate_gives_a_threshold_and_a_record(labelled: Path, shelf: Path, tmp_path: Path) -> None:
    """Of 24 texts one may be missed at 0.1; the record says what was measured and with what."""
    output = tmp_path / "out.json"
    result = calibrate(labelled, "--max-miss-rate", "0.1", "--models", shelf, "--output", output)
    assert (result.status, result.error.count("Traceback")) == (0, 0)
    record = record_of(output)
    assert record.measured.miss_rate == pytest.approx(1 / 24)
    assert record.measured.miss_bound == pytest.approx(2 / 25)
    assert record.measured.supported_flagged == 0.0
    assert (record.answers.unsupported, record.answers.unsupported_texts, record.answers.supported) == (
        24,
        24,
        24,
    )
    assert (record.scored_with.model, record.scored_with.aggregation) == ("tiny", "noisy_or")
    assert record.data.name == "labelled.jsonl"
    assert str(tmp_path) not in output.read_text()
    assert str(record.threshold) in result.stdout
    assert "0.0800" in result.stdout
    assert "0.0417" in result.stdout


def test_json_is_one_object_on_standard_output(labelled: Path, shelf: Path) -> None:
    """Progress goes elsewhere, and nothing is written without --output."""
    result = calibrate(labelled, "--max-miss-rate", "0.2", "--models", shelf, "--json")
    told = json.loads(result.stdout)
    assert (told["record"], told["policy"], told["goal"]) == (None, None, {"max_miss_rate": 0.2})
    assert told["compared"]["chosen"]["threshold"] == told["threshold"]
    assert "cost" not in told["compared"]["chosen"]
    assert sorted(labelled.parent.iterdir()) == [labelled]


def test_costs_give_the_measured_minimum_beside_proposition_1(labelled: Path, shelf: Path) -> None:
    """The prior is the file's own share unless it is given; both thresholds are told apart by name."""
    told = json.loads(calibrate(labelled, "--cost-ratio", "10", "--models", shelf, "--json").stdout)
    assert told["goal"] == {"cost_ratio": 10.0, "prior": 0.5}
    compared = told["compared"]
    assert compared["proposition 1"]["threshold"] == pytest.approx(1 / 11)
    assert compared["least cost"]["threshold"] == told["threshold"]
    assert compared["least cost"]["cost"] == min(point["cost"] for point in compared.values())
    rarer = calibrate(labelled, "--cost-ratio", "10", "--prior", "0.1", "--models", shelf)
    assert "proposition 1" in rarer.stdout
    assert "least cost" in rarer.stdout
    assert "0.1 of the answers are unsupported" in rarer.stdout


def test_write_sets_the_default_threshold_and_keeps_the_rest(
    labelled: Path, shelf: Path, policy: Path
) -> None:
    """The record lies beside the policy, which loads with the threshold in it; comments stay."""
    result = calibrate(labelled, "--max-miss-rate", "0.1", "--config", policy, "--write", "--models", shelf)
    assert result.status == 0
    written = "{max_miss_rate: 0.1, calibration: default.threshold.json}"
    assert policy.read_text() == POLICY.replace("0.6", written)
    record = record_of(policy.parent / "default.threshold.json")
    loaded = load_policy(policy)
    assert [loaded.default.threshold, loaded.plans[0].threshold] == [record.threshold] * 2
    told = run(check, policy, "--models", shelf, "--strict").stdout.splitlines()
    assert told[0] == f"{policy}: ok"
    assert told[1].endswith(f"threshold {record.threshold:.4g}")


def test_write_sets_one_decision(labelled: Path, shelf: Path, policy: Path) -> None:
    """Another decision's threshold is added where it had none, and the default stays."""
    arguments = (labelled, "--cost-ratio", "10", "--config", policy, "--decision", "careful", "--write")
    result = calibrate(*arguments, "--models", shelf, "--json")
    told = json.loads(result.stdout)
    assert (told["record"], told["policy"]) == (None, str(policy))
    assert told["compared"]["the plan's now"]["threshold"] == 0.6
    loaded = load_policy(policy)
    assert (loaded.default.threshold, loaded.plans[0].threshold) == (0.6, told["threshold"])
    expected = POLICY.replace("on_unchecked: block", f"on_unchecked: block, threshold: {told['threshold']}")
    assert policy.read_text() == expected


def test_a_record_elsewhere_is_named_from_the_policy(labelled: Path, shelf: Path, policy: Path) -> None:
    """The path in the policy is relative to the policy."""
    folder = policy.parent / "records"
    folder.mkdir()
    arguments = ("--max-miss-rate", "0.1", "--config", policy, "--write", "--output", folder / "r.json")
    assert calibrate(labelled, *arguments, "--models", shelf).status == 0
    assert "calibration: records/r.json" in policy.read_text()


def test_a_stale_record_does_not_stand_in_the_way(
    labelled: Path, shelf: Path, policy: Path, tmp_path: Path
) -> None:
    """After a change of model the policy no longer loads; calibrating again mends it."""
    arguments = (labelled, "--max-miss-rate", "0.1", "--config", policy, "--write", "--models")
    assert calibrate(*arguments, shelf).status == 0
    other = tmp_path / "other"
    write_encoder(other / BUNDLED, odds=WORDS, manifest={"aggregation": "noisy_or", "temperature": 2.0})
    told = run(check, policy, "--models", other)
    assert told.status == 1
    assert "calibrated for the model 'tiny'" in told.stdout
    assert "truthlens calibrate LABELLED.jsonl --max-miss-rate 0.1" in told.stdout
    again = calibrate(*arguments, other)
    assert (again.status, "the plan's now" in again.stdout) == (0, False)
    assert run(check, policy, "--models", other).status == 0


def test_what_stands_elsewhere_is_no_obstacle(labelled: Path, shelf: Path, policy: Path) -> None:
    """With two stale records, the first may be mended before the second; what is left is told."""
    lost = POLICY.replace("on_unchecked: block", "threshold: {max_miss_rate: 0.1, calibration: lost.json}")
    policy.write_text(lost)
    arguments = ("--max-miss-rate", "0.1", "--config", policy, "--write", "--models", shelf)
    result = calibrate(labelled, *arguments)
    assert result.status == 0
    assert "1 other error(s)" in result.stdout
    assert "default.threshold.json" in policy.read_text()


def test_an_edit_that_cannot_be_made_leaves_the_policy_alone(
    labelled: Path, shelf: Path, policy: Path
) -> None:
    """The message has the line to write by hand; the record is there."""
    text = POLICY.replace("0.6", "&t 0.6").replace("on_unchecked: block", "threshold: *t")
    policy.write_text(text)
    arguments = ("--max-miss-rate", "0.1", "--config", policy, "--write", "--models", shelf)
    result = calibrate(labelled, *arguments)
    assert result.status == 1
    assert "threshold: {max_miss_rate: 0.1, calibration: default.threshold.json}" in result.error
    assert policy.read_text() == text
    assert (policy.parent / "default.threshold.json").is_file()


def test_too_few_answers_name_the_number_and_the_rate(labelled: Path, shelf: Path, policy: Path) -> None:
    """Nothing is written for a rate that 24 texts cannot show."""
    arguments = ("--max-miss-rate", "0.01", "--config", policy, "--write", "--models", shelf)
    result = calibrate(labelled, *arguments)
    assert result.status == 1
    assert "at least 99 source texts, and the file has 24" in result.error
    assert "ask for 0.04 or more" in result.error
    assert policy.read_text() == POLICY
    assert not list(policy.parent.glob("*.json"))


def test_rows_that_cannot_be_scored_are_told_and_count_as_missed(
    labelled: Path, shelf: Path, tmp_path: Path
) -> None:
    """A row without evidence has no score."""
    output = tmp_path / "out.json"
    with labelled.open("a") as stream:
        stream.write('\n{"context": [], "response": "Tea is wrong3.", "label": 1, "group": "g"}\n')
    result = calibrate(labelled, "--max-miss-rate", "0.2", "--models", shelf, "-o", output)
    assert "no-context 1" in result.stdout
    record = record_of(output)
    assert (record.answers.unscored, record.measured.miss_rate) == (1, pytest.approx(4 / 25))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "one of --max-miss-rate, --cost-ratio and --flag-share"),
        (
            ("--max-miss-rate", "0.1", "--cost-ratio", "2"),
            "one of --max-miss-rate, --cost-ratio and --flag-share",
        ),
        (("--max-miss-rate", "5"), "between 0 and 1"),
        (("--flag-share", "1"), "between 0 and 1"),
        (("--flag-share", "0"), "between 0 and 1"),
        (("--flag-share", "0.2", "--cost-ratio", "2"), "one of"),
        (("--flag-share", "0.2", "--prior", "0.2"), "--prior goes with"),
        (("--cost-ratio", "-1"), "above 0"),
        (("--max-miss-rate", "0.1", "--prior", "0.2"), "--prior goes with"),
        (("--cost-ratio", "1", "--prior", "1"), "between 0 and 1"),
        (("--max-miss-rate", "0.1", "--write"), "needs --config"),
    ],
)
def test_options_that_do_not_fit(labelled: Path, arguments: tuple[str, ...], message: str) -> None:
    """Said before anything is scored."""
    result = calibrate(labelled, *arguments)
    assert result.status == 2
    assert message in " ".join(result.error.replace("│", " ").split())


def test_write_is_for_the_plans_own_model(labelled: Path, shelf: Path, policy: Path) -> None:
    """A threshold of another model is never written into the plan."""
    arguments = ("--cost-ratio", "1", "--config", policy, "--write", "--model", "other", "--models", shelf)
    assert calibrate(labelled, *arguments).status == 2


def test_unknown_and_disabled_decisions(labelled: Path, shelf: Path, policy: Path) -> None:
    """The message names the decisions that there are, or says that there is nothing to score."""
    arguments = (labelled, "--cost-ratio", "1", "--config", policy, "--models", shelf, "--decision")
    assert "known: careful, default" in calibrate(*arguments, "carefull").error
    policy.write_text(POLICY.replace("on_unchecked: block", "enabled: false"))
    assert "detection is off" in calibrate(*arguments, "careful").error


def test_one_kind_of_answers_has_no_costs(labelled: Path, shelf: Path) -> None:
    """Costs need both kinds; a miss rate needs unsupported answers alone."""
    rows = labelled.read_text().splitlines()
    labelled.write_text("\n".join(rows[::2]))
    assert "unsupported answers only" in calibrate(labelled, "--cost-ratio", "1", "--models", shelf).error
    assert (
        "no supported" in calibrate(labelled, "--cost-ratio", "1", "--prior", "0.5", "--models", shelf).error
    )
    result = calibrate(labelled, "--max-miss-rate", "0.1", "--models", shelf)
    assert (result.status, "there are no supported answers" in result.stdout) == (0, True)
    labelled.write_text("\n".join(rows[1::2]))
    assert "no unsupported answers" in calibrate(labelled, "--max-miss-rate", "0.1", "--models", shelf).error
    labelled.write_text("")
    assert "no rows" in calibrate(labelled, "--max-miss-rate", "0.1", "--models", shelf).error


@pytest.fixture
def traffic(tmp_path: Path) -> Path:
    """Unlabelled answers: 24 with a wrong word each, 24 calm ones, and two without evidence."""
    rows = [{"context": ["Room."], "response": f"Tea is {word}."} for word in WORDS]
    rows += [{"context": ["Room."], "response": "Tea is free."} for _ in WORDS]
    rows += [{"context": [], "response": "Tea is free."}] * 2
    path = tmp_path / "traffic.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


def test_a_share_of_unlabelled_answers_gives_a_threshold(
    traffic: Path, shelf: Path, policy: Path, tmp_path: Path
) -> None:
    """A quarter of the checked ones; the number goes into the policy, the record says what was measured."""
    output = tmp_path / "share.json"
    result = calibrate(
        traffic, "--flag-share", "0.25", "--config", policy, "--write", "--output", output, "--models", shelf
    )
    assert (result.status, result.error.count("Traceback")) == (0, 0)
    assert "12 of 48" in result.stdout
    assert "no-context 2" in result.stdout
    record = record_of(output)
    assert record.goal.model_dump() == {"flag_share": 0.25}
    assert (record.measured.flagged, record.measured.miss_rate) == (0.25, None)
    assert (record.answers.unlabelled, record.answers.unscored, record.answers.unsupported) == (48, 2, 0)
    assert load_policy(policy).default.threshold == record.threshold
    assert "# for everyone" in policy.read_text()
    told = json.loads(calibrate(traffic, "--flag-share", "0.25", "--models", shelf, "--json").stdout)
    assert (told["threshold"], told["compared"]["chosen"]["flagged"]) == (record.threshold, 0.25)
    assert (told["record"], told["policy"], told["unscored"]) == (None, None, {"no-context": 2})
    assert told["flagged_95"][0] < 0.25 < told["flagged_95"][1]


def test_a_share_that_cannot_be_had_is_one_message(traffic: Path, shelf: Path, tmp_path: Path) -> None:
    """Too few answers for so small a share, and none that could be checked."""
    small = calibrate(traffic, "--flag-share", "0.01", "--models", shelf)
    assert (small.status, "needs at least 500" in small.error) == (1, True)
    bare = tmp_path / "bare.jsonl"
    bare.write_text(json.dumps({"context": [], "response": "Tea is free."}))
    none = calibrate(bare, "--flag-share", "0.2", "--models", shelf)
    assert (none.status, "no-context 1" in none.error) == (1, True)


def test_the_record_says_which_detectors_with_which_options(
    labelled: Path, shelf: Path, tmp_path: Path
) -> None:
    """The whole list scores; with other options the record is refused, with the command that renews it."""
    listed = "  detectors: [encoder, {{name: citations, require_citations: true, claim_chars: {}}}]\n"
    policy = tmp_path / "policy.yaml"
    policy.write_text("hallucination:\n  threshold: 0.6\n" + listed.format(5))
    arguments = (labelled, "--max-miss-rate", "0.1", "--config", policy, "--write", "--models", shelf)
    assert calibrate(*arguments).status == 0
    record = record_of(tmp_path / "default.threshold.json")
    assert record.scored_with.detectors == {"encoder": 1.0, "citations": 1.0}
    assert record.scored_with.options == {"citations": {"require_citations": True, "claim_chars": 5}}
    # Every answer lacks a citation: the encoder alone would flag no calm one.
    assert record.measured.supported_flagged == 1.0
    assert run(check, policy, "--models", shelf).status == 0
    policy.write_text(policy.read_text().replace("claim_chars: 5", "claim_chars: 6"))
    told = run(check, policy, "--models", shelf)
    assert told.status == 1
    assert "citations.claim_chars 5" in told.stdout
    assert "and the plan has citations.claim_chars 6" in told.stdout
    assert "truthlens calibrate LABELLED.jsonl --max-miss-rate 0.1" in told.stdout
