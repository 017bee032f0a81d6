"""What has to hold of one exchange, given what the same exchange was like without faults and what fails around it.

A fault names what it may cost (``Cost``). What no fault around an exchange may cost has to be as it is without any.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from typing import Any

from bench.soak.client import Outcome
from bench.soak.deployment import MODE_DEADLINE_S, NOTICES
from bench.soak.exchanges import KINDS, Exchange, marked
from tests.integration.support.chaos import client, rounds
from tests.integration.support.chaos.backend import first_answer
from tests.integration.support.chaos.stream_backend import written_for
from tests.integration.support.chaos.stream_faults import faults_of as stream_faults
from tests.integration.support.chaos.stream_rounds import Got, parsed
from tests.integration.support.streams.stage import read_back

Outcomes = dict[tuple[str, int], Outcome]


class Cost(StrEnum):
    """What a fault may cost an exchange that it touches."""

    VERDICT = "unavailable"  # Envoy passes the answer without us, and says so
    REFUSED = "refused"  # Envoy refuses it, where it fails closed
    LATE = "late"  # too late or one too many, and said so
    BACKEND = "backend"  # no answer, or half of one, because the backend has none
    CONSOLE = "console"  # no answer of a console that is down


class Wrong(StrEnum):
    """What may be wrong with an exchange."""

    CHECKED = "wrong checked"
    BYTES = "bytes lost or doubled"
    HUNG = "hung"
    STATUS = "error that no fault explains"
    DIFFERS = "verdict differs"
    LATE = "late, and said so"  # by a machine that has no time: told, and no fault


@dataclass(frozen=True, slots=True)
class Finding:
    """One exchange that was not as it has to be."""

    number: int
    kind: str
    case: int
    wrong: Wrong
    what: str
    faults: tuple[str, ...] = ()


class Judge:
    """Compares outcomes with those of the same seed without faults."""

    def __init__(self, seed: int) -> None:
        self.learnt: Outcomes = {}
        self._seed = seed

    def learn(self, exchange: Exchange, outcome: Outcome) -> Iterator[Finding]:
        """Keep the outcome of an exchange without faults; yield what is wrong with that."""
        if exchange.family == "plain" and is_late(outcome):
            yield _finding(exchange, Wrong.LATE, "not learnt from this one")
            return
        self.learnt.setdefault(exchange.key, outcome)
        yield from self.findings(exchange, outcome, frozenset())
        expects = KINDS[exchange.kind].expects if exchange.family == "plain" else None
        if expects is not None and outcome.got is not None:
            said = outcome.said
            seen = (
                outcome.got.status,
                said.get("status"),
                said.get("reason", ""),
                expects[3] and said.get("detected", ""),
            )
            if seen != expects:
                yield _finding(exchange, Wrong.DIFFERS, f"{seen}, expected {expects}")

    def findings(self, exchange: Exchange, outcome: Outcome, costs: frozenset[Cost]) -> Iterator[Finding]:
        """Yield what is wrong with an exchange around which faults may cost this."""
        if outcome.left:
            return
        if outcome.hung:
            yield _finding(exchange, Wrong.HUNG, f"no end within {outcome.seconds:.0f} s")
        elif outcome.got is None:
            if not costs & {Cost.BACKEND, Cost.CONSOLE} or "framing" in outcome.error:
                yield _finding(
                    exchange, Wrong.BYTES if "framing" in outcome.error else Wrong.STATUS, outcome.error
                )
        elif not _costs(outcome, costs):
            look = {"plain": self._plain, "stream": self._stream, "mode": self._mode}[exchange.family]
            yield from look(exchange, outcome, outcome.got, costs)

    # --- plain --------------------------------------------------------------------------------------------

    def _plain(
        self, exchange: Exchange, outcome: Outcome, got: Got, costs: frozenset[Cost]
    ) -> Iterator[Finding]:
        reference = self.learnt.get(exchange.key)
        assert reference is not None
        assert reference.got is not None
        seen, body = _verdict(outcome), _body(exchange, outcome)
        bodies = _alternatives(_body(replace(exchange, number=0), reference))
        if (
            (got.status, seen) == (reference.got.status, _verdict(reference))
            and body in bodies
            and not got.broken
        ):
            return
        own = _own(exchange.kind, exchange.case)
        status, reason = outcome.said.get("status"), outcome.said.get("reason")
        own_body = _body(replace(exchange, number=0), Outcome(0.0, 0.0, got=own))
        passed = got.status == own.status and body == own_body and not got.broken
        if Cost.VERDICT in costs and passed and (status, reason) == ("unchecked", "unavailable"):
            return
        held = got.status == 424 and exchange.plan == "strict"
        whole = got.status == own.status and not got.broken and _ends_with(body, own_body)
        if is_late(outcome) and (held or whole):
            if Cost.LATE not in costs:
                yield _finding(exchange, Wrong.LATE, f"{status} {reason}")
            return
        if status == reference.said.get("status") == "partial" and whole:
            # It names one reason: what was left out for another may be more than it was.
            yield _finding(exchange, Wrong.LATE, f"{seen}, not {_verdict(reference)}")
            return
        wrong = Wrong.DIFFERS
        if status == "checked" and seen != _verdict(reference):
            wrong = Wrong.CHECKED
        elif got.status >= 500 and reference.got.status < 500:
            wrong = Wrong.STATUS
        elif got.broken or (body not in bodies and not passed and not held):
            wrong = Wrong.BYTES
        yield _finding(
            exchange,
            wrong,
            f"{got.status} {seen}, not {reference.got.status} {_verdict(reference)}; body: {_difference(body, bodies[0])}",
        )

    # --- streams ------------------------------------------------------------------------------------------

    def _stream(
        self, exchange: Exchange, outcome: Outcome, got: Got, costs: frozenset[Cost]
    ) -> Iterator[Finding]:
        _, written = written_for(self._seed, exchange.body)
        if Cost.BACKEND in costs:
            written = replace(written, breaks=True)
        killed, closed = bool(costs & {Cost.VERDICT, Cost.REFUSED}), Cost.REFUSED in costs
        for fault in stream_faults(exchange.case, got, written, killed=killed, closed=closed):
            yield _finding(exchange, Wrong.STATUS if ": status " in fault else Wrong.BYTES, fault)
        # Where the backend breaks off behind its head, Envoy does not wait for ours.
        if outcome.said.get("reason") == "unavailable" and not killed and not written.breaks:
            yield _finding(exchange, Wrong.DIFFERS, "unavailable")
        reference = self.learnt.get(exchange.key)
        told, known = _told(got), reference and reference.got and _told(reference.got)
        # A stream that broke off has the verdict on the part that came.
        both = told and known and told[0] == known[0] == "checked"
        if both and not written.breaks and told != known:
            yield _finding(exchange, Wrong.CHECKED, f"{told}, not {known}")

    # --- modes --------------------------------------------------------------------------------------------

    def _mode(
        self, exchange: Exchange, outcome: Outcome, got: Got, costs: frozenset[Cost]
    ) -> Iterator[Finding]:
        said = outcome.said
        clean = [said.get(name) for name in ("status", "detected", "action")] == ["checked", "false", "pass"]
        if clean and exchange.case % 5:
            yield _finding(exchange, Wrong.CHECKED, f"clean, and it is {got.body[:300]!r}")
        if got.broken or got.status != 200:
            yield _finding(exchange, Wrong.BYTES if got.broken else Wrong.STATUS, f"status {got.status}")
            return
        texts = [choice["message"]["content"] for choice in json.loads(outcome.body)["choices"]]
        if said.get("reason") == "unavailable":
            # Envoy waits for the deadline and two seconds more.
            if Cost.VERDICT not in costs:
                late = outcome.seconds > MODE_DEADLINE_S + 2
                yield _finding(exchange, Wrong.LATE if late else Wrong.DIFFERS, "unavailable")
            if texts != [first_answer(exchange.case)]:
                yield _finding(exchange, Wrong.BYTES, f"{texts}")
        elif exchange.plan == "agentic":
            if not any(first_answer(exchange.case) in text for text in texts):
                yield _finding(exchange, Wrong.BYTES, f"{texts}")
        else:
            # How long a frozen process held it is no fault of its own.
            deadline = MODE_DEADLINE_S + (60 if costs else 0)
            seen = client.Got(got.status, got.headers, outcome.body, b"", outcome.seconds)
            for fault in rounds.faults_of(exchange.case, exchange.plan, seen, deadline_s=deadline):
                yield _finding(
                    exchange, Wrong.BYTES if "text" in fault.split(";")[0] else Wrong.DIFFERS, fault
                )


def is_late(outcome: Outcome) -> bool:
    """Return whether there was no time to check an answer, or not for all of it."""
    said = outcome.said
    return said.get("status") in ("unchecked", "partial") and said.get("reason") in ("timeout", "overloaded")


def _finding(exchange: Exchange, wrong: Wrong, what: str) -> Finding:
    return Finding(exchange.number, exchange.kind, exchange.case, wrong, what[:1500])


def _costs(outcome: Outcome, costs: frozenset[Cost]) -> bool:
    """Return whether an exchange is an error of Envoy's, or broken off, and a fault explains that."""
    assert outcome.got is not None
    status = outcome.got.status
    if Cost.REFUSED in costs and status in (503, 504):
        return True
    return Cost.BACKEND in costs and (status in (502, 503, 504) or outcome.got.broken)


def _verdict(outcome: Outcome) -> dict[str, str]:
    """Return what the headers say, without what differs each time."""
    return {name: value for name, value in outcome.said.items() if name not in ("latency-ms", "review-id")}


def _told(got: Got) -> tuple[Any, Any] | None:
    """Return status and detected of a stream's last verdict, where it has one."""
    try:
        verdicts = read_back(got.body).verdicts
    except (ValueError, KeyError, TypeError, AttributeError, AssertionError):
        return None
    return (verdicts[-1][1].get("status"), verdicts[-1][1].get("detected")) if verdicts else None


def _body(exchange: Exchange, outcome: Outcome) -> bytes:
    """Return the answer's body without its number, and without times and names that differ each time."""
    body = outcome.body.replace(marked(exchange.number).encode(), b"#")
    try:
        value = json.loads(body)
    except ValueError:
        return body
    if not isinstance(value, dict) or not (exchange.kind == "detect" or "truthlens" in value):
        return body
    return json.dumps(_timeless(value)).encode()


# The policy's version changes with each edit. The others are explanations, which are left out where there is no time
# for them.
_NOT_COMPARED = frozenset(
    (
        "policy_version",
        "nearest",
        "sentence",
        "differences",
        "kind",
        "context",
        "explanation",
        "evidence",
        "passage",
    )
)


def _timeless(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _timeless(item)
            for key, item in value.items()
            if key not in _NOT_COMPARED and not key.endswith(("_ms", "_s", "review_id", "request_id"))
        }
    return [_timeless(item) for item in value] if isinstance(value, list) else value


def _difference(body: bytes, known: bytes) -> str:
    """Return where two bodies part: the path in JSON and both values, or the bytes from there on."""
    try:
        return _parting(json.loads(body), json.loads(known)) or "the same"
    except ValueError:
        at = next(
            (n for n, (a, b) in enumerate(zip(body, known, strict=False)) if a != b),
            min(len(body), len(known)),
        )
        return f"from byte {at} of {len(body)} ({len(known)}): {body[at : at + 80]!r}, not {known[at : at + 80]!r}"


def _parting(value: Any, known: Any, path: str = "") -> str:
    if isinstance(value, dict) and isinstance(known, dict) and value.keys() == known.keys():
        pairs = [(value[key], known[key], f"{path}.{key}") for key in value]
    elif isinstance(value, list) and isinstance(known, list) and len(value) == len(known):
        pairs = [(a, b, f"{path}[{n}]") for n, (a, b) in enumerate(zip(value, known, strict=True))]
    else:
        return "" if value == known else f"{path}: {str(value)[:300]!r}, not {str(known)[:300]!r}"
    return next((found for each in pairs if (found := _parting(*each))), "")


def _alternatives(body: bytes) -> tuple[bytes, bytes]:
    return body, body.replace(NOTICES[0].encode(), NOTICES[1].encode())


@cache
def _own(kind: str, case: int) -> Got:
    """Return what the backend says to a case, as a client without a gateway gets it."""
    return parsed("", b"".join(KINDS[kind].answer(case, marked(0)).writes))


def _ends_with(body: bytes, own: bytes) -> bool:
    """Return whether an answer is the backend's, with a disclaimer before its texts or without."""
    if body == own:
        return True
    try:
        (seen, last), (sent, first) = (_apart(json.loads(each)) for each in (body, own))
    except (ValueError, KeyError, TypeError, AttributeError):
        return False
    return seen == sent and all(text.endswith(end) for text, end in zip(last, first, strict=True))


def _apart(answer: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return an answer without its texts and without our object, and the texts."""
    texts = []
    for choice in answer["choices"]:
        holder = choice.get("message", choice)
        texts += [str(holder.pop(name, None)) for name in ("content", "text")]
    answer.pop("truthlens", None)
    return answer, texts
