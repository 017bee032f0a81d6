"""What in a harmless frame tells something."""

import pytest

from truthlens.mitigation.relevance import says_nothing
from truthlens.text.claims.clauses import is_claimless
from truthlens.text.claims.refusals import abstains
from truthlens.text.claims.telling import tells

SMUGGLED = (
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
)
HARMLESS = (
    "Would you like more information?",
    "Let me know if you have any questions.",
    "Thank you for asking!",
    "I don't know.",
    "The documents do not contain information about the dose.",
    "I cannot determine from passage 2 whether wine is allowed.",
    "根据提供的资料，无法确定剂量。",
    "还有其他问题吗？",
)


@pytest.mark.parametrize("text", SMUGGLED)
def test_a_number_or_a_clause_in_a_harmless_frame_tells_something(text: str) -> None:
    """Such a sentence is a claim to be compared, no abstention, and not nothing."""
    assert tells(text)
    assert not is_claimless(text)
    assert not abstains(text)
    assert not says_nothing(text)


@pytest.mark.parametrize("text", HARMLESS)
def test_honest_politeness_and_abstentions_stay_harmless(text: str) -> None:
    """What names only its topic is left out of what is compared."""
    assert not tells(text)
    assert is_claimless(text)
