"""Options that several commands share: one spelling, one help text, one environment variable each."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from truthlens.settings import DEFAULT_CONSOLE, DEFAULT_EXTPROC, DEFAULT_LISTEN

LabelledFiles = Annotated[
    list[Path],
    typer.Argument(
        help="Labelled JSON lines, plain or .gz; or twin files, *.yaml.", exists=True, dir_okay=False
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        "--config",
        "-c",
        envvar="TRUTHLENS_CONFIG",
        exists=True,
        dir_okay=False,
        help="Policy file (YAML); edits are taken over at once. Left out: the shipped config/truthlens.yaml.",
    ),
]
Listen = Annotated[
    str,
    typer.Option(
        envvar="TRUTHLENS_LISTEN",
        help=f"Where Envoy listens for clients (default: {DEFAULT_LISTEN}).",
        show_default=False,
    ),
]
Extproc = Annotated[
    str,
    typer.Option(
        envvar="TRUTHLENS_EXTPROC",
        help=f"Address of the ext_proc server, HOST:PORT or unix:/PATH (default: {DEFAULT_EXTPROC}).",
        show_default=False,
    ),
]
ConsoleAddress = Annotated[
    str,
    typer.Option(
        "--console",
        envvar="TRUTHLENS_CONSOLE",
        help=f"Address of the console, health and metrics (default: {DEFAULT_CONSOLE}).",
        show_default=False,
    ),
]
Models = Annotated[
    Path | None,
    typer.Option(
        "--models",
        envvar="TRUTHLENS_MODELS",
        file_okay=False,
        help="Folder of model folders (default: the bundled one).",
        show_default=False,
    ),
]
Threads = Annotated[int, typer.Option(envvar="TRUTHLENS_THREADS", min=1, help="CPU threads of one scoring.")]
Workers = Annotated[
    int | None,
    typer.Option(
        envvar="TRUTHLENS_WORKERS",
        min=1,
        help="Scorings at the same time (default: CPU quota / threads).",
        show_default=False,
    ),
]
Redis = Annotated[
    str | None,
    typer.Option(
        "--redis",
        envvar="TRUTHLENS_REDIS",
        help="redis:// URL of the store of mode auto and of the policy's cache, for several processes (default: this process's memory).",
        show_default=False,
    ),
]
ReviewDatabase = Annotated[
    str | None,
    typer.Option(
        "--review-database",
        envvar="TRUTHLENS_REVIEW_DATABASE",
        help="Database of the review queue, sqlite:////PATH/FILE.db or postgresql://USER@HOST/NAME; none for no queue (default: "
        "reviews.db in the state folder of the user).",
        show_default=False,
    ),
]
SecretFile = Annotated[
    Path | None,
    typer.Option(
        "--secret-file",
        envvar="TRUTHLENS_SECRET_FILE",
        exists=True,
        dir_okay=False,
        help="Secret of a fleet (16 bytes or more) whose own calls go through the gateway. Default: one a machine and user.",
        show_default=False,
    ),
]
LogLevel = Annotated[
    Literal["debug", "info", "warning", "error"],
    typer.Option(
        envvar="TRUTHLENS_LOG_LEVEL", case_sensitive=False, help="What is logged, from this level on."
    ),
]
Upstream = Annotated[
    str | None,
    typer.Option(
        "--upstream",
        envvar="TRUTHLENS_UPSTREAM",
        help="Where models without a base_url are asked, such as http://localhost:8000, by detectors that ask models.",
        show_default=False,
    ),
]
Replies = Annotated[
    Path | None,
    typer.Option(
        "--replies",
        dir_okay=False,
        help="File of models' replies: what is in it is not asked again, what is not is asked and added.",
        show_default=False,
    ),
]
Recorded = Annotated[
    bool, typer.Option("--recorded", help="Ask nobody: all replies must be in the file of --replies.")
]
ModelName = Annotated[
    str | None,
    typer.Option(
        "--model",
        envvar="TRUTHLENS_MODEL",
        help="Model folder or name (default: the bundled one).",
        show_default=False,
    ),
]
QueueDatabase = Annotated[
    str | None,
    typer.Option(
        "--database",
        metavar="URL",
        envvar="TRUTHLENS_REVIEW_DATABASE",
        help="Database of the review queue, sqlite:////PATH/FILE.db or postgresql://USER@HOST/NAME"
        " (default: reviews.db in the user's state folder).",
        show_default=False,
    ),
]
