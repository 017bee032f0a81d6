"""Identify the model in a folder, so that a threshold calibrated for one model is not used with another.

Reads the manifest and hashes files; it loads no weights and checks no digests (``loading`` does).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from truthlens.core.records.verdict import ModelIdentity
from truthlens.detection.models.inputs.manifest import Manifest, load_manifest

# What a manifest says about the model without changing a score. The aggregation is compared by itself.
_DESCRIPTIVE = frozenset(
    {
        "format",
        "name",
        "base",
        "architecture",
        "note",
        "data",
        "licence",
        "revision",
        "figures",
        "files",
        "aggregation",
        "recommended_threshold",
        "score_deciles",
    }
)
_WEIGHTS = (".onnx", ".safetensors")


def model_identity(folder: Path) -> ModelIdentity:
    """Return the identity of the model in ``folder``.

    Files that the manifest lists count by the digest it gives for them (loading compares those); weights that
    it does not list, and the tokenizer, are read.

    Raises:
        ModelError: the folder has no usable manifest.
        OSError: a file cannot be read.
    """
    manifest = load_manifest(folder)
    digests = dict(manifest.files) | {
        file.relative_to(folder).as_posix(): _digest_of(file) for file in _unlisted(folder, manifest)
    }
    # Without defaults: a key that a later version adds to the format must not make every model another one.
    scoring = manifest.model_dump(mode="json", exclude=set(_DESCRIPTIVE), exclude_defaults=True)
    text = json.dumps({"scoring": scoring, "files": digests}, sort_keys=True)
    return ModelIdentity(manifest.name, hashlib.sha256(text.encode()).hexdigest(), manifest.aggregation)


def _unlisted(folder: Path, manifest: Manifest) -> Iterator[Path]:
    patterns = ["tokenizer.json"]
    if not any(name.endswith(_WEIGHTS) for name in manifest.files):
        patterns += ["*.safetensors", "*.onnx*", "onnx/*.onnx*"]
    for pattern in patterns:
        for file in sorted(folder.glob(pattern)):
            if file.relative_to(folder).as_posix() not in manifest.files:
                yield file


def _digest_of(file: Path) -> str:
    state = file.stat()
    return _digest(file, state.st_size, state.st_mtime_ns)


@lru_cache(maxsize=64)
def _digest(file: Path, _size: int, _modified_ns: int) -> str:
    """Return the SHA-256 of a file.

    Size and modification time are arguments so that the cache notices a changed file.
    """
    return sha256_of(file)


def sha256_of(file: Path) -> str:
    """Return the SHA-256 of a file, in hex."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
