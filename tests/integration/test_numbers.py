"""Values through a real Envoy: an answer that gives another figure than the evidence is flagged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import sqlalchemy as sa

from tests.fakes.finance_database import fill
from tests.integration.support.backend import completion, json_reply
from tests.integration.support.one_detector import gated_reply_to, one_detector_stack, reply_to
from tests.integration.support.stack import Stack
from tests.integration.support.streams.stage import read_back
from tests.integration.support.streams.streams import answer, sse

pytestmark = pytest.mark.envoy

REQUEST: dict[str, Any] = {
    "model": "scripted-model",
    "messages": [
        {
            "role": "user",
            "content": "<context>\nThe NOI for the property was $1,200,000 in Q3 2024. Occupancy of the property was 85% in the"
            " quarter. The DSCR was 1.25.\n</context>\nHow did the property do?",
        },
    ],
}


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A deployment that checks values and nothing else."""
    yield from one_detector_stack("numbers", tmp_path_factory.mktemp("numbers"))


@pytest.mark.parametrize(
    ("text", "detected"),
    [
        ("The NOI was $1.2M for the property.", "false"),
        ("The NOI was $1.25M for the property.", "false"),
        ("The NOI was $1.5M for the property.", "true"),
        ("Occupancy was 95%.", "true"),
        ("The NOI for Q4 2024 was $1.2M.", "true"),
        ("The DSCR was 1.5.", "true"),
    ],
)
def test_item_34_the_sources_examples(stack: Stack, text: str, detected: str) -> None:
    """Verified, within the tolerance, flagged."""
    response = reply_to(stack, REQUEST, text)
    assert (response.headers["x-truthlens-status"], response.headers["x-truthlens-detected"]) == (
        "checked",
        detected,
    )


def test_item_32_the_fields_reach_the_client(stack: Stack) -> None:
    """The flagged claim with its text, and the counts."""
    verdict = reply_to(stack, REQUEST, "The NOI was $1.5M for the property.").json()["truthlens"]
    (detector,) = verdict["choices"][0]["detectors"]
    assert [each["original_text"] for each in detector["flagged_claims"]] == ["$1.5M"]
    assert detector["details"]["unverified_claims"] == 1
    (difference,) = verdict["choices"][0]["spans"][0]["differences"]
    assert (difference["answer"], difference["evidence"]) == ("$1.5M", "$1,200,000")


def test_an_answer_without_values_is_unchecked(stack: Stack) -> None:
    """No other detector is listed."""
    response = reply_to(stack, REQUEST, "The property did well.")
    assert response.headers["x-truthlens-reason"] == "no-context"


def test_item_35_claims_are_counted(stack: Stack) -> None:
    """By kind and outcome."""
    reply_to(stack, REQUEST, "The NOI was $1.2M for the property.")
    assert (
        'truthlens_numeric_claims_total{outcome="verified",type="currency"}'
        in httpx.get(f"{stack.console_url}/metrics").text
    )


def test_a_gate_withholds_the_sentence(stack: Stack) -> None:
    """The sentence with the wrong figure alone; the one before it passes."""
    text = gated_reply_to(
        stack, REQUEST, "Occupancy of the property was 85%. The NOI was $1.5M for the property."
    )
    assert "85%" in text
    assert "$1.5M" not in text


DATABASE_POLICY = """\
trusted_headers: [x-property-id, x-period-id]
hallucination:
  details: true
  streaming: gate
  on_flagged: withhold
  detectors:
    - name: numbers
      databases:
        - name: finance
          url_env: FINANCE_DATABASE_URL
          timeout_ms: 1000
          scope:
            property_id: {header: x-property-id, type: integer}
            period_id: {header: x-period-id, type: integer}
          tables:
            - table: FinancialMetrics
              scope: {property_id: property_id, period_id: period_id}
              columns: [{column: dscr, type: ratio, label: [DSCR, debt service coverage ratio]}]
"""
BARE_REQUEST = {
    "model": "scripted-model",
    "messages": [{"role": "user", "content": "How did the property do?"}],
}
SCOPE = {"x-property-id": "1", "x-period-id": "1"}


@pytest.fixture(scope="module")
def finance_stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A deployment whose evidence is a database alone."""
    folder = tmp_path_factory.mktemp("finance")
    url = f"sqlite:///{folder}/finance.db"
    engine = sa.create_engine(url)
    fill(engine)
    engine.dispose()
    stack = Stack(folder, DATABASE_POLICY, environ={"FINANCE_DATABASE_URL": url})
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()


@pytest.mark.parametrize(
    ("text", "headers", "verdict"),
    [
        ("The DSCR was 1.25.", SCOPE, ["checked", "false", None]),
        ("The DSCR was 1.75.", SCOPE, ["checked", "true", None]),
        ("The DSCR was 1.75. The tenants like it.", SCOPE, ["partial", "true", "no-context"]),
        ("The tenants like it.", SCOPE, ["unchecked", None, "no-context"]),
        ("The DSCR was 1.75.", {}, ["unchecked", None, "no-context"]),
    ],
)
def test_a_database_is_evidence_enough(
    finance_stack: Stack, text: str, headers: dict[str, str], verdict: list[str | None]
) -> None:
    """A request without documents gets a verdict on what the database knows, and on nothing else."""
    finance_stack.backend.reply = lambda _request: json_reply(completion(text))
    response = finance_stack.post(BARE_REQUEST, headers=headers)
    told = [response.headers.get(f"x-truthlens-{each}") for each in ("status", "detected", "reason")]
    assert told == verdict
    claims = response.json()["truthlens"]["choices"][0]["claims"]
    sources = {each["provenance"]: each["reason"] for each in claims if "provenance" in each}
    assert sources == ({} if verdict[1] is None else {"sql:finance": "the database finance gives 1.25"})


def test_a_gate_withholds_what_a_database_contradicts(finance_stack: Stack) -> None:
    """The sentences that it knows nothing of pass."""
    finance_stack.backend.reply = lambda _request: sse(
        answer("The tenants like it. The DSCR was 1.75. It rains.")
    )
    response = finance_stack.post({**BARE_REQUEST, "stream": True}, headers=SCOPE)
    text = read_back(response.content).texts[0]
    assert "1.75" not in text
    assert "The tenants like it." in text
    assert "It rains." in text
