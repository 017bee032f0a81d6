"""The command ``truthlens``. Each command's options, defaults and environment variables are in its ``--help``."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence

import typer
from rich.console import Console
from rich.text import Text

from truthlens import __version__
from truthlens.core.errors import TruthLensError

COMMANDS: Mapping[str, str] = {
    "up": "gateway:up",
    "serve": "serving:serve",
    "desk": "serving:desk",
    "envoy-config": "gateway:envoy_config",
    "check": "policy:check",
    "doctor": "doctor:doctor",
    "detect": "scoring:detect",
    "evidence": "evidence:evidence",
    "index": "index:index",
    "ask": "ask:ask",
    "capture": "replay:capture",
    "replay": "replay:replay",
    "eval": "evaluation:evaluate",
    "accuracy": "accuracy:accuracy",
    "calibrate": "calibration:calibrate",
    "train": "training:train",
    "train-reader": "training:train_reader",
    "models": "models:models",
    "review": "review:review",
}
"""Where each command is: a module of this package and the name in it. Only the module of the command that is run is imported."""


def command_line(words: Sequence[str] = ()) -> typer.Typer:
    """Return the command line with the command that ``words`` begin with; with all of them where they begin with none."""
    app = typer.Typer(
        name="truthlens",
        help="Catch hallucinations in live LLM answers: an Envoy sidecar, its policy, and its model workshop.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        # Help texts are shown as they are written: as markup, `truthlens[train]` would lose its brackets.
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(_root)
    wanted = [words[0]] if words and words[0] in COMMANDS else list(COMMANDS)
    for name in wanted:
        module, _, attribute = COMMANDS[name].partition(":")
        command = getattr(importlib.import_module(f"truthlens.cli.{module}"), attribute)
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            app.command(name)(command)
    return app


def _root(version: bool = typer.Option(False, "--version", help="Print the version and stop.")) -> None:
    if version:
        typer.echo(__version__)
        raise typer.Exit


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; an expected error is one message and exit status 1, never a traceback.

    Args:
        arguments: the words after ``truthlens``; left out, the process's own.
    """
    try:
        words = sys.argv[1:] if arguments is None else list(arguments)
        command_line(words)(args=words)
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
