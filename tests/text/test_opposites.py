"""Words with opposite meanings: they come in pairs, and the English ones stay as the bundled encoder learnt them."""

from __future__ import annotations

import hashlib
import json

import pytest

from truthlens.text.opposites import OPPOSITES, OPPOSITES_ZH


@pytest.mark.parametrize("table", [OPPOSITES, OPPOSITES_ZH], ids=["en", "zh"])
def test_opposites_come_in_pairs(table: dict[str, frozenset[str]]) -> None:
    """A word is an opposite of each of its opposites, and never of itself."""
    assert all(word in table[other] and word != other for word, others in table.items() for other in others)


def test_the_english_opposites_are_frozen() -> None:
    """They are features of ``lexical-v2``: another list would be other features than the model was trained on."""
    listed = json.dumps({word: sorted(others) for word, others in sorted(OPPOSITES.items())})
    assert hashlib.sha256(listed.encode()).hexdigest()[:16] == "d8877c0d322ac051"
