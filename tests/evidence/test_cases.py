"""Prompts in the form of real frameworks, ordinary system prompts and hostile documents: what of them is taken as evidence.

The bounds are a little below what was measured, so that a change for the worse is seen; ``make bench-evidence`` prints the figures.
"""

from __future__ import annotations

import json
import statistics
from collections import Counter
from typing import Any

import pytest
import yaml

from bench.evidence.cases import CASES, Case, compare, load, words
from truthlens.api.requests import parse_request
from truthlens.core.records.enums import Endpoint, Reason
from truthlens.core.records.exchange import Exchange
from truthlens.core.records.settings import EvidenceRules


@pytest.mark.parametrize(
    ("folder", "evidence", "other", "status"),
    [("develop", 0.98, 0.02, 0.98), ("held_out", 0.96, 0.07, 0.9), ("fresh", 0.87, 0.11, 0.8)],
)
def test_evidence_is_taken_and_little_else(folder: str, evidence: float, other: float, status: float) -> None:
    """Over all frameworks nearly all characters of documents are taken, few others, and the question is clean."""
    results = [compare(case) for case in load(folder)]
    assert len(results) >= 60
    assert statistics.fmean(result.evidence for result in results) >= evidence
    assert statistics.fmean(result.other for result in results) <= other
    assert statistics.fmean(result.question for result in results) >= 0.9
    assert statistics.fmean(result.status for result in results) >= status


@pytest.mark.parametrize("case", load("develop"), ids=lambda case: f"{case.framework}-{case.variant}"[:60])
def test_a_developed_framework_loses_no_evidence(case: Case) -> None:
    """Of the frameworks that the rules were made for every document is taken whole."""
    result = compare(case)
    assert result.evidence >= 0.9
    assert result.status


def _entries(name: str) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = yaml.safe_load((CASES / name).read_text("utf-8"))
    return entries


def _read(*messages: tuple[str, str]) -> Exchange:
    body = {"messages": [{"role": role, "content": text} for role, text in messages]}
    return parse_request(json.dumps(body).encode(), Endpoint.CHAT, EvidenceRules())


def test_ordinary_system_prompts_hold_no_evidence() -> None:
    """Personas, policies and formats are no evidence for general questions, whatever their length."""
    turns = [(entry, turn) for entry in _entries("system_prompts.yaml") for turn in entry["turns"]]
    taken = [
        entry["name"]
        for entry, turn in turns
        if _read(("system", entry["system"]), ("user", turn["question"])).passages
    ]
    assert len(turns) == 400
    assert len(taken) <= 0.03 * len(turns)


TEMPLATES = {
    "label": lambda document, asked: [
        ("user", f"Use the context to answer. If it is not there, say so.\n\nContext:\n{document}\n\nQuestion: {asked}\nAnswer:")
    ],
    "tags": lambda document, asked: [
        ("system", f"Answer only from the documents.\n\n<documents>\n<document index=\"1\">\n{document}\n</document>\n</documents>\n\nBe brief."),
        ("user", asked),
    ],
    "rules": lambda document, asked: [
        ("user", f"The context is below.\n---------------------\n{document}\n---------------------\nGiven the context, answer the query.\nQuery: {asked}\nAnswer: ")
    ],
    "system": lambda document, asked: [
        ("system", f"You are a helpful assistant. Use the following pieces of context to answer. Keep it short.\n\n{document}"),
        ("user", asked),
    ],
    "after": lambda document, asked: [("user", f"{asked}\n\nAnswer using the following information:\n{document}")],
}  # fmt: skip


@pytest.mark.parametrize("template", TEMPLATES)
def test_hostile_documents_are_taken_whole(template: str) -> None:
    """Labels, rules, tags, code and other languages inside a document do not end it, and the question stays the question."""
    entries = _entries("hostile_documents.yaml")
    whole, shares = 0, []
    for entry in entries:
        exchange = _read(*TEMPLATES[template](entry["document"], entry["question"]))
        wanted = Counter(words(entry["document"]))
        taken = Counter(
            word for each in exchange.passages for word in words(f"{each.id} {each.title} {each.text}")
        )
        share = (wanted & taken).total() / wanted.total()
        shares.append(share)
        whole += share >= 0.9
        assert " ".join(exchange.query.split()) == " ".join(str(entry["question"]).split()), entry["name"]
    # Without any mark a document that talks to a model cannot be told from the prompt in every case.
    assert whole >= (0.75 if template == "system" else 0.95) * len(entries)
    assert statistics.fmean(shares) >= (0.85 if template == "system" else 0.97)


def test_what_is_not_taken_is_named() -> None:
    """Every part of a prompt that is no evidence is left with a code of its own."""
    exchange = _read(
        ("system", "You are a clerk. Answer from the documents in one sentence.\n\n<documents>\nThe desk opens at nine.\n</documents>"),
        ("user", "When does the desk open?"),
        ("assistant", "At nine."),
        ("user", "And on Sundays?"),
    )  # fmt: skip
    assert {each.rule for each in exchange.left} == {"instruction", "assistant"}
    assert [each.rule for each in exchange.passages] == ["tag"]
    assert exchange.query == "When does the desk open?\nAnd on Sundays?"
    assert exchange.unchecked is None


def test_an_empty_retrieval_is_no_context() -> None:
    """A template into which nothing was filled holds nothing to check against."""
    exchange = _read(("system", "Answer from the context.\n\n<context>\n</context>"), ("user", "When?"))
    assert exchange.passages == ()
    assert exchange.unchecked is Reason.NO_CONTEXT
