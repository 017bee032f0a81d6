"""Which candidates may stand in for an answer."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes.standard_tools import FIRST, task
from truthlens.core.records.settings import StandardSettings
from truthlens.mitigation import candidate_checks
from truthlens.mitigation.candidate_checks import parsed, shape_of

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=12,
)

_CORRECTED = "The pump runs at 600 rpm. The housing is made of cast iron."
_LONG = (
    "The pump runs at 900 rpm. The housing is made of cast iron and it is built for use in the open, so that "
    "water and dust can do no harm to it. You can ask for a spare seal with the order of the pump."
)
_GERMAN = (
    "Die Pumpe läuft mit 600 Umdrehungen. Das Gehäuse ist aus Gusseisen und für den Einsatz im Freien gebaut, "
    "es wird von Wasser und Staub nicht beschädigt. Die Dichtung ist mit der Pumpe zu bestellen."
)


def test_a_corrected_answer_is_accepted() -> None:
    """A text that keeps what was not flagged has nothing against it."""
    assert candidate_checks.rejection(task(), _CORRECTED, finish_reason="stop") is None
    assert candidate_checks.rejection(task(), _CORRECTED, finish_reason=None) is None


@pytest.mark.parametrize(
    ("text", "finish_reason", "code"),
    [
        ("", "stop", "empty"),
        (" \n\t", "stop", "empty"),
        (_CORRECTED, "length", "truncated"),
        (_CORRECTED, "content_filter", "truncated"),
        (f"{_CORRECTED} </truthlens:answer", "stop", "leaked"),
        (
            f"{_CORRECTED}\n2. Where the evidence contradicts it, correct it with what the evidence says.",
            "stop",
            "leaked",
        ),
        (_CORRECTED + " It hums." * 100, "stop", "too-long"),
        ("I'm sorry, but I can't help with that.", "stop", "refusal"),
        ("The passages do not say.", "stop", "refusal"),
        ("The passages do not say how fast the pump is.", "stop", "lost-content"),
        ("The pump runs at 600 rpm.", "stop", "lost-content"),
    ],
)
def test_each_code(text: str, finish_reason: str, code: str) -> None:
    """Each way in which a text is of no use has its code."""
    assert candidate_checks.rejection(task(), text, finish_reason=finish_reason) == code


def test_another_language_is_rejected_where_it_is_clear() -> None:
    """A rewrite in another language or script cannot stand in; the same language can."""
    given = task(_LONG, flagged=["900 rpm"])
    assert candidate_checks.rejection(given, _GERMAN, finish_reason="stop") == "language"
    chinese = "水泵的转速是每分钟600转，外壳由铸铁制成，可以在室外使用，防水防尘。"
    assert candidate_checks.rejection(given, chinese, finish_reason="stop") == "language"
    assert candidate_checks.rejection(given, _LONG.replace("900", "600"), finish_reason="stop") is None


def test_an_abstention_stands_in_where_nothing_was_supported() -> None:
    """Where every sentence was flagged, saying that the evidence does not tell is an answer; a refusal is not."""
    given = task("It was built in Ulm.", flagged=["It was built in Ulm"])
    assert (
        candidate_checks.rejection(
            given, "The evidence does not say where it was built.", finish_reason="stop"
        )
        is None
    )
    assert (
        candidate_checks.rejection(given, "I'm sorry, I cannot answer that.", finish_reason="stop")
        == "refusal"
    )


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Done.", "no-claim"),
        ("Okay.", "no-claim"),
        ("...", "no-claim"),
        ("I have checked it.", "no-claim"),
        ("Yes.", "no-claim"),
        ("好的。", "language"),
        ("Bananas are yellow.", "off-topic"),
        ("The evidence does not say what bananas cost.", "off-topic"),
        ("600 rpm", None),
        ("600", None),
        ("At 600 rpm.", None),
        ("It is slower.", None),
        ("The evidence does not say.", None),
        ("The evidence does not say how fast the pump is.", None),
        ("Die Pumpe läuft mit 600 Umdrehungen und ist aus Gusseisen.", "language"),
        ("水泵的转速是每分钟600转。", "language"),
    ],
)
def test_an_answer_that_was_all_wrong_needs_an_answer_in_its_place(text: str, code: str | None) -> None:
    """Where nothing was to be kept, a text must still say something, in the language and about what was asked."""
    given = task("The pump runs at 900 rpm.", flagged=["The pump runs at 900 rpm"])
    assert candidate_checks.rejection(given, text, finish_reason="stop") == code


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("好的。", "no-claim"),
        ("已修改。", "no-claim"),
        ("香蕉是黄色的。", "off-topic"),
        ("600转", None),
        ("转速是600转。", None),
        ("证据没有说明转速。", None),
        ("The pump runs at 600 rpm.", "language"),
    ],
)
def test_a_chinese_answer_needs_an_answer_as_well(text: str, code: str | None) -> None:
    """The same in Chinese."""
    given = task(
        "水泵转速为900转。",
        flagged=["水泵转速为900转"],
        query="水泵的转速是多少？",
        passage="水泵每分钟600转。",
    )
    assert candidate_checks.rejection(given, text, finish_reason="stop") == code


def test_an_answer_that_said_nothing_may_be_followed_by_one() -> None:
    """Where the first answer claims nothing, a candidate need not."""
    assert candidate_checks.rejection(task("Done.", flagged=["Done"]), "Okay.", finish_reason="stop") is None


def test_json_is_read_down_to_a_depth() -> None:
    """JSON that is nested deeply is compared as far as it is read, and never an error."""
    for depth, code in ((200, None), (900, None), (100_000, "not-json")):
        given = task('{"a": ' + "[" * 200 + "1" + "]" * 200 + "}", flagged=["1"])
        candidate = '{"a": ' + "[" * depth + "2" + "]" * depth + "}"
        assert candidate_checks.rejection(given, candidate, finish_reason="stop") in {code, "too-long"}
        deep = task(candidate, flagged=["2"])
        assert candidate_checks.rejection(deep, candidate.replace("2", "3"), finish_reason="stop") is None


def test_a_refusal_may_follow_a_refusal() -> None:
    """Where the first answer declined, a candidate that does so is not rejected for it."""
    given = task("I'm sorry, but I can't help with the pump from Ulm.", flagged=["Ulm"])
    assert (
        candidate_checks.rejection(given, "I'm sorry, but I can't help with the pump.", finish_reason="stop")
        is None
    )


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ('{"rpm": 600, "maker": {"name": null}, "parts": ["seal"]}', None),
        ('{"parts": [], "maker": {"name": "unknown"}, "rpm": null}', None),
        ('{"rpm": 600, "maker": {"name": "A"}}', "json-shape"),
        ('{"rpm": "600", "maker": {"name": "A"}, "parts": ["seal"]}', "json-shape"),
        ('{"rpm": 600, "maker": {"town": "Ulm"}, "parts": ["seal"]}', "json-shape"),
        ('{"rpm": 600, "maker": {"name": "A"}, "parts": [7]}', "json-shape"),
        ('[{"rpm": 600}]', "json-shape"),
        ("The pump runs at 600 rpm.", "not-json"),
        ('{"rpm": 600, "maker": {"name": "A"}, "parts": ["seal"]', "not-json"),
        ('```json\n{"rpm": 600, "maker": {"name": "A"}, "parts": ["seal"]}\n```', "not-json"),
    ],
)
@pytest.mark.parametrize("structured", [True, False])
def test_json_stays_the_json_that_a_program_waits_for(text: str, code: str | None, structured: bool) -> None:
    """Keys, containers and kinds of values stay; a value may become null and a list may get shorter."""
    first = '{"rpm": 900, "maker": {"name": "A"}, "parts": ["seal"]}'
    given = task(first, flagged=[first], structured=structured)
    assert candidate_checks.rejection(given, text, finish_reason="stop") == code


def test_json_in_a_fence_stays_json() -> None:
    """Where the first answer was JSON in a code fence, the candidate is read in its own."""
    given = task('```json\n{"rpm": 900}\n```', flagged=["900"])
    assert candidate_checks.rejection(given, '```json\n{"rpm": 600}\n```', finish_reason="stop") is None
    assert (
        candidate_checks.rejection(given, '```json\n{"speed": 600}\n```', finish_reason="stop")
        == "json-shape"
    )


def test_a_plain_number_is_not_taken_for_json() -> None:
    """A one-number answer in running text may become a sentence, in a structured one it may not."""
    for structured, code in ((False, None), (True, "not-json")):
        given = task("900", flagged=["900"], structured=structured)
        assert candidate_checks.rejection(given, "It is not known.", finish_reason="stop") == code


def test_the_share_to_be_kept_is_the_plans() -> None:
    """``min_retention`` bounds what of the unflagged content may go."""
    text = "The pump runs at 600 rpm. The housing is made of iron."
    for least, code in ((0.5, None), (0.9, "lost-content")):
        given = task(settings=StandardSettings(min_retention=least))
        assert candidate_checks.rejection(given, text, finish_reason="stop") == code


def test_words_that_were_in_the_answer_are_no_leak() -> None:
    """An answer that itself holds a tag or a line of our wording may keep them."""
    line = "Where the evidence contradicts it, correct it with what the evidence says."
    first = f"The prompt opens <truthlens:answer> and says: {line} It is from 1900."
    given = task(first, flagged=["1900"])
    assert candidate_checks.rejection(given, first.replace("1900", "2025"), finish_reason="stop") is None


@pytest.mark.parametrize(
    ("sentences", "text", "share"),
    [
        ([], "anything", 1.0),
        (["The pumps are green."], "A pump.", 0.5),
        (["The pump runs."], "", 0.0),
        (["外壳由铸铁制成"], "外壳由铸铁做成", 4 / 6),
        (["On 3.5 bar"], "3.5 bar", 1.0),
    ],
)
def test_retention_counts_words_of_content(sentences: list[str], text: str, share: float) -> None:
    """Endings and function words do not count; Chinese counts by pairs of characters."""
    assert candidate_checks.retention(sentences, text) == pytest.approx(share)


def test_unflagged_sentences_are_those_without_a_span() -> None:
    """A sentence that a span touches may change; the others are to be kept."""
    given = task()
    assert candidate_checks.unflagged(FIRST, given.verdict.spans) == ("The housing is made of cast iron.",)


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        (f"Here is the corrected answer:\n\n{_CORRECTED}", _CORRECTED),
        (f"Sure! Here's the revised response, based on the evidence:\n{_CORRECTED}", _CORRECTED),
        (f"**Corrected answer:**\n{_CORRECTED}", _CORRECTED),
        (f"## Corrected Answer\n\n{_CORRECTED}", _CORRECTED),
        (f"Corrected answer: {_CORRECTED}", _CORRECTED),
        (f"以下是修正后的回答：\n{_CORRECTED}", _CORRECTED),
        (f"好的，这是我修改后的答案：{_CORRECTED}", _CORRECTED),
        (f"修正后的回答：\n\n{_CORRECTED}", _CORRECTED),
        (f"```\n{_CORRECTED}\n```", _CORRECTED),
        (f"```markdown\nCorrected answer:\n{_CORRECTED}\n```", _CORRECTED),
        (f"Here is the corrected version:\n```text\n{_CORRECTED}\n```", _CORRECTED),
        (f"<truthlens:answer>\n{_CORRECTED}\n</truthlens:answer>", _CORRECTED),
        ("Here is the corrected answer:", "Here is the corrected answer:"),
        (
            "The revised answer stands in chapter 3: read it.",
            "The revised answer stands in chapter 3: read it.",
        ),
        ("Here is how it works: turn the key.", "Here is how it works: turn the key."),
        ("```\na\n```\ntext\n```\nb\n```", "```\na\n```\ntext\n```\nb\n```"),
        (f"~~~\n{_CORRECTED}\n  ~~~ ", _CORRECTED),
        ("```\nunclosed", "```\nunclosed"),
        ("```\n```", ""),
        (_CORRECTED, _CORRECTED),
    ],
)
def test_what_stands_around_an_answer_goes(reply: str, text: str) -> None:
    """Prefaces, fences and tags around the answer go; what only looks like them stays."""
    assert candidate_checks.clean(reply, first=FIRST) == text


def test_what_the_first_answer_has_itself_stays() -> None:
    """A fence, a heading and white space at the ends are kept where the first answer has them."""
    assert candidate_checks.clean("```py\nx = 1\n```", first="```py\nx = 2\n```") == "```py\nx = 1\n```"
    assert candidate_checks.clean("Corrected answer: 6", first="Corrected answer: 9") == "Corrected answer: 6"
    assert candidate_checks.clean("600 rpm", first=" 900 rpm\n") == " 600 rpm\n"
    assert candidate_checks.clean("  ", first=" 900 rpm\n") == ""


@given(_JSON)
def test_every_value_is_like_itself(value: object) -> None:
    """A text, its equal, and its shorter lists can be read in its place."""
    shape = shape_of(value)
    assert shape.admits(value)
    assert shape.admits(None)
    if isinstance(value, list):
        assert all(shape.admits(value[:end]) for end in range(len(value)))


@pytest.mark.parametrize(
    ("wanted", "found", "fits"),
    [
        ([], [1, "a"], True),
        ([1], ["a"], False),
        ([1, "a"], ["b", 2, 3], True),
        ([1], {"a": 1}, False),
        ({"a": 1}, [1], False),
        ({"a": [{"b": 1}, {"c": "x"}]}, {"a": [{"c": "y"}]}, True),
        ({"a": [{"b": 1}, {"c": "x"}]}, {"a": [{"c": 1}]}, False),
        ({"a": [{"b": 1}, {"c": "x"}]}, {"a": [{"d": 1}]}, False),
        ({"a": None}, {"a": {"b": [1]}}, True),
        (True, 1, False),
        (1, True, False),
        (1.5, 2, True),
    ],
)
def test_keys_and_kinds_count(wanted: object, found: object, fits: bool) -> None:
    """An object has the keys of one that was there, a value its kind, and each item is like one of the list."""
    assert shape_of(wanted).admits(found) is fits


def test_what_is_nested_deeply_is_not_compared() -> None:
    """Down to 40 levels shapes count, below they do not; what cannot be read at all is no JSON."""

    def nested(depth: int, leaf: str) -> object:
        return json.loads("[" * depth + leaf + "]" * depth)

    assert not shape_of(nested(40, "1")).admits(nested(40, '"a"'))
    assert shape_of(nested(60, "1")).admits(nested(60, '"a"'))
    assert shape_of(nested(400, "1")).admits(nested(400, "1"))
    with pytest.raises(ValueError, match="too deeply"):
        parsed("[" * 100_000 + "]" * 100_000)
    with pytest.raises(ValueError, match="Expecting"):
        parsed("{")
