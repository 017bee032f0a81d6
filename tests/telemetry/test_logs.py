"""The canonical line: its fields, that it is one line without text, and which exchanges have one."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import structlog

from tests.fakes.detectors import FixedDetector, scored
from tests.fakes.engines import engine_of
from tests.fakes.pipelines import pipeline_for
from truthlens.core.records.calls import CallFailure, CallRecord, Role
from truthlens.core.records.enums import Action, Reason, Status
from truthlens.core.records.exchange import RequestHead, ResponseHead
from truthlens.core.records.outcome import Outcome
from truthlens.core.records.plan import Plan
from truthlens.core.records.verdict import Verdict, unchecked
from truthlens.policy import PolicyHolder, compile_policy
from truthlens.telemetry.logs import LogFormat, configure, is_remarkable, logfmt
from truthlens.telemetry.metrics import Metrics
from truthlens.telemetry.recent_exchanges import Recent

SECRET = "marmalade"
REQUEST = {
    "model": f"{SECRET} please",
    "messages": [{"role": "user", "content": f"<context>Tea and {SECRET} are free.</context>\nIs it free?"}],
}
ANSWER = {
    "id": f"{SECRET} is not an id",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": f"The {SECRET} is free."}}],
    "usage": {"prompt_tokens": 12, "completion_tokens": 5, SECRET: 3},
}
HOSTILE = 'a"b=c d\\e\n{"event":"exchange"}\r\t\x00\x1b[2J\x7f\x85\u2028\u2029\u202e\ud800'
CLEAN = Outcome(Plan("d"), Verdict(Status.CHECKED, score=0.1, threshold=0.5))


class Rig:
    """One exchange after the other under a policy, each answered with a given score."""

    def __init__(self, telemetry: str = "") -> None:
        policy = compile_policy(f"hallucination: {{threshold: 0.5}}\n{telemetry}", file="p.yaml")
        self.signals, self.holder = Metrics(), PolicyHolder(policy)

    async def exchange(self, score: float, **headers: str) -> None:
        engine = engine_of({None: FixedDetector(scored(score))}, workers=1, queue_limit=4)
        pipeline = pipeline_for(self.holder, engine, self.signals, Recent())
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        ticket = pipeline.admit(RequestHead("POST", "/v1/chat/completions", named, {}))
        ticket = await pipeline.prepare(await pipeline.open(ticket, json.dumps(REQUEST).encode()))
        body = json.dumps(ANSWER).encode()
        await pipeline.assess(ticket, ResponseHead(200, {"content-type": "application/json"}), body)
        await engine.aclose()

    async def lines(self, *scores: float, **headers: str) -> list[dict[str, Any]]:
        with structlog.testing.capture_logs() as found:
            for score in scores:
                await self.exchange(score, **headers)
        return [dict(line) for line in found]

    def count(self, result: str) -> float:
        return (
            self.signals.registry.get_sample_value("truthlens_exchange_log_lines_total", {"result": result})
            or 0.0
        )


async def test_the_line_has_the_fields_of_its_page_and_no_text() -> None:
    """Each field has its row; whatever question, evidence, answer, model, id and headers say, none of it is there."""
    trace = f"00-{'a' * 32}-{'b' * 16}-01"
    (line,) = await Rig().lines(0.9, x_request_id="r-1", traceparent=trace, user_agent=SECRET)
    page = (Path(__file__).parents[2] / "docs/logs.md").read_text(encoding="utf-8").partition("## Fields")[2]
    rows = [row.split("|")[1] for row in page.splitlines() if row.startswith("| `")]
    documented = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert documented - {"timestamp", "level"} == line.keys() - {"log_level"}
    assert SECRET not in json.dumps(line, default=str)
    assert (line["request_id"], line["trace_id"], line["response_id"]) == ("r-1", "a" * 32, None)
    assert (line["decision"], line["status"], line["score"], line["detected"]) == (
        "default",
        "partial",
        0.9,
        True,
    )
    assert (line["prompt_tokens"], line["completion_tokens"]) == (12, 5)
    sizes = (line["request_bytes"], line["response_bytes"])
    assert sizes == (len(json.dumps(REQUEST)), len(json.dumps(ANSWER)))
    assert {name for name in line if name.endswith("_ms") and line[name] is not None} == {
        "request_ms", "response_ms", "evidence_ms", "detection_ms", "mending_ms"
    }  # fmt: skip


async def test_the_texts_are_a_second_line_where_the_operator_wants_them() -> None:
    """The canonical one stays without."""
    texts, line = await Rig("telemetry: {log_text: true}").lines(0.1)
    assert (texts["event"], line["event"]) == ("exchange text", "exchange")
    assert texts["answers"] == [f"The {SECRET} is free."]
    assert SECRET not in json.dumps(line, default=str)


async def test_unremarkable_exchanges_are_sampled_and_counted() -> None:
    """A flagged one is always there; what is left out is seen in the metrics alone."""
    rig = Rig("telemetry: {log_sample: 0}")
    lines = await rig.lines(0.1, 0.9, 0.2)
    assert [(line["score"], line["sample"]) for line in lines] == [(0.9, None)]
    assert (rig.count("written"), rig.count("sampled-out")) == (1, 2)
    assert [line["sample"] for line in await Rig().lines(0.1)] == [1.0]


@pytest.mark.parametrize(
    ("outcome", "seconds", "remarkable"),
    [
        (CLEAN, 0.1, False),
        (CLEAN, 2.0, True),
        (replace(CLEAN, first=(Verdict(Status.CHECKED, score=0.9, threshold=0.5),)), 0.1, True),
        (replace(CLEAN, action=Action.WARN), 0.1, True),
        (replace(CLEAN, shadow_action=Action.REFINE), 0.1, True),
        (replace(CLEAN, shadow_action=Action.PASS), 0.1, False),
        (replace(CLEAN, review_id="r"), 0.1, True),
        (replace(CLEAN, calls=(CallRecord("m", Role.JUDGE, failure=CallFailure.TIMEOUT),)), 0.1, True),
        *((replace(CLEAN, verdict=unchecked(reason)), 0.1, reason.is_failure) for reason in Reason),
    ],
)
def test_which_exchanges_are_remarkable(outcome: Outcome, seconds: float, remarkable: bool) -> None:
    """Flagged, changed, queued, failed or slow; that there was nothing to check is not."""
    assert is_remarkable(outcome, seconds=seconds, slow_s=2.0) is remarkable


def test_the_page_lists_what_counts_as_a_failure() -> None:
    """The reasons for which an exchange is always logged."""
    page = (Path(__file__).parents[2] / "docs/logs.md").read_text(encoding="utf-8")
    (row,) = re.findall(r"^- failed: (.*)$", page, re.MULTILINE)
    assert set(re.findall(r"`([\w-]+)`", row)) == {reason.value for reason in Reason if reason.is_failure}


@pytest.mark.parametrize("form", [LogFormat.JSON, LogFormat.LOGFMT])
def test_no_value_forges_a_line(form: LogFormat, capfd: pytest.CaptureFixture[str]) -> None:
    """Quotes, equals signs, every kind of line end and control characters stay inside of their value."""
    try:
        configure(form=form)
        structlog.get_logger("t").info("seen", value=HOSTILE, plain="next", listed=[HOSTILE, "b"])
    finally:
        structlog.reset_defaults()
    text = capfd.readouterr().err
    assert len(text.splitlines()) == 1
    assert all(each.isprintable() for each in text.rstrip("\n"))
    if form is LogFormat.JSON:
        line = json.loads(text)
        assert (line["value"], line["listed"], line["plain"]) == (HOSTILE, [HOSTILE, "b"], "next")
    else:
        pairs = dict(re.findall(r'(\w+)=("(?:[^"\\]|\\.)*"|\S+)(?: |$)', text.rstrip("\n")))
        assert json.loads(pairs["value"]) == HOSTILE
        assert json.loads(json.loads(pairs["listed"])) == [HOSTILE, "b"]
        assert list(pairs) == ["timestamp", "level", "event", "value", "plain", "listed"]


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("default", "default"),
        (0.91, "0.91"),
        (True, "true"),
        (["a", "b"], "a,b"),
        ([], "[]"),
        ("", '""'),
        ("two words", '"two words"'),
        ("k=v", '"k=v"'),
        ({"a": 1}, '"{\\"a\\": 1}"'),
        ("Grüße", "Grüße"),
    ],
)
def test_a_value_in_logfmt(value: object, written: str) -> None:
    """One plain word stays as it is; what has no value is left out."""
    assert logfmt(None, "info", {"v": value, "none": None}) == f"v={written}"
