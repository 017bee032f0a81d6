"""The model card, written from the manifest's figures."""

from __future__ import annotations

from typing import Any

from truthlens.detection.models.inputs.manifest import Manifest
from truthlens.lab.markdown import NO_VALUE, number, share, table

CARD_NAME = "MODEL_CARD.md"


_LIMITS = """## Limits

- English only; answers in other scripts are reported as unchecked.
- Fluent answers whose words all stand in the evidence but in another relation (swapped roles, wrong comparison)
  are often missed; common knowledge and correct inference are sometimes flagged.
- Sums, averages and unit conversions are not computed.
- Human marks of the main data miss errors, so precision is a lower bound.
- Long evidence is read by sentence selection on shared words: support in other words may be passed over.
"""


def card(manifest: Manifest) -> str:
    """Return Markdown: what the model is, its data, its quality, its limits, and how to make it again.

    Args:
        manifest: with figures, among them those of the training (``training_figures``).
    """
    parts = [
        _head(manifest),
        _data(manifest),
        _figures(manifest),
        _ingredients(manifest),
        _LIMITS,
        _again(manifest),
    ]
    return "\n".join(parts)


def training_figures(summary: dict[str, Any]) -> dict[str, Any]:
    """Return what a manifest keeps of ``train.json``."""
    kept = ("base_licence", "start", "steps", "minutes", "epochs", "mean")
    settings = {name: summary["settings"][name] for name in ("epochs", "minutes", "seed")}
    return {name: summary.get(name) for name in kept} | {"settings": settings}


def _head(manifest: Manifest) -> str:
    fmt = manifest.input
    base_licence = manifest.figures["training"]["base_licence"]
    note = f"\n> **{manifest.note}**\n" if manifest.note else ""
    return f"""# {manifest.name}
{note}
A small token classifier that marks the parts of an English answer that its evidence does not support. It is the
encoder that TruthLens uses where no other model is configured.

- **Base**: {manifest.base} ({base_licence}). **Licence of these weights**: {manifest.licence}. **Languages**: \
{", ".join(manifest.languages)}.
- **Architecture**: {manifest.architecture}.
- **Input**: `[CLS] query [SEP] evidence [SEP] answer [SEP]`, at most {fmt.max_tokens} tokens; answers in chunks of \
{fmt.answer_tokens} tokens with {fmt.answer_overlap} shared; evidence that does not fit is selected by sentence; \
features `{fmt.features}` against all of the evidence.
- **Output**: two logits a token; index {manifest.hallucinated_label} is "not supported". Temperature \
{manifest.temperature}, token limit {manifest.tau_token}, span limit {manifest.tau_span}, response score `{manifest.aggregation.value}`\
{" (calibrated)" if manifest.aggregation in manifest.response else ""}, recommended threshold \
{manifest.recommended_threshold}.
- **Intended use**: a first, fast check in a gateway, with a human or a stronger model behind it where it matters. Not \
a fact checker: it compares the answer with the evidence it is given, nothing else.
"""


def _data(manifest: Manifest) -> str:
    rows = [(source.name, str(source.rows), source.licence) for source in manifest.data]
    return f"""## Data

Rows are counted over all epochs. Rows that share a source text are on one side of the split.

{table(("data", "rows", "licence"), rows)}"""


def _figures(manifest: Manifest) -> str:
    test: dict[str, Any] = manifest.figures.get("test", {})
    main: dict[str, Any] = test.get(str(manifest.figures.get("main")), {})
    head = ("data", "rows", "unsupported", "AUROC", "P / R / F1", "char F1", "ECE")
    rows = [
        [
            name, str(row["rows"]), share(row["base_rate"]), number(row["example"]["auroc"]),
            " / ".join(number(row["example"][key]) for key in ("precision", "recall", "f1")),
            number(row["char"]["f1"]), number(row["ece"]),
        ]
        for name, row in test.items()
    ]  # fmt: skip
    text = f"""## Figures

On held-out answers whose source texts were never trained on nor used for calibration; example P/R/F1 at the
recommended threshold; rows of every annotation quality are in. Calibration used other held-out answers of all the
data, in kinds that weigh alike, each at even odds; ECE here is of the rows as they are, and so shows the shift of base
rates.

{table(head, rows)}"""
    if main:
        interval = main["example"]["auroc_95"]
        flagged = "; ".join(
            f"at threshold {limit}: recall {share(shares['recall'])}, supported answers flagged "
            f"{share(shares['supported_flagged'])}"
            for limit, shares in main["flagged"].items()
        )
        text += f"\nMain data ({manifest.figures['main']}): AUROC 95 % interval {interval}; {flagged}.\n"
        text += _weighted(main.get("weighted"))
    chosen = manifest.figures.get("calibration", {}).get("aggregations", {})
    if chosen:
        keys = ("auroc", "best_f1", "best_threshold", "f1_at_0.6", "ece", "ece_raw")
        rows = [[name, *(number(row.get(key)) for key in keys)] for name, row in chosen.items()]
        head = ("aggregation", "AUROC", "best F1", "at", "F1 at 0.6", "ECE", "ECE, raw formula")
        text += f"""
The default aggregation was chosen by AUROC on the calibration answers, all kinds alike and each at even odds (of those
within 0.005 of the best the first). The
recommended threshold is 0.6 where its F1 is within 0.02 of the best. The last column is the ECE of the formula without
its calibration:

{table(head, rows)}"""
    return text + _kinds(manifest)


def _kinds(manifest: Manifest) -> str:
    kinds: dict[str, Any] = manifest.figures.get("calibration", {}).get("kinds", {})
    if not kinds:
        return ""
    head = ("kind", "rows", "unsupported", "AUROC", "ECE", "unsupported flagged", "supported flagged")
    rows = [
        [
            name, str(row["rows"]), str(row["unsupported"]), number(row["auroc"]), number(row["ece"]),
            share(row["flagged"]), share(row["supported_flagged"]),
        ]
        for name, row in kinds.items()
    ]  # fmt: skip
    return f"""
By kind of answer, on the calibration answers, each kind at even odds (a kind of one class has no AUROC and no ECE), and
what is flagged at the recommended threshold:

{table(head, rows)}"""


def _weighted(figures: dict[str, Any] | None) -> str:
    if not figures:
        return ""
    return (
        f"Weighted to {share(figures['base_rate'])} unsupported answers: precision "
        f"{number(figures['precision'])}, recall {number(figures['recall'])}, F1 {number(figures['f1'])}, ECE "
        f"{number(figures['ece'])}.\n"
    )


def _ingredients(manifest: Manifest) -> str:
    training: dict[str, Any] = manifest.figures.get("training") or {}
    main = manifest.figures.get("main")
    stages = [(f"epoch {count}", row) for count, row in enumerate(training.get("epochs") or [], start=1)]
    if training.get("mean"):
        stages.append(("mean of the second half", training["mean"]))
    if not stages:
        return ""
    rows = [(name, number((row.get(main) or {}).get("auroc")), _others(row, main)) for name, row in stages]
    return f"""## What each ingredient gives

AUROC on the calibration side of the main data, ranked by hazard, and mean AUROC of the other data, by stage:

{table(("weights", "main", "others"), rows)}"""


def _others(row: dict[str, Any], main: str | None) -> str:
    found = [
        figures["auroc"] for name, figures in row.items() if name != main and figures["auroc"] is not None
    ]
    return number(sum(found) / len(found)) if found else NO_VALUE


def _again(manifest: Manifest) -> str:
    training: dict[str, Any] = manifest.figures["training"]
    options = " ".join(f"--{name} {value}" for name, value in training["settings"].items())
    if training.get("start"):
        options = f"--start models/{training['start']} {options}"
    return f"""## Make it again

```
pip install 'truthlens[train]'
truthlens train --data FOLDER --output models/{manifest.name} {options}
```

`FOLDER` holds the data sets above as `*.jsonl.gz` with the fields `id, source, task, query, context, response, label,
spans, group`. The training took {training["minutes"]} minutes and {training["steps"]} steps on \
shared CPU cores; the learning rate follows the wall clock where `--minutes` ends the run, so results vary a little.
"""
