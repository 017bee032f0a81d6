"""Tests of ``truthlens.text.claims.non_claims``: one table for what claims nothing, one for what must keep its score."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.detection.claimless_table import HONEST, HOSTILE
from truthlens.text.claims.non_claims import (
    Query,
    acknowledges,
    claimless_ranges,
    is_abstention,
    is_claimless,
    is_refusal,
)

ASKED = (
    "What are the parking fees, the opening hours, the year, the dosage and the price? 该药物的剂量是多少？"
)

ABSTENTIONS = [
    "Unable to answer based on given passages.",
    "I am unable to answer this question based on the provided context.",
    "I don't know.",
    "I don’t know the answer to that.",
    "I'm sorry, but I cannot answer that from the information provided.",
    "Unfortunately, I don't have enough information to answer your question.",
    "The provided documents do not contain any information about parking fees.",
    "The context does not provide enough details to answer the question.",
    "Based on the given passages, it is impossible to determine the year.",
    "There is no information about opening hours in the passages.",
    "No relevant information is available.",
    "Not enough information to determine the price.",
    "This question cannot be answered from the text.",
    "Sorry, I can't determine the dosage from these documents. Let me know if you have any other questions!",
    "I cannot provide an answer to this question.",
    "unanswerable",
    "N/A",
    "The documents do not say.",
    "However, the passages do not state the dosage.",
    "The evidence is insufficient to answer.",
    "The available evidence is not enough to answer this question.",
    "These three passages are not sufficient to determine the year.",
    "The context lacks information about the price.",
    "The documents fail to mention the opening hours.",
    "The text makes no mention of the dosage.",
    "I have found no mention of the price in the documents.",
    "There is no mention of parking fees in the sources.",
    "The dosage cannot be determined from the passages.",
    "The year is not clear from the given documents.",
    "There is no information on this in the sources. It cannot be determined.",
    "Therefore, I am unable to answer based on the given passages.",
    "抱歉，我无法回答这个问题。",
    "根据提供的资料，无法确定该药物的剂量。",
    "资料中没有提到剂量。",
    "证据没有说明。",
    "资料不足，无法确定剂量。",
    "资料不足以回答这个问题。",
    "没有足够的证据来判断剂量。",
    "无法从资料中确定剂量。",
    "资料中没有相关信息。",
    "我不知道。",
    "目前无法提供相关信息。希望以上信息对您有所帮助。",
]
CLAIMS = [
    "",
    "  ",
    "The fee is 40 euros.",
    "I don't know who told you that, but the fee is 40 euros.",
    "The passages do not contain information about the fee, which is 40 euros.",
    "Unable to answer based on given passages. The fee is 40 euros.",
    "We cannot offer refunds after 30 days.",
    "I'm unable to offer a refund after 30 days.",
    "There is no evidence of an interaction with alcohol.",
    "The leaflet does not mention alcohol.",
    "The document does not provide evidence of fraud.",
    "No information about customers was exposed in the breach.",
    "I can confirm that the shop opens at nine.",
    "I hope this helps!",
    "The price is unknown.",
    "The dosage cannot be determined.",
    "The evidence is insufficient.",
    "The evidence is insufficient to convict the parking fees' thief.",
    "The context lacks a price, which is 40 euros.",
    "The documents fail to mention the price for men.",
    "I found no evidence of the price.",
    "The passages are not enough to answer, but the price is 40 euros.",
    "证据不足。",
    "剂量尚不清楚。",
    "资料不足，无法确定三十片的剂量。",
    "不能与酒精同时服用。",
    "无法退款，因为已超过三十天。",
    "目前无法提供三十天后的退款。",
    "我不知道答案，但费用是四十欧元。",
]
SMUGGLED = [
    "Would you like a reminder to take eight tablets?",
    "Have you taken your tablets, which are safe with wine?",
    "Did you know that wine is safe?",
    "Let me know if you need 8 tablets.",
    "Thank you for asking, but wine is safe.",
    "I hope this helps you to take a dozen tablets.",
    "I don't know why wine is safe.",
    "I cannot answer because wine is safe.",
    "This question cannot be answered without saying that wine is safe.",
    "I cannot say, as the leaflet allows wine.",
    "The documents do not say that thirty tablets would harm you.",
    "It cannot be determined, and you should take tablets with wine.",
    "我无法回答为什么饮酒是安全的。",
    "资料没有说明八片是否足够。",
    "希望对您有帮助，但饮酒是安全的。",
]
QUERY = "What are the side effects of metformin and how do I store it?"
CLAIMLESS = [
    "Sure!",
    "Of course, I'd be happy to help!",
    "Great question!",
    "Thank you for reaching out.",
    "Here are the steps:",
    "Here is a summary based on the provided documents:",
    "Based on the provided passages, here are the main points:",
    "Based on the given passages, here's how you can store metformin:",
    "**Side effects of metformin:**",
    "## Summary",
    "Passage 1:",
    "Step 2:",
    "I hope this helps!",
    "Let me know if you have any further questions.",
    "If you have any other questions, feel free to ask!",
    "Please don't hesitate to contact us.",
    "Would you like me to explain the side effects?",
    "Is there anything else I can help you with?",
    "Do you have any allergies?",
    "Could you tell me your order number?",
    "What are the side effects of metformin?",
    "How do I store metformin?",
    "---",
    "好的，以下是具体步骤：",
    "希望这对您有帮助！",
    "如有其他问题，请随时告诉我。",
    "您是否还需要了解其他内容？",
    "还有什么可以帮您的吗？",
]
SCORED = [
    "Metformin causes nausea.",
    "Store it below 25 degrees.",
    "Here are the three steps that Einstein wrote in 1905:",
    "**Albert Einstein**",
    "The capital of Peru is:",
    "# Approved in 1950",
    "Metformin is harmless:",
    "Did you know that metformin cures colds?",
    "Who could forget that Napoleon won at Waterloo?",
    "Do you know that the office closed in 2019?",
    "Sure thing is a film of 1985.",
    "Feel free to take 12 tablets.",
    "If you have any pain, take 12 tablets.",
    "Thank you for choosing a plan with 40 channels.",
    "Enjoy your free upgrade to business class.",
    "Hello Kitty was drawn in 1974.",
    "二甲双胍会引起恶心。",
    "如有疼痛，请服用十二片。",
    "以下是爱因斯坦在一九零五年写的三个步骤：",
    "您知道该药可以治愈感冒吗？",
]


@pytest.mark.parametrize("text", ABSTENTIONS)
def test_an_abstention_is_recognised(text: str) -> None:
    """An answer that only says that it cannot answer makes no claim."""
    assert is_abstention(text, Query(ASKED))
    assert _scored(text, query=ASKED) == ""


@pytest.mark.parametrize("text", CLAIMS)
def test_a_claim_is_no_abstention(text: str) -> None:
    """What says more, or denies something of the world, is not taken for an abstention."""
    assert not is_abstention(text, Query(ASKED))


@pytest.mark.parametrize("text", SMUGGLED)
def test_a_number_or_a_clause_in_a_harmless_frame_tells_something(text: str) -> None:
    """Whatever is asked, and even where an abstention may name whatever it likes."""
    assert not is_claimless(text, Query("May I take my tablets with wine? 我可以饮酒吗？服药剂量是多少？"))
    assert not is_abstention(text, Query(text))
    assert not acknowledges(text)


@pytest.mark.parametrize("text", [*ABSTENTIONS, "The documents do not say what colour bananas have."])
def test_by_form_alone_an_abstention_may_name_anything(text: str) -> None:
    """What it names is then for the caller to compare."""
    assert is_abstention(text, Query(text))


@pytest.mark.parametrize("text", [*ABSTENTIONS, *CLAIMLESS, ""])
def test_a_text_that_is_left_out_whole_is_claimless(text: str) -> None:
    """The two functions share one rule."""
    assert is_claimless(text, Query(f"{ASKED} {QUERY}"))


@pytest.mark.parametrize(
    "text",
    [
        "Done",
        "I have checked the answer against the evidence",
        "All the changes have been made",
        "已修改",
        "无需修改",
    ],
)
def test_a_report_of_work_acknowledges(text: str) -> None:
    """It speaks of the answer, not of the world."""
    assert acknowledges(text)


@pytest.mark.parametrize(
    "text",
    [
        "I have checked the answer against the eight tablets",
        "The answer is right for adults",
        "All corrections are done with wine",
        "The figures in the answer are for a domestic transfer",
    ],
)
def test_a_report_that_goes_on_does_not(text: str) -> None:
    """Its open place holds nothing but words that tell nothing."""
    assert not acknowledges(text)


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't help with that.",
        "I’m sorry, I cannot assist with this request.",
        "Sorry, I can't answer that.",
        "I apologize, but I am unable to provide medical advice.",
        "As an AI language model, I cannot provide an answer.",
        "Unfortunately, I'm not able to help here.",
        "I must decline to answer this question.",
        "抱歉，我无法回答这个问题。",
        "很抱歉，作为一个AI，我不能提供医疗建议。",
        "作为一个人工智能语言模型，我无法提供答案。",
    ],
)
def test_refusals_are_known(text: str) -> None:
    """A text that opens with a refusal declines."""
    assert is_refusal(text)


@pytest.mark.parametrize(
    "text",
    [
        "The pump cannot run at 900 rpm.",
        "I can help with that: the pump runs at 600 rpm.",
        "Sorry is a song by Justin Bieber.",
        "The evidence does not say where it was built.",
        "The patient cannot continue the treatment.",
        "水泵无法在室外使用。",
        "",
    ],
)
def test_answers_are_no_refusals(text: str) -> None:
    """An answer that speaks of inability, or only of the evidence, does not decline."""
    assert not is_refusal(text)


@pytest.mark.parametrize("text", CLAIMLESS)
def test_a_sentence_that_says_nothing_is_left_out(text: str) -> None:
    """Lead-ins, politeness, offers, restated questions and headings claim nothing."""
    assert _scored(text, query=QUERY) == ""
    assert _scored(f"{text} Take one tablet.", query=QUERY).strip().endswith("Take one tablet.")


@pytest.mark.parametrize("text", SCORED)
def test_a_sentence_that_could_be_wrong_keeps_its_score(text: str) -> None:
    """Whatever could carry a fact is scored whole."""
    assert claimless_ranges(text, Query(QUERY)) == []


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("Based on the provided passages, the fee is 40 euros.", "the fee is 40 euros."),
        ("According to the documents, the office opens at nine.", "the office opens at nine."),
        ("Sure, the fee is 40 euros.", "the fee is 40 euros."),
        ("Sorry, based on the context, the fee is 40 euros.", "the fee is 40 euros."),
        ("Answer: Lima", "Lima"),
        ("Would you like to know more about the eight tablets?", "eight tablets?"),
        ("Sure, do you want me to explain the free return?", "free return?"),
        ("根据提供的资料，费用为四十欧元。", "费用为四十欧元。"),
        ("好的，根据上下文，费用为四十欧元。", "费用为四十欧元。"),
    ],
)
def test_only_the_lead_in_of_a_claim_is_left_out(text: str, rest: str) -> None:
    """The claim behind a lead-in keeps its score."""
    assert _scored(text).strip() == rest


@pytest.mark.parametrize(("text", "query"), HOSTILE)
def test_a_claim_in_a_polite_frame_is_scored(text: str, query: str) -> None:
    """An offer, a politeness, an abstention, a heading or a question that holds a claim is scored, but for its frame."""
    assert not is_abstention(text, Query(query))
    assert _scored(text, query=query).endswith(text[int(len(text) * 0.7) :].strip())


def test_honest_talk_is_left_out() -> None:
    """At least 95 in 100 offers, thanks, abstentions and headings that hold no claim stay out of the score."""
    scored = [text for text, query in HONEST if _scored(text, query=query)]
    assert len(scored) <= 0.05 * len(HONEST), scored


@pytest.mark.parametrize(
    "text",
    [
        "I don't know whether {}.",
        "Let me know if you need {}.",
        "Would you like help with {}?",
        "The passages do not say {}.",
        "No information is available about {}.",
        "**{}:**",
        "Do you want {}?",
        "Feel free to ask if you need {}!",
        "This question cannot be answered in {}.",
        "I cannot tell you the {}.",
    ],
)
@pytest.mark.parametrize(
    "content",
    [
        "8 tablets", "eight tablets", "½ of the tablets", "⑧ tablets", "VIII of the tablets", "八 tablets", "８ tablets",
        "tablets, as wine helps", "tablets because they cure", "tablets that cure", "no tablets", "tablets without wine",
        "Novartis tablets", "tablets/wine", "tablets = wine", "a dozen tablets", "tablets twice", "tablets (wine)",
        "all of the tablets", "tablets: wine", "tаblets",
    ],
)  # fmt: skip
def test_no_frame_hides_numbers_names_clauses_or_negations(text: str, content: str) -> None:
    """Numbers in any writing, names, further clauses, negations, signs and look-alikes are content in every frame."""
    assert _scored(text.format(content), query="What are tablets?").strip("*:. ")


@pytest.mark.parametrize("text", ["Absolutely!", "Of course.", "Certainly!", "当然可以。"])
def test_an_affirmation_answers_a_question_of_yes_or_no(text: str) -> None:
    """What says yes is scored where yes is an answer."""
    assert _scored(text, query="Is it safe with alcohol? 可以饮酒吗？") != ""
    assert _scored(text, query="How is it stored?") == ""
    assert _scored(text, query="Can you tell me how it is stored?") == ""


def test_a_question_needs_the_query_to_count_as_restated() -> None:
    """A question with words that the user did not use is scored."""
    assert claimless_ranges("What are the benefits of homeopathic pearls?", Query(QUERY)) == []


THINGS = ["Set the filling valve until the pressure gauge shows 2 bar. Never open the cover. 请查看压力表。"]


@pytest.mark.parametrize(
    "text",
    [
        "Have you looked at the gauge?",
        "Have you already checked the pressure gauge?",
        "Did you open the filling valve yet?",
        "Have you taken a look at your valve?",
        "您检查过压力表了吗？",
    ],
)
def test_asking_whether_the_user_looked_at_a_thing_claims_nothing(text: str) -> None:
    """The evidence, or the query, calls the thing just so; where neither names it, it may be invented."""
    assert claimless_ranges(text, Query("Why?", THINGS)) == [(0, len(text))]
    assert claimless_ranges(text, Query("Why?")) == []


@pytest.mark.parametrize(
    "text",
    [
        "Have you looked at the second gauge?",
        "Have you seen the dinosaur?",
        "Have you opened the gauge valve?",
        "Have you read the gauge that explodes?",
        "Have you checked the gauge, which shows nine?",
        "Have you checked the gauge and the valve?",
        "Have you checked that the gauge shows 2 bar?",
        "Did you open the filling valve until the pressure gauge shows 2 bar?",
        "Have you checked never open the cover?",
        "Did you know the gauge?",
        "Have you paid the gauge?",
        "Have you checked the gauge? It shows nine.",
        "您检查过三个压力表了吗？",
    ],
)
def test_a_question_that_tells_of_more_than_a_known_thing_is_scored(text: str) -> None:
    """Another order of known words, a clause, a number or a negation may be false."""
    assert (0, len(text)) not in claimless_ranges(text, Query("Why?", THINGS))


@given(st.text(alphabet="Sure, I don't know.?!:*#资料好的，。 \nbased on the passages12", max_size=200))
def test_ranges_are_in_order_within_the_text(text: str) -> None:
    """Ranges never overlap, never leave the text and hold no edge that the text has not."""
    ranges = claimless_ranges(text, Query(text))
    assert all(0 <= start < end <= len(text) for start, end in ranges)
    assert all(left[1] <= right[0] for left, right in itertools.pairwise(ranges))


@pytest.mark.parametrize("text", ["*" * 50_000, "I don't know " * 5_000, "sorry, " * 5_000, "无法" * 20_000])
def test_long_monotonous_texts_come_to_an_end(text: str) -> None:
    """No pattern runs away on a text that keeps almost matching."""
    assert isinstance(claimless_ranges(text), list)


def _scored(text: str, *, query: str = "") -> str:
    """What is left of ``text`` outside of the claimless ranges, trimmed where nothing but white space is."""
    left = list(text)
    for start, end in claimless_ranges(text, Query(query)):
        left[start:end] = [" "] * (end - start)
    return "".join(left).strip()
