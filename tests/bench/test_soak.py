"""The soak finds what is planted: each kind of fault of an exchange, a leak, and what a fault may cost and may not."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest

from bench.soak.client import Outcome
from bench.soak.exchanges import FIRST, KINDS, STREAMS, Exchange, Pool, marked, mode, plain, stream
from bench.soak.expectations import Cost, Judge, Wrong
from bench.soak.faults import Calendar
from bench.soak.load import Tally
from bench.soak.samples import Life, slope
from tests.integration.support.chaos.backend import first_answer
from tests.integration.support.chaos.stream_backend import written_for
from tests.integration.support.chaos.stream_rounds import Got, parsed

SEED = 3
CHECKED = {"status": "checked", "score": "0.91", "detected": "true", "action": "warn", "latency-ms": "4"}
PASSED = {"status": "unchecked", "reason": "unavailable"}


def outcome(got: Got | None = None, said: dict[str, str] | None = None, **fields: Any) -> Outcome:
    return Outcome(0.0, 1.0, got=got, said=said or {}, **fields)


def answered(
    exchange: Exchange,
    said: dict[str, str],
    *,
    number: int | None = None,
    body: bytes = b"",
    status: int = 200,
) -> Outcome:
    """What the backend says, with a verdict and with what else is planted."""
    mark = marked(exchange.number if number is None else number)
    got = parsed("", b"".join(KINDS[exchange.kind].answer(exchange.case, mark).writes))
    return outcome(replace(got, status=status, body=body or got.body), said)


def wrongs(judge: Judge, exchange: Exchange, seen: Outcome, *costs: Cost) -> list[Wrong]:
    return [each.wrong for each in judge.findings(exchange, seen, frozenset(costs))]


@pytest.fixture
def judge() -> Judge:
    """It knows one plain case."""
    found = Judge(SEED)
    first = plain("wrong", 3, 0, None)
    assert not list(found.learn(first, answered(first, CHECKED)))
    return found


AGAIN = plain("wrong", 3, 77, None)


def test_the_same_outcome_with_another_number_is_right(judge: Judge) -> None:
    assert wrongs(judge, AGAIN, answered(AGAIN, {**CHECKED, "latency-ms": "900"})) == []


@pytest.mark.parametrize(
    ("seen", "wrong"),
    [
        (answered(AGAIN, {**CHECKED, "score": "0.02", "detected": "false"}), Wrong.CHECKED),
        (answered(AGAIN, CHECKED, number=78), Wrong.BYTES),  # the answer of somebody else
        (answered(AGAIN, CHECKED, body=b"{}" * 2), Wrong.BYTES),
        (answered(AGAIN, PASSED, status=503), Wrong.STATUS),
        (answered(AGAIN, PASSED), Wrong.DIFFERS),
        (outcome(hung=True), Wrong.HUNG),
        (outcome(error="ConnectionResetError"), Wrong.STATUS),
        (outcome(error="framing: bytes behind the end"), Wrong.BYTES),
    ],
)  # fmt: skip
def test_what_is_planted_is_found(judge: Judge, seen: Outcome, wrong: Wrong) -> None:
    assert wrongs(judge, AGAIN, seen) == [wrong]


def test_a_dead_sidecar_may_cost_the_verdict_and_nothing_else(judge: Judge) -> None:
    assert wrongs(judge, AGAIN, answered(AGAIN, PASSED), Cost.VERDICT) == []
    assert wrongs(judge, AGAIN, answered(AGAIN, PASSED, number=78), Cost.VERDICT) == [Wrong.BYTES]
    other = {**CHECKED, "detected": "false"}
    assert wrongs(judge, AGAIN, answered(AGAIN, other), *Cost) == [Wrong.CHECKED]
    assert wrongs(judge, AGAIN, outcome(hung=True), *Cost) == [Wrong.HUNG]


def test_what_is_late_and_says_so_is_told_apart(judge: Judge) -> None:
    """It is no reference, and no fault as long as the whole text came."""
    late = {"status": "unchecked", "reason": "timeout"}
    assert wrongs(judge, AGAIN, answered(AGAIN, late)) == [Wrong.LATE]
    assert wrongs(judge, AGAIN, answered(AGAIN, late), Cost.LATE) == []
    assert wrongs(judge, AGAIN, answered(AGAIN, late, number=78)) == [Wrong.BYTES]
    other = plain("wrong", 4, 0, None)
    assert [each.wrong for each in judge.learn(other, answered(other, late))] == [Wrong.LATE]
    assert other.key not in judge.learnt


def test_a_stream_that_lost_a_frame_is_found(judge: Judge) -> None:
    """And one that is whole is not; an observed one, whose bytes have to be the backend's."""
    exchange = next(
        each
        for case in range(STREAMS)
        if _good(each := stream(SEED, case, 9, None)) and each.plan == "observe"
    )
    _, written = written_for(SEED, exchange.body)
    frames = written.frames
    whole = Got(exchange.plan, 200, {}, b"".join(frames), False)
    assert wrongs(judge, exchange, outcome(whole)) == []
    assert Wrong.BYTES in wrongs(
        judge, exchange, outcome(replace(whole, body=b"".join(frames[:2] + frames[3:])))
    )
    assert Wrong.BYTES in wrongs(judge, exchange, outcome(replace(whole, body=whole.body + frames[2])))
    assert wrongs(judge, exchange, outcome(whole, PASSED)) == [Wrong.DIFFERS]


def test_a_bad_answer_of_a_mode_that_is_called_clean_is_found(judge: Judge) -> None:
    exchange = mode(random.Random(1), 10_001, None)
    body = json.dumps({"choices": [{"message": {"content": first_answer(exchange.case)}}]}).encode()
    got = Got(exchange.plan, 200, {}, body, False)
    clean = {"status": "checked", "detected": "false", "action": "pass"}
    assert Wrong.CHECKED in wrongs(judge, exchange, outcome(got, clean))


def test_exchanges_depend_on_seed_and_number_alone() -> None:
    first = [Pool(SEED, 3).exchange(FIRST + number) for number in range(200)]
    assert first == [Pool(SEED, 3).exchange(FIRST + number) for number in range(200)]
    assert first != [Pool(SEED + 1, 3).exchange(FIRST + number) for number in range(200)]
    known = {each.key for each in Pool(SEED, 3).cases()}
    assert all(each.family == "mode" or each.key in known for each in first)


def test_a_fault_touches_what_overlaps_with_it() -> None:
    calendar = Calendar()
    with calendar.during("kill") as window:
        assert calendar.between(window.since, window.since + 1) == ["kill"]
        assert calendar.between(window.since - 2, window.since - 1) == []
    assert calendar.between(window.until + 1, window.until + 2) == []


def test_a_leak_has_a_slope_above_zero_and_a_level_has_none() -> None:
    """Of two lives on levels of their own, behind a warm-up that rises steeply."""

    def life(leak: float, level: float) -> Life:
        return Life(
            "a",
            1,
            [
                (n, level + min(n, 1000) / 20 + leak * n + (n * 7919 % 13) / 13, 5, 5)
                for n in range(0, 9000, 20)
            ],
        )

    leaking, steady = slope([life(0.002, 100), life(0.002, 300)]), slope([life(0.0, 100), life(0.0, 300)])
    assert leaking is not None
    assert steady is not None
    assert 1.9 < leaking.low < leaking.high < 2.1  # MiB per 1,000
    assert steady.low < 0 < steady.high
    assert slope([Life("a", 1, [])]) is None


def test_a_tally_is_read_again_as_it_was_written() -> None:
    tally = Tally()
    tally.add(AGAIN, answered(AGAIN, CHECKED), ["kill"], [])
    tally.add(AGAIN, outcome(left=True), [], [])
    assert Tally.read(json.loads(json.dumps(tally.as_json()))) == tally
    assert (tally.done, tally.left, tally.touched, tally.checked) == (2, 1, 1, 1)
    assert tally.percentiles()["plain, faults"]["p50"] == 1000.0


def _good(exchange: Exchange) -> bool:
    return written_for(SEED, exchange.body)[1].behaviour in (
        "good",
        "burst",
        "drip",
        "odd",
        "length",
        "close",
    )
