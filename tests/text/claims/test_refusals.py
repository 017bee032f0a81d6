"""Refusals and abstentions."""

import pytest

from truthlens.text.claims.refusals import abstains, declines


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
    assert declines(text)


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
    assert not declines(text)


@pytest.mark.parametrize(
    "text",
    [
        "The provided passages do not state the dose.",
        "There is no information on this in the sources. It cannot be determined.",
        "I don't know.",
        "Unable to answer based on given passages.",
        "证据没有说明剂量。",
        "根据提供的资料，无法确定转速。",
    ],
)
def test_abstentions_are_known(text: str) -> None:
    """A few sentences that all say that the evidence does not tell abstain."""
    assert abstains(text)


@pytest.mark.parametrize(
    "text",
    [
        "The pump runs at 600 rpm. The evidence does not say where it was built.",
        "The pump runs at 600 rpm.",
        "转速是每分钟600转。证据没有说明产地。",
        "",
    ],
)
def test_an_answer_with_a_gap_is_no_abstention(text: str) -> None:
    """A text that says something does not abstain, though it leaves something open."""
    assert not abstains(text)
