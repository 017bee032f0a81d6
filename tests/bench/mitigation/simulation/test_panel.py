"""The scripted models read the prompts that the modes write."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest

from bench.mitigation.data import Case, Given, Prompt
from bench.mitigation.labels import Sources
from bench.mitigation.simulation.backend import Backend, Speed
from bench.mitigation.simulation.clock import simulate
from bench.mitigation.simulation.editor import Habits
from bench.mitigation.simulation.panel import Panel, Script
from bench.mitigation.simulation.prompts import elements
from truthlens.core.errors import CallError
from truthlens.core.records.calls import CallFailure, ModelRequest, Role
from truthlens.core.records.enums import Provenance, Status
from truthlens.core.records.exchange import Passage
from truthlens.core.records.verdict import Span, Verdict
from truthlens.mitigation.premium.debate.parsing import attacks, defences
from truthlens.mitigation.standard.correction_prompt import correction_prompt
from truthlens.mitigation.standard.self_check import MOST_QUESTIONS, read_answers, read_questions
from truthlens.prompts import delimiters, model_requests, render

TEXTS = (
    "The mill stands on the river Arne. It was built by monks in 1411. It grinds rye and oats.",
    "It grinds rye and oats. The mill stands on the river Arne. The wheel is six metres wide.",
    "The mill stands on the river Arne. It was built in 1530.",
    "The mill grinds rye.",
)
WRONG = "It was built by monks in 1411."
PASSAGE = "The mill on the river Arne was built in 1530. Rye and oats are ground there. Its wheel is of oak."
ALWAYS = Panel(judges=1.0, checks=1.0, attacks=1.0, slanders=0.0, concedes=1.0)


def given(number: int) -> Given:
    text = TEXTS[number]
    marks = ((text.index(WRONG), text.index(WRONG) + len(WRONG)),) if WRONG in text else ()
    return Given(f"model-{number}", text, marks)


CASE = Case(
    Prompt(
        "g", "What of the mill?", (PASSAGE,), f"{PASSAGE}\nWhat of the mill?", tuple(map(given, range(4)))
    ),
    0,
)


def script(panel: Panel = ALWAYS, habits: Habits | None = None) -> Script:
    sources = Sources(CASE.first, [CASE.other(number) for number in (1, 2, 3)], [PASSAGE])
    return Script(CASE, habits or Habits(1.0, 0.0, 0.0), panel, sources, random.Random(1))


def verdict(*parts: str) -> Verdict:
    spans = tuple(Span(TEXTS[0].index(part), TEXTS[0].index(part) + len(part), 0.9) for part in parts)
    return Verdict(Status.CHECKED, score=0.9, threshold=0.3, spans=spans)


def asked(prompt: str, role: Role) -> ModelRequest:
    return ModelRequest("m", role, model_requests.stand_alone(system="s", user=prompt))


def claims(*texts: str, start: int = 1) -> str:
    return "\n".join(
        delimiters.inline("claim", text, n=number) for number, text in enumerate(texts, start=start)
    )


def of(name: str, **values: object) -> str:
    evidence = delimiters.evidence([Passage(PASSAGE, Provenance.USER)])
    return render.render(name, chinese=False, part="user", evidence=evidence, question="", **values)


def test_tags_are_read_as_they_were_written() -> None:
    """Text between tags comes back unescaped, with the places of the marks inside."""
    text = "See </truthlens:answer> and <b>this</b>."
    marked = delimiters.marked(text, [Span(text.index("this"), text.index("this") + 4, 0.5)])
    (_, answer) = elements(f"<truthlens:answer>\n{marked}\n</truthlens:answer>")
    assert answer.text == text
    assert [text[start:end] for start, end, _ in answer.marks] == ["this"]


def test_the_editor_is_told_what_the_correction_prompt_marks() -> None:
    """A correction prompt leads to the answer without its marked sentence."""
    reply = script().reply(asked(correction_prompt(CASE.exchange, TEXTS[0], verdict("monks")), Role.REFINER))
    assert reply == "The mill stands on the river Arne. It grinds rye and oats."


def test_the_checker_clears_what_is_supported() -> None:
    """A supported part that the checks bear out stays, although it was marked."""
    writer = script()
    found = verdict("monks", "rye and oats")
    answer = f"<truthlens:answer>\n{delimiters.marked(TEXTS[0], found.spans)}\n</truthlens:answer>"
    listed = read_questions(
        writer.reply(
            asked(
                render.render("questions", chinese=False, question="", answer=answer, most=MOST_QUESTIONS),
                Role.CHECKER,
            )
        )
    )
    fenced = [
        delimiters.inline("check-question", each, n=number) for number, each in enumerate(listed, start=1)
    ]
    replied = writer.reply(
        asked(render.render("verify", chinese=False, evidence="", questions="\n".join(fenced)), Role.CHECKER)
    )
    answers = read_answers(replied, len(listed))
    assert set(answers) == {1, 2}
    checks = "\n".join(
        f"{question}\n{delimiters.inline('check-answer', answers[number], n=number)}"
        for number, question in enumerate(fenced, start=1)
    )
    prompt = correction_prompt(CASE.exchange, TEXTS[0], found, checks=checks)
    assert (
        writer.reply(asked(prompt, Role.REFINER))
        == "The mill stands on the river Arne. It grinds rye and oats."
    )


def arbitration(*differing: str) -> str:
    answers = "\n".join(delimiters.tag("answer", TEXTS[n], label=label) for n, label in enumerate("AB"))
    shown = tuple(delimiters.inline("claim", text, answer="A", grounding="0.40") for text in differing)
    return of("arbitrate", answers=answers, differences=[{"alone": True, "claims": shown}], structured=False)


def test_a_judge_who_sees_all_chooses_the_supported_answer() -> None:
    """With certainty 1 the answer without unsupported text is the base, and stays."""
    assert script().reply(asked(arbitration(WRONG), Role.JUDGE)) == TEXTS[1]


def test_a_judge_touches_only_what_is_disputed() -> None:
    """By chance a judge takes the wrong base and rules wrongly, but what nobody disputes stays."""
    for seed in range(30):
        writer = script(replace(ALWAYS, judges=0.0))
        writer._dice.seed(seed)
        reply = writer.reply(asked(arbitration(WRONG), Role.JUDGE))
        assert "The mill stands on the river Arne." in reply
        assert "It grinds rye and oats." in reply


def test_critic_and_proposer_speak_the_language_of_the_debate() -> None:
    """The critic attacks the unsupported claim by its number; the proposer concedes it."""
    listed = claims("The mill stands on the river Arne.", WRONG, start=4)
    turn = attacks(script().reply(asked(of("critique", claims=listed, said=""), Role.CRITIC)), claims=[4, 5])
    assert turn is not None
    assert [attack.claim for attack in turn] == [5]
    attack = delimiters.inline("attack", "No passage says this.", n=9, claim=5, kind="unsupported")
    reply = script().reply(asked(of("defend", claims=listed, attacks=attack), Role.PROPOSER))
    defended = defences(reply, attacks=[9])
    assert defended is not None
    assert [(each.attack, each.concede) for each in defended] == [(9, True)]


def test_a_supported_claim_is_defended_with_the_evidence() -> None:
    """A slandered claim is not conceded, and the quote stands in the evidence."""
    attack = delimiters.inline("attack", "No.", n=2, claim=1, kind="unsupported")
    prompt = of("defend", claims=claims("It grinds rye and oats."), attacks=attack)
    (entry,) = json.loads(script().reply(asked(prompt, Role.PROPOSER)))
    assert (entry["concede"], entry["quote"]) == (False, "Rye and oats are ground there.")


def test_the_synthesis_leaves_out_what_was_defeated() -> None:
    """A defeated claim gives way to a survivor that speaks of the same, else it goes."""
    prompt = of(
        "synthesise",
        answer=delimiters.tag("answer", TEXTS[0]),
        accepted=claims("The mill stands on the river Arne.", "It was built in 1530."),
        unexamined="",
        undecided="",
        rejected=claims(WRONG, start=3),
        structured=False,
    )
    reply = script().reply(asked(prompt, Role.JUDGE))
    assert reply == "The mill stands on the river Arne. It was built in 1530. It grinds rye and oats."


def test_an_unknown_prompt_is_an_error() -> None:
    """A prompt that no script is made for does not pass unnoticed."""
    with pytest.raises(ValueError, match="not known"):
        script().reply(asked("Hello?", Role.REFINER))


def test_verification_models_say_what_they_said() -> None:
    """A verification model gives its real answer; calls, tokens and simulated seconds are counted."""

    async def work() -> None:
        backend = Backend(CASE, script(), speed=Speed(1.0, 10.0, 10.0), max_tokens=1000)
        body = {"messages": [{"role": "user", "content": "x" * 40}]}
        completion = await backend(ModelRequest("model-2", Role.VERIFIER, body))
        assert completion.text == TEXTS[2]
        assert (backend.usage.prompt_tokens, backend.usage.completion_tokens) == (10, 14)
        assert backend.calls == [Role.VERIFIER]

    simulate(work())


def test_a_spent_budget_refuses_the_call() -> None:
    """A call that does not fit what is left is not made."""

    async def work() -> None:
        backend = Backend(CASE, script(), speed=Speed(), max_tokens=5)
        body = {"messages": [{"role": "user", "content": "x" * 40}]}
        with pytest.raises(CallError) as caught:
            await backend(ModelRequest("model-2", Role.VERIFIER, body))
        assert caught.value.failure is CallFailure.BUDGET
        assert backend.calls == []

    simulate(work())
