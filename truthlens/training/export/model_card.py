"""The model card, written from the manifest's figures."""

from __future__ import annotations

from typing import Any

from truthlens.detection.encoder.inputs.manifest import Manifest

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
    rows = "\n".join(f"| {source.name} | {source.rows} | {source.licence} |" for source in manifest.data)
    return f"""## Data

Rows are counted over all epochs. Rows that share a source text are on one side of the split.

| data | rows | licence |
| --- | --- | --- |
{rows}
"""


def _figures(manifest: Manifest) -> str:
    test: dict[str, Any] = manifest.figures.get("test", {})
    main: dict[str, Any] = test.get(str(manifest.figures.get("main")), {})
    lines = "\n".join(
        f"| {name} | {row['rows']} | {_share(row['base_rate'])} | {_number(row['example']['auroc'])} | "
        f"{_number(row['example']['precision'])} / {_number(row['example']['recall'])} / "
        f"{_number(row['example']['f1'])} | {_number(row['char']['f1'])} | {_number(row['ece'])} |"
        for name, row in test.items()
    )
    text = f"""## Figures

On held-out answers whose source texts were never trained on nor used for calibration; example P/R/F1 at the
recommended threshold; rows of every annotation quality are in. Calibration used other held-out answers of all the
data, in kinds that weigh alike, each at even odds; ECE here is of the rows as they are, and so shows the shift of base
rates.

| data | rows | unsupported | AUROC | P / R / F1 | char F1 | ECE |
| --- | --- | --- | --- | --- | --- | --- |
{lines}
"""
    if main:
        interval = main["example"]["auroc_95"]
        flagged = "; ".join(
            f"at threshold {limit}: recall {_share(shares['recall'])}, supported answers flagged "
            f"{_share(shares['supported_flagged'])}"
            for limit, shares in main["flagged"].items()
        )
        text += f"\nMain data ({manifest.figures['main']}): AUROC 95 % interval {interval}; {flagged}.\n"
        text += _weighted(main.get("weighted"))
    chosen = manifest.figures.get("calibration", {}).get("aggregations", {})
    if chosen:
        rows = "\n".join(
            f"| {name} | {_number(row['auroc'])} | {_number(row['best_f1'])} | {_number(row['best_threshold'])} | "
            f"{_number(row['f1_at_0.6'])} | {_number(row['ece'])} | {_number(row.get('ece_raw'))} |"
            for name, row in chosen.items()
        )
        text += f"""
The default aggregation was chosen by AUROC on the calibration answers, all kinds alike and each at even odds (of those
within 0.005 of the best the first). The
recommended threshold is 0.6 where its F1 is within 0.02 of the best. The last column is the ECE of the formula without
its calibration:

| aggregation | AUROC | best F1 | at | F1 at 0.6 | ECE | ECE, raw formula |
| --- | --- | --- | --- | --- | --- | --- |
{rows}
"""
    return text + _kinds(manifest)


def _kinds(manifest: Manifest) -> str:
    kinds: dict[str, Any] = manifest.figures.get("calibration", {}).get("kinds", {})
    if not kinds:
        return ""
    rows = "\n".join(
        f"| {name} | {row['rows']} | {row['unsupported']} | {_number(row['auroc'])} | {_number(row['ece'])} | "
        f"{_share(row['flagged'])} | {_share(row['supported_flagged'])} |"
        for name, row in kinds.items()
    )
    return f"""
By kind of answer, on the calibration answers, each kind at even odds (a kind of one class has no AUROC and no ECE), and
what is flagged at the recommended threshold:

| kind | rows | unsupported | AUROC | ECE | unsupported flagged | supported flagged |
| --- | --- | --- | --- | --- | --- | --- |
{rows}
"""


def _weighted(figures: dict[str, Any] | None) -> str:
    if not figures:
        return ""
    return (
        f"Weighted to {_share(figures['base_rate'])} unsupported answers: precision "
        f"{_number(figures['precision'])}, recall {_number(figures['recall'])}, F1 {_number(figures['f1'])}, ECE "
        f"{_number(figures['ece'])}.\n"
    )


def _ingredients(manifest: Manifest) -> str:
    training: dict[str, Any] = manifest.figures.get("training") or {}
    ablation: dict[str, Any] = manifest.figures.get("ablation") or {}
    main = manifest.figures.get("main")
    text = ""
    stages = [(f"epoch {number}", row) for number, row in enumerate(training.get("epochs") or [], start=1)]
    if training.get("mean"):
        stages.append(("mean of the second half", training["mean"]))
    rows = "\n".join(
        f"| {name} | {_number((row.get(main) or {}).get('auroc'))} | {_others(row, main)} |"
        for name, row in stages
    )
    if rows:
        text += f"""
AUROC on the calibration side of the main data, ranked by hazard, and mean AUROC of the other data, by stage:

| weights | main | others |
| --- | --- | --- |
{rows}
"""
    if ablation:
        columns = ("twins", "pairwise", "auroc", "others")
        rows = "\n".join(
            f"| {row['variant']} | {' | '.join(_number(row[name]) for name in columns)} |"
            for row in ablation["variants"]
        )
        text += f"""
Short trainings of {ablation["steps"]} steps from {ablation["start"] or "the base model"}, each without one ingredient:

| variant | twin ranking | pairwise ranking | main | others |
| --- | --- | --- | --- | --- |
{rows}
"""
    return f"## What each ingredient gives\n{text}" if text else ""


def _others(row: dict[str, Any], main: str | None) -> str:
    found = [
        figures["auroc"] for name, figures in row.items() if name != main and figures["auroc"] is not None
    ]
    return _number(sum(found) / len(found)) if found else "–"


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


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.1%}"
