"""Run Chain-of-Verification: ask about the doubtful claims, and answer without sight of the answer.

Two calls at most, and none of their failures stops a correction. The first model call sees the answer and
only asks; the second sees the evidence and only answers (the factored variant), so that it cannot repeat the
answer's error. Source: white paper 2.3.2; Dhuliawala et al. 2024, section 3.3.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from truthlens.core.errors import CallError
from truthlens.core.records.calls import ModelRequest, Role
from truthlens.core.records.enums import Endpoint
from truthlens.core.records.verdict import Verdict
from truthlens.mitigation.doubts import doubts_shown
from truthlens.mitigation.interfaces import Task, Tools
from truthlens.mitigation.standard.correction_prompt import evidence_for, marked_answer
from truthlens.prompts import delimiters, model_requests, render
from truthlens.prompts.json_replies import json_values
from truthlens.prompts.model_requests import with_evidence

MOST_QUESTIONS = 5

_MOST_QUESTION_CHARS = 300
_MOST_ANSWER_CHARS = 500
_MOST_TOKENS = 800


async def self_check(
    task: Task, tools: Tools, text: str, verdict: Verdict, *, model: str, own: bool
) -> str | None:
    """Return fenced question-answer pairs about what ``verdict`` flags in ``text``; ``None`` on failure.

    Args:
        task: the exchange and its plan.
        tools: of the exchange. Cancellation goes through.
        text: the answer in question.
        verdict: on ``text``.
        model: who asks and answers.
        own: whether that is the model that gave the first answer.
    """
    chinese = render.in_chinese(text, task.exchange.query)
    asking = render.render(
        "questions",
        chinese=chinese,
        question=delimiters.tag("question", task.exchange.query),
        answer=marked_answer(text, doubts_shown(text, verdict)),
        most=MOST_QUESTIONS,
    )

    # Of the model that answered, only the API of the exchange is known to work.
    endpoint = task.exchange.endpoint if own else Endpoint.CHAT

    system = render.render("system", chinese=chinese)

    def body(prompt: str) -> dict[str, object]:
        if endpoint is Endpoint.CHAT:
            return model_requests.stand_alone(
                system=system, user=prompt, structured=True, max_tokens=_MOST_TOKENS
            )
        return model_requests.stand_alone_text(system=system, user=prompt, max_tokens=_MOST_TOKENS)

    asked = ModelRequest(model, Role.CHECKER, body(asking), endpoint, own)
    try:
        questions = read_questions((await tools.ask(asked)).text)
        if not questions:
            return None

        def answering(most_chars: int) -> dict[str, object]:
            return body(
                render.render(
                    "verify",
                    chinese=chinese,
                    evidence=evidence_for(task.exchange, verdict, text=text, most_chars=most_chars),
                    questions="\n".join(_fenced_questions(questions)),
                )
            )

        asked = await asyncio.to_thread(
            with_evidence, asked, task.exchange, answering, most_chars=delimiters.MOST_CHARS
        )
        answers = read_answers((await tools.ask(asked)).text, len(questions))
    except CallError:
        return None
    pairs = [
        f"{fenced}\n{delimiters.inline('check-answer', answers[number], n=number)}"
        for number, fenced in enumerate(_fenced_questions(questions), start=1)
        if number in answers
    ]
    return "\n".join(pairs) or None


def read_questions(text: str) -> list[str]:
    """Parse the first questions of a reply that holds ``{"questions": […]}`` or a list.

    It is ``[]`` if there is none.
    """
    for value in json_values(text):
        listed = value.get("questions") if isinstance(value, dict) else value
        if not isinstance(listed, list):
            continue
        texts = (item.get("question") if isinstance(item, dict) else item for item in listed)
        found = list(dict.fromkeys(each.strip() for each in texts if isinstance(each, str) and each.strip()))
        if found:
            return [each[:_MOST_QUESTION_CHARS] for each in found[:MOST_QUESTIONS]]
    return []


def read_answers(text: str, count: int) -> dict[int, str]:
    """Parse the answers by question number from a reply that holds ``{"answers": […]}`` or a list.

    Plain texts are counted in their order where there are as many as questions; entries without a question of
    1..``count`` are dropped.
    """
    for value in json_values(text):
        listed = value.get("answers") if isinstance(value, dict) else value
        if not isinstance(listed, list):
            continue
        if len(listed) == count and all(isinstance(item, str) for item in listed):
            listed = [{"question": number, "answer": item} for number, item in enumerate(listed, start=1)]
        found: dict[int, str] = {}
        for item in listed:
            number, answer = _numbered(item)
            if 1 <= number <= count and answer:
                found.setdefault(number, answer[:_MOST_ANSWER_CHARS])
        if found:
            return found
    return {}


def _numbered(item: object) -> tuple[int, str]:
    if not isinstance(item, dict):
        return 0, ""
    number, answer = item.get("question"), item.get("answer")
    if isinstance(number, str) and number.strip().isascii() and number.strip().isdigit():
        number = int(number.strip()[:4])
    known = number if isinstance(number, int) and not isinstance(number, bool) else 0
    return known, answer.strip() if isinstance(answer, str) else ""


def _fenced_questions(questions: Sequence[str]) -> list[str]:
    return [
        delimiters.inline("check-question", each, n=number) for number, each in enumerate(questions, start=1)
    ]
