"""Only a refusal that says nothing else makes no claim."""

from __future__ import annotations

import pytest

from truthlens.text.claims.plain_refusals import claims_nothing


@pytest.mark.parametrize(
    "text",
    ["", " \n", "I cannot help with that.", "I\u2019m sorry, but I can't help with that.", "Sorry. I will not.",
     "I'm sorry, I can't assist with that request.", "Unfortunately, I am not able to answer this question!",
     "We are unable to help you with your request.", "抱歉，我无法提供帮助。", "对不起，我不能回答这个问题。"],
)  # fmt: skip
def test_a_plain_refusal_claims_nothing(text: str) -> None:
    """In the words that refusals have."""
    assert claims_nothing(text)


@pytest.mark.parametrize(
    "text",
    ["No.", "I cannot help with that. The library opens at seven.", "I'm sorry, the library opens at seven.",
     "I cannot help with the eight tablets that are safe.", "I'm sorry, but I can't help with that, as it opens at 7.",
     "You cannot do that.", "It cannot help.", "I can help you with that: eight tablets.", "Eight tablets",
     "抱歉，图书馆七点开门。", "我不能回答这个问题，因为最多可以服用八片。"],
)  # fmt: skip
def test_a_refusal_that_says_more_claims_something(text: str) -> None:
    """A fact beside it, in it, or as its reason."""
    assert not claims_nothing(text)
