"""Compare what became of exchanges with what another policy makes of them; pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from truthlens.lab.replay.kept import WouldAsk
from truthlens.lab.replay.reading import KeptExchange

# The mode is none of them: that another one would have been at hand is no other verdict.
_TOLD = ("decision", "action", "shadow_action", "status", "reason", "flagged")
# What is known of an exchange whose models were not asked: the rest would follow from what they say.
_BEFORE_MODELS = ("decision",)


@dataclass(frozen=True, slots=True)
class Replayed:
    """One exchange, then and now.

    ``now`` is what became of it (``process.capture.lines.outcome_content``), ``None`` where it could not be replayed, for the
    reason ``why_not``. ``would_ask`` and ``would_search`` are calls and searches whose results were not kept: where there are
    any, what follows from them is not known. ``shown`` is what a page shows of it.
    """

    kept: KeptExchange
    now: Mapping[str, Any] | None
    why_not: str = ""
    would_ask: tuple[WouldAsk, ...] = ()
    would_search: tuple[str, ...] = ()
    shown: Any = None

    @property
    def then(self) -> Mapping[str, Any]:
        """What became of it when it was captured."""
        return self.kept.outcome

    @property
    def is_open(self) -> bool:
        """Whether the end depends on what somebody would say who was not asked."""
        return bool(self.would_ask or self.would_search)

    @property
    def changes(self) -> tuple[str, ...]:
        """What is another now, as ``name then → now``; of an open exchange as far as it is known."""
        if self.now is None:
            return ()
        names = _BEFORE_MODELS if self.is_open else _TOLD
        pairs = [(name, self.then.get(name), self.now.get(name)) for name in names]
        pairs.append(("first flagged", _flags(self.then, "first"), _flags(self.now, "first")))
        if not self.is_open and len(self.now.get("choices", ())) > 1:
            pairs.append(("flagged choices", _flags(self.then, "choices"), _flags(self.now, "choices")))
        found = [f"{name} {_word(then)} → {_word(now)}" for name, then, now in pairs if then != now]
        if self.would_ask and not self.then.get("calls"):
            found.append("models: nobody → asked")
        if self.would_search and not self.kept.searches:
            found.append("sources: none → searched")
        return tuple(found)

    @property
    def changed(self) -> bool:
        """Whether anything is another now."""
        return bool(self.changes)


@dataclass(slots=True)
class GroupFigures:
    """Figures of the exchanges of one decision and mode, then and now; ``calls`` and ``tokens`` are of models, and of those that would be asked."""

    exchanges: int = 0
    checked: list[int] = field(default_factory=lambda: [0, 0])
    flagged: list[int] = field(default_factory=lambda: [0, 0])
    changed: int = 0
    open: int = 0
    calls: list[int] = field(default_factory=lambda: [0, 0])
    tokens: list[int] = field(default_factory=lambda: [0, 0])
    would_ask: int = 0
    would_ask_tokens: int = 0

    def add(self, row: Replayed) -> None:
        """Count an exchange that was replayed."""
        assert row.now is not None
        self.exchanges += 1
        self.changed += row.changed
        self.open += row.is_open
        for place, outcome in enumerate((row.then, row.now)):
            calls = outcome.get("calls", ())
            self.checked[place] += outcome.get("status") == "checked"
            self.flagged[place] += any(_flags(outcome, "first") or ())
            self.calls[place] += len(calls)
            self.tokens[place] += sum(sum(call["tokens"]) for call in calls)
        self.would_ask += len(row.would_ask)
        self.would_ask_tokens += sum(each.tokens for each in row.would_ask)


@dataclass(frozen=True, slots=True)
class ReplayFigures:
    """All exchanges of a replay, and their figures: by decision and mode now, all together, and by what changed."""

    rows: Sequence[Replayed]
    groups: Mapping[tuple[str, str], GroupFigures]
    total: GroupFigures
    changes: Mapping[str, int]
    not_replayed: Mapping[str, int]

    @property
    def redacted(self) -> int:
        """Exchanges that something was taken out of before they were kept."""
        return sum(row.kept.redacted for row in self.rows)

    @property
    def told(self) -> list[Replayed]:
        """The exchanges that somebody wants to look at: changed, or open."""
        return [row for row in self.rows if row.changed or (row.is_open and row.now is not None)]

    def as_json(self, policy: Mapping[str, Any]) -> dict[str, Any]:
        """Return the whole comparison; the same capture and policy give the same."""
        return {
            "format": 1,
            "policy": policy,
            "exchanges": len(self.rows),
            "redacted": self.redacted,
            "not_replayed": dict(self.not_replayed),
            "total": _figures(self.total),
            "groups": [
                {"decision": decision, "mode": mode, **_figures(group)}
                for (decision, mode), group in self.groups.items()
            ],
            "changes": dict(self.changes),
            "rows": [_row(row) for row in self.told],
        }


def compared(rows: Iterable[Replayed]) -> ReplayFigures:
    """Return the figures of replayed exchanges."""
    rows, groups, total = list(rows), dict[tuple[str, str], GroupFigures](), GroupFigures()
    changes: Counter[str] = Counter()
    why_not: Counter[str] = Counter()
    for row in rows:
        if row.now is None:
            why_not[row.why_not] += 1
            continue
        key = str(row.now["decision"]), str(row.now["mode"])
        groups.setdefault(key, GroupFigures()).add(row)
        total.add(row)
        changes.update(row.changes)
    ranked = sorted(changes.items(), key=lambda each: (-each[1], each[0]))
    return ReplayFigures(
        rows, dict(sorted(groups.items())), total, dict(ranked), dict(sorted(why_not.items()))
    )


def _row(row: Replayed) -> dict[str, Any]:
    assert row.now is not None
    found: dict[str, Any] = {
        "id": row.kept.id,
        "time": row.kept.time,
        "request_id": row.kept.request.headers.get("x-request-id", ""),
        "changes": list(row.changes),
        "then": _verdict(row.then),
        "now": _verdict(row.now),
    }
    if row.kept.redacted:
        found["redacted"] = True
    if row.would_ask:
        found["would_ask"] = [
            {"model": each.model, "role": each.role, "prompt_tokens": each.tokens} for each in row.would_ask
        ]
    if row.would_search:
        found["would_search"] = list(row.would_search)
    return found


def _verdict(outcome: Mapping[str, Any]) -> dict[str, Any]:
    names = (*_TOLD, "mode", "score", "threshold", "initial_score", "iterations", "notes")
    found = {name: outcome[name] for name in names if name in outcome}
    found["first"] = outcome.get("first", [])
    return found


def _figures(group: GroupFigures) -> dict[str, Any]:
    pairs = {
        name: {"then": value[0], "now": value[1]}
        for name, value in (
            ("checked", group.checked),
            ("flagged", group.flagged),
            ("model_calls", group.calls),
            ("model_tokens", group.tokens),
        )
    }
    return {
        "exchanges": group.exchanges,
        **pairs,
        "changed": group.changed,
        "open": group.open,
        "would_ask": group.would_ask,
        "would_ask_prompt_tokens": group.would_ask_tokens,
    }


def _flags(outcome: Mapping[str, Any], name: str) -> list[bool | None] | None:
    """Return which verdicts were flagged, ``None`` where there is none: an answer was never read."""
    found = [each.get("flagged") for each in outcome.get(name, ())]
    return found or None


def _word(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(_word, value))
    return {None: "none", True: "yes", False: "no"}.get(value, str(value))
