"""Figures of hand-made rows."""

from __future__ import annotations

from typing import Any

import pytest

from bench.mitigation.report import figures, table


def row(group: str, before: int, after: int, **more: Any) -> dict[str, Any]:
    tally = {"characters": 100, "invented": 0, "unknown": 0}
    return {
        "group": group,
        "flagged": before > 0,
        "flagged_after": after > 0,
        "before": {**tally, "unsupported": before, "wrong": before > 0},
        "after": {**tally, "unsupported": after, "wrong": after > 0},
        "loss": {
            "characters": 10, "of_characters": 80, "sentences": 1, "of_sentences": 4, "content": 2, "of_content": 20,
        },
        "changed": before != after,
        "stop": "converged",
        "attempts": ["refiner better"],
        "notes": [],
        "calls": ["refiner"] * 2,
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "first_tokens": 60,
        "latency_s": 1.5,
        "detection_s": 0.25,
        **more,
    }  # fmt: skip


ROWS = [row("a", 40, 0), row("a", 0, 0), row("b", 20, 20), row("b", 0, 10)]


def test_rates_before_and_after() -> None:
    """Shares of wrong answers, unsupported characters per answer, and what was made worse."""
    raw = figures(ROWS)["raw"]
    values = {name: figure["value"] for name, figure in raw.items()}
    assert (values["wrong_before"], values["wrong_after"]) == (0.5, 0.5)
    assert (values["unsupported_before"], values["unsupported_after"]) == (15.0, 7.5)
    assert (values["worse"], values["better"], values["made_wrong"]) == (0.25, 0.25, 0.25)
    assert values["unsupported_reduction"] == 0.5
    assert values["lost_characters"] == 0.125
    assert (values["calls"], values["tokens"], values["tokens_of_first"]) == (2.0, 120.0, 2.0)


def test_weighting_moves_the_share_of_wrong_answers() -> None:
    """Weighted, 18 % of the first answers are wrong."""
    weighted = figures(ROWS)["weighted"]
    assert weighted["wrong_before"]["value"] == pytest.approx(0.18)
    # Of the wrong ones half is mended; of the others half is made wrong.
    assert weighted["wrong_after"]["value"] == pytest.approx(0.18 / 2 + 0.82 / 2)


def test_intervals_are_over_whole_prompts() -> None:
    """Two prompts that differ give an interval from one to the other."""
    low, high = figures(ROWS)["raw"]["unsupported_after"]["interval"]
    assert (low, high) == (0.0, 15.0)


def test_the_table_has_a_line_for_each_configuration() -> None:
    """Head, rule, and one line each."""
    lines = table({"one": figures(ROWS), "two": figures(ROWS)}, weighting="raw").splitlines()
    assert len(lines) == 4
    assert {line.count("|") for line in lines} == {lines[0].count("|")}
    assert "50.0 % (" in lines[2]
