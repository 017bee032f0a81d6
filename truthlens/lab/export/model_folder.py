"""Model folders as the workshop writes them: digests of every file, and never half a folder."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path

from pydantic import BaseModel

from truthlens.core.errors import ModelError
from truthlens.detection.models.fingerprint import sha256_of
from truthlens.detection.models.inputs.manifest import MANIFEST_NAME, Manifest
from truthlens.policy.files import replace_file

_PARTIAL = ".partial-"


def write_manifest(folder: Path, manifest: BaseModel) -> None:
    """Write ``manifest``, of whatever kind of model, into ``folder``, whole or not at all."""
    text = json.dumps(manifest.model_dump(mode="json"), indent=2, ensure_ascii=False)
    replace_file(folder / MANIFEST_NAME, text + "\n")


def swap_in(made: Path, output: Path, names: Iterable[str]) -> None:
    """Put the files of ``made`` with these names into ``output``, one by one, each whole."""
    for name in names:
        partial = output / f"{_PARTIAL}{name}"
        shutil.copyfile(made / name, partial)
        partial.replace(output / name)


def write_folder(output: Path, manifest: Manifest, made: Path, *, replaced: Iterable[str] = ()) -> Manifest:
    """Put the files of ``made`` into ``output``, and a manifest that lists them with their digests.

    Files that ``output`` already holds and that have another name stay, and so do their digests. Files and
    manifest are swapped in one by one, each whole, the manifest last: cut short in between, the folder's
    digests no longer fit and loading it says so.

    Args:
        output: model folder; made if it is not there.
        manifest: what is written, with the digests brought up to date.
        made: folder of the new files, all directly in it.
        replaced: names that the new files take the place of; they are removed.

    Returns:
        The manifest as written.

    Raises:
        ModelError: ``output`` exists and is no folder.
    """
    if output.exists() and not output.is_dir():
        raise ModelError(f"{output} is a file; give a folder")
    output.mkdir(parents=True, exist_ok=True)
    names = sorted(file.name for file in made.iterdir())
    gone = set(replaced) - set(names)
    kept = {name: known for name, known in manifest.files.items() if (output / name).is_file()}
    files = {name: known for name, known in kept.items() if name not in gone}
    files |= {name: sha256_of(made / name) for name in names}
    written = manifest.model_copy(update={"files": files})
    swap_in(made, output, names)
    write_manifest(output, written)
    for name in gone:
        (output / name).unlink(missing_ok=True)
    return written
