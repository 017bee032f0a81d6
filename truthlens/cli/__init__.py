"""The command ``truthlens``. Each command's options, defaults and environment variables are in its ``--help``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import typer
from rich.console import Console
from rich.text import Text

from truthlens import __version__
from truthlens.cli import accuracy, calibration, evaluation, evidence, gateway, policy, scoring, training
from truthlens.cli import models as model_commands
from truthlens.cli.review import review
from truthlens.core.errors import TruthLensError

app = typer.Typer(
    name="truthlens",
    help="Catch hallucinations in live LLM answers: an Envoy sidecar, its policy, and its model workshop.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    # Help texts are shown as they are written: as markup, `truthlens[train]` would lose its brackets.
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
models = typer.Typer(
    help="The models that score answers, and those that compare them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.callback(invoke_without_command=True)
def _root(version: bool = typer.Option(False, "--version", help="Print the version and stop.")) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit


app.command()(gateway.up)
app.command()(gateway.serve)
app.command("envoy-config")(gateway.envoy_config)
app.command()(policy.check)
app.command()(scoring.detect)
app.command()(evidence.evidence)
app.command("eval")(evaluation.evaluate)
app.command()(accuracy.accuracy)
app.command()(calibration.calibrate)
app.command()(training.train)
models.command("list")(model_commands.list_models)
models.command("pull")(model_commands.pull_model)
models.command("export")(model_commands.export_model)
models.command("quantize")(model_commands.quantize_model)
app.add_typer(models, name="models")
app.add_typer(review, name="review")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; an expected error is one message and exit status 1, never a traceback.

    Args:
        arguments: the words after ``truthlens``; left out, the process's own.
    """
    try:
        app(args=list(arguments) if arguments is not None else None)
    except* (TruthLensError, OSError) as group:
        for error in _leaves(group):
            Console(stderr=True, soft_wrap=True, highlight=False).print(
                Text("error:", "red"), _message(error)
            )
        sys.exit(1)


def _leaves(group: BaseExceptionGroup[Exception]) -> list[Exception]:
    found: list[Exception] = []
    for error in group.exceptions:
        found += _leaves(error) if isinstance(error, BaseExceptionGroup) else [error]
    return found


def _message(error: Exception) -> Text:
    """Return what an error says, as text in which brackets are not markup."""
    if isinstance(error, OSError) and error.filename is not None:
        return Text(f"{error.filename}: {error.strerror}; give another path, or fix its permissions")
    return Text(str(error))
