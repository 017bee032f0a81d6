"""``check``: what the server would say of a policy file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from truthlens.cli import options
from truthlens.cli.target import identifier, model_finder
from truthlens.policy import check_file
from truthlens.policy.diagnostics import Severity
from truthlens.proxy.config import Address
from truthlens.settings import DEFAULT_CONSOLE, DEFAULT_EXTPROC, Settings

out = Console(soft_wrap=True, highlight=False, markup=False)


def check(
    file: Annotated[Path, typer.Argument(help="Policy file (YAML).", exists=True, dir_okay=False)],
    strict: Annotated[bool, typer.Option("--strict", help="Fail on warnings as well.")] = False,
    models: options.Models = None,
) -> None:
    """Validate a policy: every mistake with file, line, key and remedy. Exit status 1 if there is one."""
    settings = Settings(
        Address.parse(DEFAULT_EXTPROC, name="--extproc"),
        Address.parse(DEFAULT_CONSOLE, name="--console"),
        models=models,
    )
    found = check_file(file, model_exists=model_finder(settings), identify=identifier(settings))
    for diagnostic in found:
        out.print(diagnostic.render())
    errors = sum(diagnostic.severity is Severity.ERROR for diagnostic in found)
    warnings = len(found) - errors
    if errors or (strict and warnings):
        out.print(f"{file}: {errors} error(s), {warnings} warning(s)")
        raise typer.Exit(1)
    out.print(f"{file}: ok" + (f", {warnings} warning(s)" if warnings else ""))
