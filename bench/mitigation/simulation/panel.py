"""Write what scripted models say: editor, checker, judge, critic and proposer, honest but fallible.

Every reply is made from the prompt that the mode wrote, read by its tags. What is right is known from
people's marks; how often a model sees it is a probability. Where it does not see it, a judge or checker
decides by chance.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bench.mitigation.data import Case
from bench.mitigation.labels import Sources
from bench.mitigation.simulation.editor import Editor, Habits, evidence_text
from bench.mitigation.simulation.prompts import Element, elements, prompt_of
from truthlens.core.records.calls import ModelRequest
from truthlens.core.records.enums import Provenance
from truthlens.core.records.exchange import Passage
from truthlens.detection.explain.evidence_search import EvidenceSentences
from truthlens.detection.models.inputs.assignment import content_keys
from truthlens.text.sentences import sentences

_SILENT = "The evidence does not say."
_RELATED = 0.3
# Headings of a prompt whose parts have the same tags.
_SURVIVED = "Claims that survived every attack:"
_UNEXAMINED = "Claims that no critic answered about"
_OPEN = "Claims that the debate left open:"
_DEFEATED = "Claims that were defeated:"


@dataclass(frozen=True, slots=True)
class Panel:
    """Probabilities, 0..1.

    ``judges``: the judge sees of a claim whether it is right. ``checks``: the checker answers a question
    rightly. ``attacks``: a critic attacks an unsupported claim; ``slanders``: a supported one. ``concedes``:
    the proposer gives up an unsupported claim that is attacked.
    """

    judges: float = 0.8
    checks: float = 0.8
    attacks: float = 0.7
    slanders: float = 0.1
    concedes: float = 0.7


class Script:
    """Replies for one exchange.

    Args:
        case: the exchange.
        habits: of the correcting model.
        panel: how good the others are.
        sources: knows what people marked; is told of inventions.
        dice: what is left to chance.
    """

    def __init__(
        self, case: Case, habits: Habits, panel: Panel, sources: Sources, dice: random.Random
    ) -> None:
        self._panel = panel
        self._sources = sources
        self._dice = dice
        self._editor = Editor(habits, dice, supported=self._supported, invent=sources.invent)
        self._passages = case.prompt.passages
        self._evidence = EvidenceSentences([Passage(text, Provenance.DOCUMENTS) for text in self._passages])
        self._asked: dict[str, str] = {}

    def reply(self, request: ModelRequest) -> str:
        """Return what the model answers.

        Raises:
            ValueError: the prompt is of no kind that is known here.
        """
        prompt = prompt_of(request.body)
        found = elements(prompt)
        names = {element.name for element in found}
        answers = [element for element in found if element.name == "answer"]
        if '"concede"' in prompt:
            return self._defend(found)
        if '"argument"' in prompt:
            return self._attack(found)
        if '{"questions"' in prompt:
            return self._questions(answers[0])
        if '{"answers"' in prompt:
            return self._checked(found)
        if len(answers) > 1:
            return self._arbitrate(answers, found)
        if answers and _SURVIVED in prompt:
            return self._synthesise(answers[0], prompt)
        if answers and "between span tags" in prompt:
            return self._correct(answers[0], found)
        raise ValueError(f"a prompt of role {request.role} with the tags {sorted(names)} is not known")

    # --- the model that gave the answer, correcting it -----------------------------------------------------

    def _correct(self, answer: Element, found: Sequence[Element]) -> str:
        told = [(start, end) for start, end, _ in answer.marks]
        passages = [element.text for element in found if element.name == "passage"]
        questions = {
            element.attributes.get("n"): element.text for element in found if element.name == "check-question"
        }
        cleared = []
        for element in found:
            if element.name == "check-answer" and element.text != _SILENT:
                part = self._asked.get(questions.get(element.attributes.get("n"), ""), "")
                if part and (start := answer.text.find(part)) >= 0:
                    cleared.append((start, start + len(part)))
        return self._editor.edit(answer.text, told, passages, cleared=cleared)

    def _questions(self, answer: Element) -> str:
        """Return one question per marked part, and remember which part it is for."""
        for number, (start, end, _) in enumerate(answer.marks[:5], start=1):
            part = answer.text[start:end]
            keys = list(dict.fromkeys(content_keys(part)))[:6]
            self._asked[f"Question {number}: what is said about {', '.join(keys) or 'this'}?"] = part
        return json.dumps({"questions": list(self._asked)})

    def _checked(self, found: Sequence[Element]) -> str:
        answers = []
        for number, element in enumerate((each for each in found if each.name == "check-question"), start=1):
            part = self._asked.get(element.text, "")
            settled = self._sees(self._supported(part), self._panel.checks)
            answers.append(
                {"question": number, "answer": (self._nearest(part) if settled else "") or _SILENT}
            )
        return json.dumps({"answers": answers})

    # --- the judge -----------------------------------------------------------------------------------------

    def _arbitrate(self, answers: Sequence[Element], found: Sequence[Element]) -> str:
        """Return the answer that looks best, its disputed sentences kept, replaced or dropped."""
        shares = [self._share_unsupported(answer.text) for answer in answers]
        best = min(range(len(answers)), key=shares.__getitem__)
        base = answers[
            best if self._dice.random() < self._panel.judges else self._dice.randrange(len(answers))
        ]
        claims = [
            element.text
            for element in found
            if element.name == "claim" and element.attributes["answer"] == base.attributes["label"]
        ]
        others = [
            other.text[start:end]
            for other in answers
            if other is not base
            for start, end in sentences(other.text)
        ]

        def ruled(sentence: str, kept: str) -> str:
            if not any(_within(claim, sentence) for claim in claims):
                return sentence
            if self._sees(self._supported(sentence), self._panel.judges):
                return sentence
            for other in sorted(others, key=lambda other: -_overlap(other, sentence)):
                if _overlap(other, sentence) < _RELATED:
                    break
                if other not in kept and self._sees(self._supported(other), self._panel.judges):
                    return other
            return ""

        return _rebuilt(base.text, ruled) or base.text

    # --- the debate ----------------------------------------------------------------------------------------

    def _attack(self, found: Sequence[Element]) -> str:
        turns = []
        for element in found:
            if element.name != "claim":
                continue
            right = self._supported(element.text)
            chance = self._panel.slanders if right else self._panel.attacks
            if self._dice.random() >= chance:
                continue
            turn = {
                "claim": int(element.attributes["n"]),
                "kind": "unsupported",
                "quote": "",
                "argument": "No passage says this.",
            }
            if self._dice.random() < 0.5 and (quote := self._nearest(element.text)):
                turn |= {"kind": "contradicted", "quote": quote, "argument": "A passage says otherwise."}
            turns.append(turn)
        return json.dumps(turns)

    def _defend(self, found: Sequence[Element]) -> str:
        claims = {element.attributes.get("n"): element.text for element in found if element.name == "claim"}
        turns = []
        for element in found:
            if element.name != "attack":
                continue
            claim = claims.get(element.attributes.get("claim"), "")
            concede = not self._supported(claim) and self._dice.random() < self._panel.concedes
            quote = "" if concede else self._nearest(claim)
            turns.append({"attack": int(element.attributes["n"]), "concede": concede, "quote": quote})
        return json.dumps(turns)

    def _synthesise(self, answer: Element, prompt: str) -> str:
        """Return the answer with defeated claims replaced by a survivor about the same, or dropped."""
        standing, _, defeated = prompt[prompt.index(_SURVIVED) :].partition(_DEFEATED)
        standing, _, undecided = standing.partition(_OPEN)
        accepted, _, unexamined = standing.partition(_UNEXAMINED)
        undecided = f"{unexamined}\n{undecided}"
        survivors, doubtful, rejected = (
            [element.text for element in elements(part) if element.name == "claim"]
            for part in (accepted, undecided, defeated)
        )
        survivors += [claim for claim in doubtful if self._sees(self._supported(claim), self._panel.judges)]

        def ruled(sentence: str, kept: str) -> str:
            if not any(_within(claim, sentence) for claim in (*rejected, *doubtful)):
                return sentence
            parts = [claim for claim in survivors if _within(claim, sentence)]
            others = sorted(survivors, key=lambda claim: -_overlap(claim, sentence))
            if not parts and others and _overlap(others[0], sentence) >= _RELATED and others[0] not in kept:
                parts = others[:1]
            return " ".join(parts)

        return _rebuilt(answer.text, ruled)

    # --- what they know ------------------------------------------------------------------------------------

    def _supported(self, text: str) -> bool:
        return not self._sources.tally(text).wrong

    def _share_unsupported(self, text: str) -> float:
        tally = self._sources.tally(text)
        return tally.unsupported / max(tally.characters, 1)

    def _sees(self, truth: bool, chance: float) -> bool:
        return truth if self._dice.random() < chance else self._dice.random() < 0.5

    def _nearest(self, text: str) -> str:
        match = self._evidence.nearest(dict.fromkeys(content_keys(text), 1.0))
        return evidence_text(self._evidence)(match.sentence) if match else ""


def _rebuilt(text: str, ruled: Callable[[str, str], str]) -> str:
    """Return ``text`` with each sentence as ``ruled`` gives it, from the sentence and what precedes it."""
    kept, at = "", 0
    for start, end in sentences(text):
        if sentence := ruled(text[start:end], kept):
            kept += (text[at:start] if kept else "") + sentence
        at = end
    return kept


def _within(claim: str, sentence: str) -> bool:
    return " ".join(claim.split()) in " ".join(sentence.split())


def _overlap(one: str, other: str) -> float:
    """Return the share of the content words of the shorter text that the other has too."""
    left, right = set(content_keys(one)), set(content_keys(other))
    return len(left & right) / max(min(len(left), len(right)), 1)
