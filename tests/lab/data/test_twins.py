from pathlib import Path

import pytest

from truthlens.lab.data.dataset import DataError
from truthlens.lab.data.twins import read_twin_folder, read_twins, twin_examples

FOLDER = Path(__file__).parents[3] / "data" / "twins"
GROUP = """
- id: wires
  question: What does a wire cost?
  passage: |
    Fees.  A domestic wire costs ⟦1: 25 dollars // 40 dollars⟧; an international one ⟦1: 40 dollars // 25 dollars⟧.
    ⟦2: // Premier clients pay nothing.⟧ Wires leave at ⟦3: 15:00 // 12:00⟧ ⟦2: // sharp⟧.
  facts:
    1:
      kind: attribute
      answers:
        - near: A domestic wire costs ⟦25 dollars // 40 dollars⟧, not more.
    2:
      kind: detail
      answers:
        - free: There is a fee, but ⟦Premier clients are exempt⟧.
          holds: second
    3:
      kind: time
      answers:
        - free: ⟦15:00 // 12:00⟧ is when they go out.
"""


def _read(tmp_path: Path, text: str) -> list:
    path = tmp_path / "twins.yaml"
    path.write_text(text, encoding="utf-8")
    return read_twins(path)


def test_each_version_stands_against_both_readings(tmp_path: Path) -> None:
    rows = [row for row in twin_examples(_read(tmp_path, GROUP)) if row.kind == "attribute"]
    found = {(row.response, row.context[0].split("costs ")[1][:10]): (row.label, row.spans) for row in rows}
    first, second = (
        "A domestic wire costs 25 dollars, not more.",
        "A domestic wire costs 40 dollars, not more.",
    )
    assert found == {
        (first, "25 dollars"): (0, ()),
        (first, "40 dollars"): (1, ((22, 32),)),
        (second, "40 dollars"): (0, ()),
        (second, "25 dollars"): (1, ((22, 32),)),
    }
    assert len({row.pair for row in rows}) == 1
    assert len({row.group for row in rows}) == 1


def test_a_detail_is_true_of_the_reading_that_has_it(tmp_path: Path) -> None:
    without, having = [row for row in twin_examples(_read(tmp_path, GROUP)) if row.kind == "detail"]
    assert (without.label, having.label) == (1, 0)
    assert without.response[slice(*without.spans[0])] == "Premier clients are exempt"
    # Empty alternatives leave no double space, other spaces stay.
    assert without.context[0].endswith("25 dollars.\nWires leave at 15:00.".replace("25", "40"))
    assert having.context[0].endswith("\nPremier clients pay nothing. Wires leave at 15:00 sharp.")
    assert without.context[0].startswith("Fees.  A domestic")


def test_alternatives_may_begin_with_a_clock_time(tmp_path: Path) -> None:
    rows = [row for row in twin_examples(_read(tmp_path, GROUP)) if row.kind == "time"]
    assert {row.response for row in rows} == {"15:00 is when they go out.", "12:00 is when they go out."}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("kind: time", "kind: clock", "fact 3: kind 'clock' is none of"),
        ("holds: second", "holds: maybe", "fact 2: an answer without alternatives needs 'holds"),
        (
            "⟦Premier clients are exempt⟧",
            "Premier clients are exempt",
            "the part that states the fact is not in",
        ),
        ("25 dollars // 40 dollars⟧, not", "25 dollars // ⟧, not", "an alternative of an answer is empty"),
        ("⟦3: 15:00 // 12:00⟧", "three", "passage has facts [1, 2], facts lists [1, 2, 3]"),
        ("⟦3: 15:00 // 12:00⟧", "⟦3: 15:00 // 15:00⟧", "both readings are the same"),
        ("        - near:", "        - close:", "needs exactly one of near, free, long"),
        ("id: wires", "name: wires", "needs id and passage"),
    ],
)
def test_faults_are_named(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in GROUP
    with pytest.raises(DataError, match=said.replace("[", r"\[").replace("'", ".")):
        _read(tmp_path, GROUP.replace(old, new))


def test_an_id_stands_once(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="ids stand twice: wires"):
        _read(tmp_path, GROUP + GROUP)


@pytest.mark.slow
@pytest.mark.parametrize(("part", "groups"), [("train", 300), ("train/plain", 600), ("test", 60)])
def test_the_files_of_the_repository_are_balanced(part: str, groups: int) -> None:
    read = read_twin_folder(FOLDER / part)
    assert len(read) >= groups
    assert len({group.id for group in read}) == len(read)
    rows = twin_examples(read)
    # Each answer of a group is as often true as false, so that it tells nothing by itself.
    balance: dict[tuple[str, str], list[int]] = {}
    for row in rows:
        balance.setdefault((row.group, row.response), []).append(row.label)
    assert all(sum(labels) * 2 == len(labels) for labels in balance.values())


@pytest.mark.slow
def test_training_and_test_share_no_passage() -> None:
    train, plain, test = (
        {fact.contexts for group in read_twin_folder(FOLDER / part) for fact in group.facts}
        for part in ("train", "train/plain", "test")
    )
    assert not (train | plain) & test
