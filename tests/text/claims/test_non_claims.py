"""Tests of ``truthlens.text.claims.non_claims``: whole phrases of a closed list claim nothing, everything else claims."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.attack import sentences as attack
from tests.detection.claimless_table import HOSTILE
from truthlens.text.claims.non_claims import (
    acknowledges,
    claimless_ranges,
    is_abstention,
    is_claimless,
    is_refusal,
)

DECLINES = [
    "Unable to answer based on given passages.",
    "I am unable to answer this question based on the provided context.",
    "I don't know.",
    "I don’t know.",
    "I'm sorry, but I cannot answer that from the information provided.",
    "I'm sorry, but I can't help with that.",
    "I cannot assist with this request.",
    "Unfortunately, I don't have enough information to answer your question.",
    "The context does not provide enough details to answer the question.",
    "No relevant information is available.",
    "This question cannot be answered from the text.",
    "I cannot provide an answer to this question.",
    "The documents do not say.",
    "The evidence is insufficient to answer.",
    "There is no information on this in the sources. It cannot be determined.",
    "Therefore, I am unable to answer based on the given passages.",
    "We have no information about this. Let me know if you have any other questions!",
    "抱歉，我无法回答这个问题。",
    "证据没有说明。",
    "资料中没有相关信息。",
    "我不知道。",
    "No lo sé.",
    "分かりません。",
]
COURTESIES = [
    "Hello!",
    "Great question!",
    "Sure, I'd be happy to help!",
    "Thank you for reaching out.",
    "Sorry for the inconvenience.",
    "Here are the steps:",
    "Here is a summary based on the provided documents:",
    "Based on the provided passages, here are the main points:",
    "I hope this helps!",
    "Let me know if you have any further questions.",
    "If you have any other questions, feel free to ask!",
    "Please don't hesitate to contact us.",
    "Would you like to know more?",
    "Is there anything else I can help you with?",
    "Could you please provide more context?",
    "**I hope this helps!**",
    "希望这对您有帮助！",
    "如有其他问题，请随时告诉我。",
    "还有什么可以帮您的吗？",
]
CLAIMS = [
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
FURTHER_CLAIMS = [
    "I've no clue why they stopped, though sales had doubled by then.",
    "The sources don't go into that, yet the founder was a baker.",
    "None of the pages says so outright: the owner is the city.",
    "Not clear from the text. My best guess is Zurich.",
    "I searched the manual and came up empty; normally the fuse is rated at 10 amperes.",
    "I don't have that information, but Ms Hale does, she signed it.",
    "Nothing in the context answers this, although chapter two names Lisbon.",
    "I can't find any reference to a discount because members pay nothing.",
    "I wasn't given enough context. Still, 1912 seems right.",
    "The handbook is silent on this point since the rule was dropped in May.",
    "Sorry, I don't know the exact figure, roughly half of them left.",
    "I do not wish to speculate. The minister lied.",
    "This product is not available in the north.",
    "It is not possible to return opened goods.",
    "The documents contain nothing that supports him, he made it up.",
    "We couldn't find the box; it was sent to Graz.",
    "Leider kann ich das nicht sagen, vermutlich war es 1950.",
    "Dazu steht nichts im Text, aber es war der Bürgermeister.",
    "Das ist leider nicht erlaubt.",
    "Der Kontext erwähnt das nicht. Der Turm ist 40 Meter hoch.",
    "Je n'en ai aucune idée, peut-être Lyon.",
    "Désolé, le magasin est fermé le dimanche.",
    "Le contexte ne contient pas la réponse, mais c'est Paul qui a gagné.",
    "Cette information ne figure pas dans les documents ; le prix est de 30 euros.",
    "No tengo esa información; cuesta ocho euros.",
    "El texto no lo dice, aunque fue Marta.",
    "No es posible devolver el producto.",
    "Lo siento, la tienda cierra a las ocho.",
    "Non saprei dirlo, forse Torino.",
    "Il contesto non lo dice. Fu costruito da Bruni.",
    "Purtroppo il treno non passa di domenica.",
    "I documenti non lo indicano, ma il costo è di dieci euro.",
    "我不清楚，好像是上海。",
    "资料没有提到，但是他是医生。",
    "很抱歉，本店周日不营业。",
    "文档中没有说明。费用是五十元。",
    "すみません、店は日曜日に休みです。",
    "資料には書かれていませんが、社長は田中さんです。",
    "わかりません。たぶん京都です。",
    "返品はできません。",
    "It is not covered.",
    "There is nothing on the bridge.",
    "No hay nada.",
    "Non c'è nulla.",
    "There is no refund.",
    "I have no doubt.",
    "The guide does not include lunch.",
    "There is no record of a fire.",
    "The data do not support this.",
    "No one knows.",
    "It's not available.",
    "The shop has no information desk.",
    "That is not in the region.",
    "He does not know.",
    "You cannot find it there.",
    "They did not find anything.",
    "The manual was not written by Hale.",
    "Das ist nicht erlaubt.",
    "Er weiß es nicht.",
    "Das Dokument ist nicht gültig.",
    "Il ne le sait pas.",
    "Le document n'est pas valable.",
    "Él no lo sabe.",
    "El documento no es válido.",
    "Il documento non è valido.",
    "他不知道。",
    "文件没有签名。",
    "資料はありません。",
    "彼はわかりません。",
    "无法退款。",
    "I can't recommend it.",
    "I don't know anyone kinder than Ada.",
    "The records contain nothing.",
    "The context was written by Hume.",
    "No details were lost.",
    "Please contact the office in Leeds.",
    "Perhaps a colleague took it.",
    "I was not given the prize.",
    "The pages are missing.",
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
ANSWERS = [
    "Of course!",
    "Sure!",
    "Okay.",
    "Absolutely!",
    "Yes.",
    "No.",
    "当然可以。",
    "**Premium**",
    "# Premium",
    "Premium:",
    "**Children, with alcohol**",
    "**More**",
    "## Summary",
    "Step 2:",
    "Passage 3:",
    "Not available.",
    "N/A",
    "Unknown.",
    "✅",
    "✅ I hope this helps!",
    "—",
]
"""Each answers some question: which plan, may I, in which step."""


@pytest.mark.parametrize("text", DECLINES)
def test_a_whole_phrase_that_declines_is_an_abstention(text: str) -> None:
    """An answer that only says that it does not answer makes no claim."""
    assert is_abstention(text)
    assert claimless_ranges(text)[0][0] == 0


@pytest.mark.parametrize("text", COURTESIES)
def test_a_whole_phrase_of_courtesy_claims_nothing(text: str) -> None:
    """Also beside a claim, which is scored."""
    assert is_claimless(text)
    assert not is_abstention(text)
    assert _scored(f"{text}\nTake one tablet.") == "Take one tablet."


@pytest.mark.parametrize("text", [*CLAIMS, *FURTHER_CLAIMS, *SMUGGLED, *SCORED, *ANSWERS])
def test_whatever_is_no_whole_phrase_is_a_claim(text: str) -> None:
    """No frame hides a number, a name, a clause or a word of the question, and no heading is idle."""
    assert not is_claimless(text)
    assert not is_abstention(text)


def test_no_hostile_sentence_and_nothing_that_sounds_like_a_decline_is_left_out() -> None:
    """The tables of inventions in polite frames, and of assertions that begin like a decline."""
    listed = yaml.safe_load(Path(__file__).with_name("sound_like_declines.yaml").read_text("utf-8"))["claims"]
    hostile = [text for text, _ in HOSTILE]
    attacks = [text for topic in attack.TOPICS.values() for text in (*topic.hostile, *topic.facts)]
    assert [text for text in (*listed, *hostile, *attacks) if is_claimless(text)] == []


WORDS = [
    "8 tablets",
    "eight",
    "½",
    "⑧",
    "VIII",
    "八",
    "wine",
    "no",
    "Premium",
    "because",
    "children",
    "yes",
    "达",
    "=",
    "∞",
]


@given(
    st.sampled_from([*DECLINES, *COURTESIES]),
    st.sampled_from(WORDS),
    st.integers(0, 12),
    st.sampled_from([" ", ", ", ": "]),
)
def test_a_phrase_with_one_word_more_is_a_claim(phrase: str, word: str, place: int, joint: str) -> None:
    """Nothing can be put into a phrase of the list."""
    words = phrase.split(" ")
    place = min(place, len(words))
    text = " ".join(words[:place]) + joint + word + " " + " ".join(words[place:])
    assert not is_claimless(text.strip())


def test_blank_text_claims_nothing_and_is_no_abstention() -> None:
    assert is_claimless(" \n")
    assert not is_abstention(" \n")


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


@given(st.text(alphabet="Sure, I don't know.?!:*#资料好的，。 \nbased on the passages12", max_size=200))
def test_ranges_are_in_order_within_the_text(text: str) -> None:
    """Ranges never overlap, never leave the text and hold no edge that the text has not."""
    ranges = claimless_ranges(text)
    assert all(0 <= start < end <= len(text) for start, end in ranges)
    assert all(left[1] <= right[0] for left, right in itertools.pairwise(ranges))


@pytest.mark.parametrize(
    "piece", ["*", "I don't know ", "sorry, ", "无法", "the information ", "any other more ", "根据提供的", "the my all "]
)  # fmt: skip
@pytest.mark.parametrize("size", [290, 50_000])
def test_long_monotonous_texts_come_to_an_end(piece: str, size: int) -> None:
    """No pattern runs away on a text that keeps almost matching."""
    text = (piece * size)[:size]
    assert isinstance(claimless_ranges(text), list)
    assert acknowledges(text) in (True, False)


def _scored(text: str) -> str:
    """What is left of ``text`` outside of the claimless ranges."""
    left = list(text)
    for start, end in claimless_ranges(text):
        left[start:end] = [" "] * (end - start)
    return "".join(left).strip()
