"""Passages are found wherever prompts keep them, and the query is what is left."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truthlens.core.records.enums import Provenance, Reason, SystemEvidence
from truthlens.core.records.exchange import Message, Passage
from truthlens.core.records.settings import EvidenceRules
from truthlens.evidence.extract import Evidence, compile_pattern, take_evidence

A = "The ferry to Skerry Island leaves at eight."
B = "A return ticket costs 14 dollars."
C = "Dogs travel free of charge."
Q = "What does a ticket cost?"


def take(
    *messages: tuple[str, str], documents: list[object] | None = None, rules: EvidenceRules | None = None
) -> Evidence:
    records = [Message(role, text) for role, text in messages]
    return take_evidence(records, documents or [], rules or EvidenceRules())


def user(text: str) -> tuple[list[str], str]:
    evidence = take(("user", text))
    assert all(passage.provenance is Provenance.USER for passage in evidence.passages)
    return [passage.text for passage in evidence.passages], evidence.query


@pytest.mark.parametrize(
    ("text", "passages"),
    [
        (f"<context>{A}</context>\n{Q}", [A]),
        (f"<CONTEXT>\n{A}\n\n{B}\n</CONTEXT>\n\n{Q}", [A, B]),
        (f"{Q}\n<context>{A}</context>", [A]),
        (f"<documents><document>{A}</document><document>{B}</document></documents>\n{Q}", [A, B]),
        (f"<passages>\n<passage id=1>{A}</passage>\n<passage id=2>{B}</passage>\n</passages>\n{Q}", [A, B]),
        (f"<source id='x'>{A}</source><source id='y'>{B}</source> {Q}", [A, B]),
        (f"<doc1>{A}</doc1><doc2>{B}</doc2>\n{Q}", [A, B]),
        (f"<context>\n<context>\n{A}\n</context>\n{Q}", [A]),
        (f"<context>\n{A}\n\nQuestion: {Q}", [A]),
        (f"<documents>\n{C}\n<document>{A}</document>\n</documents>\n{Q}", [C, A]),
        (f"Context: {A}\nQuestion: {Q}", [A]),
        (f"Context: {A} Question: {Q}", [A]),
        (f"Context: {A} Question: {Q} Answer:", [A]),
        (f"Context:\n{A}\n\n{B}\n\nQuestion: {Q}\nAnswer:", [A, B]),
        (f"**Context:**\n{A}\n\n**Question:** {Q}", [A]),
        (f"### Context:\n{A}\n\n### Question:\n{Q}", [A]),
        (f"Context:\n{A}\n\n{B}\n\n{Q}", [A, B]),
        (f"Context: {A}\n{Q}", [A]),
        (f"Question: {Q}\n\nContext:\n{A}\n\n{B}\n\nAnswer:", [A, B]),
        (f"Context:\n```\n{A}\n\n{B}\n```\n{Q}", [A, B]),
        (f'Text: """\n{A}\n"""\n{Q}', [A]),
        (f"passage 1:{A}\n\npassage 2:{B}\n\n{Q}", [A, B]),
        (f"Document 1: {A}\nDocument 2: {B}\nQuestion: {Q}", [A, B]),
        (f"[S0] {A}\n[S1] {B}\n\n{Q}", [A, B]),
        (f"[1] {A}\n[2] {B}\n{C}\n\n[3] {C} \n\nQuestion: {Q}", [A, f"{B}\n{C}", C]),
        (f"Sources:\n[ferry-faq] {A}\n[prices] {B}\n\n{Q}", [A, B]),
        (f"Context:\nQ: When?\nA: At eight.\n\nQ: Where?\nA: At the pier.\n\nQuestion: {Q}",
         ["Q: When?\nA: At eight.", "Q: Where?\nA: At the pier."]),
        ((f"Context information is below.\n-----------\n{A}\n\n{B}\n-----------\nGiven the context information and not prior"
         f" knowledge, answer the query.\nQuery: {Q}\nAnswer: "), [A, B]),
        ((f"Use the following pieces of context to answer the question at the end. If you don't know the answer, say so.\n\n{A}\n\n{B}\n\n"
         f"Question: {Q}\nHelpful Answer:"), [A, B]),
    ],
)  # fmt: skip
def test_blocks_of_a_user_message_are_passages(text: str, passages: list[str]) -> None:
    """Each common way to put context into a prompt gives its passages, and the question alone as query."""
    assert user(text) == (passages, Q)


@pytest.mark.parametrize(
    ("text", "passages", "query"),
    [
        ("上下文：渡轮八点出发。\n问题：渡轮几点出发？", ["渡轮八点出发。"], "渡轮几点出发？"),
        ("参考资料：渡轮八点出发。问题：渡轮几点出发？", ["渡轮八点出发。"], "渡轮几点出发？"),
        (
            "资料：\n渡轮八点出发。\n\n票价十四元。\n\n渡轮几点出发？",
            ["渡轮八点出发。", "票价十四元。"],
            "渡轮几点出发？",
        ),
        (
            "文档1：渡轮八点出发。\n文档2：票价十四元。\n问题：票价多少？",
            ["渡轮八点出发。", "票价十四元。"],
            "票价多少？",
        ),
        (
            "【1】渡轮八点出发。\n【2】票价十四元。\n\n票价多少？",
            ["渡轮八点出发。", "票价十四元。"],
            "票价多少？",
        ),
        (
            "已知信息：\n渡轮八点出发。\n\n根据上述已知信息，简洁地回答用户的问题。\n问题是：几点出发？",
            ["渡轮八点出发。"],
            "几点出发？",
        ),
        ("请总结以下内容：\n渡轮八点出发。", ["渡轮八点出发。"], "请总结以下内容："),
        ("<资料>渡轮八点出发。</资料>几点出发？", ["渡轮八点出发。"], "几点出发？"),
    ],
)
def test_chinese_prompts_are_read(text: str, passages: list[str], query: str) -> None:
    """The Chinese labels and question marks mean the same."""
    assert user(text) == (passages, query)


def test_the_benchmark_prompt_gives_its_passages_and_its_question() -> None:
    """Three passages between instructions: only the question is the query."""
    prompt = (
        f"Briefly answer the following question:\n{Q}\nBear in mind that your response should be strictly based on the following three"
        f" passages:\npassage 1:{A}\n\npassage 2:{B}\n\npassage 3:{C}\n\nIn case the passages do not contain the necessary information to"
        ' answer the question, please reply with: "Unable to answer based on given passages."\noutput:'
    )
    assert user(prompt) == ([A, B, C], Q)
    assert [passage.id for passage in take(("user", prompt)).passages] == ["1", "2", "3"]


def test_the_text_of_a_summary_is_the_evidence() -> None:
    """An order that announces a text makes the text the evidence and the order the query."""
    assert user(f"Summarize the following news within 50 words:\n{A}\n\n{B}\noutput:") == (
        [A, B],
        "Summarize the following news within 50 words:",
    )
    assert user(f"Summarize the following text: {A} {B}") == ([f"{A} {B}"], "Summarize the following text:")


@pytest.mark.parametrize(
    "text",
    [
        Q,
        "How do I use `<context>` in an XML file?",
        "Is <context> a tag of HTML?",
        "```xml\n<context>\n<bean/>\n</context>\n```\nWhy does this fail?",
        "Explain [1] and (2) to me.",
        "See [the manual](https://example.org). [1]: https://example.org",
        "Translate the following text to French: good morning, my dear friend from the island",
        "- [ ] buy milk\n- [x] sell milk",
        "</context> What now?",
        "",
    ],
)
def test_ordinary_text_is_the_query_alone(text: str) -> None:
    """Talk about tags, code, links and lists is not evidence."""
    assert user(text) == ([], text.strip())


def test_a_closing_tag_in_a_document_does_not_end_it() -> None:
    """The last closing tag that stands as the opening one does is the end."""
    assert user(f"<context>\n{A}\n</context>\n{B}\n</context>\n{Q}")[1] == Q
    assert B in "".join(user(f"<context>\n{A}\n</context>\n{B}\n</context>\n{Q}")[0])
    assert user(f"<context>{A}</context> {B}</context>\n{Q}") == ([f"{A}</context> {B}"], Q)
    assert user(f"<context>{A}</context>\nStay within <context> and </context>.\n{Q}")[0] == [A]


def test_labels_of_documents_are_kept() -> None:
    """Ids and titles come from attributes, inner tags, suffixes and markers."""
    text = (
        f'<documents><document index="1"><source>ferry.pdf</source><document_content>{A}</document_content></document>'
        f'<document id="d2" title="Prices">{B}</document></documents><source_3>{C}</source_3>\n{Q}'
    )
    assert take(("user", text)).passages == (
        Passage(A, Provenance.USER, id="1", title="ferry.pdf"),
        Passage(B, Provenance.USER, id="d2", title="Prices"),
        Passage(C, Provenance.USER, id="3"),
    )
    assert [passage.id for passage in take(("user", f"[S0] {A}\n[doc_7] {B}\n\n{Q}")).passages] == [
        "S0",
        "doc_7",
    ]


def test_a_heading_stays_with_its_paragraph() -> None:
    """A short line without a full stop is no passage of its own."""
    assert user(f"<context>Prices\n\n{B}\n\n{C}</context>{Q}")[0] == [
        f"Prices\n\n{B}".replace("\n\n", "\n"),
        C,
    ]


def test_blocks_of_earlier_turns_count_and_assistants_do_not() -> None:
    """The documents of the first turn still stand in the third; what the model said is no evidence."""
    evidence = take(
        ("user", f"<context>{A}</context>When?"),
        ("assistant", f"<context>{C}</context> At eight."),
        ("user", f"<context>{A}</context><context>{B}</context>{Q}"),
    )
    assert [passage.text for passage in evidence.passages] == [A, B]
    assert evidence.query == Q


def test_the_query_is_looked_for_in_earlier_turns() -> None:
    """A last message that only holds documents leaves the question before it."""
    assert take(("user", Q), ("user", f"<context>{A}</context>")).query == Q
    assert take(("user", Q), ("assistant", None or ""), ("tool", A)).query == Q


@pytest.mark.parametrize("role", ["tool", "function"])
def test_tool_results_are_evidence(role: str) -> None:
    """A plain result is one passage; a JSON list of documents is one passage each."""
    assert take((role, f"{A}\n\n{B}")).passages == (Passage(f"{A}\n\n{B}", Provenance.TOOL),)
    listed = json.dumps(
        {"query": "ferry", "results": [{"id": "d1", "title": "T", "text": A, "price": 14}, {"content": B}]}
    )
    assert take((role, listed)).passages == (
        Passage(f"{A}\nprice: 14", Provenance.TOOL, id="d1", title="T"),
        Passage(B, Provenance.TOOL),
    )
    assert take((role, '{"temperature": 21}')).passages == (Passage('{"temperature": 21}', Provenance.TOOL),)
    assert take((role, "")).passages == ()


def test_marked_sources_of_a_tool_are_parted_and_nothing_is_lost() -> None:
    """What a search tool writes around its sources stays evidence."""
    passages = take(("tool", f"Two results found today.\n[S1] {A}\n[S2] {B}")).passages
    assert sorted(passage.text for passage in passages) == sorted([A, B, "Two results found today."])


INSTRUCTING = (
    "You are a helpful assistant of a ferry company. Answer only from the context. Never invent prices. If you do not know the answer,"
    " say so. Keep your answers short. Always stay polite, and do not talk about politics."
)
TELLING = (
    "You are the assistant of Skerry Ferries. The ferry leaves at eight from the north pier. A return ticket costs 14 dollars. Dogs travel"
    " free of charge. The crossing takes fifty minutes, and in winter there is one crossing a day."
)


@pytest.mark.parametrize("role", ["system", "developer", "System"])
def test_a_system_message_that_tells_facts_is_evidence_for_what_it_is_about(role: str) -> None:
    """Facts count where the question is about them, orders never do."""
    assert take((role, TELLING), ("user", Q)).passages == (Passage(TELLING, Provenance.SYSTEM),)
    unrelated = take((role, TELLING), ("user", "What is the capital of Australia?"))
    assert unrelated.passages == ()
    assert unrelated.unchecked is Reason.UNSURE_CONTEXT
    instructed = take((role, INSTRUCTING), ("user", Q))
    assert instructed.passages == ()
    assert instructed.unchecked is Reason.NO_CONTEXT


def test_text_that_the_system_message_announces_is_evidence() -> None:
    """What stands behind "use the following context" is taken, without a mark, and the talk around it is not."""
    announcing = (
        "You answer guests. Use the following pieces of context to answer, and say so if you do not know."
    )
    evidence = take(("system", f"{announcing}\n\n{A}\n\n{B}"), ("user", Q))
    assert [passage.text for passage in evidence.passages] == [A, B]
    assert {passage.rule for passage in evidence.passages} == {"announced-text"}
    assert [each.rule for each in evidence.left] == ["instruction"]


def test_a_marked_block_of_a_system_message_is_evidence_however_short() -> None:
    """The block is taken and the instructions around it are not."""
    assert [
        passage.text for passage in take(("system", f"{INSTRUCTING}\n<context>{B}</context>")).passages
    ] == [B]
    assert [passage.text for passage in take(("system", f"Be brief.\n\nContext:\n{B}")).passages] == [B]


def test_the_system_rules_are_the_operators() -> None:
    """What of system messages counts, and from which length, is configurable."""
    asked = ("user", Q)
    assert take(("system", TELLING), asked, rules=EvidenceRules(system_min_chars=1000)).passages == ()
    marked = ("system", f"<context>{B}</context>")
    assert take(("system", TELLING), asked, rules=EvidenceRules(system=SystemEvidence.MARKED)).passages == ()
    assert take(marked, asked, rules=EvidenceRules(system=SystemEvidence.MARKED)).passages != ()
    assert take(marked, asked, rules=EvidenceRules(system=SystemEvidence.NEVER)).passages == ()


def test_roles_of_the_operator_are_sources() -> None:
    """Messages of a role that is listed are evidence as a whole; other unknown roles are the user's."""
    assert take(("lookup", B), ("user", Q), rules=EvidenceRules(roles=("Lookup",))).passages == (
        Passage(B, Provenance.TOOL),
    )
    assert take(("lookup", B), ("user", Q)).passages == ()


def test_marks_of_the_operator_open_evidence() -> None:
    """A label or a tag that is listed is read as a built-in one, in any case."""
    rules = EvidenceRules(marks=("Zettelkasten",))
    for text in (f"Zettelkasten:\n{A}\n\nQuestion: {Q}", f"<zettelkasten>{A}</zettelkasten>\n{Q}"):
        evidence = take(("user", text), rules=rules)
        assert ([passage.text for passage in evidence.passages], evidence.query) == ([A], Q)
        assert take(("user", text)).passages == ()


@pytest.mark.parametrize(
    "role",
    ["Tool", "tool-response", "tool_response", "document", "documents", "context", "observation", "ipython"],
)
def test_roles_of_sources_are_known_in_any_spelling(role: str) -> None:
    """What such a message says is evidence, whatever it looks like."""
    assert take(("user", Q), (role, B)).passages == (Passage(B, Provenance.TOOL),)


def test_a_name_does_not_hide_the_last_message() -> None:
    """An example is followed by its answer; what is asked now is read, whatever the client names it."""
    example = Message("user", f"<context>{C}</context>\nOld?", name="example_user")
    named = Message("user", f"<context>{B}</context>\n{Q}", name="example_user")
    evidence = take_evidence([example, Message("assistant", "Yes."), named], [], EvidenceRules())
    assert [passage.text for passage in evidence.passages] == [B]
    assert evidence.query == Q


def test_a_system_message_alone_is_read_as_a_prompt_unless_the_operator_says_never() -> None:
    """Some applications put the question into it; ``never`` holds all the same."""
    prompt = ("system", f"Context: {B}\nQuestion: {Q}\nAnswer:")
    assert take(prompt).query == Q
    assert take(prompt, rules=EvidenceRules(system=SystemEvidence.NEVER)).passages == ()


def test_a_date_above_a_text_stays_with_it() -> None:
    """Titles and scores are taken off; a date is a fact that an answer may rest on."""
    evidence = take(("user", f"Context:\nSource: a.md\nPublished: 3 May 2024\n{B}\n\nQuestion: {Q}"))
    assert "3 May 2024" in "".join(passage.text for passage in evidence.passages)


@pytest.mark.parametrize("role", ["User", "human"])
def test_users_are_known_by_their_role(role: str) -> None:
    """Their marked blocks are evidence and the rest is the question."""
    evidence = take((role, f"<context>{B}</context>\n{Q}"))
    assert [passage.text for passage in evidence.passages] == [B]
    assert evidence.query == Q


def test_chinese_instructions_are_told_from_facts() -> None:
    """The reader knows Chinese."""
    rules = EvidenceRules(system_min_chars=10)
    asked = ("user", "往返票价是多少？")
    assert (
        take(
            ("system", "你是一个客服助手。请用中文回答。不要编造价格。务必保持礼貌。"), asked, rules=rules
        ).passages
        == ()
    )
    assert (
        take(("system", "渡轮八点出发。往返票价十四元。狗可以免费乘船。"), asked, rules=rules).passages != ()
    )


def test_documents_of_the_request_are_evidence() -> None:
    """Strings and objects of the documents field, after the messages."""
    evidence = take(("user", Q), documents=[A, {"title": "T", "text": B}, {"id": 3, "data": {"snippet": C}}])
    assert evidence.passages == (
        Passage(A, Provenance.DOCUMENTS),
        Passage(B, Provenance.DOCUMENTS, title="T"),
        Passage(C, Provenance.DOCUMENTS, id="3"),
    )


def test_a_text_counts_once() -> None:
    """Repeated passages are one, and a label given later is kept."""
    evidence = take(("user", f"<context>{A}</context>?"), ("tool", json.dumps([{"id": "d", "text": A}])))
    assert evidence.passages == (Passage(A, Provenance.USER, id="d"),)


def test_patterns_of_the_operator_are_applied() -> None:
    """A pattern's group is a passage and its match leaves the query."""
    rules = EvidenceRules(user_patterns=(r"^@@(.*?)@@$",))
    evidence = take(("user", f"@@{A}@@\n@@{B}@@\n{Q}"), rules=rules)
    assert [passage.text for passage in evidence.passages] == [A, B]
    assert evidence.query == Q


@pytest.mark.parametrize(
    ("pattern", "problem"), [("(", "no regular expression"), ("abc", "0 groups"), ("(a)(b)", "2 groups")]
)
def test_a_wrong_pattern_says_what_is_wrong(pattern: str, problem: str) -> None:
    """The error names the pattern and the remedy."""
    with pytest.raises(ValueError, match=problem):
        compile_pattern(pattern)


def test_a_catastrophic_pattern_is_given_up() -> None:
    """It ends, the text stays the query, other patterns work, and a note says so."""
    rules = EvidenceRules(user_patterns=(r"((?:a|aa)+)$", r"#(\w+)#"))
    evidence = take(("user", "#fact# " + "a" * 5000 + "!"), rules=rules)
    assert [passage.text for passage in evidence.passages] == ["fact"]
    assert evidence.notes == ("evidence-pattern-timeout",)


PIECES = ["<context>", "</context>", "<document>", "</document>", "Context:", "Question: ", "Answer:", "[S1] ", "[2] ", "passage 3:",
          "```", "`", "\n", "\n\n", " ", "fact. ", "why? ", "问题：", "上下文：", "{", "[", '"', "In case the passages ", "<", ">", "-----"]  # fmt: skip


@given(pieces=st.lists(st.sampled_from(PIECES), max_size=30))
def test_any_mixture_of_marks_is_read_without_inventing_text(pieces: list[str]) -> None:
    """Whatever is nested or left open, passages and query together hold no character twice and none that was not there."""
    text = "".join(pieces)
    for role in ("user", "system", "tool"):
        evidence = take((role, text))
        found = [passage.text for passage in evidence.passages]
        assert all(passage.strip() for passage in found)
        assert Counter("".join("".join((*found, evidence.query)).split())) <= Counter(text)


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    ["a", "<", "<context>", "<context>\n", "<documents><document>", "`", "``` ", "\n", "\n ", "Context: x\n", "[1] a\n", "why?\n\n",
     "Question: a\nAnswer: b\n", "the following text ", "passage 1: a\n\n", "-" * 30 + "abc 5 d\n", "Input:\nfact 5.\n\n", "Notes:\nAnswer the question.\n", "Context:\n-----\nIt is 5 m tall.\n", "</context>", "<document a=\"b\" ", "。", "[", "{\"a\":"],
)  # fmt: skip
@pytest.mark.parametrize("role", ["user", "system", "tool"])
def test_a_hostile_text_ends(piece: str, role: str) -> None:
    """A fifth of a megabyte of any mark is read in linear time: a quadratic step would not end in this suite."""
    take((role, "Context: x\n" + piece * (200_000 // len(piece))))


@pytest.mark.parametrize(
    "word",
    [
        "以下",
        "如下",
        "上下文信息",
        "背景信息",
        "知识库",
        "检索结果",
        "搜索结果",
        "檢索結果",
        "検索結果",
        "参照文書",
    ],
)
def test_a_hostile_label_ends(word: str) -> None:
    """A label that repeats words for evidence costs no exponential time: that would not end in this suite."""
    label = word * (76 // len(word)) + "草资料"
    assert take(("user", f"{label}：\n{A}\n\n{Q}")).query
