"""Messages that are read as one batch leave as the same bytes, each with a reply of its own, as one by one."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fakes.made_streams import cut
from tests.streaming.test_driver import DONE, OBSERVE, Line, chunk, gate, line
from truthlens.core.records.enums import OnFlagged, OnUnchecked, Reason
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import Verdict

PLANS = [
    OBSERVE,
    gate(OnFlagged.MARK),
    gate(OnFlagged.WITHHOLD),
    gate(OnFlagged.STOP, on_unchecked=OnUnchecked.BLOCK),
]
WORDS = st.sampled_from(
    ["The ferry", " is", " free", ". ", "It costs nine", " owls", "! ", "😀", "\n\n", " "]
)
MESSAGES = st.integers(1, 4)


async def played(plan: Plan, messages: list[bytes], sizes: list[int]) -> Line:
    """What becomes of ``messages``, fed in batches of these sizes."""
    async with line(plan, details=True) as made:
        place = number = 0
        while place < len(messages):
            batch = messages[place : place + sizes[number % len(sizes)]]
            place, number = place + len(batch), number + 1
            made.sent += batch
            await made.flow.feed(*batch, end=place == len(messages))
        await made.wait(lambda: len(made.acks) == len(messages))
    return made


def told(verdict: Verdict) -> tuple[object, ...]:
    spans = [(span.start, span.end) for span in verdict.spans]
    return verdict.status, verdict.reason, verdict.score, verdict.flagged, spans


@settings(max_examples=40)
@given(
    words=st.lists(WORDS, min_size=1, max_size=12),
    seed=st.integers(0, 1 << 32),
    sizes=st.lists(MESSAGES, min_size=1, max_size=6),
    plan=st.sampled_from(PLANS),
)
async def test_batches_give_the_bytes_and_the_verdict_of_single_messages(
    words: list[str], seed: int, sizes: list[int], plan: Plan
) -> None:
    """However the stream is cut into messages, and these into batches.

    Observed alone, half of the finish may have left before the rest comes: then the warning stands behind it.
    """
    wire = b"".join([*map(chunk, words), chunk(finish="stop"), DONE])
    messages = [*cut(wire, Random(seed)), b""]
    single, batched = await played(plan, messages, [1]), await played(plan, messages, sizes)
    if plan is OBSERVE:
        assert sorted(batched.received.split(b"\n\n")) == sorted(single.received.split(b"\n\n"))
    else:
        assert batched.received == single.received
    assert told(batched.outcome.verdict) == told(single.outcome.verdict)
    assert [ack.end for ack in batched.acks] == [False] * (len(messages) - 1) + [True]


@pytest.mark.parametrize("plan", PLANS, ids=["observe", "mark", "withhold", "stop"])
async def test_a_batch_that_is_the_whole_stream_has_a_reply_for_each_message(plan: Plan) -> None:
    messages = [chunk("The ferry is "), chunk("blue."), chunk(finish="stop"), DONE, b""]
    made = await played(plan, messages, [len(messages)])
    assert len(made.acks) == len(messages)
    assert made.text == "The ferry is blue."
    assert made.outcome.verdict.reason is not Reason.OVERLOADED
