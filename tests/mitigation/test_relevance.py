"""Whether a text says something, and whether of what was asked."""

import pytest

from truthlens.mitigation.relevance import is_off_topic, says_nothing

_WIRE = (
    "How much is a domestic wire transfer?",
    "It costs 15 euros.",
    "A wire transfer costs twelve dollars.",
)
_FEE = ("Is there a fee for moving money between my accounts?", "Yes, 5 dollars.", "No charge applies.")
_ZH = ("国内电汇收费多少？", "国内电汇收费15美元。", "国内电汇的费用是十二美元，账户之间转账免费。")
_DE = ("Was kostet eine Überweisung?", "Sie kostet 15 Euro.", "Überweisungen im Inland: zwölf Dollar.")
_CASES = (_WIRE, _FEE, _ZH, _DE)

_EMPTY = (
    "Done.",
    "Okay.",
    "OK",
    "...",
    "…",
    "✓",
    "**Done!**",
    "Sure!",
    "Sure, done.",
    "I have checked it.",
    "I've corrected the answer.",
    "I have checked the answer against the evidence.",
    "I have now reviewed and corrected all of the flagged claims.",
    "The answer has been corrected.",
    "The answer is correct.",
    "Everything is fine.",
    "All done. Thank you!",
    "No changes are needed.",
    "Nothing to correct.",
    "I am done.",
    "Understood. I have fixed it.",
    "Could you tell me more about it?",
    "好的。",
    "已修改。",
    "我已经检查过了。",
    "已对该回答进行了修正。",
    "没问题。",
    "无需修改。",
    "Erledigt.",
    "Ich habe alles geprüft.",
    "C'est fait.",
)
_ABSTENTIONS = (
    "The documents do not say.",
    "The evidence does not say how much a wire transfer is.",
    "I don't know.",
    "It cannot be determined from the given passages.",
    "There is not enough information to answer the question.",
    "Unable to answer based on given passages.",
    "Therefore, I am unable to answer based on the given passages.",
    "Unfortunately, the provided context does not mention a fee for transfers.",
    "证据没有说明。",
    "根据提供的资料，无法确定。",
)


@pytest.mark.parametrize("text", _EMPTY)
@pytest.mark.parametrize("case", _CASES)
def test_what_claims_nothing_is_told(text: str, case: tuple[str, ...]) -> None:
    """Acknowledgements, reports of one's own work, questions and marks say nothing, whatever was asked."""
    assert says_nothing(text, case[0])


@pytest.mark.parametrize(
    ("case", "texts"),
    [
        (
            _WIRE,
            (
                "12 dollars",
                "$12",
                "12",
                "Twelve dollars.",
                "It is free.",
                "It costs a dozen.",
                "Done online, a wire transfer is 12 dollars.",
                "Thanks to the new tariff a transfer is free.",
                "The figures in the answer are for a domestic transfer.",
                "I have checked the price of a wire transfer: it is lower.",
                "Sure! A wire transfer costs twelve dollars.",
                "A transfer costs less.",
                "- twelve dollars\n- ten dollars",
                *_ABSTENTIONS,
            ),
        ),
        (
            _FEE,
            ("Yes.", "No.", "Yes, it is free.", "No, there is none.", "It is free.", "None.", "Free money."),
        ),
        (
            _ZH,
            (
                "12美元",
                "十二美元。",
                "免费。",
                "国内电汇收费十二美元。",
                "当然，电汇收费十二美元。",
                "它是免费的。",
                "文档没有说明电汇的费用。",
            ),
        ),
        (
            ("账户之间转账收费吗？", "收费5美元。", "账户之间转账免费。"),
            ("不收费。", "是的。", "不。", "没有。", "免费。"),
        ),
        (_DE, ("12 Dollar", "Zwölf Dollar.", "Sie ist kostenlos.", "Die Überweisung kostet zwölf Dollar.")),
        (("Is the setting fixed?", "It is adjustable.", "The setting is fixed."), ("Fixed.",)),
        (("Wer war das?", "Ulm.", "Es war Anna aus Ulm."), ("Anna.", "Es war Anna.")),
        (
            ("요금은 얼마입니까?", "요금은 15달러입니다.", "요금이 12달러입니다."),
            ("요금은 12달러입니다.", "12달러"),
        ),
        (("Где это?", "В Риме.", "Башня стоит в Париже."), ("В Париже.", "Башня в Париже.")),
        (("どこですか。", "京都です。", "塔は東京にあります。"), ("東京です。", "それは東京にあります。")),
    ],
)
def test_a_short_answer_is_an_answer(case: tuple[str, ...], texts: tuple[str, ...]) -> None:
    """A number, a name, yes or no, and an abstention answer what was asked."""
    assert [text for text in texts if says_nothing(text, case[0])] == []
    assert [text for text in texts if is_off_topic(text, case)] == []


@pytest.mark.parametrize("text", ["Yes.", "No", "是的。"])
def test_yes_is_no_answer_to_how_much(text: str) -> None:
    """Where the question asks for a thing, yes and no say nothing."""
    assert says_nothing(text, "How much is a domestic wire transfer?")
    assert says_nothing(text, "国内电汇收费多少？")


@pytest.mark.parametrize(
    ("case", "text"),
    [
        (_WIRE, "Bananas are yellow."),
        (_WIRE, "Paris."),
        (_WIRE, "The sky is blue and grass is green."),
        (_WIRE, "The documents do not say what colour bananas have."),
        (_FEE, "Bananas are yellow."),
        (_ZH, "香蕉是黄色的。"),
        (_ZH, "资料没有说明香蕉的颜色。"),
        (_DE, "Bananen sind gelb."),
    ],
)
def test_what_shares_no_word_is_off_topic(case: tuple[str, ...], text: str) -> None:
    """A statement, or an abstention, about something that nobody spoke of."""
    assert is_off_topic(text, case)
    assert not says_nothing(text, case[0])
