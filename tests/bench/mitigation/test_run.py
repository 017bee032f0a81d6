"""Whole exchanges with a detector of our own, the rows that are read, and the rows that are kept."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from bench.mitigation.configurations import Configuration, configurations
from bench.mitigation.data import FILE, Case, Given, Prompt, held_out
from bench.mitigation.run import Checkpoint
from bench.mitigation.simulation.clock import simulate
from bench.mitigation.simulation.editor import Habits
from bench.mitigation.simulation.exchange import exchange
from bench.mitigation.simulation.panel import Panel
from truthlens.core.records.enums import Mode, Status
from truthlens.core.records.exchange import Exchange
from truthlens.core.records.verdict import Span, Verdict

WRONG = "It was built by monks in 1411."
TEXTS = (
    f"The mill stands on the river Arne. {WRONG} It grinds rye and oats.",
    "The mill stands on the river Arne. It was built in 1530. It grinds rye and oats.",
    "The mill stands on the river Arne. It was built in 1530. Its wheel is of oak.",
    "The mill grinds rye.",
)
PASSAGE = (
    "The mill stands on the river Arne. It was built in 1530. It grinds rye and oats. Its wheel is of oak."
)
SURE = Panel(judges=1.0, checks=1.0, attacks=1.0, slanders=0.0, concedes=1.0)


def given(number: int) -> Given:
    at = TEXTS[number].find(WRONG)
    return Given(f"model-{number}", TEXTS[number], ((at, at + len(WRONG)),) if at >= 0 else ())


PROMPT = Prompt(
    "g", "What of the mill?", (PASSAGE,), f"{PASSAGE}\nWhat of the mill?", tuple(map(given, range(4)))
)


class PlainDetector:
    """Flags what does not stand in the evidence, sentence by sentence; each text takes a tenth of a second."""

    def score(self, asked: Exchange, texts: Sequence[str]) -> tuple[list[Verdict], float]:
        return [self._verdict(asked, text) for text in texts], 0.1 * len(texts)

    def similar(self, left: Sequence[str], right: Sequence[str]) -> tuple[np.ndarray, float]:
        def near(one: str, other: str) -> float:
            mine, yours = set(one.split()), set(other.split())
            return 2 * len(mine & yours) / max(len(mine) + len(yours), 1)

        return np.array([[near(one, other) for other in right] for one in left]), 0.0

    def _verdict(self, asked: Exchange, text: str) -> Verdict:
        evidence = " ".join(passage.text for passage in asked.passages)
        sentences = [part if part.endswith(".") else f"{part}." for part in text.split(". ")]
        spans = tuple(
            Span(text.index(part), text.index(part) + len(part), 0.9)
            for part in sentences
            if part not in evidence and part in text
        )
        return Verdict(Status.CHECKED, score=0.9 if spans else 0.05, spans=spans)


NAMES = (
    "standard",
    "standard+self-check",
    "premium judge",
    "premium segment_vote",
    "premium weighted_fusion",
    "premium replacement",
    "premium debate",
    "premium judge, flagged only",
)


@pytest.mark.parametrize("name", NAMES)
def test_every_mode_corrects_what_honest_models_know(name: str) -> None:
    """With models that see everything the unsupported sentence goes, at a counted price."""
    (found,) = [each for each in configurations(0.3) if each.name == name]
    sure = Configuration(
        name, found.mode, found.threshold, found.consensus, judge=found.judge, always=found.always,
        self_check=found.self_check, habits=Habits(1.0, 0.0), panel=SURE,
    )  # fmt: skip
    row = simulate(exchange(Case(PROMPT, 0), sure, PlainDetector()))  # type: ignore[arg-type]
    assert (row["before"]["wrong"], row["after"]["wrong"]) == (True, False)
    assert row["after"]["unknown"] == 0
    assert (row["flagged"], row["flagged_after"], row["changed"]) == (True, False, True)
    assert row["calls"]
    assert row["prompt_tokens"] > 0
    assert row["latency_s"] > row["detection_s"] > 0.0


def test_lightweight_changes_nothing_and_calls_nobody() -> None:
    """The answer is scored, that is all."""
    light = Configuration("lightweight", Mode.LIGHTWEIGHT, 0.3)
    row = simulate(exchange(Case(PROMPT, 0), light, PlainDetector()))  # type: ignore[arg-type]
    assert (row["flagged"], row["changed"], row["calls"]) == (True, False, [])
    assert row["before"] == row["after"]
    assert row["latency_s"] == pytest.approx(0.1)


def test_a_supported_answer_passes_where_only_flagged_ones_are_corrected() -> None:
    """Nobody is asked about an answer that is not flagged."""
    (found,) = [each for each in configurations(0.3) if each.name == "premium judge, flagged only"]
    row = simulate(exchange(Case(PROMPT, 1), found, PlainDetector()))  # type: ignore[arg-type]
    assert (row["flagged"], row["changed"], row["calls"]) == (False, False, [])


def test_names_of_configurations_are_unique() -> None:
    """Each has figures of its own."""
    names = [each.name for each in configurations(0.2769)]
    assert len(names) == len(set(names))


def write(folder: Path, groups: int) -> None:
    with gzip.open(folder / FILE, "wt", encoding="utf-8") as stream:
        for group in range(groups):
            for answer in range(4):
                row = {
                    "id": f"{group}-{answer}", "source": "ragtruth", "query": "q", "context": [f"p {group}"],
                    "response": f"text {answer}", "label": int(answer == 1), "group": str(group),
                    "spans": [{"start": 0, "end": 4}] if answer == 1 else [], "model": f"m{answer}", "prompt": "p",
                }  # fmt: skip
                stream.write(json.dumps(row) + "\n")


def test_only_held_out_prompts_are_read_and_more_rows_only_add(tmp_path: Path) -> None:
    """About 15 % of the groups, four cases each, in an order that does not depend on how many are wanted."""
    write(tmp_path, 200)
    cases = held_out(tmp_path)
    assert 15 * 4 <= len(cases) <= 45 * 4
    assert len({case.id for case in cases}) == len(cases)
    assert held_out(tmp_path, 10) == cases[:8]
    assert [case.first.spans for case in cases[:4]] == [(), ((0, 4),), (), ()]
    assert [cases[3].other(number).model for number in (1, 2, 3)] == ["m0", "m1", "m2"]


def test_a_broken_off_run_goes_on_where_it_was(tmp_path: Path) -> None:
    """Whole lines are kept, the line that was being written is not, and other code begins anew."""
    light = Configuration("lightweight @0.15", Mode.LIGHTWEIGHT, 0.15)
    first = Checkpoint(tmp_path, light, "v1")
    first.add({"id": "a", "n": 1})
    (file,) = tmp_path.iterdir()
    file.write_text(file.read_text() + '{"id": "b", "n"')
    assert Checkpoint(tmp_path, light, "v1").rows == {"a": {"id": "a", "n": 1}}
    assert len(file.read_text().splitlines()) == 2
    assert Checkpoint(tmp_path, light, "v2").rows == {}
