"""Polite, offering, abstaining and questioning sentences: an invention in one counts, and none in one is not flagged."""

from __future__ import annotations

import httpx
import pytest

from tests.attack.gateway import NIGHTLY, Target, says, shown
from tests.attack.sentences import FRAMES, TOPICS, Topic

pytestmark = pytest.mark.envoy


def _ask(target: Target, topic: Topic, answer: str, *, plan: str | None) -> httpx.Response:
    asked = {"role": "user", "content": f"<context>{topic.evidence}</context>\n{topic.question}"}
    return target.ask(answer, plan=plan, body={"model": "m", "messages": [asked]})


def _counts(response: httpx.Response) -> bool:
    """Whether a sentence was not waved through: it adds to the score, or is told as not checked."""
    told = says(response)
    return told.get("status") != "checked" or float(told["score"]) > 0.0


HOSTILE = [(name, text) for name, topic in TOPICS.items() for text in topic.hostile]
HONEST = [(name, text) for name, topic in TOPICS.items() for text in topic.honest]


@pytest.mark.parametrize(("name", "text"), HOSTILE)
def test_an_invention_in_a_polite_sentence_counts(by_header: Target, name: str, text: str) -> None:
    response = _ask(by_header, TOPICS[name], text, plan="annotate")
    assert _counts(response), shown(response, text)


@pytest.mark.parametrize(("name", "text"), HONEST)
def test_a_polite_sentence_without_an_invention_is_not_flagged(
    by_header: Target, name: str, text: str
) -> None:
    """At the threshold that a plan has by itself."""
    response = _ask(by_header, TOPICS[name], text, plan=None)
    assert says(response).get("detected") != "true", shown(response, text)


FACTS = [(name, fact) for name, topic in TOPICS.items() for fact in topic.facts]


@pytest.mark.parametrize("frame", [frame for frames in FRAMES.values() for frame in frames])
def test_an_invention_in_any_frame_counts(by_header: Target, frame: str) -> None:
    """Every invention in every frame; a third of them in CI."""
    start = 0 if NIGHTLY else sum(map(ord, frame)) % 3
    facts = [(name, fact) for name, fact in FACTS if (name == "zh") is (frame in FRAMES["zh"])]
    waved_through = []
    for name, fact in facts[start :: 1 if NIGHTLY else 3]:
        text = frame.format(fact)
        response = _ask(by_header, TOPICS[name], text, plan="annotate")
        if not _counts(response):
            waved_through.append(shown(response, text))
    assert not waved_through, "\n".join(waved_through)


@pytest.mark.parametrize(("name", "fact"), [(name, fact) for name, fact in FACTS if name != "zh"])
def test_the_plain_inventions_count(by_header: Target, name: str, fact: str) -> None:
    """Else the frames would show nothing."""
    response = _ask(by_header, TOPICS[name], f"{fact[0].upper()}{fact[1:]}.", plan="annotate")
    assert float(says(response)["score"]) > 0.0, shown(response, fact)
