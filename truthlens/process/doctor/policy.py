"""The policy file, the models that it needs, and the memory that they take."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from truthlens.core.errors import ModelError
from truthlens.core.records.enums import DetectorName
from truthlens.detection.detectors.encoder.loading import verify_files
from truthlens.detection.models.inputs.manifest import load_manifest
from truthlens.policy import InvalidPolicyError, Policy, compile_policy
from truthlens.policy.compile import check_text, read_text, version_now
from truthlens.process.doctor.findings import CheckResult, error, of_diagnostics, ok, warning
from truthlens.process.doctor.setup import Setup
from truthlens.process.model_store import SIMILARITY_MODEL, ModelShelf, SimilarityShelf, placement_of
from truthlens.process.settings import Settings, models_folder
from truthlens.process.start_checks import compares, elsewhere, make_ready
from truthlens.telemetry.metrics import Metrics
from truthlens.yamlfile.diagnostics import Diagnostic, Severity

_BASE_BYTES = 150 << 20
# Weights are there twice while they are loaded, and what a model computes needs room as well.
_TIMES = 2
_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class ReadPolicy:
    """The file: ``policy`` is ``None`` where it cannot be used, ``version`` where it cannot be read."""

    text: str
    version: str | None
    policy: Policy | None
    diagnostics: tuple[Diagnostic, ...]


def read_policy(settings: Settings) -> ReadPolicy:
    """Read the policy file of ``settings``; no model is loaded. Mistakes are kept in the result."""
    file, shelf = settings.config, ModelShelf(settings, Metrics())
    text, version = "", None
    try:
        text, version = read_text(file), version_now(file)
        policy = compile_policy(text, file=str(file), model_exists=shelf.has, identify=shelf.identity)
    except InvalidPolicyError as refused:
        warnings: list[Diagnostic] = []
        if text:
            said = check_text(text, file=str(file), model_exists=shelf.has, identify=shelf.identity)
            warnings = [each for each in said if each.severity is Severity.WARNING]
        return ReadPolicy(text, version, None, (*refused.diagnostics, *warnings))
    found = (*policy.warnings, *elsewhere(policy, settings))
    return ReadPolicy(text, version, policy, tuple(sorted(found, key=lambda each: each.line)))


async def look_at_policy(
    setup: Setup, file: ReadPolicy, serving: Mapping[str, Any] | None
) -> list[CheckResult]:
    """Return what is wrong with the policy and its models.

    Args:
        setup: whose models are meant.
        file: the policy.
        serving: what ``/readyz`` of the running process says; with it, models are compared with their digests
            and not loaded a second time.
    """
    found = of_diagnostics("policy", file.diagnostics)
    if not found and file.policy is not None:
        found.append(
            ok("policy.file", f"{setup.settings.config}: {len(file.policy.plans)} decisions, no mistake")
        )
    if serving is not None:
        found += _in_force(setup, file, serving)
    if file.policy is not None:
        found += await _models(setup, file.policy, load=serving is None)
    return found


def _in_force(setup: Setup, file: ReadPolicy, serving: Mapping[str, Any]) -> Iterator[CheckResult]:
    """Yield how the policy that a running process has in force differs from the file."""
    told = serving.get("policy")
    told = told if isinstance(told, dict) else {}
    where = f"the process at http://{setup.settings.console}"
    if told.get("last_error"):
        yield error(
            "policy.reload",
            f"{where} refused the last edit of its policy file, and goes on with version "
            f"{told.get('version')}",
            f"answers are checked by the policy before the edit: {told['last_error']}",
            "fix what the message names; the file is read again when it changes",
        )
    elif file.version is not None and told.get("version") != file.version:
        yield warning(
            "policy.version",
            f"{where} has version {told.get('version')} in force, {setup.settings.config} is version "
            f"{file.version}",
            "it was started with another file, does not watch its file (--no-reload), or has not read "
            "an edit yet",
            "name its policy with --config, or start it again",
        )
    else:
        yield ok("policy.version", f"{where} has version {told.get('version')} in force, as the file is")
    known = {each.render() for each in file.diagnostics}
    for text in serving.get("warnings") or ():
        if text not in known:
            yield warning(
                "policy.running", f"{where} warns: {text}", "its policy is another one", "see the message"
            )


async def _models(setup: Setup, policy: Policy, *, load: bool) -> list[CheckResult]:
    try:
        folders = await asyncio.to_thread(lambda: list(dict.fromkeys(_folders(setup.settings, policy))))
    except ModelError as missing:
        return [_broken(missing)]
    found: list[CheckResult] = []
    if load:
        needed, free = _BASE_BYTES + _TIMES * sum(map(_size, folders)), setup.free_memory()
        room = f"{needed // _MIB} MiB for {len(folders)} models"
        if free is not None and free < needed:
            found.append(
                warning(
                    "policy.memory",
                    f"{free // _MIB} MiB of memory are free, and the policy needs about {room}",
                    "the process may be killed when it loads them; they were not loaded now",
                    "give it more memory, or list fewer detectors (reader is the largest)",
                )
            )
            load = False
        elif free is not None:
            found.append(
                ok("policy.memory", f"{free // _MIB} MiB of memory are free, about {room} are needed")
            )
    try:
        if load:
            # Keys are looked at with the backends.
            await make_ready(
                policy, ModelShelf(setup.settings, Metrics()), SimilarityShelf(setup.settings), environ={}
            )
        else:
            for folder in folders:
                await asyncio.to_thread(_verify, folder)
    except InvalidPolicyError as refused:
        return [*found, *of_diagnostics("policy", refused.diagnostics)]
    except (ModelError, OSError) as damaged:
        return [*found, _broken(damaged)]
    names = ", ".join(folder.name for folder in folders)
    return [
        *found,
        ok("policy.models", f"{names}: {'loaded, ' if load else ''}files are what their manifests say"),
    ]


def _broken(cause: Exception) -> CheckResult:
    text = str(cause) if isinstance(cause, ModelError) else f"a model cannot be read ({type(cause).__name__})"
    return error(
        "policy.models", text, "a process with this policy does not start", "fix what the message names"
    )


def _folders(settings: Settings, policy: Policy) -> Iterator[Path]:
    plans = [plan for plan in policy.all_plans if plan.enabled or plan is policy.default]
    for plan in plans:
        yield placement_of(policy, plan, settings).folder
        for spec in plan.detectors:
            if spec.name == DetectorName.READER:
                yield _reader(spec.options, settings)
    if any(compares(plan) for plan in plans):
        yield models_folder(settings.models) / SIMILARITY_MODEL


def _reader(options: Any, settings: Settings) -> Path:
    from truthlens.detection.detectors.reader import Options
    from truthlens.detection.detectors.reader.model import find_reader

    name = (options or Options()).model
    return find_reader(name, models_folder(settings.models), models_folder())


def _size(folder: Path) -> int:
    return sum(each.stat().st_size for each in folder.rglob("*") if each.is_file())


def _verify(folder: Path) -> None:
    """Compare the files of a model's folder with its manifest.

    Raises:
        ModelError: one differs, or there is no usable manifest.
    """
    if folder.name == SIMILARITY_MODEL:
        from truthlens.detection.similarity import load_similarity_manifest

        verify_files(folder, load_similarity_manifest(folder).files)
        return
    from truthlens.detection.detectors.reader.model import is_reader, load_reader_manifest

    manifest = load_reader_manifest(folder) if is_reader(folder) else load_manifest(folder)
    verify_files(folder, manifest.files)
