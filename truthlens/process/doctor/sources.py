"""The sources that evidence is retrieved from: indexes of folders, and servers. Nothing is searched for."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Coroutine
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from truthlens.core.errors import TruthLensError
from truthlens.core.records.retrieval import SourceSpec
from truthlens.policy import Policy
from truthlens.process.doctor.findings import CheckResult, error, ok, unknown, warning
from truthlens.process.doctor.look import LookError, get, in_thread, shown_url
from truthlens.process.doctor.setup import Setup

_WHY = "searches of it fail, and answers that need its evidence stay unchecked (retrieval-failed)"
_REMEDY = "start it, or fix its options under sources"


async def look_at_sources(setup: Setup, policy: Policy | None) -> list[CheckResult]:
    """Return what is wrong with the sources of ``policy``."""
    specs = () if policy is None else policy.sources.values()
    base = setup.settings.config.parent
    groups = await asyncio.gather(*(_look(setup, spec, base) for spec in specs))
    return [each for group in groups for each in group]


async def _look(setup: Setup, spec: SourceSpec, base: Path) -> list[CheckResult]:
    options = spec.options
    looks: list[Coroutine[Any, Any, CheckResult]] = []
    found: list[CheckResult] = []
    for each in (options, getattr(options, "embeddings", None)):
        variable = getattr(each, "api_key_env", None)
        if variable and not setup.environ.get(variable, "").strip():
            found.append(
                error(
                    "sources.key",
                    f"the source {spec.name!r} needs a key in the environment variable {variable!r}, "
                    "which is not set",
                    "the process does not start with this policy",
                    "set it where the server runs",
                )
            )
        addresses = (getattr(each, "base_url", None), getattr(each, "url", None))
        looks += [_server(setup, spec, address) for address in addresses if address]
    if command := getattr(options, "command", None):
        found.append(_program(spec, command[0]))
    if spec.type == "folder":
        looks.append(_folder(setup, spec, base))
    if spec.type == "pgvector":
        looks.append(_pgvector(setup, spec))
    found += await asyncio.gather(*looks)
    if not found:
        what = f"the source {spec.name!r} ({spec.type}) was not looked at: no address of it is known"
        return [
            unknown("sources.type", what, "whether it answers is not known", "search it in the playground")
        ]
    return found


async def _server(setup: Setup, spec: SourceSpec, url: str) -> CheckResult:
    what = f"the source {spec.name!r} at {shown_url(url)}"
    if not urlsplit(url).hostname:
        return error("sources.reachable", f"{what} has no host", _WHY, _REMEDY)
    try:
        answer = await get(url, setup.timeout_s, most_bytes=0)
    except LookError as failed:
        return error("sources.reachable", f"{what} {failed}", _WHY, _REMEDY)
    if answer.status >= 500 and answer.status != 501:
        return warning("sources.reachable", f"{what} answers {answer.status}", _WHY, "look into its log")
    return ok("sources.reachable", f"{what} answers")


def _program(spec: SourceSpec, program: str) -> CheckResult:
    if shutil.which(program) is None:
        return error(
            "sources.program",
            f"the source {spec.name!r} starts the program {program!r}, which is not there",
            _WHY,
            "install it, or fix command",
        )
    return ok("sources.program", f"the program {program!r} of the source {spec.name!r} is there")


async def _folder(setup: Setup, spec: SourceSpec, base: Path) -> CheckResult:
    try:
        return await in_thread(lambda: _of_folder(spec, base), setup.timeout_s)
    except LookError as slow:
        return unknown(
            "sources.folder", f"the folder of the source {spec.name!r} {slow}", "", "give it more --timeout"
        )


def _of_folder(spec: SourceSpec, base: Path) -> CheckResult:
    from truthlens.retrieval.sources.folder.updating import outdated

    root, index = spec.options.root(base), spec.options.index_file(base)
    what = f"the source {spec.name!r}"
    make = f"truthlens index {root} --out {index}"
    if not root.is_dir():
        return error(
            "sources.folder", f"{what}: there is no folder {root}", "the process does not start", "fix path"
        )
    if not index.exists():
        return warning(
            "sources.index",
            f"{what} has no index yet ({index})",
            "it is made at the start; until it is done, searches find nothing",
            f"make it before: {make}",
        )
    try:
        changed = outdated(root, index, spec.options)
    except (TruthLensError, OSError) as failed:
        text = (
            str(failed)
            if isinstance(failed, TruthLensError)
            else f"{index} cannot be read ({type(failed).__name__})"
        )
        return error("sources.index", f"{what}: {text}", _WHY, f"make it again: {make}")
    if changed:
        return warning(
            "sources.index",
            f"{what}: {changed} files differ from its index",
            "answers are checked against what the files said before; a running process follows within "
            "seconds",
            f"if no process does: {make}",
        )
    return ok("sources.index", f"{what}: its index is fresh")


async def _pgvector(setup: Setup, spec: SourceSpec) -> CheckResult:
    what = f"the database of the source {spec.name!r}"
    from truthlens.retrieval.sources.pgvector.connection import database_url, open_engine

    try:
        url = database_url(spec.options.url_env, setup.environ)
        engine = open_engine(url, connections=1, timeout_ms=int(setup.timeout_s * 1000))
    except ValueError as unfit:
        return error("sources.database", f"{what}: {unfit}", "the process does not start", "fix the variable")
    except ImportError as missing:
        what = f"{what} needs the library {missing.name!r}, which is not installed"
        return error("sources.database", what, "the process does not start", "pip install 'truthlens[sql]'")
    try:
        await in_thread(lambda: engine.connect().close(), setup.timeout_s)
    except LookError as slow:
        return error("sources.database", f"{what} {slow}", _WHY, _REMEDY)
    except Exception as failed:  # noqa: BLE001 - the border of the driver, whose own words may quote the URL
        return error("sources.database", f"{what} cannot be read ({type(failed).__name__})", _WHY, _REMEDY)
    finally:
        engine.dispose(close=False)
    return ok("sources.database", f"{what} can be read")
