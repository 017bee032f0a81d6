"""Extract what the user asked from the text that is left when the evidence is cut out of a prompt."""

from __future__ import annotations

import re

from truthlens.api.evidence import prompt_patterns
from truthlens.core.cancellation import checkpoint

_RULE = re.compile(r"[ \t]{0,20}[-=*_~`\"']{3,}[ \t]*")
_LINE_CHARS = 600


def question_of(rest: str) -> str:
    """Return the question in ``rest``, without labels and without lines that only say how to answer.

    Where nothing but such lines is there, they are the question.
    """
    lines = [line for line in rest.split("\n") if not _is_scaffold(line)]
    for place, line in enumerate(lines):
        label = prompt_patterns.QUESTION_LINE.match(
            line[:_LINE_CHARS]
        ) or prompt_patterns.QUESTION_LEAD.match(line[:_LINE_CHARS])
        if label is not None:
            start = label.start("rest") if label["rest"] is not None else label.start("rest_zh")
            lines = [line[start:], *lines[place + 1 :]]
            break
    asked = [
        line for line in lines if line.strip() and not prompt_patterns.BOILERPLATE.match(line[:_LINE_CHARS])
    ]
    chosen = asked or [line for line in lines if line.strip()]
    return "\n".join(line.strip() for line in chosen)


def _is_scaffold(line: str) -> bool:
    """Return whether a line is a label with nothing after it, or a rule between parts of a prompt."""
    checkpoint()
    head = line[:_LINE_CHARS]
    if _RULE.fullmatch(head):
        return True
    label = prompt_patterns.HEADER_LINE.match(head) or prompt_patterns.ANSWER_LINE.match(head)
    return label is not None and not label["rest"].strip()
