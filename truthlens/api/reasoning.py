"""Find where reasoning ends that a model wrote into its answer's text.

Servers with a reasoning parser send it in a field of its own. Without one it is in the content, between
marks. Only a block at the very beginning is one: marks that a text merely mentions, in prose or in code, are
text like any other.

Deliberately not here: reasoning in fields of its own (``responses``, ``chunks``). Source: the reasoning
parsers and chat templates of DeepSeek-R1, Qwen3, Magistral, Kimi, gpt-oss, Seed-OSS, Command A, EXAONE and
OpenThinker.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from enum import StrEnum

from truthlens.core.records.enums import AnswerKind, Reasoning
from truthlens.core.records.exchange import Answer
from truthlens.core.records.plan import Plan

_HARMONY_FINAL = "<|channel|>final<|message|>"
_PAIRS = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<reasoning>": "</reasoning>",
    "<seed:think>": "</seed:think>",
    "[THINK]": "[/THINK]",
    "◁think▷": "◁/think▷",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "<|begin_of_thought|>": "<|end_of_thought|>",
    "<|channel|>analysis": _HARMONY_FINAL,
    "<|start|>assistant<|channel|>analysis": _HARMONY_FINAL,
}
_OPENING = re.compile("|".join(map(re.escape, sorted(_PAIRS, key=len, reverse=True))))
_CLOSING = re.compile("|".join(map(re.escape, sorted(set(_PAIRS.values())))))
_OPENING_OF = {closing: opening for opening, closing in reversed(_PAIRS.items())}
_LONGEST = max(map(len, (*_PAIRS, *_PAIRS.values())))
_FENCE = "```"


class ReasoningPlace(StrEnum):
    """Where a growing text ends so far: before its first letter, within reasoning, or in the answer."""

    BEFORE = "before"
    WITHIN = "within"
    ANSWER = "answer"


def reasoning_end(text: str) -> int:
    """Return where the answer begins in ``text``, after leading reasoning and white space; 0 without any.

    Several blocks in a row count as one. A block that is not closed goes to the end of the text. A closing
    mark without an opening one ends a block that the prompt's template opened: if it ends its line, text
    follows it, no opening mark precedes it, and it is not in a code block.
    """
    start = AnswerStart()
    start.feed(text)
    return start.of(lambda: text)


def split_reasoning(text: str) -> tuple[str, str]:
    """Split ``text`` into its reasoning, with marks and white space after it, and its answer."""
    end = reasoning_end(text)
    return text[:end], text[end:]


class AnswerStart:
    """Where the answer begins in a text that comes in pieces, as ``reasoning_end`` finds it so far.

    Attributes:
        place: Where the text ends so far, as far as opening marks tell. ``BEFORE``: what has come may still
            turn out to be an opening mark.
    """

    def __init__(self) -> None:
        self.place = ReasoningPlace.BEFORE
        # Characters that are known to be reasoning, with its marks and the white space behind them.
        self._end = 0
        self._length = 0
        self._closing = ""
        # The text's end, as far as a mark may begin in it.
        self._open = ""
        self._tail = ""
        self._closed = False
        self._unopened: int | None = None

    def feed(self, text: str) -> None:
        """Process the next piece."""
        self._length += len(text)
        if self.place is not ReasoningPlace.ANSWER:
            self._open += text
            while self._read():
                pass
        if self._closed or self._end:
            return
        self._tail += text
        self._closed = _CLOSING.search(self._tail) is not None
        self._tail = self._tail[-_LONGEST:]

    def of(self, text: Callable[[], str]) -> int:
        """Return where the answer begins in the text so far, which ``text`` gives; it is rarely needed."""
        if self._end or not self._closed:
            return self._end
        if self._unopened is None:
            self._unopened = _end_of_unopened(text())
        return self._unopened or 0

    def _read(self) -> bool:
        """Read on by one mark; whether there may be more to read."""
        if self.place is ReasoningPlace.WITHIN:
            return self._read_block()
        bare = self._open.lstrip()
        opening = _OPENING.match(bare)
        if opening is not None:
            self.place, self._closing = ReasoningPlace.WITHIN, _PAIRS[opening[0]]
            self._open = bare[opening.end() :]
            self._end = self._length
            return True
        if self._end:
            self._end = self._length - len(bare)
        if bare and not any(mark.startswith(bare) for mark in _PAIRS):
            self.place, self._open = ReasoningPlace.ANSWER, ""
        else:
            self._open = bare
        return False

    def _read_block(self) -> bool:
        found = self._open.find(self._closing)
        self._end = self._length
        if found < 0:
            self._open = self._open[-_LONGEST:]
            return False
        self._open = self._open[found + len(self._closing) :]
        self.place = ReasoningPlace.BEFORE
        self._end = self._length - len(self._open)
        return True


def _end_of_unopened(text: str) -> int | None:
    """Return where the answer begins after an unopened closing mark; ``None`` while that is undecided."""
    mark = _CLOSING.search(text)
    if mark is None:
        return None
    before, behind = text[: mark.start()], text[mark.end() :]
    bare = behind.lstrip()
    if not bare:
        return None
    own_line = "\n" in behind[: len(behind) - len(bare)]
    quoted = before.count(_FENCE) % 2 == 1
    if not before.strip() or quoted or not own_line or _OPENING_OF[mark[0]] in before:
        return 0
    return len(text) - len(bare)


def reasoning_to_score(plan: Plan, answers: Sequence[Answer]) -> dict[int, Answer]:
    """Return, by an answer's place, its reasoning as an answer of its own, where the plan has it scored."""
    if plan.reasoning is not Reasoning.SCORE:
        return {}
    # An index that no answer has: what is remembered of texts is remembered by it.
    return {
        place: Answer(-1 - place, AnswerKind.REASONING, answer.reasoning)
        for place, answer in enumerate(answers)
        if answer.reasoning.strip()
    }
