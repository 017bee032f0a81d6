"""Evidence that bears on what is doubtful comes first where not all of it can be shown."""

from __future__ import annotations

from dataclasses import replace

from tests.fakes.standard_tools import FIRST, PASSAGE, task
from truthlens.core.records.enums import Provenance
from truthlens.core.records.exchange import Exchange, Passage
from truthlens.core.records.verdict import Verdict
from truthlens.mitigation.standard.correction_prompt import correction_prompt, evidence_for
from truthlens.prompts.evidence_selection import relevant

PADDING = [f"Branch {n} keeps a garden with {n} kinds of roses, and a pond." for n in range(300)]


def exchange_of(*texts: str) -> tuple[Exchange, Verdict]:
    made = task()
    passages = tuple(Passage(text, Provenance.DOCUMENTS) for text in texts)
    return replace(made.exchange, passages=passages), made.verdict


def test_the_passage_that_speaks_of_the_claim_is_found_among_many() -> None:
    found = relevant([*PADDING, PASSAGE], ["The pump runs at 900 rpm."], most_chars=500)
    assert found.passages[0] == 300
    exchange, verdict = exchange_of(*PADDING, PASSAGE)
    shown = evidence_for(exchange, verdict, text=FIRST, most_chars=500)
    assert PASSAGE in shown
    assert len(shown) < 1500


def test_the_sentences_that_speak_of_the_claim_are_found_in_one_long_passage() -> None:
    exchange, verdict = exchange_of(" ".join([*PADDING[:150], PASSAGE, *PADDING[150:]]))
    shown = evidence_for(exchange, verdict, text=FIRST, most_chars=600)
    assert PASSAGE in shown
    assert len(shown) < 1000


def test_the_question_counts_as_well() -> None:
    found = relevant([*PADDING, "Lunch is at one."], ["When is lunch?"], most_chars=300)
    assert found.passages[0] == 300


def test_chinese_evidence_is_chosen_from() -> None:
    padding = [f"第{n}号分店有花园和池塘。" for n in range(300)]
    found = relevant([*padding, "水泵的转速是每分钟600转。"], ["水泵的转速是每分钟900转。"], most_chars=100)
    assert found.passages[0] == 300


def test_without_words_in_common_the_order_of_the_evidence_stays() -> None:
    assert relevant(PADDING, ["Zzz."], most_chars=100).passages == []
    exchange, verdict = exchange_of(*PADDING)
    assert PADDING[0] in evidence_for(exchange, verdict, text="Zzz.", most_chars=500)


def test_a_prompt_holds_no_more_evidence_than_it_may() -> None:
    exchange, verdict = exchange_of(*PADDING, PASSAGE)
    bare = len(correction_prompt(exchange, FIRST, verdict, most_chars=0))
    short = len(correction_prompt(exchange, FIRST, verdict, most_chars=2000))
    whole = len(correction_prompt(exchange, FIRST, verdict))
    assert bare < short < bare + 8000 < whole
