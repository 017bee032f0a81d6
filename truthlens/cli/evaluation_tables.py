"""The tables that ``eval`` prints; each fits on a narrow terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from truthlens.lab.evaluate.evaluation import Evaluation
from truthlens.lab.evaluate.summary import BREAKDOWNS

_NO_VALUE = "–"
Row = Mapping[str, Any]


def show(found: Evaluation, out: Console) -> None:
    """Print the figures of every file and of all rows, then those by task, type, detector and against a blind model."""
    rows = [(short_name(one.name), one.figures) for one in found.files]
    if len(rows) > 1:
        rows.append((found.pooled.name, found.pooled.figures))
    settings, pooled = found.settings, found.pooled.figures
    detectors = ", ".join(one["name"] for one in settings.get("detectors", ()))
    with_what = f" with {detectors}" if detectors else ""
    out.print(f"{settings['model']}{with_what}, answers flagged from a score of {settings['threshold']:g} on")
    out.print(_answers("file", rows), _parts("file", rows))
    for key, column in BREAKDOWNS.items():
        named: Mapping[str, Any] = pooled[key]
        if len(named) > 1:
            out.print(_answers(column, list(named.items())))
    for table in _comparisons(pooled, rows):
        out.print(table)
    best = pooled["best"]
    if best is not None:
        out.print(
            f"best F1 in hindsight {best['f1']:.3f} at {best['threshold']:.3f} (optimistic: chosen on these rows)"
        )


def short_name(name: str) -> str:
    """Return a file's name without its folder and its usual endings."""
    return Path(name).name.removesuffix(".gz").removesuffix(".jsonl")


def _answers(first: str, rows: Sequence[tuple[str, Row]]) -> Table:
    """Return the table of whole answers; ``_parts`` is a second one, so that each fits on a narrow terminal."""
    table = _table(first, "rows", "unsup.", "AUROC", "AUPRC", "P", "R", "F1")
    for name, row in rows:
        figures = [row["example"][key] for key in ("auroc", "auprc", "precision", "recall", "f1")]
        table.add_row(name, str(row["rows"]), str(row["unsupported"]), *map(_figure, figures))
    return table


def _parts(first: str, rows: Sequence[tuple[str, Row]]) -> Table:
    """Return the table of parts of answers, calibration and time."""
    table = _table(first, "char F1", "span F1", "ECE", "Brier", "AURC", "p50 ms", "p99 ms", "ms/1k")
    for name, row in rows:
        risk = row["risk_coverage"] or {}
        figures = [row["char"]["f1"], row["span"]["f1"], row["ece"], row["brier"], risk.get("aurc")]
        times = [row["latency_ms"][key] for key in ("p50", "p99", "per_1000_tokens")]
        table.add_row(
            name, *map(_figure, figures), *(_NO_VALUE if value is None else f"{value:.0f}" for value in times)
        )
    return table


def _comparisons(pooled: Row, rows: Sequence[tuple[str, Row]]) -> Iterator[Table | str]:
    """Yield what compares answers, detectors and models; nothing where the rows give no grounds for it."""
    if any(row["ranking"][name] is not None for _, row in rows for name in ("pairwise", "twins")):
        yield _rankings(rows)
    within = pooled["within_generators"]
    if within is not None:
        yield f"AUROC within each of {within['generators']} generators {_figure(within['auroc'])}"
    for key, column in (("types", "type"), ("styles", "style")):
        if pooled[key]:
            yield _by(column, pooled[key])
    if len(pooled["detectors"].get("each", ())) > 1:
        yield _detectors(pooled["detectors"])
    if pooled["blind"] is not None:
        yield _blind(rows)
        yield _gate(pooled["blind"])


def _rankings(rows: Sequence[tuple[str, Row]]) -> Table:
    table = _table("file", "pairwise", "95 %", "errors", "twins", "95 %", "errors")
    for name, row in rows:
        ranking, cells = row["ranking"], []
        for figure in ("pairwise", "twins"):
            cells += [
                _figure(ranking[figure]),
                _interval(ranking["intervals"][figure]),
                str(ranking[f"{figure}_rows"]),
            ]
        table.add_row(name, *cells)
    return table


def _by(first: str, named: Mapping[str, Row]) -> Table:
    table = _table(first, "errors", "flagged", "supp.", "flagged", "pairwise", "twins")
    for name, row in named.items():
        table.add_row(
            name,
            str(row["unsupported"]),
            _figure(row["flagged"]),
            str(row["supported"]),
            *(_figure(row[key]) for key in ("supported_flagged", "pairwise", "twins")),
        )
    return table


def _detectors(found: Row) -> Table:
    """Return the table of what each detector adds; a figure without it stands below the one alone."""
    table = _table("detectors", "AUROC", "P", "R", "F1", "alarms", "pairs", "twins", "abst.")
    keys = ("auroc", "precision", "recall", "f1", "supported_flagged", "pairwise", "twins")
    table.add_row("all", *(_figure(found["all"][key]) for key in keys), "")
    for name, part in found["each"].items():
        table.add_row(
            f"{name} alone", *(_figure(part["alone"][key]) for key in keys), _figure(part["abstained"])
        )
        table.add_row(f"without {name}", *(_figure(part["left_out"][key]) for key in keys), "")
    return table


def _blind(rows: Sequence[tuple[str, Row]]) -> Table:
    table = _table("blind, and gained", "AUROC", "gained", "pairwise", "gained", "twins", "gained")
    for name, row in rows:
        blind, cells = row["blind"], []
        for figure in ("auroc", "pairwise", "twins"):
            cells += [_figure(blind[figure]), _signed(blind["gained"][figure])]
        table.add_row(name, *cells)
    return table


def _gate(blind: Row) -> str:
    if blind["passes"]:
        return f"blind gate passed: wording alone ranks no better than {blind['gate']:g}"
    if blind["passes"] is None:
        return "blind gate: nothing to rank"
    return (
        f"blind gate of {blind['gate']:g} exceeded: wording alone tells; do not train on written data like this"
        " as it is (docs/evaluation.md)"
    )


def _table(first: str, *columns: str) -> Table:
    table = Table()
    table.add_column(first, overflow="fold")
    for column in columns:
        table.add_column(column, justify="right")
    return table


def _figure(value: float | None) -> str:
    return _NO_VALUE if value is None else f"{value:.3f}".removeprefix("0")


def _signed(value: float | None) -> str:
    return _NO_VALUE if value is None else f"{value:+.3f}".replace("0.", ".", 1)


def _interval(ends: Sequence[float] | None) -> str:
    return _NO_VALUE if ends is None else "–".join(f"{end:.2f}".removeprefix("0") for end in ends)
