"""What a model said is never evidence for what it says next: not as a draft in a prompt, a message, a part or a completion."""

from __future__ import annotations

import itertools
import json

import pytest

from truthlens.api.requests import parse_request
from truthlens.core.records.enums import Endpoint, Reason
from truthlens.core.records.exchange import Exchange
from truthlens.core.records.settings import EvidenceRules

A = "The ferry to Skerry Island leaves at eight from the north pier. A return ticket costs 14 dollars."
OWN = "The fee for a dog is 12 dollars and bicycles are free."
Q = "What does a dog cost?"

KNOWN = (
    "Previous answer",
    "Draft answer",
    "My draft",
    "Last reply",
    "Thought",
    "Scratchpad",
    "Memory",
    "Working memory",
    "Assistant",
)
UNKNOWN = ("Hypothesis", "Candidate", "Plan", "Reasoning so far", "Analysis", "Überlegung", "推测")
# Labels with a word for evidence, and another that says whose words these are.
MIXED = (
    "Draft text",
    "Generated text",
    "Assistant's notes",
    "My notes",
    "Answer text",
    "Model results",
    "Intermediate results",
    "Assumed facts",
    "Information from the assistant",
    "Text written by the model",
    "Notes to self",
    "Summary of conversation so far",
    "草稿内容",
    "模型结果",
)
LONG = f"{OWN} A dog that is larger than a bag must wear a muzzle on deck. Its ticket is sold at the pier by the clerk Anna Brown."
# Prompts in which the label stands beside "Context", written as it is.
BESIDE = (
    "Context: {a}\n{label}: {own}\nQuestion: {q}",
    "Context:\n{a}\n\n{label}:\n{own}\n\nQuestion: {q}",
    "## Context\n{a}\n\n## {label}\n{own}\n\n## Question\n{q}",
    "**Context:**\n{a}\n\n**{label}:**\n{own}\n\n{q}",
    "[Context]\n{a}\n\n[{label}]\n{own}\n\n{q}",
    "--- Context ---\n{a}\n--- {label} ---\n{own}\n--- Question ---\n{q}",
    'Context:\n"""\n{a}\n"""\n\n{label}:\n"""\n{own}\n"""\n\n{q}',
)
# Prompts in which it is written in another way: there only a label that is known for a model's words can be told from a document's.
OTHERWISE = (
    "Context:\n{a}\n\n{label}: {own}\n\nQuestion: {q}",
    "## Context\n{a}\n\n{label}: {own}\n\nQuestion: {q}",
)


def read(body: dict[str, object]) -> Exchange:
    endpoint = Endpoint.CHAT if "messages" in body else Endpoint.COMPLETIONS
    return parse_request(json.dumps(body).encode(), endpoint, EvidenceRules())


def chat(*messages: tuple[str, object]) -> Exchange:
    return read({"messages": [{"role": role, "content": content} for role, content in messages]})


def taken(exchange: Exchange) -> str:
    return "\n".join(passage.text for passage in exchange.passages)


@pytest.mark.parametrize(
    ("form", "label"),
    [*itertools.product(BESIDE, KNOWN + UNKNOWN + MIXED), *itertools.product(OTHERWISE, KNOWN)],
)
def test_what_stands_behind_another_label_is_no_evidence(form: str, label: str) -> None:
    """A label beside that of the context ends it, whatever it says, in a user's and in a system message."""
    prompt = form.format(a=A, label=label, own=OWN, q=Q)
    for exchange in (chat(("user", prompt)), chat(("system", prompt), ("user", Q))):
        assert OWN not in taken(exchange)
        assert A in taken(exchange)


@pytest.mark.parametrize("label", KNOWN + UNKNOWN + MIXED)
def test_a_label_that_says_nothing_begins_no_evidence(label: str) -> None:
    """Without a context there is none to check against, however long the text and whoever sends it."""
    for own in (OWN, LONG):
        for prompt in (f"{label}:\n{own}\n\nQuestion: {Q}", f"{label}: {own}\n\nQuestion: {Q}"):
            if own is OWN or label in MIXED:
                assert chat(("user", prompt)).passages == ()
                assert chat(("system", prompt), ("user", Q)).passages == ()


@pytest.mark.parametrize("label", MIXED)
def test_a_tag_that_says_whose_words_it_holds_begins_no_evidence(label: str) -> None:
    """Names of elements are read as labels are, with what stands behind the first word."""
    name = label.replace(" ", "_").replace("'", "")
    assert OWN not in taken(chat(("user", f"<context>\n{A}\n</context>\n<{name}>\n{OWN}\n</{name}>\n{Q}")))
    assert chat(("user", f"<notes by the assistant>\n{OWN}\n</notes>\n{Q}")).passages == ()


@pytest.mark.parametrize(
    "label",
    [
        "Context",
        "Relevant documents",
        "Retrieved context",
        "Search results",
        "Knowledge base",
        "Information from knowledge bases",
        "The following excerpts",
        "Document 1",
        "BEGIN SOURCES",
        "User Memories",
        "检索到的文档",
        "Auszüge aus den Unterlagen",
    ],
)
def test_a_label_of_words_for_evidence_alone_begins_it(label: str) -> None:
    """Words that only point at it or join others say nothing else."""
    assert A in taken(chat(("user", f"{label}:\n{A}\n\nQuestion: {Q}")))


@pytest.mark.parametrize("label", KNOWN)
@pytest.mark.parametrize(
    "prompt",
    [
        "Context:\n{a}\n\n**{label}**\n{own}\n\nQuestion: {q}",
        "Context:\n{a}\n\n({label}: {own})\n\nQuestion: {q}",
        "Context: {a} {label}: {own}\n\nQuestion: {q}",
        "Context: {a} ({label}: {own})\n\nQuestion: {q}",
        "Context:\n{a}\n\n## {label}\n{own}\n\nQuestion: {q}",
        "Context:\n{a}\n\n[{label}]\n{own}\n\nQuestion: {q}",
        "Context:\n{a}\n\n> {label}: {own}\n\nQuestion: {q}",
        "Context:\n{a}\n\n- {label}: {own}\n\nQuestion: {q}",
        "Context:\n{a}\n\nQuestion: {q}\n\n{label}: {own}",
        "Context: {a}\nQuestion: {q}\n{label}: {own}\nAnswer:",
    ],
)
def test_a_label_for_a_models_words_ends_evidence_in_any_form(prompt: str, label: str) -> None:
    """In a chat and in a completion."""
    text = prompt.format(a=A, label=label, own=OWN, q=Q)
    for exchange in (chat(("user", text)), chat(("system", text), ("user", Q)), read({"prompt": text})):
        assert OWN not in taken(exchange)
        assert A in taken(exchange)


@pytest.mark.parametrize(
    "document",
    [
        "Opening hours:\nNine to six.\n\nPrices:\n14 dollars.\n\nDogs:\nThey travel free.",
        "Boat: Skerry\nPier: north\nPrice: 14 dollars",
        "When does it leave?\nAnswer: at eight.\n\nMay dogs come?\nAnswer: yes.",
        "Ferry: Skerry. When does it leave? Answer: at eight.",
        "**Prices**\nA ticket costs 14 dollars.\n\n**Pier**\nThe north one.\n\n**Dogs**\nThey travel free.\n\n**Response**\nWe answer within a day.",
        "# The ferry\n\nIt leaves at eight.\n\n# Prices\n\nA ticket costs 14 dollars.",
        "The pier is locked at nine.\n\nAnswer: ____",
        "def fare(age):\n    return 14 if age > 6 else 0",
    ],
)
@pytest.mark.parametrize("opener", ["Context:\n", "Context: ", "## Context\n"])
def test_labels_of_a_document_do_not_end_it(opener: str, document: str) -> None:
    """Headings behind one another, fields of a record, lists of questions and forms are the document's own."""
    exchange = chat(("user", f"{opener}{document}\n\nQuestion: {Q}"))
    assert "".join(taken(exchange).split()) == "".join(document.split())
    assert exchange.query == Q


@pytest.mark.parametrize(
    "prompt",
    [
        f"Context: {A}\nQuestion: {Q}\nAnswer: {OWN}",
        f"Context:\n{A}\n\nQuestion: {Q}\n\nAnswer: {OWN}",
        f"Context:\n{A}\n\nQuestion: {Q}\n\nAnswer:\n{OWN}",
        f"Context: {A}\nQ: {Q}\nA: {OWN}",
        f"Context:\n{A}\n\n{OWN}",
        f"Context:\n{A}\n\n{OWN} And the",
        f"Document: {A}\n\nSummary: {OWN}",
        f"Text: {A}\nTL;DR: {OWN}",
        f"Context: {A}\nQuestion: {Q}\nAnswer: {OWN}\nAnswer:",
        f"Question: {Q}\nContext: {A}\nAnswer: {OWN}\nAnswer:",
        f"Context:\n{A}\n\nQuestion: {Q}\n\nDraft:\n{LONG}\n\nAnswer:",
    ],
)
def test_what_a_completion_continues_is_no_evidence(prompt: str) -> None:
    """The text that the model goes on with is its own; what stands before it is evidence as ever."""
    exchange = read({"prompt": prompt})
    assert OWN not in taken(exchange)
    assert A in taken(exchange)


@pytest.mark.parametrize(
    "prompt", [f"Context:\nQ: When?\nA: At eight.\n\nQuestion: {Q}\n", f"{Q}\n\nContext:\n{A}\n\n{OWN}"]
)
def test_a_completion_that_continues_nothing_keeps_its_evidence(prompt: str) -> None:
    """A list of questions before the question, and documents behind it that end, are evidence."""
    exchange = read({"prompt": prompt})
    rest = prompt.replace(f"Question: {Q}", "").replace(Q, "").replace("Context:", "")
    assert taken(exchange).split() == rest.split()


@pytest.mark.parametrize(
    "role",
    [
        "analysis",
        "output",
        "memory",
        "summary",
        "commentary",
        "thought",
        "reasoning",
        "draft",
        "reflection",
        "critic",
        "planner",
        "scratchpad",
        "final",
        "narrator",
        "self",
        "story",
        "customer",
        "user2",
        "User1",
        "system2",
        "assistant1",
        "tool3",
    ],
)
def test_a_role_of_no_protocol_is_nobody(role: str) -> None:
    """Nothing that it says is evidence or asked, marked or pasted."""
    for said in (f"{OWN}\n\n{A}", f"Context: {OWN}", f"<context>{OWN}</context>\n{Q}"):
        exchange = chat((role, said), ("user", Q))
        assert (exchange.passages, exchange.query, exchange.unchecked) == ((), Q, Reason.NO_CONTEXT)
        assert [each.rule for each in exchange.left][:1] == ["unknown-role"]
    part = [{"type": "document", "text": OWN}]
    assert chat((role, part), ("user", Q)).passages == ()


_TEXT = [{"type": "text", "text": OWN}]
_FETCHED = {"type": "web_fetch_result", "url": "https://ferry.example",
            "content": {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": OWN}}}  # fmt: skip


@pytest.mark.parametrize(
    "kind",
    [
        "document",
        "file",
        "input_file",
        "resource",
        "search_result",
        "tool_result",
        "tool_output",
        "function_result",
        "search_results",
        "citation",
        "mcp_tool_result",
        "web_search_tool_result",
        "code_execution_tool_result",
    ],
)
def test_parts_of_an_assistant_message_are_its_own_words(kind: str) -> None:
    """No type of part makes evidence of them, nor does a result without its call."""
    assert chat(("assistant", [{"type": kind, "text": OWN, "content": _TEXT}]), ("user", Q)).passages == ()


def test_results_of_a_servers_own_tools_are_evidence() -> None:
    """They stand in the assistant's message, behind the call with their id; output of code that the model wrote is its own."""

    def message(call: str, kind: str, content: object, of: str = "t1") -> Exchange:
        parts = [
            {"type": call, "id": "t1", "name": "f", "input": {}},
            {"type": kind, "tool_use_id": of, "content": content},
        ]
        return chat(("assistant", parts), ("user", Q))

    assert taken(message("mcp_tool_use", "mcp_tool_result", _TEXT)) == OWN
    assert taken(message("server_tool_use", "web_fetch_tool_result", _FETCHED)) == OWN
    assert message("mcp_tool_use", "mcp_tool_result", _TEXT, of="t2").passages == ()
    assert message("tool_use", "mcp_tool_result", _TEXT).passages == ()
    assert message("server_tool_use", "code_execution_tool_result", _TEXT).passages == ()


@pytest.mark.parametrize(
    "text",
    [
        "No context here: write a haiku",
        "No context here: write a haiku about the sea.",
        "No context needed:\nWrite a haiku.",
        "Text: write a haiku",
        "No documents: just tell me a joke",
        "<context>write a haiku</context>",
        "Email: write one to my boss and ask for a day off",
        "Kein Kontext: schreib ein Haiku",
        "没有上下文：写一首俳句",
    ],
)
def test_an_order_of_the_user_is_no_evidence(text: str) -> None:
    """Behind a label as well, where it is all that the user asks."""
    exchange = chat(("user", text))
    assert (exchange.passages, exchange.query, exchange.unchecked) == ((), text, Reason.NO_CONTEXT)


def test_a_short_text_with_no_question_beside_it_is_unsure() -> None:
    """It may be an order in words that are not known."""
    text = "Source: none, tell me a joke"
    assert (chat(("user", text)).passages, chat(("user", text)).unchecked) == ((), Reason.UNSURE_CONTEXT)


def test_orders_in_evidence_stay_evidence() -> None:
    """A manual orders its readers, where the user asks about it."""
    steps = "Press the red button. Hold it for five seconds."
    assert taken(chat(("user", f"Context: {steps}\nHow long must I hold it?"))) == steps


def test_numbered_documents_are_sources() -> None:
    """One template numbers the roles of its documents."""
    assert taken(chat(("document0", OWN), ("user", Q))) == OWN


@pytest.mark.parametrize(
    "null", ["None", "null", "NULL", "nil", "undefined", "NaN", "n/a", "N/A", "[]", "{}", '""', "-"]
)
def test_a_null_value_is_no_context(null: str) -> None:
    """A template writes it where nothing was retrieved, and it says nothing that an answer may rest on."""
    for messages in (
        [("user", f"Context: {null}\n\nQuestion: {Q}")],
        [("user", f"Context:\n{null}\n\nQuestion: {Q}")],
        [("system", f"Answer from the context.\n\n<context>\n{null}\n</context>"), ("user", Q)],
        [("user", Q), ("tool", null)],
    ):
        exchange = chat(*messages)
        assert (exchange.passages, exchange.unchecked) == ((), Reason.NO_CONTEXT)
    documents = {
        "messages": [{"role": "user", "content": Q}],
        "documents": [{"title": "fares", "text": null}],
    }
    assert read(documents).passages == ()
    assert taken(chat(("user", f"Context: {null} of them fly\n\nQuestion: {Q}"))) != ""
