"""Tests of ``truthlens.lab.data.dataset``."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from truthlens.lab.data.dataset import (
    DataError,
    Example,
    Mixture,
    Recipe,
    Shares,
    draw,
    read_examples,
    read_folder,
    split,
    split_of,
)

ROW: dict[str, Any] = {
    "id": "1", "source": "made", "task": "qa", "query": "When?", "context": ["At nine."], "response": "At ten.",
    "label": 1, "spans": [{"start": 3, "end": 6, "kind": "x"}], "group": "g",
}  # fmt: skip


def _file(folder: Path, *rows: Any, name: str = "a.jsonl") -> Path:
    path = folder / name
    text = "\n".join(row if isinstance(row, str) else json.dumps(row) for row in rows)
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, encoding="utf-8")
    return path


def _example(number: int, *, source: str = "made", group: str = "") -> Example:
    return Example(str(number), source, "qa", "", ("c",), "r", 0, (), group or f"{source}:{number}")


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_rows_are_read_plain_or_zipped(tmp_path: Path, name: str) -> None:
    """A row becomes an example with its fields, spans as pairs."""
    (found,) = read_examples(_file(tmp_path, ROW, "", name=name))
    assert found == Example("1", "made", "qa", "When?", ("At nine.",), "At ten.", 1, ((3, 6),), "made:g")


def test_unmarked_rows_differ_from_rows_marked_clean(tmp_path: Path) -> None:
    """No ``spans`` is ``None``: nobody looked; an empty list means that all is supported."""
    unmarked = {key: value for key, value in ROW.items() if key != "spans"}
    first, second = read_examples(_file(tmp_path, unmarked, {**ROW, "spans": [], "label": 0}))
    assert first.spans is None
    assert second.spans == ()


def test_rows_without_group_share_one_by_context(tmp_path: Path) -> None:
    """Without a group, the same evidence is the same group."""
    bare = {key: value for key, value in ROW.items() if key != "group"}
    first, second, third = read_examples(
        _file(tmp_path, bare, {**bare, "response": "At two."}, {**bare, "context": ["x"]})
    )
    assert first.group == second.group != third.group


@pytest.mark.parametrize(
    "row",
    [
        "{",
        {**ROW, "label": 2},
        {**ROW, "context": "text"},
        {**ROW, "spans": [{"start": 3, "end": 99}]},
        {key: value for key, value in ROW.items() if key != "response"},
    ],
)
def test_a_wrong_row_is_named_by_file_and_line(tmp_path: Path, row: Any) -> None:
    """The error says which line of which file."""
    with pytest.raises(DataError, match=r"a\.jsonl, line 2"):
        read_examples(_file(tmp_path, ROW, row))


def test_a_folder_without_data_is_refused(tmp_path: Path) -> None:
    """No data file is an error, not an empty training."""
    with pytest.raises(DataError, match="holds no"):
        read_folder(tmp_path)


def test_a_folder_is_read_in_order_of_names(tmp_path: Path) -> None:
    """Files count in the order of their names, zipped ones too."""
    _file(tmp_path, {**ROW, "id": "b"}, name="b.jsonl")
    _file(tmp_path, {**ROW, "id": "a"}, name="a.jsonl.gz")
    assert [row.id for row in read_folder(tmp_path)] == ["a", "b"]


def test_groups_never_cross_sides() -> None:
    """All rows of a group are on one side."""
    rows = [_example(n, group=f"made:{n % 50}") for n in range(500)]
    sides = split(rows, Recipe(shares={"made": Shares(calibration=0.2, test=0.3)}))
    groups = [{row.group for row in side} for side in sides.values()]
    assert sum(map(len, groups)) == len(set.union(*groups)) == 50
    assert all(groups)


def test_sides_have_about_their_shares() -> None:
    """Over many groups the shares come out."""
    sides = [split_of(f"g{n}", Shares(calibration=0.2, test=0.3)) for n in range(4000)]
    assert sides.count("test") / 4000 == pytest.approx(0.3, abs=0.03)
    assert sides.count("calibration") / 4000 == pytest.approx(0.2, abs=0.03)


def test_a_split_does_not_drift() -> None:
    """The side is a function of the name alone; these were fixed once."""
    shares = Shares(calibration=0.15, test=0.15)
    assert [split_of(f"ragtruth:{n}", shares) for n in range(8)] == EXPECTED_SIDES


EXPECTED_SIDES = ["train", "test", "train", "train", "test", "train", "calibration", "train"]


def test_drawing_keeps_to_the_mixture_and_repeats() -> None:
    """Each source gives at most its rows; the same seed gives the same draw."""
    rows = [_example(n, source="a") for n in range(20)] + [_example(n, source="b") for n in range(5)]
    recipe = Recipe(mixture={"a": Mixture(rows=7), "b": Mixture(rows=50)})
    drawn = draw(rows, recipe, seed=3)
    assert sorted(row.source for row in drawn) == ["a"] * 7 + ["b"] * 5
    assert drawn == draw(rows, recipe, seed=3) != draw(rows, recipe, seed=4)
