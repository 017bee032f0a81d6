"""What the attacks try to get past the check: an invented sentence, beside a supported one, with its evidence."""

from __future__ import annotations

import json
import re
from typing import Any

CONTEXT = (
    "The library in Elm Street opens at nine and closes at six. It is closed on Sundays. A card costs five euros a"
    " year. Members may borrow ten books for three weeks."
)
WORD = "pharmacy"
"""The word by which a question gets the stricter decision."""
QUESTION = f"When does the library beside the {WORD} open?"
TRUE = "The library in Elm Street opens at nine and closes at six."
ALSO_TRUE = "Members may borrow ten books for three weeks."
FALSE = "The library opens at four in the morning, serves whisky and was founded by Napoleon in 1204."
USER = f"<context>{CONTEXT}</context>\n{QUESTION}"
PLAIN: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": USER}]}

_RUN = 6
_WORDS = re.findall(r"\w+", FALSE.lower())
RUNS = tuple(" ".join(_WORDS[at : at + _RUN]) for at in range(len(_WORDS) - _RUN + 1))


def forms(raw: bytes) -> list[str]:
    """Return what a client could put together from bytes: as text, and from the strings and numbers of their JSON."""
    # UTF-16 and UTF-32 of this text are its letters between zeros.
    text = raw.replace(b"\0", b"").decode("utf-8", "replace")
    found = [text, re.sub(r"\\u([0-9a-fA-F]{4})", lambda code: chr(int(code[1], 16)), text)]
    for line in re.split(r"[\r\n]+", text):
        data = line.removeprefix("data:").strip()
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            continue
        strings: list[str] = []
        numbers: list[int] = []
        stack = [value]
        while stack:
            match stack.pop():
                case str(each):
                    strings.append(each)
                case bool():
                    pass
                case int(each) if 0 <= each < 256:
                    numbers.append(each)
                case list(each):
                    stack += reversed(each)
                case dict(each):
                    stack += reversed([part for pair in each.items() for part in pair])
        found += [" ".join(strings), "".join(strings), bytes(numbers).decode("latin-1")]
    return found


def tells(raw: bytes) -> bool:
    """Return whether six words in a row of the invented sentence can be read from a body, in any of its forms."""
    return any(run in " ".join(re.findall(r"\w+", form.lower())) for form in forms(raw) for run in RUNS)
