"""Thresholds that stand in records: what is compared with the plan, and how a change is taken over."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from truthlens import __version__
from truthlens.core.errors import ModelError, PolicyError
from truthlens.core.records.enums import Aggregation
from truthlens.core.records.verdict import ModelIdentity
from truthlens.core.scoring_version import SCORING_VERSION
from truthlens.policy import InvalidPolicyError, Policy, check_file, compile_policy, load_policy
from truthlens.policy.files import replace_file
from truthlens.policy.plans.records import MAX_BYTES, RecordError
from truthlens.policy.plans.threshold_record import ThresholdRecord
from truthlens.policy.watch import watch
from truthlens.yamlfile.diagnostics import Severity

MODEL = ModelIdentity("mine", "ab" * 32, Aggregation.SPAN_MAX)
OTHER = ModelIdentity("other", "cd" * 32, Aggregation.SPAN_MAX)
POLICY = "hallucination:\n  threshold: {max_miss_rate: 0.05, calibration: r.json}\n"


def content(**changes: Any) -> dict[str, Any]:
    return {
        "threshold": 0.41,
        "goal": {"max_miss_rate": 0.05},
        "measured": {"miss_rate": 0.04, "miss_bound": 0.048, "supported_flagged": 0.2},
        "answers": {"unsupported": 240, "unsupported_texts": 120, "supported": 700, "unscored": 0},
        "scored_with": {
            "model": MODEL.name,
            "model_sha256": MODEL.sha256,
            "aggregation": "span_max",
            "detectors": {"encoder": 1.0, "numbers": 1.0, "contradictions": 1.0, "reader": 1.0},
            "scoring_version": SCORING_VERSION,
        },
        "data": {"name": "labelled.jsonl", "sha256": "ef" * 32},
        "date": "2026-01-31",
        "truthlens": __version__,
        **changes,
    }


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    (tmp_path / "r.json").write_text(json.dumps(content()))
    path = tmp_path / "p.yaml"
    path.write_text(POLICY)
    return path


def identify(model_id: str | None) -> ModelIdentity:
    return OTHER if model_id == "other" else MODEL


def test_the_records_threshold_is_the_plans(policy: Path) -> None:
    """A record that fits gives the threshold, to the decisions that inherit it as well, without a warning."""
    policy.write_text(POLICY + "decisions: [{name: one, rules: {type: domain, name: finance}}]\n")
    loaded = load_policy(policy, identify=identify)
    assert (loaded.default.threshold, loaded.plans[0].threshold, loaded.warnings) == (0.41, 0.41, ())


def test_another_model_is_an_error_with_the_command(policy: Path) -> None:
    """Name and digest of both models, and the command that mends it."""
    (error,) = check_file(policy, identify=lambda _: OTHER)
    assert (error.key, error.line) == ("hallucination.threshold", 2)
    assert "'mine' (abababababab), and the plan's is 'other' (cdcdcdcdcdcd)" in error.message
    assert f"--max-miss-rate 0.05 --config {policy} --decision default --write" in error.remedy


@pytest.mark.parametrize("made", [None, 0, SCORING_VERSION + 1])
def test_other_scoring_rules_are_an_error_with_the_command(policy: Path, made: int | None) -> None:
    """The same model scores otherwise under them, whether they are older, newer, or from before they were counted."""
    record = content()
    del record["scored_with"]["scoring_version"]
    record["scored_with"] |= {} if made is None else {"scoring_version": made}
    (policy.parent / "r.json").write_text(json.dumps(record))
    for known in (identify, None):
        (error,) = [one for one in check_file(policy, identify=known) if one.severity is Severity.ERROR]
        assert f"under the scoring rules {made or 0}, and this version" in error.message
        assert (
            f"run: truthlens calibrate LABELLED.jsonl --max-miss-rate 0.05 --config {policy}" in error.remedy
        )


def test_a_threshold_of_another_expected_rate_is_an_error(policy: Path) -> None:
    """Scores are at the plan's rate, so a threshold measured at another one is no threshold on them."""
    policy.write_text(POLICY + "  expected_rate: 0.2\n")
    (error,) = check_file(policy, identify=identify)
    assert "for expected_rate 0.5, and the plan's is 0.2" in error.message
    made = content()
    made["scored_with"]["expected_rate"] = 0.2
    (policy.parent / "r.json").write_text(json.dumps(made))
    assert check_file(policy, identify=identify) == []


def test_a_decision_with_another_model_cannot_inherit(policy: Path) -> None:
    """A threshold is for one model, however it comes into the plan; one that is switched off needs none."""
    plugin = "plugins: [{type: hallucination, configuration: {model_id: other%s}}]"
    decision = f"decisions: [{{name: one, rules: {{type: domain, name: finance}}, {plugin}}}]\n"
    policy.write_text(POLICY + decision % "")
    (error,) = check_file(policy, model_exists=lambda _: True, identify=identify)
    assert error.key == "decisions[0].plugins[0].configuration"
    assert "--decision one" in error.remedy
    for harmless in (", threshold: 0.3", ", enabled: false"):
        policy.write_text(POLICY + decision % harmless)
        load_policy(policy, model_exists=lambda _: True, identify=identify)


def test_the_models_own_aggregation_counts(policy: Path) -> None:
    """A plan without aggregation has the model's."""
    (error,) = check_file(
        policy, identify=lambda _: ModelIdentity(MODEL.name, MODEL.sha256, Aggregation.NOISY_OR)
    )
    assert "with aggregation span_max, and the plan's is noisy_or" in error.message


def test_a_model_that_cannot_be_read_is_a_mistake_of_the_policy(policy: Path) -> None:
    """It never escapes as another kind of error: the watcher must live on."""

    def damaged(_: str | None) -> ModelIdentity:
        raise ModelError("the manifest is damaged")

    with pytest.raises(InvalidPolicyError, match=r"cannot be read, so .* the manifest is damaged"):
        load_policy(policy, identify=damaged)


def test_weights_of_detectors_count_by_their_ratio(policy: Path) -> None:
    """One detector has all the weight, whatever the figure."""
    policy.write_text(POLICY + "  detectors: [{name: encoder, weight: 3}]\n")
    with_numbers = content()
    with_numbers["scored_with"]["detectors"] = {"encoder": 1.0}
    (policy.parent / "r.json").write_text(json.dumps(with_numbers))
    assert check_file(policy, identify=identify) == []
    with_numbers["scored_with"]["detectors"] = {"encoder": 1.0, "numbers": 0.5}
    (policy.parent / "r.json").write_text(json.dumps(with_numbers))
    (error,) = check_file(policy, identify=identify)
    assert "encoder (1), numbers (0.5), and the plan has encoder (3)" in error.message


def test_options_of_detectors_count_where_they_differ_from_the_defaults(policy: Path) -> None:
    """A default that is written out is no other option; a record from before options were kept has the defaults."""
    record = content()
    record["scored_with"]["detectors"] = {"citations": 1.0}
    (policy.parent / "r.json").write_text(json.dumps(record))
    listed = "  detectors: [{name: citations, claim_chars: %d}]\n"
    policy.write_text(POLICY + listed % 20)
    assert check_file(policy, identify=identify) == []
    policy.write_text(POLICY + listed % 21)
    (error,) = check_file(policy, identify=identify)
    assert (
        "the detector options left at their defaults, and the plan has citations.claim_chars 21"
        in error.message
    )
    assert "--max-miss-rate 0.05" in error.remedy


def test_a_record_for_a_share_is_none_for_a_miss_rate(policy: Path) -> None:
    """It bounds no misses."""
    goal = {"goal": {"flag_share": 0.2}, "measured": {"flagged": 0.2}, "answers": {"unlabelled": 50}}
    (policy.parent / "r.json").write_text(json.dumps(content(**goal)))
    (error,) = check_file(policy, identify=identify)
    assert "made for a share of flagged answers, not for a miss rate" in error.message


def test_another_version_is_a_warning(policy: Path) -> None:
    """The threshold is used all the same."""
    (policy.parent / "r.json").write_text(json.dumps(content(truthlens="0.0.0")))
    (warning,) = load_policy(policy, identify=identify).warnings
    assert "another version" in warning.message


def test_records_may_be_left_unread(policy: Path) -> None:
    """To calibrate a plan, its record need not be there."""
    (policy.parent / "r.json").unlink()
    with pytest.raises(InvalidPolicyError):
        load_policy(policy)
    assert load_policy(policy, use_records=False).default.threshold == 0.6


def test_the_version_covers_the_record(policy: Path) -> None:
    """Another record is another policy; a policy without records has the version of its text."""
    first = load_policy(policy).version
    (policy.parent / "r.json").write_text(json.dumps(content(threshold=0.3)))
    assert load_policy(policy).version != first
    plain = "hallucination: {threshold: 0.1}"
    assert compile_policy(plain, file="f").version == compile_policy(plain, file=str(policy)).version


class Follower:
    """Follows a policy and takes what the watcher says, in order."""

    def __init__(self, policy: Path) -> None:
        self._said: asyncio.Queue[float | str] = asyncio.Queue()
        loaded = load_policy(policy, identify=identify).version
        self._task = asyncio.create_task(
            watch(policy, reload=self._reload, failed=self._failed, loaded=loaded, identify=identify)
        )

    async def next(self) -> float | str:
        return await asyncio.wait_for(self._said.get(), 30)

    async def end(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])
        assert self._said.empty()

    async def _reload(self, policy: Policy) -> None:
        await self._said.put(policy.default.threshold)

    async def _failed(self, error: PolicyError) -> None:
        await self._said.put(str(error))


async def test_a_new_record_is_taken_over(policy: Path) -> None:
    """A record beside the policy is followed: a new one, a wrong one, none, and the way back."""
    record = policy.parent / "r.json"
    follower = Follower(policy)
    await asyncio.sleep(0.1)
    replace_file(record, json.dumps(content(threshold=0.3)))
    assert await follower.next() == 0.3
    replace_file(record, json.dumps(content(goal={"max_miss_rate": 0.1})))
    assert "was made for 0.1" in str(await follower.next())
    record.unlink()
    assert "cannot be read" in str(await follower.next())
    replace_file(record, json.dumps(content()))
    assert await follower.next() == 0.41
    await follower.end()


async def test_a_record_in_another_folder_is_noticed(policy: Path) -> None:
    """Its folder is not watched; the second look finds it."""
    record = policy.parent / "deep" / "r.json"
    record.parent.mkdir()
    replace_file(record, json.dumps(content()))
    policy.write_text(POLICY.replace("r.json", "deep/r.json"))
    follower = Follower(policy)
    replace_file(record, json.dumps(content(threshold=0.3)))
    assert await follower.next() == 0.3
    await follower.end()


def test_a_record_survives_its_file() -> None:
    """What is written is what is read."""
    record = ThresholdRecord.model_validate(content())
    assert ThresholdRecord.read(record.to_json().encode()) == record
    costs = ThresholdRecord.model_validate(content(goal={"cost_ratio": 10, "prior": 0.2}))
    assert ThresholdRecord.read(costs.to_json().encode()) == costs


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "not valid JSON"),
        (b"\xff\xfe", "not valid JSON"),
        (b"[]", "the file"),
        (b'{"response": "x", "label": 1}\n{"response": "y", "label": 0}', "holds labelled answers"),
        (b" " * (MAX_BYTES + 1), "larger than 64 KiB"),
        (json.dumps(content(threshold=2)).encode(), "threshold"),
        (json.dumps(content(format=2)).encode(), "format"),
        (json.dumps(content(surprise=1)).encode(), "surprise"),
    ],
)
def test_what_is_no_record(data: bytes, message: str) -> None:
    """The message says what it is, or which key is wrong."""
    with pytest.raises(RecordError, match=message):
        ThresholdRecord.read(data)


def test_replacing_keeps_links_and_permissions(tmp_path: Path) -> None:
    """A link still leads to the file, whose mode stays, and nothing else is left in the folder."""
    target, link = tmp_path / "real.yaml", tmp_path / "link.yaml"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    replace_file(link, "new\r\n")
    assert (link.is_symlink(), target.read_bytes(), target.stat().st_mode & 0o777) == (
        True,
        b"new\r\n",
        0o640,
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link.yaml", "real.yaml"]


@pytest.mark.parametrize("name", ["nowhere.json", "folder", "a\\0b.json", "x" * 300])
def test_names_that_cannot_be_read(policy: Path, name: str) -> None:
    """A missing file, a folder and impossible names are mistakes of the policy with a remedy."""
    (policy.parent / "folder").mkdir()
    policy.write_text(POLICY.replace("r.json", f'"{name}"'))
    (error,) = check_file(policy, identify=identify)
    assert error.key == "hallucination.threshold.calibration"
    assert "cannot be read" in error.message
