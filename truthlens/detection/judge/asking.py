"""Make the judge's requests; evidence, question, answer and critique stand between tags."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from truthlens.core.records.calls import ModelRequest, Role
from truthlens.core.records.exchange import Answer, Exchange
from truthlens.detection.judge.options import Options, Structured
from truthlens.detection.judge.replies import SingleStage, TwoStage
from truthlens.prompts import delimiters, render
from truthlens.prompts.evidence_selection import relevant
from truthlens.prompts.model_requests import stand_alone, with_evidence

_TEMPLATES = ("judge_stage1", "judge_stage2", "judge_single")


@cache
def prompt_version() -> str:
    """Return a digest of the templates."""
    folder = Path(render.__file__).parent / "templates"
    files = [folder / f"{name}.{language}.j2" for name in _TEMPLATES for language in ("en", "zh")]
    return hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()


def first_request(exchange: Exchange, answer: Answer, options: Options) -> ModelRequest:
    """Return the request that shows the evidence: of stage 1, or of the single stage."""
    name = "judge_stage1" if options.two_stage else "judge_single"
    chinese = render.in_chinese(answer.text, exchange.query)
    texts = [passage.text for passage in exchange.passages]

    def body(most_chars: int) -> dict[str, object]:
        found = relevant(texts, [answer.text, exchange.query], most_chars=most_chars)
        values = {
            "evidence": delimiters.evidence(
                exchange.passages, near=found.passages, around=found.sentences, most_chars=most_chars
            ),
            "question": delimiters.tag("question", exchange.query),
            "answer": delimiters.tag("answer", answer.text),
        }
        return stand_alone(
            system=render.render(name, chinese=chinese, part="system"),
            user=render.render(name, chinese=chinese, part="user", **values),
            max_tokens=options.max_tokens if options.two_stage else options.formatting_max_tokens,
        )

    asked = ModelRequest(options.model, Role.JUDGE_DETECTOR, {})
    return with_evidence(asked, exchange, body, most_chars=options.most_chars)


def second_request(exchange: Exchange, answer: Answer, critique: str, options: Options) -> ModelRequest:
    """Return the request that makes fields of the critique."""
    chinese = render.in_chinese(answer.text, exchange.query)
    body = stand_alone(
        system=render.render("judge_stage2", chinese=chinese, part="system"),
        user=render.render(
            "judge_stage2",
            chinese=chinese,
            part="user",
            critique=delimiters.tag("critique", critique),
            answer=delimiters.tag("answer", answer.text),
        ),
        max_tokens=options.formatting_max_tokens,
    )
    return ModelRequest(options.formatter, Role.JUDGE_DETECTOR, body)


def response_format(mode: Structured, *, two_stage: bool) -> dict[str, object]:
    """Return what is added to a request so that its reply has the form of a judgement."""
    if mode is Structured.NONE:
        return {}
    if mode is Structured.JSON_OBJECT:
        return {"response_format": {"type": "json_object"}}
    schema = (TwoStage if two_stage else SingleStage).model_json_schema()
    return {
        "response_format": {"type": "json_schema", "json_schema": {"name": "judgement", "schema": schema}}
    }
