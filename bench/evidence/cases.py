"""Load the marked request bodies of ``tests/evidence/cases`` and compare with them what is taken as evidence."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from truthlens.api.requests import parse_request
from truthlens.core.records.enums import Endpoint
from truthlens.core.records.exchange import Exchange
from truthlens.core.records.settings import EvidenceRules

CASES = Path(__file__).parents[2] / "tests" / "evidence" / "cases"
_MARK = re.compile(r"⟦(/?)([eqm])⟧")


@dataclass(frozen=True, slots=True)
class Case:
    """One request body with what of it is evidence (texts of documents), metadata and the question."""

    framework: str
    variant: str
    expect: str
    body: dict[str, Any]
    evidence: tuple[str, ...]
    metadata: tuple[str, ...]
    question: str
    supported: tuple[str, ...] = ()
    invented: tuple[str, ...] = ()
    right: tuple[str, ...] = ()
    response_citations: bool = False

    @property
    def endpoint(self) -> Endpoint:
        """The API that takes this body."""
        return Endpoint.CHAT if "messages" in self.body else Endpoint.COMPLETIONS

    def exchange(self, rules: EvidenceRules | None = None) -> Exchange:
        """Read the body."""
        return parse_request(json.dumps(self.body).encode(), self.endpoint, rules or EvidenceRules())


@dataclass(frozen=True, slots=True)
class Result:
    """What was taken of a case: shares 0..1 of the characters of its evidence and of its other text."""

    evidence: float
    other: float
    question: bool
    status: bool


def load(folder: str) -> list[Case]:
    """Return the cases of ``develop`` or ``held_out``, by file."""
    cases = []
    for path in sorted((CASES / folder).glob("*.yaml")):
        cases += [_case(entry) for entry in yaml.load(path.read_text("utf-8"), yaml.CSafeLoader) or []]
    return cases


def compare(case: Case, rules: EvidenceRules | None = None) -> Result:
    """Return how much of the evidence of ``case`` is taken, and of what is none; whether its question and status are right.

    Text is compared as a multiset of words: where a word stands twice, it counts twice.
    """
    exchange = case.exchange(rules)
    taken = _counted(f"{passage.title} {passage.text}" for passage in exchange.passages)
    wanted = _counted(case.evidence)
    noise = _counted(_strings(case.body)) - wanted - _counted(case.metadata)
    found = _length(taken & wanted) / _length(wanted) if wanted else 1.0
    extra = _counted(passage.text for passage in exchange.passages) - wanted
    other = _length(extra & noise) / _length(noise) if noise else 0.0
    if case.expect == "evidence" and not case.response_citations:
        status = exchange.unchecked is None
    elif case.expect == "not-an-answer":
        status = exchange.unchecked == "not-an-answer"
    else:
        status = exchange.unchecked is not None
    # A question that refers to an earlier one stands behind it.
    asked = not case.question or _plain(case.question) in (
        _plain(exchange.query),
        _plain(exchange.query.rpartition("\n")[2]),
    )
    return Result(found, other, asked, status)


def _case(entry: dict[str, Any]) -> Case:
    marked: dict[str, list[str]] = {"e": [], "q": [], "m": []}
    body = _unmarked(entry["body"], marked)
    return Case(
        framework=str(entry["framework"]),
        variant=str(entry.get("variant", "")),
        expect=str(entry.get("expect", "evidence")),
        body=body,
        evidence=tuple(marked["e"]),
        metadata=tuple(marked["m"]),
        question=marked["q"][-1].strip() if marked["q"] else "",
        supported=tuple(map(str, entry.get("supported") or ())),
        invented=tuple(map(str, entry.get("invented") or ())),
        right=tuple(map(str, entry.get("right") or ())),
        response_citations=bool(entry.get("response_citations")),
    )


def _unmarked(value: Any, marked: dict[str, list[str]]) -> Any:
    if isinstance(value, dict):
        return {key: _unmarked(item, marked) for key, item in value.items()}
    if isinstance(value, list):
        return [_unmarked(item, marked) for item in value]
    if not isinstance(value, str):
        return value
    opened: dict[str, int] = {}
    plain: list[str] = []
    size = at = 0
    for mark in _MARK.finditer(value):
        plain.append(value[at : mark.start()])
        size += mark.start() - at
        at = mark.end()
        if mark[1]:
            marked[mark[2]].append("".join(plain)[opened.pop(mark[2]) : size])
        else:
            opened[mark[2]] = size
    return "".join((*plain, value[at:]))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        # What is no text of the conversation: settings, tools, labels.
        for key, item in value.items():
            if key not in ("model", "role", "type", "id", "tool_call_id", "tools", "temperature"):
                yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, str):
        yield value


def words(text: str) -> list[str]:
    """Return the words of a text, each sign of Chinese and Japanese one of its own."""
    # A mark inside a JSON text stands around what is escaped there.
    text = text.replace("\\n", "\n").replace('\\"', '"')
    return re.findall(r"[一-鿿぀-ヿ]|\w+", text)


def _counted(texts: Iterable[str]) -> Counter[str]:
    return Counter(word for text in texts for word in words(text))


def _length(words: Counter[str]) -> int:
    return sum(len(word) * count for word, count in words.items())


def _plain(text: str) -> str:
    return " ".join(text.split()).strip("\"'“”")
