"""The demo's data are what the demo and the integration tests need."""

from __future__ import annotations

import json
import shlex

import pytest

from truthlens.api.requests import parse_request
from truthlens.core.records.enums import Endpoint, Provenance
from truthlens.core.records.settings import EvidenceRules
from truthlens.demo import BY_NAME, CONVERSATIONS, Conversation, PromptLayout, chat_request, curl_lines
from truthlens.text.sentences import is_chinese

PROVENANCES = {
    PromptLayout.TAG: Provenance.USER,
    PromptLayout.LABEL: Provenance.USER,
    PromptLayout.NUMBERED: Provenance.USER,
    PromptLayout.SYSTEM: Provenance.SYSTEM,
    PromptLayout.DOCUMENTS: Provenance.DOCUMENTS,
    PromptLayout.TOOL: Provenance.TOOL,
}


def test_there_is_enough_to_show() -> None:
    """Every domain, every layout, a Chinese one; names and questions are unique."""
    assert len(CONVERSATIONS) >= 10
    assert {"healthcare", "finance", "support", "internal", "creative"} <= {
        item.domain for item in CONVERSATIONS
    }
    assert {item.layout for item in CONVERSATIONS} == set(PromptLayout)
    assert any(is_chinese(item.question) for item in CONVERSATIONS)
    assert len(BY_NAME) == len(CONVERSATIONS) == len({item.question for item in CONVERSATIONS})


@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda item: item.name)
def test_a_request_carries_its_evidence(conversation: Conversation) -> None:
    """The passages of each conversation are found where its layout puts them, and its question is the query."""
    exchange = parse_request(json.dumps(chat_request(conversation)).encode(), Endpoint.CHAT, EvidenceRules())
    assert exchange.query == conversation.question
    assert [passage.text for passage in exchange.passages] == list(conversation.passages)
    assert all(passage.provenance is PROVENANCES[conversation.layout] for passage in exchange.passages)


@pytest.mark.parametrize("conversation", CONVERSATIONS, ids=lambda item: item.name)
def test_grounded_answers_are_no_copies_and_differ_from_invented_ones(conversation: Conversation) -> None:
    """Neither answer is a passage, and they share no sentence."""
    for answer in (conversation.grounded, conversation.ungrounded):
        assert answer not in conversation.passages
    assert conversation.grounded != conversation.ungrounded


@pytest.mark.parametrize(
    "base", ["http://127.0.0.1:10000", "http://127.0.0.1:10000/", "http://127.0.0.1:10000/v1"]
)
def test_the_lines_can_be_pasted(base: str) -> None:
    """Four one-line commands that a shell splits into the same words, with a body that is JSON."""
    lines = curl_lines(base)
    assert len(lines) == 4
    for title, command in lines:
        words = shlex.split(command)
        assert title
        assert "\n" not in command
        assert words[0] == "curl"
        assert "-i" in words
        assert "http://127.0.0.1:10000/v1/chat/completions" in words
        assert json.loads(words[words.index("-d") + 1])["messages"]
