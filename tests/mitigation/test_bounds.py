"""Whoever writes evidence, questions or answers can make none of these functions slow: 100 KB take no seconds."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Callable

import pytest

from tests.fakes.judged_answers import judged
from tests.fakes.standard_tools import task
from truthlens.core.records.enums import Provenance
from truthlens.core.records.exchange import Passage
from truthlens.core.records.verdict import Span, marks_of
from truthlens.mitigation import candidate_checks
from truthlens.mitigation.doubts import Doubt
from truthlens.mitigation.editing.put_back import put_back
from truthlens.mitigation.standard import self_check
from truthlens.mitigation.standard.correction_prompt import correction_prompt
from truthlens.prompts import delimiters, render
from truthlens.prompts.excerpts import excerpt, excerpts
from truthlens.text.claims import non_claims
from truthlens.text.same_language import same_language
from truthlens.text.sentences import is_json, sentences

_CHARS = 100_000
# A sound function takes less than a tenth of a second for any of these, a quadratic one minutes.
_MOST_S = 5.0


def _repeated(piece: str, chars: int = _CHARS) -> str:
    return piece * (chars // len(piece))


def _rejected(first: str, text: str) -> str | None:
    given = task(first, flagged=[first[:9]], structured=first.startswith(("[", "{")))
    return candidate_checks.rejection(given, text, finish_reason="stop")


def _rejected_where_every_other_sentence_is_flagged() -> None:
    text = _repeated("It is so. ")
    ranges = sentences(text)[::2]
    candidate_checks.unflagged(text, [Doubt(start, end, 0.9) for start, end in ranges])


def _list_of(count: int, *, other: int = 0) -> str:
    """A JSON list whose items all have keys of their own."""
    return json.dumps([{f"k{number + other}": number} for number in range(count)])


def _list_of_kinds(last: object) -> str:
    """A JSON list whose items have the same keys and all differ in the kinds of their values."""
    kinds = (1, "a", True, [1])
    keys = "abcdef"
    items = [{k: kinds[number // 4**place % 4] for place, k in enumerate(keys)} for number in range(1600)]
    return json.dumps([item | {"z": last} for item in items])


def _prompt() -> None:
    given = task("The pump runs at 900 rpm.", flagged=["900 rpm"], passage=_repeated("The pump is by A. B. "))
    correction_prompt(given.exchange, given.answer.text, given.verdict)


def _many_passages() -> None:
    texts = [f"Passage {number}." for number in range(_CHARS // 5)]
    excerpts(texts, near=range(len(texts)), most_chars=_CHARS // 2)


def _abstains(text: str) -> bool:
    return non_claims.is_abstention(text)


def _put_back(one: str, other: str) -> None:
    first = "It weighs 75 kg. "
    before, after = (
        first + "".join(each.format(number) for number in range(_CHARS // len(each))) for each in (one, other)
    )
    put_back(before, judged(before, "75"), after)


_INPUTS: dict[str, Callable[[], object]] = {
    "sentences of initials": lambda: sentences(_repeated("A. ")),
    "sentences of abbreviations": lambda: sentences(_repeated("e.g. ")),
    "sentences of marks": lambda: sentences("!" * _CHARS + "x"),
    "sentences of full stops and brackets": lambda: sentences(
        "." * (_CHARS // 2) + ")" * (_CHARS // 2) + "x"
    ),
    "sentences without an end": lambda: sentences(_repeated("word ")),
    "escape of backslashes": lambda: delimiters.escape("\\" * _CHARS),
    "escape of brackets": lambda: delimiters.escape("<" * _CHARS),
    "escape of brackets and slashes": lambda: delimiters.escape("<" + "/" * _CHARS),
    "escape of brackets and bars": lambda: delimiters.escape(_repeated("<¦")),
    "escape of references": lambda: delimiters.escape("&" + _repeated("amp;")),
    "escape of zeros": lambda: delimiters.escape("&#" + "0" * _CHARS),
    "escape of a URL's": lambda: delimiters.escape("%" + _repeated("25")),
    "escape of accents": lambda: delimiters.escape("<t" + "\u0301" * _CHARS),
    "imitations in backslashes": lambda: delimiters.imitations("\\" * _CHARS),
    "unmarked tags": lambda: delimiters.unmarked(_repeated("<truthlens:")),
    "unmarked look-alikes": lambda: delimiters.unmarked(_repeated("‹truthlens:") + "&" + _repeated("amp;")),
    "claims worded anew": lambda: _put_back("The pump {} runs at 9 rpm. ", "At 9 rpm the pump {} turns. "),
    "claims worded alike": lambda: _put_back("The pump runs at 9 rpm. ", "At 8 rpm the pump turns. "),
    "claims in one line": lambda: _put_back("word ", "other "),
    "elements worded anew": lambda: put_back(
        _list_of(3000), judged(_list_of(3000), '"k7"'), _list_of(3000, other=3000)
    ),
    "marks that overlap": lambda: delimiters.marked(
        "a" * _CHARS, marks_of([Span(0, _CHARS, 0.5)] * (_CHARS // 10), length=_CHARS)
    ),
    "title of white space": lambda: delimiters.evidence(
        [Passage("a", Provenance.DOCUMENTS, title=" " * _CHARS + "x")]
    ),
    "evidence in many passages": _many_passages,
    "evidence around many places": lambda: excerpt(
        _repeated("A b c. "), 20_000, around=[(place, place + 1) for place in range(0, _CHARS, 20)]
    ),
    "prompt with initials in its evidence": _prompt,
    "clean of white space in a fence": lambda: candidate_checks.clean(
        "```\n" + "a" + " " * _CHARS + "x", first="a"
    ),
    "clean of backticks": lambda: candidate_checks.clean(
        "`" * (_CHARS // 2) + "\n" + "`" * (_CHARS // 2), first="a"
    ),
    "clean of a preface": lambda: candidate_checks.clean(
        "here is the corrected and " + "w" * _CHARS, first="a"
    ),
    "JSON with keys of their own": lambda: _rejected(_list_of(6000), _list_of(6000, other=6000)),
    "JSON with kinds of their own": lambda: _rejected(_list_of_kinds(1), _list_of_kinds("a")),
    "JSON with one item that differs": lambda: _rejected(
        json.dumps([1] * 30_000 + ["a"]), json.dumps(["a"] * 30_000)
    ),
    "JSON nested to the limit": lambda: _rejected("[" * 900 + "]" * 900, "[" * 901 + "]" * 901),
    "JSON nested beyond": lambda: _rejected("[" * _CHARS, "[" * _CHARS),
    "JSON that never closes": lambda: is_json("[" * _CHARS),
    "words": lambda: _rejected(_repeated("word "), _repeated("other ")),
    "Chinese": lambda: _rejected(_repeated("水泵的转速。"), _repeated("外壳的材料。")),
    "abstentions": lambda: _abstains(_repeated("evidence cannot ")),
    "white space in an abstention": lambda: _abstains("evidence cannot" + " " * _CHARS),
    "abstentions after each other": lambda: _abstains(_repeated("I do not know the price. ")),
    "an abstention from many sources": lambda: _abstains(_repeated("the context fails to say the ")),
    "Chinese abstentions": lambda: _abstains(_repeated("资料不足以")),
    "acknowledgements": lambda: non_claims.acknowledges(_repeated("all of the answer is checked with ")),
    "refusals": lambda: non_claims.is_refusal(_repeated("I'm sorry ")),
    "flagged sentences": _rejected_where_every_other_sentence_is_flagged,
    "about something else": lambda: _rejected("The pump.", _repeated("bananas are yellow ", 500)),
    "languages": lambda: same_language(_repeated("`a "), "`" * _CHARS, _repeated("“a ")),
    "languages of code": lambda: same_language(_repeated("a ; "), _repeated("x : "), _repeated("= ")),
    "questions": lambda: self_check.read_questions("[" * _CHARS),
    "questions in objects": lambda: self_check.read_questions(_repeated('{"a":')),
    "answers": lambda: self_check.read_answers(_repeated("[1] "), 5),
    "lines of the prompt": lambda: render.normalised(_repeated("- ")),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", _INPUTS)
def test_no_input_takes_long(name: str) -> None:
    """In a process of its own, for a function of C that runs for minutes cannot be stopped otherwise."""
    worker = multiprocessing.get_context("fork").Process(target=_INPUTS[name])
    worker.start()
    worker.join(_MOST_S)
    if worker.is_alive():
        worker.kill()
        worker.join()
        pytest.fail(f"more than {_MOST_S:.0f} s")
    assert worker.exitcode == 0
