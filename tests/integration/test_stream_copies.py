"""What repeats withheld text does not reach the client, through a real Envoy, whatever server writes the frames."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.fakes.copied_frames import BOOKKEEPING, COPIES, choice_of, tells
from tests.integration.support.models import BAD, GOOD
from tests.integration.support.streams.gateway import NOTICE, RIGHT, WRONG, Gateway
from tests.integration.support.streams.stage import read_back
from tests.integration.support.streams.streams import DONE, answer, chunk, sse
from truthlens.core.records.enums import Endpoint

pytestmark = pytest.mark.envoy

WITHHOLDING = ("withhold", "stop")
NAMES = [name for name in COPIES if "log prob" not in name]
CUTS = ((1 << 20,), (7, 64, 251))
REASONING = f"<think>\n{WRONG} Is it so? {WRONG}\n</think>\n\n"


def frames_of(names: list[str], endpoint: Endpoint) -> list[bytes]:
    """A stream with a whole sentence a frame, each said again in the members of these names."""
    frames = []
    for text in (f"{RIGHT} ", f"{WRONG} ", RIGHT):
        top: dict[str, Any] = {}
        beside: dict[str, Any] = {}
        within: dict[str, Any] = {}
        for name in names if text.startswith(WRONG) else ():
            parts = COPIES[name](WRONG)
            for found, part in zip((top, beside, within), parts, strict=True):
                found.update(part)
        frames.append(chunk([choice_of(text, beside, within, endpoint)], endpoint, **top))
    top, beside, _within = COPIES["message beside"](f"{RIGHT} {WRONG} {RIGHT}")
    frames.append(chunk([choice_of("", beside, {}, endpoint, finish_reason="stop")], endpoint))
    frames.append(chunk([], endpoint, usage={"total_tokens": 9, "said": WRONG}))
    return [*frames, DONE]


@pytest.mark.parametrize("cuts", CUTS)
@pytest.mark.parametrize("endpoint", list(Endpoint))
@pytest.mark.parametrize("plan", WITHHOLDING)
@pytest.mark.parametrize("names", [NAMES, *[[name] for name in NAMES]], ids=" + ".join)
def test_withheld_text_leaves_nowhere(
    gateway: Gateway, names: list[str], plan: str, endpoint: Endpoint, cuts: tuple[int, ...]
) -> None:
    """In its own frame, in the last one, in the count of tokens; the verdict tells that members are missing."""
    client = gateway.read(plan, sse(frames_of(names, endpoint), cuts=cuts), endpoint=endpoint, details=True)
    delivered, _, told = client.body.partition(b'"truthlens"')
    assert not tells(delivered, WRONG)
    read = read_back(client.body)
    assert read.texts[0].startswith(RIGHT)
    if endpoint is Endpoint.CHAT and not {"refusal", "audio"}.isdisjoint(names):
        # Text that stands where none can be put in is stopped, without a notice.
        assert read.finish == {0: "content_filter"}
        return
    assert NOTICE in read.texts[0]
    # Behind a stop nothing is left to be taken out of.
    assert plan == "stop" or "fields-dropped" in read.verdict["notes"]
    assert told


@pytest.mark.parametrize("plan", ["withhold", "stop", "block", "mark", "observe"])
def test_bookkeeping_reaches_the_client_byte_for_byte(gateway: Gateway, plan: str) -> None:
    frames = []
    for top, beside, within in BOOKKEEPING.values():
        if "tool_calls" not in within:
            frames.append(chunk([choice_of("", beside, within, Endpoint.CHAT)], **top))
    frames += answer(GOOD)
    assert gateway.read(plan, sse(frames)).body == b"".join(frames)


@pytest.mark.parametrize("plan", ["mark", "withhold", "stop"])
def test_reasoning_between_marks_reaches_the_client_whole(gateway: Gateway, plan: str) -> None:
    """What stands behind it is gated; what stands in it is not torn, and costs no flag."""
    read = gateway.told(plan, sse(answer(f"{REASONING}{GOOD}")), details=True)
    assert read.texts[0] == f"{REASONING}{GOOD}"
    assert not read.verdict["detected"]
    read = gateway.told(plan, sse(answer(f"{REASONING}{BAD}")), details=True)
    assert read.texts[0].startswith(REASONING)
    assert (WRONG in read.texts[0].removeprefix(REASONING)) is (plan == "mark")


def test_the_warning_stands_behind_the_answer_and_not_in_its_reasoning(gateway: Gateway) -> None:
    read = gateway.told("observe", sse(answer(f"{REASONING}{BAD}")), details=True)
    assert read.texts[0].startswith(f"{REASONING}{BAD}\n\n")
    assert read.verdict["detected"]


@pytest.mark.parametrize("plan", ["mark", "withhold", "stop"])
@pytest.mark.parametrize("form", ["{}", "```json\n{}\n```"])
def test_json_reaches_the_client_whole_or_not_at_all(gateway: Gateway, plan: str, form: str) -> None:
    body = json.dumps({"a": RIGHT, "b": f"{WRONG} {WRONG}"}, indent=1)
    text = form.replace("{}", body)
    got = gateway.told(plan, sse(answer(text))).texts.get(0, "")
    assert got in (text, f"{text}\n\nCheck this.", "")


@pytest.mark.parametrize("plan", ["mark", "withhold"])
@pytest.mark.parametrize("lost", [1, 2])
def test_a_stream_that_ends_without_a_blank_line_has_its_verdict(
    gateway: Gateway, plan: str, lost: int
) -> None:
    frames = answer(f"{RIGHT} {WRONG}")[:-1]
    frames[-1] = frames[-1][:-lost]
    read = gateway.told(plan, sse(frames), details=True)
    assert read.verdict["status"] == "checked"
    assert read.finish == {0: "stop"}


def test_a_burst_of_comments_does_not_get_an_answer_past_its_check(gateway: Gateway) -> None:
    """Half a million of them in one write; a detector that never comes to its turn would let everything pass."""
    comments = b": k\n\n" * 450_000
    frames = answer(f"{RIGHT} {WRONG} {RIGHT}")
    frames[2:2] = [comments]
    read = gateway.told("withhold", sse(frames, cuts=(1 << 24,)), details=True)
    assert read.texts == {0: f"{RIGHT} {NOTICE} {RIGHT}"}
    assert read.verdict["action"] == "replace"


@pytest.mark.parametrize("size", [5_000_000, 16_000_000])
def test_a_frame_beyond_all_bounds_is_too_large_and_others_are_checked(gateway: Gateway, size: int) -> None:
    """Where everything must be checked it is cut; elsewhere it passes, and says why it was not."""
    huge = chunk([choice_of("The bank is open. " * (size // 18), {}, {}, Endpoint.CHAT)])
    frames = [*answer(GOOD)[:-1], huge, DONE]
    read = gateway.told("withhold", sse(frames, cuts=(1 << 24,)), details=True)
    assert (read.verdict["status"], read.verdict["reason"]) == ("partial", "too-large")
    cut = gateway.read("block", sse(frames, cuts=(1 << 24,)), details=True)
    assert len(cut.body) < 100_000
    assert read_back(cut.body).verdict["reason"] == "too-large"
    assert gateway.told("withhold", sse(answer(GOOD)), details=True).verdict["status"] == "checked"


def test_a_frame_with_more_sentences_than_can_be_scored_in_time_has_its_verdict_all_the_same(
    gateway: Gateway,
) -> None:
    """Ours, before Envoy loses its patience: the plan and not the failure mode decides."""
    many = chunk([choice_of("The bank is open. " * 55_000, {}, {}, Endpoint.CHAT)])
    frames = [*answer(GOOD)[:-1], many, DONE]
    read = gateway.told("withhold", sse(frames, cuts=(1 << 24,)), details=True)
    assert (read.verdict["status"], read.verdict["reason"]) == ("unchecked", "timeout")
    cut = gateway.read("block", sse(frames, cuts=(1 << 24,)), details=True)
    assert read_back(cut.body).verdict["action"] == "block"
    assert len(cut.body) < 2_000_000
