"""A context in which somebody changed a word: the demo's answer stays, so that what it no longer supports is caught."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import pytest

from truthlens.api.requests import parse_request
from truthlens.core.records.enums import Endpoint
from truthlens.core.records.plan import EvidenceRules
from truthlens.demo import CONVERSATIONS, chat_request
from truthlens.demo.answers import answer
from truthlens.demo.conversations import Conversation


def given(body: str) -> str:
    return answer(parse_request(body.encode(), Endpoint.CHAT, EvidenceRules()), has_tools=False).text


@pytest.mark.parametrize("conversation", [c for c in CONVERSATIONS if c.passages], ids=lambda c: c.name)
def test_an_answer_outlives_any_changed_figure(conversation: Conversation) -> None:
    """Each figure of the passages in turn is another one."""
    for figure in set(re.findall(r"\d+", " ".join(conversation.passages))):
        passages = tuple(re.sub(rf"\b{figure}\b", "77", passage) for passage in conversation.passages)
        body = json.dumps(chat_request(replace(conversation, passages=passages)), ensure_ascii=False)
        assert given(body) == conversation.grounded


def test_another_context_gets_an_answer_of_its_own() -> None:
    """The question alone does not make it the demo's conversation."""
    question = CONVERSATIONS[0].question
    body = json.dumps({"model": "demo", "messages": [{"role": "user", "content": f"Context:\nNorvafen tablets may be taken by an adult once a week.\n\nQuestion: {question}"}]})  # fmt: skip
    assert given(body) == "Norvafen tablets may be taken by an adult once a week."
