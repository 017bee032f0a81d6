"""Write the report of ``truthlens eval --report``: a Markdown file with tables, next to its plots."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from truthlens import __version__
from truthlens.core.errors import TruthLensError
from truthlens.lab.data.dataset import DataError
from truthlens.lab.evaluate.evaluation import Evaluation
from truthlens.lab.evaluate.plots import draw, require_plots
from truthlens.lab.evaluate.reliability import SHORT_ANSWER_TOKENS
from truthlens.lab.evaluate.summary import BREAKDOWNS
from truthlens.lab.markdown import cell, number, share, table

REPORT_NAME = "report.md"
JSON_NAME = "figures.json"
_NAMES = {"tasks": "task", "sources": "source", "generators": "generator"}
Row = Mapping[str, Any]


class ReportError(TruthLensError):
    """The report cannot be written; the message says where."""


def prepare(folder: Path) -> None:
    """Make ``folder`` and see to it that plots can be drawn, before hours are spent on scoring.

    Raises:
        PlotError: matplotlib is not installed.
        ReportError: the folder cannot be made.
    """
    require_plots()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ReportError(
            f"{folder} cannot be made ({error.strerror}); give --report a folder that can be written"
        ) from error


def write_report(found: Evaluation, folder: Path) -> Path:
    """Write ``report.md``, ``figures.json`` and the plots into ``folder``, which is there.

    Returns:
        The Markdown file.

    Raises:
        DataError: no row was measured.
        PlotError: matplotlib is not installed.
        ReportError: a file cannot be written.
    """
    if not len(found.pooled.tally):
        raise DataError("no row was measured, so there is nothing to report; check the files and --quality")
    try:
        plots = draw(found, folder)
        (folder / JSON_NAME).write_text(json.dumps(found.as_json(), indent=1) + "\n", encoding="utf-8")
        (folder / REPORT_NAME).write_text(markdown(found, plots), encoding="utf-8")
    except OSError as error:
        raise ReportError(
            f"{folder}: the report cannot be written ({error.strerror}); give --report a folder that can be written"
        ) from error
    return folder / REPORT_NAME


def machine(threads: int) -> str:
    """Describe the machine in words: processor, threads used, system, Python."""
    system = f"{platform.system()}, Python {platform.python_version()}"
    return f"{processor()}, {threads} thread(s) a scoring, {system}"


def processor() -> str:
    """Return the processor's name, as far as the system tells it."""
    listed = Path("/proc/cpuinfo")
    lines = listed.read_text(encoding="utf-8", errors="replace").splitlines() if listed.is_file() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


def markdown(found: Evaluation, plots: Sequence[tuple[str, str]] = ()) -> str:
    """Return the report as Markdown.

    Args:
        found: what was measured.
        plots: file name and caption of each plot.
    """
    settings = found.settings
    rows: list[Row] = [{"name": Path(one.name).name, **one.figures} for one in found.files]
    if len(rows) > 1:
        rows.append({"name": f"**{found.pooled.name}**", **found.pooled.figures})
    parts = [
        f"# Evaluation of {settings['model']}\n",
        _settings(settings),
        "## Figures\n",
        _answers(rows, "file"),
        _places(rows, "file"),
        _trust(rows, "file"),
        _hindsight(rows),
    ]
    for key in BREAKDOWNS:
        named: Mapping[str, Row] = found.pooled.figures[key]
        if named:
            own = [{"name": name, **figures} for name, figures in named.items()]
            parts += [f"## By {_NAMES[key]}\n", _answers(own, _NAMES[key]), _places(own, _NAMES[key])]
    parts += _comparisons(found.pooled.figures, rows)
    parts += [_reliability(found.pooled.figures["reliability"]), _latency(rows)]
    if plots:
        parts.append("## Plots\n")
        parts += [f"![{caption}]({name})\n" for name, caption in plots]
    if command := settings.get("command"):
        parts.append(f"## Again\n\n```\n{command}\n```\n")
    return "\n".join(parts)


def _settings(settings: Mapping[str, Any]) -> str:
    weighting = (
        "rows count as they are"
        if settings["base_rate"] is None
        else f"rows weighted so that {settings['base_rate']:.1%} are unsupported, in each row of a table that has both kinds (base rate)"
    )
    quality = (
        "rows of every annotation quality are in"
        if settings["quality"] == "all"
        else f"only rows of quality `{settings['quality']}` are in"
    )
    lines = [
        f"- **Model**: {settings['model']}" + _if(settings, "runtime", " ({})") + _if(settings, "revision", ", revision {}"),
        f"- **Flagged** means: response score ≥ {settings['threshold']:g}" + _if(settings, "aggregation", ", aggregation `{}`")
        + _if(settings, "token_threshold", "; a token: probability ≥ {}"),
        f"- **Rows**: {weighting}; {quality}"
        + ("" if settings["limit"] is None else f"; the first {settings['limit']} of each file"),
        f"- **Intervals**: 95 %, {settings['resamples']} resamples of whole source texts" if settings["resamples"]
        else "- **Intervals**: none",
        *([f"- **Detectors**: {', '.join(one['name'] for one in settings['detectors'])}"] if settings.get("detectors") else []),
        *([f"- **Machine**: {settings['machine']}"] if "machine" in settings else []),
        f"- **TruthLens** {__version__}",
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _if(settings: Mapping[str, Any], key: str, text: str) -> str:
    return text.format(settings[key]) if settings.get(key) is not None else ""


def _answers(rows: Sequence[Row], first: str) -> str:
    """Return the section on whole answers: ranking and decision."""
    body = [
        [
            cell(row["name"]), str(row["rows"]), str(row["unsupported"]), share(row["base_rate"]),
            _with_interval(row, "example", "auroc"), _with_interval(row, "example", "auprc"),
            number(row["example"]["precision"]), number(row["example"]["recall"]),
            _with_interval(row, "example", "f1"), number(row["any_span"]["f1"]),
        ]
        for row in rows
    ]  # fmt: skip
    head = [first, "rows", "unsupported", "base rate", "AUROC", "AUPRC", "P", "R", "F1", "F1 (any span)"]
    return "Answers:\n\n" + table(head, body, right=True)


def _places(rows: Sequence[Row], first: str) -> str:
    """Return the section on parts of answers: characters, spans, tokens; empty if no row is marked."""
    marked = [row for row in rows if row["marked"]]
    if not marked:
        return ""
    body = [
        [
            cell(row["name"]), str(row["marked"]),
            number(row["char"]["precision"]), number(row["char"]["recall"]), _with_interval(row, "char", "f1"),
            number(row["span"]["precision"]), number(row["span"]["recall"]), _with_interval(row, "span", "f1"),
            number(row["token"]["f1"]), number(row["token"]["auroc"]),
        ]
        for row in marked
    ]  # fmt: skip
    head = [
        first, "marked rows", "char P", "char R", "char F1", "span P", "span R", "span F1", "token F1", "token AUROC"
    ]  # fmt: skip
    return "Unsupported parts, in rows whose spans people marked:\n\n" + table(head, body, right=True)


def _trust(rows: Sequence[Row], first: str) -> str:
    """Return the section on calibration and selective prediction."""
    body = []
    for row in rows:
        risk = row["risk_coverage"] or {}
        body.append(
            [
                cell(row["name"]), _with_interval(row, "ece"), number(row["ece_equal_mass"]),
                _with_interval(row, "brier"), number(risk.get("aurc")), number(risk.get("oracle_aurc")),
                number(risk.get("risk_at_full_coverage")),
            ]
        )  # fmt: skip
    head = [first, "ECE, equal width", "ECE, equal mass", "Brier", "AURC", "AURC, oracle", "errors, all kept"]
    return "Calibration, and wrong decisions by how sure they are:\n\n" + table(head, body, right=True)


def _hindsight(rows: Sequence[Row]) -> str:
    body = [
        [cell(row["name"]), number(row["best"]["f1"]), number(row["best"]["threshold"])]
        for row in rows
        if row["best"] is not None
    ]
    if not body:
        return ""
    return (
        "Best F1 in hindsight. **Optimistic**: the threshold is chosen on the rows that it is measured on.\n\n"
        + table(["file", "F1", "at threshold"], body, right=True)
    )


def _comparisons(pooled: Row, rows: Sequence[Row]) -> list[str]:
    """Return the sections that compare answers, detectors and models, each only where it has rows."""
    parts = [_rankings(rows)]
    for key, title in (("types", "type"), ("styles", "style")):
        if pooled[key]:
            parts += [f"## By {title}\n", _types(pooled[key], title)]
    if (within := pooled["within_generators"]) is not None:
        count = f"{within['generators']} generators, {within['pairs']} pairs"
        parts.append(f"AUROC over pairs of answers of one generator: {number(within['auroc'])} ({count}).\n")
    if len(pooled["detectors"].get("each", ())) > 1:
        parts += ["## What each detector adds\n", _detectors(pooled["detectors"])]
    if pooled["blind"] is not None:
        parts += ["## Gained over a blind model\n", _blind(rows)]
    return [part for part in parts if part]


def _rankings(rows: Sequence[Row]) -> str:
    ranked = [row for row in rows if row["ranking"]["pairwise_rows"] or row["ranking"]["twins_rows"]]
    if not ranked:
        return ""
    body = [
        [cell(row["name"])]
        + [
            each
            for name in ("pairwise", "twins")
            for each in (_with_interval(row["ranking"], name), str(row["ranking"][f"{name}_rows"]))
        ]
        for row in ranked
    ]
    head = ["file", "pairwise", "errors", "twins", "errors"]
    return "## Rankings\n\nHow often an error outranks its supported siblings, and its twin:\n\n" + table(
        head, body, right=True
    )


def _types(named: Mapping[str, Row], first: str) -> str:
    body = [
        [
            cell(name), str(row["unsupported"]), number(row["flagged"]), str(row["supported"]),
            number(row["supported_flagged"]), number(row["pairwise"]), number(row["twins"]),
        ]
        for name, row in named.items()
    ]  # fmt: skip
    head = [first, "errors", "flagged", "supported", "supported flagged", "pairwise", "twins"]
    return table(head, body, right=True)


def _detectors(found: Row) -> str:
    keys = ("auroc", "precision", "recall", "f1", "supported_flagged", "pairwise", "twins", "scored")
    body = [["all", *(number(found["all"][key]) for key in keys), ""]]
    for name, part in found["each"].items():
        alone = [f"{cell(name)} alone", *(number(part["alone"][key]) for key in keys)]
        body += [
            [*alone, number(part["abstained"])],
            [f"without {cell(name)}", *(number(part["left_out"][key]) for key in keys), ""],
        ]
    head = [
        "detectors",
        "AUROC",
        "P",
        "R",
        "F1",
        "supported flagged",
        "pairwise",
        "twins",
        "scored",
        "abstained",
    ]
    return table(head, body, right=True)


def _blind(rows: Sequence[Row]) -> str:
    body = []
    for row in rows:
        blind = row["blind"]
        cells = [
            each
            for name in ("auroc", "pairwise", "twins")
            for each in (number(blind[name]), number(blind["gained"][name]))
        ]
        passed = {True: "passed", False: "exceeded", None: "–"}[blind["passes"]]
        body.append([cell(row["name"]), *cells, passed])
    gate = rows[0]["blind"]["gate"]
    head = ["file", "AUROC", "gained", "pairwise", "gained", "twins", "gained", f"gate {gate:g}"]
    return "The blind model never saw the evidence; chance is .5.\n\n" + table(head, body, right=True)


def _reliability(rows: Sequence[Row]) -> str:
    body = [
        [
            row["level"] if row["aggregation"] is None else f"{row['level']}, `{row['aggregation']}`",
            {"all": "all", "short": f"≤ {SHORT_ANSWER_TOKENS} tokens", "long": f"> {SHORT_ANSWER_TOKENS} tokens"}[row["length"]],
            str(row["n"]), share(row["base_rate"]), number(row["mean_score"]), number(row["auroc"]), number(row["ece"]),
            number(row["ece_equal_mass"]), number(row["brier"]),
        ]
        for row in rows
        if row["n"]
    ]  # fmt: skip
    if not body:
        return ""
    head = ["score", "answers", "n", "base rate", "mean score", "AUROC", "ECE, equal width", "ECE, equal mass", "Brier"]  # fmt: skip
    return "## Reliability\n\n" + table(head, body, right=True)


def _latency(rows: Sequence[Row]) -> str:
    body = [
        [
            cell(row["name"]),
            *(number(row["latency_ms"][name], digits=1) for name in ("p50", "p99", "per_1000_tokens")),
            number(row["coverage"]), str(row["unscored"]), str(row["left_out"]),
        ]
        for row in rows
    ]  # fmt: skip
    head = ["file", "ms an answer, p50", "p99", "ms per 1,000 tokens", "coverage", "not scored", "left out by quality"]  # fmt: skip
    return (
        "## Latency and coverage\n\nTokens are answer tokens scored and evidence tokens seen. An answer that was not scored counts "
        "as not flagged, with score 0.\n\n" + table(head, body, right=True)
    )


def _with_interval(row: Row, *path: str) -> str:
    value: Any = row
    interval: Any = row["intervals"]
    for key in path:
        value, interval = value[key], interval[key]
    text = number(value)
    return text if interval is None or value is None else f"{text} [{interval[0]:.3f}, {interval[1]:.3f}]"
