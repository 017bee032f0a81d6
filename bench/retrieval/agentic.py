"""What mode agentic makes of right and wrong answers, through a real Envoy, with scripted models of three strengths.

    python -m bench.retrieval.agentic [--questions 30] [--seed 1] [--smoke] [--out bench/results]

The corpus is ``data/retrieval``. Every question is asked with a right and with a wrong first answer, of a request without
evidence, and the answerable ones also with a page about something else as evidence. The backend is the model of the loop
as well: ``bench/retrieval/scripted_models.py`` says what a strong, a middling and a weak one does. The detectors are those of
the shipped policy. Writes agentic.json and .md. Latencies are what TruthLens adds: the scripted models answer at once.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import httpx

from bench.common.script import command, machine, percentile, write_result
from bench.retrieval.corpus import (
    FOLDER,
    CorpusQuestion,
    QuestionKind,
    RetrievalCorpus,
    read_corpus,
)
from bench.retrieval.scripted_models import STRENGTHS, ScriptedModels, Truth, truth_of, write_oracle
from tests.integration.support.backend import Backend, Raw, Received, completion, json_reply
from tests.integration.support.stack import Stack
from truthlens.lab.markdown import table
from truthlens.retrieval.sources.folder.options import FolderOptions
from truthlens.retrieval.sources.folder.updating import update_index

FIRSTS = ("right", "wrong")
WITHOUT, OTHER = "none", "another page"
_QUESTION, _FIRST = "x-bench-question", "x-bench-first"
_CHARS_A_TOKEN = 4
_AT_ONCE = 2


@dataclass(frozen=True, slots=True)
class AskedCase:
    """One exchange: a question, its first answer, and the evidence in its request."""

    strength: str
    question: CorpusQuestion
    first: str
    evidence: str = WITHOUT
    page: str = ""


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    """What became of it; ``calls`` and ``tokens`` are those of the loop, ``flagged`` is ``None`` where nothing was checked."""

    strength: str
    question: str
    kind: str
    evidence: str
    before: str
    after: str
    flagged: bool | None
    reason: str
    action: str
    cause: str
    calls: int
    tokens: int
    latency_ms: int
    answer: str
    notes: tuple[str, ...]


class Upstream:
    """The backend, with its calls counted by model and question."""

    def __init__(self, models: ScriptedModels) -> None:
        self._models = models
        self._lock = threading.Lock()
        self._calls: Counter[tuple[str, str]] = Counter()
        self._tokens: Counter[tuple[str, str]] = Counter()

    def __call__(self, request: Received) -> Raw:
        """Answer a request; the sidecar also looks for a list of models, which there is not."""
        if request.method != "POST":
            return json_reply({}, status="404 Not Found")
        body = json.loads(request.body)
        said = self._models.reply(
            body, first=request.headers.get(_FIRST, ""), question=request.headers.get(_QUESTION, "")
        )
        asked = sum(len(each["content"]) for each in body["messages"]) // _CHARS_A_TOKEN
        written = len(said.text) // _CHARS_A_TOKEN
        usage = {"prompt_tokens": asked, "completion_tokens": written, "total_tokens": asked + written}
        if _FIRST not in request.headers:
            with self._lock:
                self._calls[body["model"], said.question] += 1
                self._tokens[body["model"], said.question] += asked + written
        return json_reply(completion(said.text, model=body["model"], usage=usage))

    def taken(self, model: str, question: str) -> tuple[int, int]:
        """Return the loop's calls and tokens for a question since the last time, and forget them."""
        with self._lock:
            return self._calls.pop((model, question), 0), self._tokens.pop((model, question), 0)


def chosen(corpus: RetrievalCorpus, count: int, seed: int) -> tuple[CorpusQuestion, ...]:
    """Return ``count`` questions, of each kind its share of the corpus and one at least; 0 are all."""
    if not count:
        return corpus.questions
    drawn = random.Random(seed)
    found: list[CorpusQuestion] = []
    for kind in QuestionKind:
        own = [each for each in corpus.questions if each.kind is kind]
        found += drawn.sample(own, min(len(own), max(1, round(count * len(own) / len(corpus.questions)))))
    return tuple(found)


def cases_of(corpus: RetrievalCorpus, questions: Sequence[CorpusQuestion]) -> Iterator[list[AskedCase]]:
    """Yield the exchanges of each strength and question, which are made one after another."""
    for strength in STRENGTHS:
        for place, question in enumerate(questions):
            cases = [AskedCase(strength.name, question, first) for first in FIRSTS]
            other = corpus.pages[(place * 7) % len(corpus.pages)]
            if question.kind is QuestionKind.ANSWERABLE and other.path not in question.page:
                cases += [AskedCase(strength.name, question, first, OTHER, other.text) for first in FIRSTS]
            yield cases


@contextmanager
def deployed(folder: Path, oracle: Path, seed: int) -> Iterator[tuple[Stack, Upstream]]:
    """Start backend, sidecar and Envoy, with the pages as a source that is indexed already."""
    pages, index = FOLDER / "pages", folder / "index.db"
    options = FolderOptions(path=str(pages), index=str(index))
    update_index(pages.resolve(), index, options)
    source = {"name": "pages", "type": "folder", "path": str(pages), "index": str(index), "timeout_s": 60}
    behaviour = {
        "default_mode": "agentic",
        "details": True,
        "timeout_s": 20,
        "streaming": "buffer",
        "retrieval": {"sources": ["pages"]},
    }
    upstream = Upstream(ScriptedModels(oracle, seed))
    # JSON is YAML.
    policy = json.dumps({"sources": [source], "hallucination": behaviour}) + "\n"
    stack = Stack(folder, policy, backend=Backend(reply=upstream), patient=True)
    try:
        stack.start()
        yield stack, upstream
    finally:
        stack.stop()


def outcome_of(stack: Stack, upstream: Upstream, case: AskedCase) -> CaseOutcome:
    """Make one exchange."""
    body: dict[str, Any] = {
        "model": case.strength,
        "messages": [{"role": "user", "content": case.question.question}],
    }
    if case.page:
        body["documents"] = [case.page]
    headers = {_QUESTION: case.question.id, _FIRST: case.first}
    response = httpx.post(f"{stack.url}/v1/chat/completions", json=body, headers=headers, timeout=300)
    response.raise_for_status()
    calls, tokens = upstream.taken(case.strength, case.question.id)
    given = response.json()
    answer = given["choices"][0]["message"]["content"]
    told = given["truthlens"]
    corrected = told["choices"][0].get("mitigation") or {}
    return CaseOutcome(
        strength=case.strength,
        question=case.question.id,
        kind=case.question.kind.value,
        evidence=case.evidence,
        before=case.first,
        after=truth_of(answer, case.question).value,
        flagged={"true": True, "false": False}.get(response.headers.get("x-truthlens-detected", "")),
        reason=response.headers.get("x-truthlens-reason", ""),
        action=response.headers["x-truthlens-action"],
        cause=corrected.get("cause") or "",
        calls=calls,
        tokens=tokens,
        latency_ms=int(response.headers["x-truthlens-latency-ms"]),
        answer=answer,
        notes=tuple(told.get("notes", ())),
    )


def figures(outcomes: Sequence[CaseOutcome]) -> dict[str, Any]:
    """Return the figures of the exchanges of one strength with one kind of evidence."""
    right = [each for each in outcomes if each.before == Truth.RIGHT]
    wrong = [each for each in outcomes if each.before == Truth.WRONG]
    still = [each for each in wrong if each.after == Truth.WRONG]
    spent = sorted(each.latency_ms for each in outcomes)
    return {
        "exchanges": len(outcomes),
        "right_first": {"all": len(right), **_counted(each.after for each in right)},
        "right_first_flagged": sum(each.after == Truth.RIGHT and each.flagged is True for each in right),
        "right_to_wrong_unflagged": sum(each.after == Truth.WRONG and not each.flagged for each in right),
        "wrong_first": {"all": len(wrong), **_counted(each.after for each in wrong)},
        "still_wrong": {
            "flagged": sum(each.flagged is True for each in still),
            "unchecked": sum(each.flagged is None for each in still),
            "not flagged": sum(each.flagged is False for each in still),
        },
        "checked_and_right": sum(each.after == Truth.RIGHT and each.flagged is False for each in outcomes),
        "calls": round(sum(each.calls for each in outcomes) / len(outcomes), 1),
        "tokens": round(sum(each.tokens for each in outcomes) / len(outcomes)),
        "p50_ms": percentile(spent, 0.5),
        "p99_ms": percentile(spent, 0.99),
        "causes": dict(Counter(each.cause or "no run" for each in outcomes)),
    }


def _counted(found: Iterable[str]) -> dict[str, int]:
    counts = Counter(found)
    return {truth.value: counts[truth.value] for truth in Truth}


def rows_of(outcomes: Sequence[CaseOutcome]) -> list[dict[str, Any]]:
    """Return the figures by strength and evidence, in the order in which they were asked."""
    groups = dict.fromkeys((each.strength, each.evidence) for each in outcomes)
    return [
        {"model": strength, "evidence": evidence}
        | figures([each for each in outcomes if (each.strength, each.evidence) == (strength, evidence)])
        for strength, evidence in groups
    ]


def told(rows: Sequence[dict[str, Any]]) -> str:
    """Return the figures as a table."""
    head = (
        "model", "evidence in the request", "right before: right / declined / wrong after",
        "wrong before: right / declined / wrong after", "of these still wrong: flagged / unchecked / not flagged",
        "checked, not flagged and right", "calls", "tokens", "added p50 / p99, ms",
    )  # fmt: skip
    lines = [
        [
            row["model"],
            row["evidence"],
            " / ".join(str(row["right_first"][truth.value]) for truth in Truth),
            " / ".join(str(row["wrong_first"][truth.value]) for truth in Truth),
            " / ".join(str(each) for each in row["still_wrong"].values()),
            f"{row['checked_and_right']} of {row['exchanges']}",
            f"{row['calls']:.1f}",
            f"{row['tokens']:,}",
            f"{row['p50_ms']:,} / {row['p99_ms']:,}",
        ]
        for row in rows
    ]
    return table(head, lines)


def run(options: argparse.Namespace) -> dict[str, Any]:
    """Return all figures, and every exchange in which a right answer was lost."""
    corpus = read_corpus()
    questions = chosen(corpus, 3 if options.smoke else options.questions, options.seed)
    with tempfile.TemporaryDirectory() as place:
        oracle = Path(place) / "oracle.json"
        write_oracle(oracle, corpus.questions)
        folder = Path(place) / "deployment"
        folder.mkdir()
        with deployed(folder, oracle, options.seed) as (stack, upstream):

            def made(cases: Sequence[AskedCase]) -> list[CaseOutcome]:
                return [outcome_of(stack, upstream, case) for case in cases]

            # Loads the models, which no figure is to hold.
            outcome_of(stack, upstream, AskedCase(STRENGTHS[0].name, questions[0], FIRSTS[0]))
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                batches = list(pool.map(made, cases_of(corpus, questions)))
    outcomes = [each for batch in batches for each in batch]
    lost = [each for each in outcomes if each.before == Truth.RIGHT and each.after != Truth.RIGHT]
    return {
        "machine": machine(f"{_AT_ONCE} exchanges at a time"),
        "seed": options.seed,
        "questions": len(questions),
        "strengths": [asdict(each) for each in STRENGTHS],
        "rows": rows_of(outcomes),
        "right_answers_lost": [asdict(each) for each in lost],
        "outcomes": [asdict(each) for each in outcomes],
    }


def main() -> None:
    """Run from the command line."""
    parser = command(__doc__)
    parser.add_argument("--questions", type=int, default=30, help="so many questions; 0: all of them")
    parser.add_argument("--seed", type=int, default=1, help="of the questions and of the models' mistakes")
    parser.add_argument("--smoke", action="store_true", help="three questions, to see that it runs")
    options = parser.parse_args()
    if options.questions < 0:
        parser.error("--questions is 0 or more")
    result = run(options)
    text = f"{result['questions']} questions, seed {result['seed']}; {result['machine']}\n\n{told(result['rows'])}"
    write_result(options.out, "agentic", result, text.rstrip())
    print(text.rstrip())


if __name__ == "__main__":
    main()
