"""Tests of the detector ``reader``, with a reader that answers by the words of a claim."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.fakes.tiny_encoder import word_tokenizer
from truthlens.core.cancellation import StopCheck, never
from truthlens.core.errors import DetectorError, ModelError, StoppedError
from truthlens.core.records.claims import ClaimOutcome
from truthlens.core.records.enums import AnswerKind, Endpoint, Provenance, Reason, Status
from truthlens.core.records.exchange import Answer, Exchange, Passage
from truthlens.core.records.plan import DetectorSpec, Plan
from truthlens.detection.building import build_engine
from truthlens.detection.detectors.reader import BUNDLED_READER, Options
from truthlens.detection.detectors.reader.detector import ReaderDetector
from truthlens.detection.detectors.reader.inputs import ReaderInput, format_of
from truthlens.detection.detectors.reader.model import Reader, ReaderManifest, find_reader

PASSAGES = ("  ", "The ferry is blue. Dogs travel free.", "The bus is red.")
WORDS = [
    "Ferry",
    ".",
    "The",
    "ferry",
    "is",
    "blue",
    "red",
    ".",
    "Dogs",
    "travel",
    "free",
    "bus",
    "Notice",
    "Hello",
    "!",
    "It",
    "was",
    "Cats",
]
TOKENIZER = word_tokenizer(dict.fromkeys(WORDS, 0.0))
MANIFEST = ReaderManifest(
    name="by-words", base="none", licence="Apache-2.0", languages=("en",), input=format_of(TOKENIZER), files={"model.onnx": "ab" * 32}
)  # fmt: skip


class ByWords(Reader):
    """Finds claims about cats contradicted, those with "red" not stated, and all others supported; counts what it reads."""

    def __init__(self) -> None:
        self.manifest, self.tokenizer = MANIFEST, TOKENIZER
        self.seen: list[str] = []

    def read(self, inputs: Sequence[ReaderInput], *, stop: StopCheck = never) -> NDArray[np.float32]:
        rows = []
        for each in inputs:
            if stop():
                raise StoppedError
            text = self.tokenizer.decode(each.ids[each.claim].tolist())
            self.seen.append(text)
            rows.append(
                [0.1, 0.8, 0.1] if "Cats" in text else [0.2, 0.1, 0.7] if "red" in text else [0.9, 0.05, 0.05]
            )
        return np.array(rows, dtype=np.float32)


def exchange(*texts: str, title: str = "") -> Exchange:
    passages = tuple(Passage(text, Provenance.DOCUMENTS, title=title) for text in texts)
    return Exchange(Endpoint.CHAT, "m", "", passages)


def answer(text: str) -> Answer:
    return Answer(0, AnswerKind.TEXT, text)


def test_each_claim_has_its_outcome_and_the_sentence_that_decides() -> None:
    """Passages are counted as the exchange does, blank ones too."""
    text = "The ferry is blue. The ferry is red. Cats travel free."
    detector = ReaderDetector(ByWords())
    (result,) = detector.detect_all(exchange(*PASSAGES), [answer(text)], aggregation=None, stop=never)
    found = [(text[each.start : each.end], each.outcome, round(each.risk, 2)) for each in result.findings]
    assert found == [
        ("The ferry is red.", ClaimOutcome.NOT_STATED, 0.8),
        ("Cats travel free.", ClaimOutcome.CONTRADICTED, 0.9),
    ]
    assert (result.score, result.revision, detector.model) == (pytest.approx(0.9), "ab" * 6, "by-words")
    first = result.findings[0]
    assert first.passage == 1
    assert first.sentence is not None
    assert PASSAGES[1][slice(*first.sentence)] == "The ferry is blue."


def test_a_title_is_read_and_is_no_sentence_of_the_text() -> None:
    (result,) = ReaderDetector(ByWords()).detect_all(
        exchange("Dogs travel free.", title="Ferry"),
        [answer("Dogs travel free.")],
        aggregation=None,
        stop=never,
    )
    (finding,) = result.findings
    assert finding.sentence == (0, len("Dogs travel free."))


def test_a_growing_answer_costs_its_new_claims_alone() -> None:
    """And of those none that the evidence has word for word."""
    reader = ByWords()
    follower = ReaderDetector(reader).follow(exchange(*PASSAGES))
    text = "The ferry is blue. Dogs travel free. Cats travel free."
    for end in (18, 36, len(text)):
        follower.detect_ranges([answer(text[:end])], [[(0, end)]], aggregation=None, stop=never)
    (whole,) = follower.detect_all([answer(text)], [()], aggregation=None, stop=never)
    assert len(reader.seen) == 2
    assert [(each.start, each.end) for each in whole.findings] == [(19, 36), (37, 54)]


def test_further_claims_than_it_may_read_are_left_to_others() -> None:
    """A long answer costs no more than the limit, and the result says how many were left out; a quotation is none of them."""
    reader = ByWords()
    text = "Cats travel free. Dogs travel free. The bus is red. Cats pay."
    (result,) = ReaderDetector(reader, max_claims=1).detect_all(
        exchange(*PASSAGES), [answer(text)], aggregation=None, stop=never
    )
    assert len(reader.seen) == 1
    assert [text[each.start : each.end] for each in result.findings] == ["Cats travel free."]
    assert (result.score, result.reason) == (pytest.approx(0.9), Reason.TOO_LARGE)
    assert result.details["unread_claims"] == 2.0


def test_what_does_not_fit_into_its_time_is_said() -> None:
    """A slow machine loses the reader's opinion, and not the findings of all detectors; the verdict is ``partial``."""
    reader = ByWords()
    (result,) = ReaderDetector(reader, time_s=0.0).detect_all(
        exchange(*PASSAGES), [answer("Cats travel free. Dogs travel free.")], aggregation=None, stop=never
    )
    assert (reader.seen, result.findings, result.score, result.reason) == ([], (), None, Reason.TOO_LARGE)
    assert result.details["unread_claims"] == 2.0


@pytest.mark.parametrize(
    ("claim", "apart"),
    [
        ("Cats pay 5 euros.", None),
        ("Cats pay five euros.", 0.5),
        ("Cats pay 6 euros.", 0.5),
        ("Cats travel free.", None),
    ],
)
def test_a_value_that_is_written_in_another_way_is_not_the_readers(claim: str, apart: float | None) -> None:
    """Its suspicion of such a claim counts only where nobody verified the value."""
    passage = "Dogs pay 5 euros." if "pay" in claim else "Dogs travel free."
    (result,) = ReaderDetector(ByWords()).detect_all(
        exchange(passage), [answer(claim)], aggregation=None, stop=never
    )
    (finding,) = result.findings
    assert finding.apart == apart


@pytest.mark.parametrize(
    ("text", "passages"),
    [("Hello!", PASSAGES), ("Билет стоит четыре евро.", PASSAGES), ("The ferry is blue.", ("",))],
)
def test_it_abstains_where_nothing_can_be_read(text: str, passages: tuple[str, ...]) -> None:
    (result,) = ReaderDetector(ByWords()).detect_all(
        exchange(*passages), [answer(text)], aggregation=None, stop=never
    )
    assert (result.abstained, result.score) == (True, None)


def test_a_growing_answer_is_read_ahead_of_its_end() -> None:
    """All but its last claim, without the time of the exchange; the verdict is the one of the whole answer."""
    reader, given = ByWords(), exchange(*PASSAGES)
    text = "The ferry was blue. The bus was red. Dogs was free. " * 4 + "Cats travel free."
    follower = ReaderDetector(reader, time_s=0.2).follow(given)
    for end in range(0, len(text), 40):
        if follower.due([answer(text[:end])]):
            follower.ahead([answer(text[:end])], stop=never)
    ahead = list(reader.seen)
    assert len(ahead) == len(set(ahead)) == 3
    assert not any("Cats" in each for each in ahead)
    found = follower.whole(answer(text), stop=never)
    assert len(reader.seen) == 4
    assert found.findings == ReaderDetector(ByWords()).follow(given).whole(answer(text), stop=never).findings
    assert not ReaderDetector(reader).follow(given).due([answer("The ferry is blue.")])


def test_it_stops_when_nobody_waits() -> None:
    with pytest.raises(StoppedError):
        ReaderDetector(ByWords()).detect_all(
            exchange(*PASSAGES), [answer("The ferry is blue.")], aggregation=None, stop=lambda: True
        )


class OneReader:
    """Gives a reader by any name, and keeps the names."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encoder(self, _plan: Plan) -> object:
        raise AssertionError

    def reader(self, name: str) -> Reader:
        self.asked.append(name)
        return ByWords()


def test_a_plan_of_the_reader_alone_is_judged_by_claims() -> None:
    plan = Plan("p", detectors=(DetectorSpec("reader", options=Options(model="ours")),))

    async def judged() -> None:
        engine = build_engine([plan], OneReader())
        (verdict,) = await engine.detect(
            plan, exchange(*PASSAGES), [answer("The ferry is blue. Cats travel free.")]
        )
        assert (verdict.status, verdict.flagged) == (Status.CHECKED, True)
        assert [each.outcome for each in verdict.claims] == [
            ClaimOutcome.PROVED,
            ClaimOutcome.CONTRADICTED,
        ]
        (verdict,) = await engine.detect(plan, exchange(*PASSAGES), [answer("Hello!")])
        assert (verdict.status, verdict.reason) == (Status.UNCHECKED, Reason.NO_CONTEXT)
        await engine.aclose()

    asyncio.run(judged())


def test_a_plan_that_names_no_reader_has_the_bundled_one() -> None:
    readers = OneReader()
    build_engine([Plan("p", detectors=(DetectorSpec("reader"),))], readers)
    assert readers.asked == [BUNDLED_READER]


def test_a_folder_without_a_reader_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="there is no reader 'x'"):
        find_reader("x", tmp_path)


def test_a_reader_that_fails_on_a_test_text_is_refused_before_it_serves() -> None:
    """It reads a few claims when it is loaded, so that no exchange is the first."""
    reader = ByWords()
    reader.warm_up()
    assert reader.seen

    class Broken(ByWords):
        def read(self, inputs: Sequence[ReaderInput], *, stop: StopCheck = never) -> NDArray[np.float32]:
            raise DetectorError("the reader failed: Fail")

    with pytest.raises(ModelError, match=r"by-words fails on a test text: the reader failed"):
        Broken().warm_up()
