"""What takes an answer apart and puts it together again takes time in proportion to the answer, whatever it says."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Several times what the slowest of them takes at this size; with quadratic work each would take minutes.
_CHARS, _MOST_S = 600_000, 30

_CLAIMS = {
    "spaces in a rule of a table": '"a | b\\n" + " " * n + "|x"',
    "spaces behind a rule of a table": '"a | b\\n--" + " " * n + "| x"',
    "cells of a rule of a table": '"a | b\\n" + "--|" * (n // 3) + "x"',
    "dotted abbreviations": '"a.b. " * (n // 5)',
    "references in brackets": '"Hello world. " + "(a). " * (n // 5)',
    "clauses that are short": '"it is a, and " * (n // 13)',
    "clauses that cannot stand alone": '"the man walked; " * (n // 16)',
    "quotes before a clause": '"`" * (n // 2) + ", and it is b" * (n // 26)',
    "spaces before a semicolon": '"it is" + " " * n + "b."',
    "lines wrapped by hand": '"word and\\n" * (n // 9)',
    "markers of lists": '"- " * (n // 2) + "x"',
    "numbers of items": '"1. " * (n // 3)',
    "items under items": '"- a:\\n" * (n // 5)',
    "objects in lists in objects": """'{"a":[' * (n // 6)""",
    "lists that nothing closes": '"x\\n" + "[1,\\n" * (n // 4)',
    "objects behind prose that nothing closes": """'x {"a":\\n[' * (n // 9)""",
    "text in a value": """'{"a": "' + "One is 3.\\\\\\\\n" * (n // 11) + '"}'""",
}

_SPLICE = {
    "lead-ins below each other": ('"Hello there now.\\n" + "a:\\n" * (n // 3)', "[(0, 16)]"),
    "headings below each other": ('"# h\\n" * (n // 4) + "word here."', "[(len(text) - 10, len(text))]"),
    "lists in lists": ('"- item:\\n  - b:\\n" * (n // 15)', "[(2, 7)]"),
    "spaces before the cut": ('"a word" + " " * n + "and b is c. More."', "[(n + 6, n + 17)]"),
    "thousands of items": (
        '"- The hall is red.\\n" * (n // 19)',
        "[(i * 19 + 2, i * 19 + 18) for i in range(0, 10_000, 2)]",
    ),
    "thousands of sentences": (
        '"The hall is red. " * (n // 17)',
        "[(i * 17, i * 17 + 16) for i in range(0, 10_000, 2)]",
    ),
}


@pytest.mark.parametrize("text", _CLAIMS.values(), ids=_CLAIMS)
def test_claims_of_a_long_answer_take_linear_time(text: str) -> None:
    _ends_in_time(f"from truthlens.text.claims.claims import claims\nn = {_CHARS}\nclaims({text})")


@pytest.mark.parametrize(("text", "cuts"), _SPLICE.values(), ids=_SPLICE)
def test_edits_to_a_long_answer_take_linear_time(text: str, cuts: str) -> None:
    _ends_in_time(
        "from truthlens.mitigation.editing.splice import Edit, splice\n"
        f"n = {_CHARS}\ntext = {text}\nsplice(text, [Edit(*cut) for cut in {cuts}])"
    )


@pytest.mark.parametrize(
    "sentence", ['"0 1 2 3 4 5 6 7 8 9 " * 60', '"1" * n', '"passages 1" + ", 1" * n', '"[" * n']
)
def test_figures_of_a_long_claim_are_read_and_compared_in_bounded_time(sentence: str) -> None:
    _ends_in_time(
        "from truthlens.text.values.conflicts import conflicting, content\n"
        f"n = {_CHARS}\n"
        f"one, other = content({sentence}), content(({sentence}).replace('1', '8'))\n"
        "for _ in range(200):\n    conflicting(one, other)"
    )


def _ends_in_time(code: str) -> None:
    """In a process of its own: one regular expression that runs for minutes can be stopped in no other way."""
    try:
        subprocess.run([sys.executable, "-c", code], check=True, timeout=_MOST_S)
    except subprocess.TimeoutExpired:
        pytest.fail(f"still at work after {_MOST_S} s")
