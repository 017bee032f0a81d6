"""A model of the Hugging Face hub as a folder that can be served: pinned, hashed, with a manifest.

Fetched are weights in safetensors (or an ONNX export, where there are none), configuration and tokenizer;
never pickles and never code. What they hold is not run here.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

from huggingface_hub.hf_api import RepoSibling

from truthlens.core.errors import ModelError
from truthlens.detection.models.inputs.manifest import Manifest, derive_manifest, load_manifest
from truthlens.detection.models.inputs.prompts import TEMPLATES, TemplateName
from truthlens.lab.export.model_folder import write_manifest
from truthlens.lab.fetch.hf_client import Hub, Snapshot, listed_digest
from truthlens.lab.fetch.known_checkpoints import find

_SMALL = ("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json")
_CARDS = ("README.md", "LICENSE*")
WEIGHTS = ("*.safetensors", "*.safetensors.index.json")
_EXPORTS = ("onnx/model.onnx", "onnx/model.onnx_data", "model.onnx", "model.onnx.data")
_PARTIAL = ".pull-"

Begin = Callable[[str, int], Callable[[int], None]]
"""Told a file's name and size; gives what is to be told of its bytes as they come."""


@dataclass(frozen=True, slots=True)
class Pulled:
    """A fetched model. ``fetched`` is false where the very same revision was there already."""

    folder: Path
    manifest: Manifest
    bytes: int
    fetched: bool


def pull(
    hub: Hub,
    name: str,
    shelf: Path,
    *,
    revision: str = "main",
    template: str | None = None,
    folder_name: str | None = None,
    begin: Begin = lambda _name, _size: lambda _bytes: None,
) -> Pulled:
    """Fetch a model into ``shelf``.

    Everything lands in a hidden folder first, which takes its name once all digests are right; a run that
    ends before leaves nothing behind.

    Args:
        hub: where to fetch from.
        name: a name of ``known_checkpoints.KNOWN``, or ``OWNER/NAME``.
        shelf: folder of model folders; made if it is not there.
        revision: branch, tag or commit. The commit that it stands for is written to the manifest.
        template: of the prompt; left out, the known one, or what the layout suggests.
        folder_name: of the new folder; left out, the repository's name.
        begin: progress.

    Raises:
        ModelError: see ``Hub``; or the repository holds no token classifier that can be served, the folder is
            taken by something else, the template is unknown, or the disk is too full.
    """
    if template is not None and template not in TEMPLATES:
        raise ModelError(f"there is no template {template}; expected one of {', '.join(TEMPLATES)}")
    known = find(name)
    repository = known.repository if known is not None else name
    snapshot = hub.snapshot(repository, revision)
    target = target_folder(shelf, repository, folder_name)
    if target.exists():
        held = load_manifest(target)
        demand_same(target, held.base, held.revision, snapshot)
        return Pulled(target, held, 0, fetched=False)
    chosen = _choose(snapshot)
    with fetched_files(hub, snapshot, chosen, shelf, begin) as (place, digests):
        manifest = _manifest(place, snapshot, digests, name=target.name, template=template)
        write_manifest(place, manifest)
        place.rename(target)
    return Pulled(target, manifest, total_size(chosen), fetched=True)


def target_folder(shelf: Path, source: str, folder_name: str | None) -> Path:
    """Return the new folder in ``shelf`` for ``source`` (``OWNER/NAME`` or a path), named after it or as ``folder_name`` says.

    Raises:
        ModelError: the name is none of a folder in ``shelf``.
    """
    name = folder_name if folder_name is not None else Path(source).resolve().name
    if not name or name != Path(name).name or name.startswith("."):
        raise ModelError(
            f"{name!r} is no name for a folder in {shelf}; give one without slashes, that starts with no dot, with --folder"
        )
    return shelf / name


def total_size(files: Sequence[RepoSibling]) -> int:
    """Return the bytes of all ``files``, as the hub lists them."""
    return sum(file.size or 0 for file in files)


@contextmanager
def fetched_files(
    hub: Hub, snapshot: Snapshot, files: Sequence[RepoSibling], shelf: Path, begin: Begin
) -> Iterator[tuple[Path, dict[str, str]]]:
    """Fetch ``files`` into a hidden folder below ``shelf``; yield it with the SHA-256 of each. What is left of it goes at the end.

    Raises:
        ModelError: see ``Hub``; or the disk is too full.
    """
    total = total_size(files)
    shelf.mkdir(parents=True, exist_ok=True)
    free = shutil.disk_usage(shelf).free
    if free < total:
        raise ModelError(
            f"{snapshot.repository} takes {total / 1e6:.0f} MB, {shelf} has {free / 1e6:.0f} MB left"
        )
    with tempfile.TemporaryDirectory(prefix=_PARTIAL, dir=shelf) as partial:
        place = Path(partial) / "files"
        place.mkdir()
        digests = {}
        for file in files:
            progress = begin(file.rfilename, file.size or 0)
            digests[file.rfilename] = hub.fetch(snapshot, file, place, progress=progress)
        shutil.rmtree(place / ".cache")  # the library's notes on what it fetched
        yield place, digests


def matching(snapshot: Snapshot, patterns: Sequence[str]) -> list[RepoSibling]:
    """Return the files of ``snapshot`` that one of ``patterns`` names; a star does not reach into folders, where states of training lie."""
    return [
        file
        for file in snapshot.files
        if any(fnmatch(file.rfilename, p) and file.rfilename.count("/") == p.count("/") for p in patterns)
    ]


def demand_digests(snapshot: Snapshot, files: Sequence[RepoSibling]) -> None:
    """Check that each of ``files`` can be compared with what the hub lists.

    Raises:
        ModelError: one cannot.
    """
    bare = [file.rfilename for file in files if not listed_digest(file)]
    if bare:
        raise ModelError(
            f"the hub lists no digest for {bare[0]} of {snapshot.repository}, so it cannot be checked; use a hub "
            "that answers ?blobs=true with lfs.sha256 or blobId"
        )


def demand_same(target: Path, base: str, revision: str, snapshot: Snapshot) -> None:
    """Check that the folder ``target``, which is there, was made of ``snapshot``.

    Raises:
        ModelError: it holds ``base`` at ``revision``, which is another one.
    """
    if (base, revision) != (snapshot.repository, snapshot.commit):
        raise ModelError(
            f"{target} is there already and holds {base} at {revision[:12] or 'no revision'}, not "
            f"{snapshot.repository} at {snapshot.commit[:12]}; remove it, or name another folder with --folder"
        )


def _choose(snapshot: Snapshot) -> list[RepoSibling]:
    """Return the files to fetch.

    Raises:
        ModelError: something that serving needs is not there, or has no digest.
    """
    small = matching(snapshot, _SMALL)
    weights = matching(snapshot, WEIGHTS) or matching(snapshot, _EXPORTS)
    held = {file.rfilename for file in small}
    for needed in ("config.json", "tokenizer.json"):
        if needed not in held:
            raise ModelError(
                f"{snapshot.repository} has no {needed}; expected a token classifier with a fast tokenizer"
            )
    if not weights:
        raise ModelError(
            f"{snapshot.repository} has no *.safetensors and no onnx/model.onnx; pickled weights are not fetched: "
            "convert them to safetensors in a copy of the repository"
        )
    chosen = [*small, *matching(snapshot, _CARDS), *weights]
    demand_digests(snapshot, chosen)
    return chosen


def _manifest(
    place: Path, snapshot: Snapshot, digests: dict[str, str], *, name: str, template: str | None
) -> Manifest:
    try:
        config = json.loads((place / "config.json").read_bytes())
    except ValueError as error:
        raise ModelError(f"config.json of {snapshot.repository} is not valid JSON") from error
    if not isinstance(config, dict):
        raise ModelError(f"config.json of {snapshot.repository} holds no object")
    derived = derive_manifest(name, config)
    known = find(snapshot.repository)
    chosen: TemplateName | None = derived.input.template
    changes: dict[str, object] = {
        "base": snapshot.repository,
        "revision": snapshot.commit,
        "files": digests,
        "note": "fetched from a hub; not calibrated: fit a threshold on answers of your own",
    }
    longest = derived.input.max_tokens
    if known is not None:
        chosen, longest = known.template, known.max_tokens
        changes |= {"languages": known.languages, "licence": known.licence, "data": known.data}
    if template is not None:
        chosen = next(entry for entry in TEMPLATES if entry == template)
    sizes = {
        "template": chosen,
        "max_tokens": longest,
        "answer_tokens": max(4, min(longest * 3 // 8, 1024)),
        "answer_overlap": min(longest // 16, 128),
    }
    return derived.model_copy(update={**changes, "input": derived.input.model_copy(update=sizes)})
