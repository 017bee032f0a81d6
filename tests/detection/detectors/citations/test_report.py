"""The report on citations, item by item of the acceptance list."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.core.records.enums import Endpoint, Provenance, Risk
from truthlens.core.records.exchange import Exchange, Message, Passage
from truthlens.detection.citation_sources import Sources
from truthlens.detection.detectors.citations.report import (
    EMPTY,
    NO_CLAIMS,
    CitationReport,
    Method,
    Options,
    report_on,
)

SHOWN = (Message("user", "[S0] [S1] [S2] [S3] p1 doc_7"),)
OPEN = "The library in Elm Street opens at nine on weekdays"
CLOSE = "The library in Elm Street closes at six on weekdays"
LONG = "The library in Elm Street was founded by three brothers in the year of the flood"


def sources(*ids: str, parent: str = "", texts: tuple[str, ...] = ()) -> Sources:
    passages = tuple(Passage(f"text of {each}", Provenance.TOOL, id=each, parent_id=parent) for each in ids)
    passages += tuple(Passage(each, Provenance.TOOL) for each in texts)
    return Sources(Exchange(Endpoint.CHAT, "m", "", passages, messages=SHOWN))


FOUR = sources("S0", "S1", "S2", "S3", parent="p1")


def report(text: str, known: Sources = FOUR, **options: object) -> CitationReport:
    return report_on(text, known, Options.model_validate(options))


def test_item_1_ids_are_a_set() -> None:
    """An id that is cited twice counts once."""
    found = report(f"{OPEN} [S0]. {CLOSE} [S0][S1]. It says so [S9], and again [S9].")
    assert (found.valid_citations, found.invalid_citations) == (("S0", "S1"), ("S9",))


def test_item_2_ids_and_parent_ids_are_valid() -> None:
    """A piece of a document may be cited by the document's id."""
    found = report(f"{OPEN} [p1]. {CLOSE} [p2_1][doc-9].")
    assert (found.valid_citations, found.invalid_citations) == (("p1",), ("doc-9",))


def test_item_2_passages_without_ids_count_by_the_prompts_numbers() -> None:
    """Only where the prompt numbered them."""
    numbered = sources(texts=("[1] It opens at nine.", "[2] It closes at six."))
    found = report(f"{OPEN} [1]. {CLOSE} [3].", numbered)
    assert (found.valid_citations, found.invalid_citations) == (("1",), ("3",))
    plain = report(f"{OPEN} [1]. {CLOSE} [3].", sources(texts=("It opens at nine.", "It closes at six.")))
    assert (plain.valid_citations, plain.invalid_citations) == ((), ())


def test_item_3_long_sentences_without_citation() -> None:
    """More than 50 characters, cut to 100, three reported, all counted."""
    assert report("x" * 40 + " " + "y" * 9 + ".").uncited_count == 0
    assert report("x" * 40 + " " + "y" * 10 + ".").uncited_count == 1
    wordy = " ".join(["wonderful"] * 14)
    text = " ".join(f"Brother {number} was {wordy}." for number in ("Karl", "Emil", "Hugo", "Otto"))
    found = report(text)
    assert found.uncited_count == 4
    assert [len(each) for each in found.uncited_sentences] == [100, 100, 100]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        (f"Smith et al. wrote that {LONG} [S0]. The U.S. census says 3.5 percent of them came [S1].", 2),
        ("图书馆周一到周五早上九点开门，晚上六点关门，周末不开放给任何人【S0】。书可以借阅四个星期，之后必须归还或者续借一次才可以。", 2),
        (f"- {OPEN} [S0]\n- {CLOSE} [S1]\n", 2),
        (f"{OPEN} [S0].\n\n```\nprint('The library opens at nine, and closes at six, on weekdays')\n```\n", 1),
        (f"{OPEN}.[S0] {CLOSE}.[S1]", 2),
        (f"{OPEN}. [S0] {CLOSE}. [S1]", 2),
        (f"# Hours\n\n{OPEN} [S0].", 1),
        ("| what | when |\n|---|---|\n| The library in Elm Street | nine o'clock [S0] |\n", 1),
        (f"{OPEN} [S0].\n\nSources:\n[S0] Handbook of the library, the edition of last year\n", 1),
        (f"{OPEN} [S0]. I hope this helps! Let me know if you have any more questions about it.", 1),
    ],
)  # fmt: skip
def test_items_3_and_4_sentences(text: str, count: int) -> None:
    """Abbreviations, decimals, Chinese, lists, code, tables, and what claims nothing."""
    assert report(text).total_claims == count


@pytest.mark.parametrize(
    "text",
    [
        f"{OPEN} [S0]. {CLOSE} [S1].",
        f"{OPEN}. [S0] {CLOSE}. [S1]",
        f"{OPEN}.[S0] {CLOSE}.[S1][S2]",
        f"[S0] says that {OPEN}. [S1] says that {CLOSE}.",
        f"{OPEN} [S0, S1]. {CLOSE} [S1-S3].",
        f"- {OPEN} [S0]\n- {CLOSE} (Source: S1)",
        "图书馆周一到周五早上九点开门，晚上六点关门，周末不开放【S0】。书可以借阅四个星期，之后必须归还或者续借一次。【S1】",
        f"According to source S0, the doors open. [S0] {OPEN}. [S1]",
    ],
)
def test_every_claim_has_its_citation(text: str) -> None:
    """Before the full stop, behind it, or at the start."""
    found = report(text)
    assert (found.claims_risk, found.uncited_count, found.invalid_citations) == (0.0, 0, ())
    assert found.level is Risk.LOW


def test_a_citation_behind_a_full_stop_is_not_the_next_sentences() -> None:
    """It belongs to the sentence before."""
    found = report(f"{OPEN}. [S0] {LONG}.")
    assert found.claims_risk == 0.5
    assert found.uncited_sentences == (f"{LONG}.",)


def test_item_4_exactly_20_characters_are_no_claim() -> None:
    """The mark at the end does not count."""
    assert report("It opens at ten past.").total_claims == 0
    assert report("It opens at ten pasts.").total_claims == 1


def test_item_5_methods() -> None:
    """Six sentences that all cite one source."""
    text = " ".join(
        f"The brother with the name {name} opened it [S0]." for name in ("A", "B", "C", "D", "E", "F")
    )
    seed, claims = report(text, method="seed"), report(text)
    assert (seed.ratio, seed.risk) == (pytest.approx(1 / 6), pytest.approx(5 / 6))
    assert (claims.ratio, claims.risk) == (1.0, 0.0)
    assert (claims.seed_ratio, seed.claims_risk) == (pytest.approx(1 / 6), 0.0)
    assert (seed.level, claims.level) == (Risk.HIGH, Risk.LOW)


def test_item_6_keys() -> None:
    """The names of the source."""
    found = report(f"{OPEN} [S0]. {CLOSE}.").as_dict()
    assert found == {
        "has_hallucination_risk": True,
        "hallucination_risk_score": 0.5,
        "valid_citations": ["S0"],
        "invalid_citations": [],
        "uncited_sentences": [f"{CLOSE}."],
        "citation_ratio": 0.5,
    }


@pytest.mark.parametrize(
    ("text", "note"), [("", EMPTY), (" \n", EMPTY), ("Yes.", NO_CLAIMS), ("[S0]", NO_CLAIMS)]
)
def test_item_7_nothing_to_check(text: str, note: str) -> None:
    """No risk, and why."""
    assert report(text).as_dict() == {
        "has_hallucination_risk": False,
        "hallucination_risk_score": 0.0,
        "note": note,
    }


def test_item_7_an_invalid_citation_of_a_short_answer_counts() -> None:
    """There is no claim, but a source that does not exist."""
    found = report("At nine [S9].")
    assert (found.note, found.invalid_citations, found.level) == ("", ("S9",), Risk.HIGH)


def test_item_10_figures_are_options() -> None:
    """With the figures of the source as defaults."""
    options = Options()
    assert (options.uncited_chars, options.claim_chars, options.excerpt_chars, options.reported) == (
        50,
        20,
        100,
        3,
    )
    assert (options.moderate_risk, options.high_risk, options.low_ratio, options.high_ratio) == (
        0.3,
        0.6,
        0.7,
        0.3,
    )
    found = report(f"{OPEN} [S0]. {CLOSE}.", uncited_chars=500, claim_chars=500)
    assert found.note == NO_CLAIMS
    assert report(f"{OPEN} [S0]. {LONG}.", excerpt_chars=5, reported=1).uncited_sentences == (LONG[:5],)


CITED = f"{OPEN} [S0]. "


@pytest.mark.parametrize(
    ("text", "level", "codes"),
    [
        (CITED * 3, Risk.LOW, ()),
        (f"{CITED}It closes at six [S7].", Risk.HIGH, ("invalid-citation",)),
        (CITED * 9 + f"{LONG}. " * 3, Risk.HIGH, ("uncited",)),
        (CITED + "The opening was so early. " * 2, Risk.HIGH, ("risk",)),
        (CITED + "The opening is quite early. " * 4, Risk.HIGH, ("risk", "ratio")),
        (CITED * 9 + f"{LONG}. ", Risk.MODERATE, ("uncited",)),
        (CITED * 9 + f"{LONG}. " * 2, Risk.MODERATE, ("uncited",)),
        (CITED * 3 + "The opening is quite early. " * 2, Risk.MODERATE, ("risk", "ratio")),
        (CITED * 7 + "The opening is quite early. " * 3, Risk.LOW, ()),
    ],
)
def test_items_11_and_12_levels(text: str, level: Risk, codes: tuple[str, ...]) -> None:
    """High if any rule says so, low only if all do, moderate else."""
    found = report(text)
    assert (found.level, found.codes) == (level, codes)


@given(st.lists(st.sampled_from([OPEN, CLOSE, LONG, "[S0]", "[S9]", ". ", "\n", "【1】", "`", "```\n", "- ", "。", "Sources:\n", "(Source: x)", "[^1]: ", "| a | b |\n"])))  # fmt: skip
def test_figures_are_figures(parts: list[str]) -> None:
    """Whatever the answer is made of: ranges lie in the text, shares in 0..1, and no sentence twice."""
    text = " ".join(parts)
    for method in Method:
        found = report(text, method=method)
        assert 0.0 <= found.risk <= 1.0
        assert 0.0 <= found.claims_risk <= 1.0
        assert all(0 <= start < end <= len(text) for start, end in (*found.invalid, *found.uncited))
        assert found.uncited_count >= len(found.uncited)
        ends = [0, *(each.end for each in found.sentences)]
        assert all(end <= each.start for end, each in zip(ends, found.sentences, strict=False))
