"""Options that several commands share: one spelling, one help text, one environment variable each."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from truthlens.core.errors import ModelError, StartError
from truthlens.process.settings import DEFAULT_CONSOLE, DEFAULT_EXTPROC, DEFAULT_LISTEN, CaptureSettings
from truthlens.telemetry import logs

Command = Callable[..., None]


def setting(name: str, text: str, *short: str, **more: Any) -> Any:
    """Return the option ``--name``, which the environment variable ``TRUTHLENS_NAME`` gives as well."""
    variable = f"TRUTHLENS_{name.upper().replace('-', '_')}"
    return typer.Option(f"--{name}", *short, envvar=variable, help=text, **more)


@contextmanager
def needing(extra: str, doing: str) -> Iterator[None]:
    """Import what ``doing`` needs, or say which extra of the package has it.

    Raises:
        ModelError: it is not installed.
    """
    try:
        yield
    except ImportError as error:
        raise ModelError(
            f"{doing} needs {error.name}; install it with: pip install 'truthlens[{extra}]'"
        ) from error


def setting_file(name: str, text: str) -> Any:
    """Return a ``setting`` that names a file, which must be there."""
    return setting(name, text, exists=True, dir_okay=False)


def in_place_of(parameter: str, make: Callable[..., Any]) -> Callable[[Command], Command]:
    """Return what gives a command the options of ``make`` in the place of its ``parameter``, which is what ``make`` makes of them.

    An option that the command has itself goes to both. Typer reads all from the signature.
    """
    shared = inspect.signature(make, eval_str=True).parameters

    def decorated(command: Command) -> Command:
        own = inspect.signature(command, eval_str=True).parameters
        added = {name: each for name, each in shared.items() if name not in own}

        @functools.wraps(command)
        def run(**values: Any) -> None:
            given = {name: values.pop(name) if name in added else values[name] for name in shared}
            command(**values, **{parameter: make(**given)})

        parameters = [
            each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            for name, own_parameter in own.items()
            for each in (added.values() if name == parameter else [own_parameter])
        ]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        return run

    return decorated


def tls_of(
    cert: Path | None, key: Path | None, client_ca: Path | None, client_names: list[str] | None
) -> dict[str, Any]:
    """Return the settings of TLS from the values of its options.

    Raises:
        StartError: one of them is given without another that it needs.
    """
    if (cert is None) != (key is None):
        raise StartError("--tls-cert and --tls-key go together; give both, or neither for plaintext")
    if client_ca is not None and cert is None:
        raise StartError(
            "--tls-client-ca needs --tls-cert and --tls-key: without TLS no client shows a certificate"
        )
    if client_names and client_ca is None:
        raise StartError("--tls-client-name needs --tls-client-ca: without it no client shows a certificate")
    return {
        "tls_certificate": cert,
        "tls_key": key,
        "tls_client_ca": client_ca,
        "tls_client_names": frozenset(client_names or ()),
    }


def socket_mode_of(text: str) -> int:
    """Return permission bits that are written in octal.

    Raises:
        StartError: they are none, or leave this user itself out.
    """
    if not re.fullmatch(r"0?[67][0-7]{2}", text):
        raise StartError(f"--socket-mode is {text!r}, expected three octal digits, such as 660")
    return int(text, 8)


LabelledFiles = Annotated[
    list[Path],
    typer.Argument(
        help="Labelled JSON lines, plain or .gz; or twin files, *.yaml.", exists=True, dir_okay=False
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
TargetRate = Annotated[
    float | None,
    typer.Option(
        "--target",
        min=0,
        max=100,
        help="Highest share of unverified claims, in percent (default: target_rate of numbers: the policy's, "
        "HALLUCINATION_TARGET_RATE, or 5).",
    ),
]
Limit = Annotated[int | None, typer.Option(min=1, help="First rows of each file only.")]
SourceLimit = Annotated[int | None, typer.Option(min=1, help="Rows of each source (for a trial run).")]
Seed = Annotated[int, typer.Option(help="Seed of everything random.")]
Threshold = Annotated[
    float | None, typer.Option(min=0, max=1, help="Response threshold (default: the decision's).")
]
Decision = Annotated[str, typer.Option(help="Decision of the policy whose plan is taken.")]
Config = Annotated[
    Path | None,
    setting(
        "config",
        "Policy file (YAML); edits are taken over at once. Left out: the shipped config/truthlens.yaml.",
        "-c",
        exists=True,
        dir_okay=False,
    ),
]
Listen = Annotated[
    str,
    setting("listen", f"Where Envoy listens for clients (default: {DEFAULT_LISTEN}).", show_default=False),
]
Extproc = Annotated[
    str,
    setting(
        "extproc",
        f"Address of the ext_proc server, HOST:PORT or unix:/PATH (default: {DEFAULT_EXTPROC}).",
        show_default=False,
    ),
]
ConsoleAddress = Annotated[
    str,
    setting(
        "console",
        f"Address of the console, health and metrics (default: {DEFAULT_CONSOLE}).",
        show_default=False,
    ),
]
Health = Annotated[
    str | None,
    setting(
        "health",
        "Where Envoy's health checks are answered, HOST:PORT (default: the port of --extproc plus 1000; with a unix "
        "socket, the socket itself).",
    ),
]
SocketMode = Annotated[
    str,
    setting(
        "socket-mode",
        "Who may use the socket of --extproc unix:/PATH, in octal: 600 this user alone, 660 its group as well.",
    ),
]
TlsCert = Annotated[
    Path | None,
    setting("tls-cert", "PEM certificate chain for ext_proc; a change in it is used without a restart."),
]
TlsKey = Annotated[Path | None, setting("tls-key", "PEM key that belongs to it.")]
TlsClientCa = Annotated[
    Path | None,
    setting("tls-client-ca", "PEM roots of client certificates; nobody without one is then served."),
]
TlsClientName = Annotated[
    list[str] | None,
    setting(
        "tls-client-name",
        "Alternative name (DNS, URI or IP) that a client's certificate must have. Repeat for several, of which one is enough.",
    ),
]
EnvoyAdminAddress = Annotated[
    str | None,
    setting(
        "envoy-admin",
        "Where Envoy's admin interface listens, which `truthlens doctor` reads, HOST:PORT; whoever reaches it can "
        "stop Envoy (default: none).",
    ),
]
Models = Annotated[
    Path | None, setting("models", "Folder of model folders (default: the bundled one).", file_okay=False)
]
Threads = Annotated[int, setting("threads", "CPU threads of one scoring.", min=1)]
Workers = Annotated[
    int | None, setting("workers", "Scorings at the same time (default: CPU quota / threads).", min=1)
]
Reload = Annotated[
    bool, typer.Option("--reload/--no-reload", envvar="TRUTHLENS_RELOAD", help="Watch the policy file.")
]
Redis = Annotated[
    str | None,
    setting(
        "redis",
        "redis:// URL of the store of mode auto and of the policy's cache, for several processes (default: this process's memory).",
    ),
]
ReviewDatabase = Annotated[
    str | None,
    setting(
        "review-database",
        "Database of the review queue, sqlite:////PATH/FILE.db or postgresql://USER@HOST/NAME; none for no queue (default: "
        ".truthlens/reviews.db of the checkout; of an installed TruthLens, reviews.db in the user's state folder).",
    ),
]
SecretFile = Annotated[
    Path | None,
    setting_file(
        "secret-file",
        "Secret of a fleet (16 bytes or more) whose own calls go through the gateway. Default: one a machine and user.",
    ),
]
LogLevel = Annotated[
    Literal["debug", "info", "warning", "error"],
    setting("log-level", "What is logged, from this level on.", case_sensitive=False),
]
LogFormat = Annotated[
    logs.LogFormat,
    setting(
        "log-format", "How the log is written: json or logfmt, or console for people.", case_sensitive=False
    ),
]
Upstream = Annotated[
    str | None,
    setting(
        "upstream",
        "Where models without a base_url are asked, such as http://localhost:8000, by detectors that ask models.",
    ),
]
BackendUpstream = Annotated[
    str | None,
    setting(
        "upstream", "The backend behind Envoy, http(s)://HOST:PORT: the modes that refine ask it directly."
    ),
]
Replies = Annotated[
    Path | None,
    typer.Option(
        dir_okay=False,
        help="File of models' replies: what is in it is not asked again, what is not is asked and added.",
    ),
]
Recorded = Annotated[
    bool, typer.Option("--recorded", help="Ask nobody: all replies must be in the file of --replies.")
]
ModelName = Annotated[str | None, setting("model", "Model folder or name (default: the bundled one).")]
QueueDatabase = Annotated[
    str | None,
    typer.Option(
        "--database",
        metavar="URL",
        envvar="TRUTHLENS_REVIEW_DATABASE",
        help="Database of the review queue, sqlite:////PATH/FILE.db or postgresql://USER@HOST/NAME"
        " (default: the one that the gateway of this checkout or user fills).",
    ),
]

_MIB = 1 << 20


def capture_settings(
    capture: Annotated[
        Path | None,
        setting(
            "capture",
            "File that exchanges are captured to for `truthlens replay`, WITH THEIR TEXTS (default: none). {pid} in its name "
            "becomes the id of the process.",
            dir_okay=False,
        ),
    ] = None,
    capture_sample: Annotated[
        float, setting("capture-sample", "Share of the exchanges that is captured.", min=0, max=1)
    ] = 1.0,
    capture_most: Annotated[
        int,
        setting("capture-most", "Exchanges that are captured at most until the next start.", min=1),
    ] = 10_000,
    capture_mib: Annotated[
        int, setting("capture-mib", "Size of the file in MiB; then it becomes FILE.1.", min=1)
    ] = 64,
    capture_files: Annotated[
        int, setting("capture-files", "Files at most, the oldest is deleted.", min=1)
    ] = 4,
) -> CaptureSettings | None:
    """Return which exchanges are captured, ``None`` where none is."""
    if capture is None:
        return None
    return CaptureSettings(capture, capture_sample, capture_most, capture_mib * _MIB, capture_files)


takes_capture = in_place_of("captured", capture_settings)
"""Gives a command the options of ``capture_settings``."""
