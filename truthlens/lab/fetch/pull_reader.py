"""A sequence classifier of the Hugging Face hub, or of a folder, as a reader that can be served.

Fetched are weights in safetensors, configuration, tokenizer and card; never pickles and never code. What is kept is the reader that
was made of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from truthlens.core.errors import ModelError
from truthlens.detection.detectors.reader.model import ReaderManifest, load_reader_manifest
from truthlens.lab.export.convert import LARGEST_FILE
from truthlens.lab.export.reader_checkpoint import Conversion, ReaderWishes, convert_reader
from truthlens.lab.export.reader_source import CARD, VOCABULARIES
from truthlens.lab.fetch.hf_client import Hub
from truthlens.lab.fetch.pull import (
    WEIGHTS,
    Begin,
    demand_digests,
    demand_same,
    fetched_files,
    matching,
    target_folder,
    total_size,
)

_TOKENIZERS = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", *VOCABULARIES)


@dataclass(frozen=True, slots=True)
class PulledReader:
    """A reader in its folder. ``conversion`` is ``None`` where the very same revision was there already."""

    folder: Path
    manifest: ReaderManifest
    conversion: Conversion | None


def pull_reader(
    hub: Hub,
    name: str,
    shelf: Path,
    wishes: ReaderWishes,
    *,
    revision: str = "main",
    folder_name: str | None = None,
    begin: Begin = lambda _name, _size: lambda _bytes: None,
    threads: int = 1,
) -> PulledReader:
    """Make a reader in ``shelf`` of a checkpoint; a run that ends before leaves nothing behind.

    Args:
        hub: where to fetch from.
        name: a folder of a checkpoint, or ``OWNER/NAME`` on the hub.
        shelf: folder of model folders; made if it is not there.
        wishes: what the checkpoint does not say.
        revision: branch, tag or commit. The commit that it stands for is written to the manifest.
        folder_name: of the new folder; left out, the checkpoint's name.
        begin: progress.
        threads: of the comparison with the original.

    Raises:
        ModelError: see ``Hub`` and ``convert_reader``; or the folder is taken by something else.
    """
    target = target_folder(shelf, name, folder_name)
    if Path(name).is_dir():
        if target.exists():
            raise ModelError(f"{target} is there already; remove it, or name another folder with --folder")
        made = convert_reader(Path(name), target, wishes, base=Path(name).resolve().name, threads=threads)
        return PulledReader(target, made.manifest, made)
    snapshot = hub.snapshot(name, revision)
    if target.exists():
        held = load_reader_manifest(target)
        demand_same(target, held.base, held.commit, snapshot)
        return PulledReader(target, held, None)
    weights = matching(snapshot, WEIGHTS)
    if not weights:
        raise ModelError(
            f"{name} has no *.safetensors; pickled weights are not fetched: convert them to safetensors in a copy of the repository"
        )
    size = total_size(weights)
    if size > LARGEST_FILE:
        raise ModelError(
            f"{name} is too large: its weights take {size / 1e9:.1f} GB, at most {LARGEST_FILE / 1e9:.1f}; take a smaller checkpoint"
        )
    chosen = [*matching(snapshot, ("config.json", CARD, *_TOKENIZERS)), *weights]
    demand_digests(snapshot, chosen)
    with fetched_files(hub, snapshot, chosen, shelf, begin) as (place, _):
        made = convert_reader(place, target, wishes, base=name, commit=snapshot.commit, threads=threads)
    return PulledReader(target, made.manifest, made)
