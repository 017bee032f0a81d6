"""What the classes of a checkpoint mean: told by their names, by the operator, or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from truthlens.core.errors import ModelError
from truthlens.lab.export.reader_source import labels_of

S, C, N = "supported", "contradicted", "not_stated"


def told(names: Sequence[str] | Any, labels: Sequence[str] | None = None) -> tuple[str, ...]:
    table = dict(enumerate(names)) if isinstance(names, (list, tuple)) else names
    return labels_of({"id2label": table}, labels, where="x/y")


@pytest.mark.parametrize(
    ("names", "outcomes"),
    [
        (["entailment", "neutral", "contradiction"], (S, N, C)),
        (["CONTRADICTION", "NEUTRAL", "ENTAILMENT"], (C, N, S)),
        (["entailment", "not_entailment"], (S, N)),
        (["UNSUPPORTED", "SUPPORTED"], (N, S)),
        (["SUPPORTS", "REFUTES", "NOT ENOUGH INFO"], (S, C, N)),
        (["not-supported", "supported"], (N, S)),
        (["hallucinated", "consistent"], (N, S)),
        (["entailment", "contradiction"], (S, C)),
        (["Contradict", "Entailed", "Neutral"], (C, S, N)),
        ({"1": "neutral", "0": "contradiction", "2": "entailment"}, (C, N, S)),
    ],
)
def test_names_are_told(names: Any, outcomes: tuple[str, ...]) -> None:
    """Capitals, lines and the order of the numbers do not matter."""
    assert told(names) == outcomes


def test_the_operator_names_what_the_checkpoint_does_not() -> None:
    """In the order of the logits, blanks around a name or none."""
    assert told(["LABEL_0", "LABEL_1", "LABEL_2"], ["contradiction", " entailment", "neutral "]) == (C, S, N)
    assert told(["LABEL_0", "LABEL_1"], ["unsupported", "supported"]) == (N, S)


@pytest.mark.parametrize(
    ("names", "labels", "said"),
    [
        (["LABEL_0", "LABEL_1", "LABEL_2"], None, "--labels entailment,neutral,contradiction"),
        (["toxic", "harmless"], None, "--labels"),
        (["LABEL_0", "LABEL_1"], ["entailment", "neutral", "contradiction"], "names 3 classes, x/y has 2"),
        (["LABEL_0"], None, "one output, a figure and no class"),
        (["a", "b", "c", "d"], None, "4 classes"),
        (["entailment", "entailed"], None, "expected two or three different outcomes"),
        (["neutral", "contradiction"], None, "supported among them"),
        (["neutral", "not_entailment", "entailment"], None, "different outcomes"),
        ({"0": "entailment", "2": "neutral"}, None, "no table from 0, 1"),
        ({"0": "entailment", "1": 7}, None, "no table"),
        ("entailment", None, "no table"),
        (None, None, "no table"),
    ],
)
def test_what_cannot_be_told_is_refused(names: Any, labels: Sequence[str] | None, said: str) -> None:
    """The message names the change to make."""
    with pytest.raises(ModelError, match=said):
        told(names, labels)
