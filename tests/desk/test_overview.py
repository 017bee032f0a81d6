"""The first page and the page of decisions: what they say of the last hour and the last day."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree as ET

import httpx
import pytest

from tests.desk.test_console import POLICY, Parts
from tests.desk.test_pages import CALLS, words
from tests.telemetry.test_score_history import outcome
from truthlens.core.errors import PolicyError
from truthlens.core.records.enums import Action, Reason
from truthlens.core.records.plan import Plan
from truthlens.desk.app import HEIGHT, WIDTH, desk_app, shown_decision
from truthlens.desk.pages import described, why
from truthlens.policy import compile_policy
from truthlens.process.endpoints import WebParts
from truthlens.telemetry.score_history import BINS, ScoreFigures


async def page_of(parts: Parts, path: str = "/") -> str:
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(parts.app), base_url="http://localhost"
    ) as client:
        response = await client.get(path)
    assert response.status_code == 200
    return response.text


def observe(parts: Parts, *scores: float | None, **changes: object) -> None:
    for score in scores:
        ended = replace(outcome(score, decision="strict"), **changes)
        parts.signals.observe(ended, request_s=0.0, response_s=ended.latency_s)


def figures(page: str) -> str:
    return words(page.partition('id="figures"')[2].partition("<h2>")[0])


async def test_the_first_page_says_what_the_last_hour_came_to() -> None:
    """Count and share of what is flagged, what is unchecked and why, what models cost, and the latency."""
    parts = Parts()
    observe(parts, 0.9, 0.1, 0.2, 0.3, None, latency_s=0.25)
    observe(parts, 0.8, calls=CALLS, action=Action.REFINE, latency_s=4.0)
    shown = figures(await page_of(parts))
    for told in (
        "Flagged 2 of 5 checked, 40.0 %",
        "1 corrected, 0 blocked",
        "Unchecked 1 of 6 exchanges 1 no-context no evidence was found",
        "2 calls 25 tokens, 0.0001 USD; 1 call without a price",
    ):
        assert told in shown
    assert re.search(r"Added latency 2[45]\d ms half of exchanges (3\.[89]\d?|4(\.\d+)?) s for 95 %", shown)


async def test_without_traffic_the_figures_are_none_and_not_zero() -> None:
    """Nothing checked is no share of 0 %, no exchange is no latency of 0 ms."""
    shown = figures(await page_of(Parts()))
    assert "nothing was checked" in shown
    assert "no exchange" in shown
    assert "%" not in shown


@pytest.mark.parametrize(
    ("waiting", "told"), [(3, "Reviews 3 waiting"), (0, "Reviews 0 waiting"), (None, None)]
)
async def test_reviews_that_wait_are_shown_where_somebody_counts_them(
    waiting: int | None, told: str | None
) -> None:
    """None where the number is not known; and nothing where nobody counts."""
    parts = Parts()
    assert "waiting" not in figures(await page_of(parts))
    parts.app = desk_app(
        WebParts(
            policy=parts.policy,
            pipeline=parts.pipeline,
            signals=parts.signals,
            recent=parts.recent,
            readiness=parts.readiness,
            reviews_waiting=lambda: waiting,
        )
    )
    shown = figures(await page_of(parts))
    assert told in shown if told else "waiting" not in shown


async def test_the_header_says_that_something_is_wrong() -> None:
    """Next to whether it is ready; what exactly stands below."""
    parts = Parts()
    parts.policy.last_error = PolicyError("p.yaml:3: unknown key")
    parts.readiness.warm = False
    page = await page_of(parts)
    header = words(page.partition("<header>")[2].partition("</header>")[0])
    assert "not ready" in header
    assert "last edit refused" in header


@pytest.mark.parametrize(
    ("path", "current"),
    [
        ("/", "Overview"),
        ("/decisions", "Decisions"),
        ("/playground", "Playground"),
        ("/evidence", "Evidence"),
    ],
)
async def test_every_page_has_the_navigation(path: str, current: str) -> None:
    """All pages in one order; the one that is shown is marked."""
    navigation = (await page_of(Parts(), path)).partition("<nav")[2].partition("</nav>")[0]
    assert re.findall(r'href="([^"]+)"', navigation) == [
        "/",
        "/reviews",
        "/decisions",
        "/playground",
        "/evidence",
    ]
    assert re.findall(r'aria-current="page">([^<]+)', navigation) == [current]


async def test_the_page_of_decisions_has_scores_and_what_other_thresholds_would_flag() -> None:
    """A drawing that is well-formed, and its figures as a table."""
    parts = Parts()
    observe(parts, 0.05, 0.15, 0.55, 0.95, None)
    page = await page_of(parts, "/decisions")
    strict = page.partition(">strict<")[2].partition("</section>")[0]
    assert "4 answers scored, 2 flagged (50.0 %" in words(strict)
    table = [words(row) for row in re.findall(r"<tr>(.*?)</tr>", strict, re.DOTALL)]
    assert table[1:3] == ["0.0 4 100.0 % 1", "0.1 3 75.0 % 1"]
    assert table[10] == "0.9 1 25.0 % 1"
    assert "1 no-context no evidence was found" in words(strict)
    drawing = ET.fromstring(re.findall(r"<svg.*?</svg>", strict, re.DOTALL)[0])
    assert drawing.attrib["aria-label"]
    assert not re.search(r"<style|\sstyle=", page)
    assert "No answer was scored." in words(page.partition(">default<")[2])


async def test_decisions_that_are_off_say_so() -> None:
    """They have a threshold that nothing is compared with."""
    parts = Parts()
    parts.policy.swap(compile_policy(POLICY.replace("{threshold: 0.1}", "{enabled: false}"), file="p.yaml"))
    assert "strict off · threshold" in words(await page_of(parts, "/decisions"))


@pytest.mark.parametrize("threshold", [0.0, 0.013, 0.3, 0.5, 0.58, 0.99, 1.0])
def test_bars_stand_on_their_side_of_the_threshold(threshold: float) -> None:
    """One bar for each part that has scores, none outside of the drawing; those that are wholly at or above it are over."""
    shown = shown_decision(Plan("d", threshold=threshold), ScoreFigures(bins=tuple(range(1, BINS + 1))))
    under, over = (re.findall(r"M([\d.]+) \d+v-([\d.]+)", path) for path in (shown.under, shown.over))
    assert len(under) + len(over) == BINS
    assert all(0 <= float(x) < WIDTH and 1 <= float(height) <= HEIGHT for x, height in under + over)
    assert all(float(x) >= threshold * WIDTH for x, _ in over)
    assert all(float(x) < threshold * WIDTH + 0.5 for x, _ in under)


def test_a_decision_without_scores_can_be_drawn() -> None:
    """No bar, and shares of nothing are 0."""
    shown = shown_decision(Plan("d"), ScoreFigures())
    assert (shown.under, shown.over, shown.flagged_share) == ("", "", 0.0)
    assert {step.share for step in shown.steps} == {0.0}


@pytest.mark.parametrize("reason", list(Reason))
def test_every_reason_has_a_sentence(reason: Reason) -> None:
    """What a page shows must not be a code alone."""
    assert why(reason)
    assert described(reason.value) == why(reason)


def test_an_exchange_without_a_reason_breaks_no_page() -> None:
    """A code that is none has no sentence."""
    assert described("") == ""
