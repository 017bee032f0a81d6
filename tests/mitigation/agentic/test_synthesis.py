"""What becomes of a model's text: wrapping, citations, ids; and the settings of a run."""

from __future__ import annotations

from typing import Any

import pydantic
import pytest

from truthlens.core.records.agentic_run import CollectedPassage
from truthlens.core.records.agentic_settings import AgenticSettings, ToolName
from truthlens.core.records.retrieval import FoundPassage, Retrieved, RetrievedPassage
from truthlens.mitigation.agentic.collected import MOST_COLLECTED, collect
from truthlens.mitigation.agentic.synthesis import (
    NO_INFORMATION,
    NO_INFORMATION_CHINESE,
    cited_ids,
    final_text,
)
from truthlens.mitigation.agentic.tools.interfaces import ToolResult
from truthlens.policy.strictness.settings import declared, setting_weaknesses
from truthlens.text.claims.non_claims import is_abstention

SOURCES = [
    CollectedPassage("doc-7", "handbook", "It runs at 600 rpm.", parent_id="manual"),
    CollectedPassage("web:https://example.org/a", "web", "It is blue."),
]
PLAIN = "It runs at 600 rpm [doc-7]."


@pytest.mark.parametrize(
    "text",
    [
        PLAIN,
        f"<think>Let me see [doc-99].</think>\n\n{PLAIN}",
        f"Let me see.</think>{PLAIN}",
        f"<think>a</think>{PLAIN}<think>and more",
        f"<answer>{PLAIN}</answer>",
        f"<final_answer>\n<answer>\n{PLAIN}\n</answer>\n</final_answer>",
        f"```\n{PLAIN}\n```",
        f"<truthlens:answer>\n{PLAIN}\n</truthlens:answer>",
        "It runs at 600 rpm [doc-7] [doc-99].",
        "It runs at 600 rpm [doc-7][invented].",
        "It runs at 600 rpm [doc-7, doc-99].",
        "It runs at 600 rpm [doc-7] (Source: Smith 2023).",
        "It runs at 600 rpm [doc-7]【4】.",
    ],
)
def test_an_answer_is_bare_and_cites_what_was_collected(text: str) -> None:
    """Thoughts, tags, fences and invented citations go; what is cited stays."""
    assert final_text(text, SOURCES) == PLAIN


@pytest.mark.parametrize(
    "text",
    [
        "It runs at 600 rpm [DOC-7].",
        "It says so [manual].",
        "It is blue [web:https://example.org/a].",
        "See [the page](https://example.org).",
        "- [x] done\n- [ ] open",
        "Use `a[99]` or:\n```\nb[doc-99]\n```",
        "It holds [as the sources say] nothing.",
        NO_INFORMATION,
    ],
)
def test_what_is_no_invented_citation_stays(text: str) -> None:
    """Links, check boxes, code and text in brackets."""
    assert final_text(text, SOURCES) == text


@pytest.mark.parametrize("text", ["<think>only a thought", "<think>a</think>", "  ", "[doc-99]"])
def test_where_nothing_is_left_there_is_no_answer(text: str) -> None:
    """It is never filled up."""
    assert final_text(text, SOURCES) == ""


def test_long_hostile_text_takes_no_time() -> None:
    """Openings without ends, and a bracket per word."""
    assert final_text("<think>" * 50_000, SOURCES) == ""
    assert final_text("[zz9] " * 5_000 + PLAIN, SOURCES).endswith(PLAIN)


def test_what_is_cited() -> None:
    """By the passage's id or its document's."""
    assert cited_ids("A [doc-7]. B [doc-9].", SOURCES) == {"doc-7"}
    assert cited_ids("A [manual].", SOURCES) == {"doc-7"}
    assert cited_ids("A.", SOURCES) == frozenset()


def test_the_sentence_for_nothing_found_is_a_decline_in_both_languages() -> None:
    """So that detection takes it for no claim."""
    assert is_abstention(NO_INFORMATION)
    assert is_abstention(NO_INFORMATION_CHINESE)


def _found(*passages: tuple[str, FoundPassage]) -> ToolResult:
    return ToolResult("t", success=True, data=Retrieved(tuple(RetrievedPassage(*each) for each in passages)))


def test_every_passage_has_an_id_of_its_own_that_can_stand_in_brackets() -> None:
    """Ids that two sources share, that differ by case alone, that hold brackets, or that are none."""
    collected: list[CollectedPassage] = []
    ids = ["a", "a", "A", "", "x]y", "two words", "e" * 200]
    passages = [(f"s{n}", FoundPassage(f"text {n}", each)) for n, each in enumerate(ids)]
    assert collect(collected, _found(*passages), gives_evidence=True) == 7
    assert [each.document_id for each in collected] == ["a", "s1:a", "s2:A", "s3-1", "s4-1", "s5-1", "s6-1"]
    assert [each.passage_id for each in collected] == ids
    assert (
        collect(collected, _found(*passages, ("s9", FoundPassage("text 0", "z"))), gives_evidence=True) == 0
    )


def test_what_a_run_keeps_is_bounded() -> None:
    """Whatever tools give."""
    collected: list[CollectedPassage] = []
    for number in range(100):
        collect(collected, _found(("s", FoundPassage(f"text {number}", f"d{number}"))), gives_evidence=True)
    assert len(collected) == MOST_COLLECTED


def test_the_environment_gives_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key that is written wins, and what is inherited is not overridden."""
    plain = AgenticSettings()
    assert (plain.max_iterations, plain.max_tokens, plain.max_duration_s) == (10, 50_000, 300.0)
    monkeypatch.setenv("AGENTIC_MAX_ITERATIONS", "7")
    monkeypatch.setenv("AGENTIC_MAX_TOKENS", "9000")
    monkeypatch.setenv("AGENTIC_MAX_DURATION", "12.5")
    found = AgenticSettings.model_validate({"max_tokens": 100})
    assert (found.max_iterations, found.max_tokens, found.max_duration_s) == (7, 100, 12.5)
    assert found.over(plain).max_iterations == 10
    assert setting_weaknesses(None, plain, key="agentic") != []


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("AGENTIC_MAX_ITERATIONS", "many"),
        ("AGENTIC_MAX_ITERATIONS", "0"),
        ("AGENTIC_MAX_ITERATIONS", "51"),
        ("AGENTIC_MAX_TOKENS", "1.5"),
        ("AGENTIC_MAX_DURATION", "nan"),
        ("AGENTIC_MAX_DURATION", "-1"),
    ],
)
def test_a_variable_that_is_no_number_of_its_range_is_an_error(
    monkeypatch: pytest.MonkeyPatch, variable: str, text: str
) -> None:
    """It is never passed over."""
    monkeypatch.setenv(variable, text)
    with pytest.raises(pydantic.ValidationError):
        AgenticSettings()


@pytest.mark.parametrize(
    "written", [{"max_iterations": "10"}, {"tools": ["shell"]}, {"unknown": 1}, {"model_id": ""}]
)
def test_settings_are_strict(written: dict[str, Any]) -> None:
    """As every section of a policy."""
    with pytest.raises(pydantic.ValidationError):
        AgenticSettings.model_validate(written)


def test_every_setting_says_which_value_is_stricter_and_models_are_listed() -> None:
    """As the policy's comparison and the check of a policy's models need it."""
    assert None not in declared(AgenticSettings).values()
    settings = AgenticSettings.model_validate(
        {"model_id": "a", "decision_model": "b", "chat_model": "a", "tools": ["calculation"]}
    )
    assert (settings.models, settings.tools) == (("a", "b"), (ToolName.CALCULATION,))
