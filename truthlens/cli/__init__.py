"""The command ``truthlens``. Each command's options, defaults and environment variables are in its ``--help``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import typer
from rich.console import Console

from truthlens import __version__
from truthlens.cli import calibration, evaluation, gateway, policy, scoring, training
from truthlens.cli import models as model_commands
from truthlens.core.errors import TruthLensError

app = typer.Typer(
    name="truthlens",
    help="Catch hallucinations in live LLM answers: an Envoy sidecar, its policy, and its model workshop.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
models = typer.Typer(help="The models that can score answers.", no_args_is_help=True)


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
app.command("eval")(evaluation.evaluate)
app.command()(calibration.calibrate)
app.command()(training.train)
models.command("list")(model_commands.list_models)
models.command("pull")(model_commands.pull_model)
models.command("export")(model_commands.export_model)
models.command("quantize")(model_commands.quantize_model)
app.add_typer(models, name="models")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; an expected error is one message and exit status 1, never a traceback.

    Args:
        arguments: the words after ``truthlens``; left out, the process's own.
    """
    try:
        app(args=list(arguments) if arguments is not None else None)
    except* TruthLensError as group:
        for error in _leaves(group):
            Console(stderr=True, soft_wrap=True).print(
                f"[red]error:[/red] {_plain(str(error))}", highlight=False
            )
        sys.exit(1)


def _leaves(group: BaseExceptionGroup[TruthLensError]) -> list[TruthLensError]:
    found: list[TruthLensError] = []
    for error in group.exceptions:
        found += _leaves(error) if isinstance(error, BaseExceptionGroup) else [error]
    return found


def _plain(text: str) -> str:
    """Text in which brackets are not markup."""
    return text.replace("[", r"\[")
