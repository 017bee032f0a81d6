"""The policy file and its models: mistakes, versions in force, digests, memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fakes.setups import setup_of, wrong
from truthlens.process.doctor.findings import CheckLevel, CheckResult
from truthlens.process.doctor.policy import look_at_policy, read_policy
from truthlens.process.doctor.setup import Setup

MIB = 1 << 20


async def found(setup: Setup, serving: dict[str, Any] | None = None) -> dict[str, CheckResult]:
    """What is wrong with the policy."""
    return wrong(await look_at_policy(setup, read_policy(setup.settings), serving))


def serving(setup: Setup, **changes: Any) -> dict[str, Any]:
    """What a process says that has the file in force."""
    version = read_policy(setup.settings).version
    return {"policy": {"version": version, "last_error": None, **changes}, "warnings": []}


async def test_a_sound_policy_is_right_planned_and_running(tmp_path: Path) -> None:
    """Where it runs its models are not loaded again, whatever memory is left."""
    setup = setup_of(tmp_path, free_memory=lambda: 1 << 40)
    assert await found(setup) == {}
    assert await found(setup_of(tmp_path, free_memory=lambda: 0), serving(setup)) == {}


async def test_mistakes_and_warnings_of_the_file_are_all_told(tmp_path: Path) -> None:
    """As by ``check``, with their lines."""
    text = "hallucination:\n  treshold: 0.5\n  model_id: nowhere\n  detectors: [encodr]\n"
    told = await found(setup_of(tmp_path, text))
    assert told["policy.treshold"].severity is CheckLevel.ERROR
    assert told["policy.treshold"].what.startswith(f"{tmp_path / 'policy.yaml'}:2")
    assert len(told) > 1


async def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    """It has no version to compare."""
    setup = setup_of(tmp_path)
    setup.settings.config.unlink()
    told = await found(setup, {"policy": {"version": "1"}, "warnings": []})
    assert told["policy.file"].severity is CheckLevel.ERROR
    assert "policy.version" not in told


async def test_a_process_with_another_version_is_told(tmp_path: Path) -> None:
    """Without an error it may not have read the edit; warnings of its own policy are passed on."""
    setup = setup_of(tmp_path)
    told = await found(setup, {**serving(setup, version="other"), "warnings": ["p.yaml:1: warning: k: m; r"]})
    assert {name: each.severity for name, each in told.items()} == {
        "policy.version": CheckLevel.WARNING,
        "policy.running": CheckLevel.WARNING,
    }
    assert "version other" in told["policy.version"].what


@pytest.mark.parametrize("running", [False, True])
async def test_a_damaged_model_is_an_error(tmp_path: Path, running: bool) -> None:
    """It differs from its manifest."""
    setup = setup_of(tmp_path)
    state = serving(setup) if running else None
    with (tmp_path / "models" / "truthlens-minilm-en-v2" / "model.onnx").open("ab") as file:
        file.write(b"\0")
    (told,) = (await found(setup, state)).values()
    assert told.severity is CheckLevel.ERROR
    assert "SHA-256" in told.what + told.why


async def test_a_reader_that_is_missing_is_an_error(tmp_path: Path) -> None:
    """With the command that fetches one."""
    policy = "hallucination: {detectors: [encoder, {name: reader, model: no-such-reader}]}\n"
    (told,) = (await found(setup_of(tmp_path, policy))).values()
    assert told.severity is CheckLevel.ERROR
    assert "no-such-reader" in told.what + told.why


async def test_where_memory_is_short_nothing_is_loaded(tmp_path: Path) -> None:
    """A warning says what is free and what is needed; the digests are compared all the same."""
    setup = setup_of(tmp_path, free_memory=lambda: 10 * MIB)
    told = await found(setup)
    assert set(told) == {"policy.memory"}
    assert told["policy.memory"].what.startswith("10 MiB of memory are free")
