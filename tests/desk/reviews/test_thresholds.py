"""The page of proposed thresholds: for each decision a proposal, or why there is none."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from tests.fakes.review_console import console_of, entry, queue_in
from truthlens.review.records import Change, ReviewStatus
from truthlens.review.store.queue import ReviewQueue


@pytest.fixture
def queue(tmp_path: Path) -> ReviewQueue:
    """Settled answers of the default decision: hallucinations from 0.7 on, correct ones below, every one reviewed."""
    made, now = queue_in(tmp_path), time.time()
    new = [
        replace(
            entry(number),
            created=now - number,
            decision="default",
            score=number / 100,
            even_score=number / 100,
            threshold=0.5,
            flagged=number >= 50,
            detectors={"encoder": 0.9} if number >= 50 else {},
            sample=1.0,
        )
        for number in range(100)
    ]
    made.add(new)
    made.change_many(
        [
            Change(each.id, 1, ReviewStatus.REJECTED if each.score >= 0.7 else ReviewStatus.APPROVED)
            for each in new
        ],
        actor="ann",
    )
    return made


@pytest.fixture
async def client(queue: ReviewQueue) -> AsyncIterator[httpx.AsyncClient]:
    transport = httpx.ASGITransport(console_of(queue))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as made:
        yield made


async def test_a_proposal_says_what_it_changes(client: httpx.AsyncClient) -> None:
    """Between the last correct answer and the first hallucination, and the twenty in between are flagged no more."""
    reply = await client.get("/reviews/thresholds")
    assert reply.status_code == 200
    assert "<strong>0.7</strong>" in reply.text
    assert "from 30 rejected and 70 approved entries" in reply.text
    assert "of 100 entries 50 were flagged; 0 more would be, and 20 would not be any more" in " ".join(
        reply.text.split()
    )
    assert "--best-f1 --config POLICY --decision default --write" in reply.text


async def test_a_goal_and_its_number_are_taken_from_the_form(client: httpx.AsyncClient) -> None:
    """With a default where only the goal is given."""
    reply = await client.get("/reviews/thresholds?goal=max_false_alarms&value=0.2")
    assert "--max-false-alarms 0.2" in reply.text
    reply = await client.get("/reviews/thresholds?goal=cost_ratio")
    assert "--cost-ratio 5" in reply.text


@pytest.mark.parametrize(
    "query",
    ["goal=nonsense", "goal=cost_ratio&value=x", "goal=max_miss_rate&value=2", "goal=cost_ratio&value=nan"],
)
async def test_a_goal_that_cannot_be_is_said_so(client: httpx.AsyncClient, query: str) -> None:
    """And nothing is proposed."""
    reply = await client.get(f"/reviews/thresholds?{query}")
    assert reply.status_code == 422
    assert "Proposed" not in reply.text


async def test_too_few_settled_entries_are_said_so(tmp_path: Path) -> None:
    """With how many are needed."""
    (tmp_path / "other").mkdir()
    transport = httpx.ASGITransport(console_of(queue_in(tmp_path / "other")))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as made:
        reply = await made.get("/reviews/thresholds")
    assert reply.status_code == 200
    assert "at least 20 and 20 are needed" in reply.text


async def test_a_queue_that_is_switched_off_is_said_so() -> None:
    """No error page."""
    transport = httpx.ASGITransport(console_of(None))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as made:
        reply = await made.get("/reviews/thresholds")
    assert reply.status_code == 200
    assert "switched off" in reply.text
