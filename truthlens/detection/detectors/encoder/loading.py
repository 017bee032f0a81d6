"""Load a detector from a model folder: manifest, digests, tokenizer, weights.

A folder is either this project's own (``manifest.json``, ``model.onnx`` or ``body.onnx`` and ``head.onnx``,
``tokenizer.json``) or any Hugging Face token-classification folder, with an ONNX export in it or with
safetensors weights.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from truthlens.core.errors import ModelError
from truthlens.detection.detectors.encoder.detector import EncoderDetector
from truthlens.detection.models.fingerprint import sha256_of
from truthlens.detection.models.inputs.lexical import COLUMNS
from truthlens.detection.models.inputs.manifest import Manifest, load_manifest
from truthlens.detection.models.inputs.windows import load_tokenizer
from truthlens.detection.models.onnx_runtime import OnnxModel
from truthlens.detection.models.runtime import TokenModel

BODY_NAME, HEAD_NAME = "body.onnx", "head.onnx"
"""The two files of a graph that takes features; ``lab.export.split_graph`` cuts them."""


def load_encoder(
    folder: Path,
    *,
    use_cpu: bool = True,
    threads: int = 1,
    max_windows: int = 256,
) -> EncoderDetector:
    """Load the encoder detector of a model folder; it is not yet warm.

    Args:
        folder: the model's folder.
        use_cpu: run on the CPU; otherwise on a GPU, which must be there.
        threads: threads inside one inference.
        max_windows: most windows for one answer; beyond that its verdict is partial.

    Raises:
        ModelError: the folder cannot be used; the message says why and what to do.
    """
    manifest = load_manifest(folder)
    verify_files(folder, manifest.files)
    tokenizer = load_tokenizer(folder)
    model = load_model(folder, manifest=manifest, use_cpu=use_cpu, threads=threads)
    return EncoderDetector(model, tokenizer, manifest, max_windows=max_windows)


def load_model(
    folder: Path,
    *,
    manifest: Manifest,
    use_cpu: bool = True,
    threads: int = 1,
) -> TokenModel:
    """Load the weights of a model folder.

    Chosen are, in this order: the ONNX file that the manifest lists, ``model.onnx``, ``body.onnx``,
    ``onnx/model.onnx``, any other ``onnx/model*.onnx``, and else the safetensors through PyTorch. With
    ``body.onnx`` goes ``head.onnx``. On a GPU, safetensors come first.

    Raises:
        ModelError: there are no weights, they cannot be loaded, or they do not fit the manifest.
    """
    onnx = _onnx_file(folder, manifest)
    safetensors = any(folder.glob("*.safetensors"))
    if onnx is None or (safetensors and not use_cpu):
        if not safetensors:
            raise ModelError(
                f"{folder} holds no weights; expected model.onnx, onnx/model.onnx or *.safetensors "
                "(pickled *.bin files are not loaded: convert them to safetensors)"
            )
        if manifest.input.features is not None:
            raise ModelError(
                f"{folder}: its manifest asks for features {manifest.input.features}, which only an ONNX graph "
                "takes; put the exported model.onnx into the folder"
            )
        from truthlens.detection.models.torch_runtime import TorchModel

        return TorchModel(folder, label=manifest.hallucinated_label, use_cpu=use_cpu, threads=threads)
    model = OnnxModel(
        onnx, head=head_of(onnx), label=manifest.hallucinated_label, use_cpu=use_cpu, threads=threads
    )
    if ("features" in model.inputs) != (manifest.input.features is not None):
        raise ModelError(
            f"{onnx}: the graph {'takes' if 'features' in model.inputs else 'does not take'} features, but "
            f"input.features in the manifest is {manifest.input.features}; export the model again"
        )
    if manifest.input.features is not None and model.features not in (None, COLUMNS[manifest.input.features]):
        raise ModelError(
            f"{onnx}: the graph takes {model.features} columns of features, but {manifest.input.features}, which the manifest "
            f"names, has {COLUMNS[manifest.input.features]}; set input.features to what the model was trained with"
        )
    return model


def verify_files(folder: Path, files: Mapping[str, str]) -> None:
    """Compare the files that a manifest lists with their SHA-256 digests (hex, by name).

    Raises:
        ModelError: a file is missing, lies outside the folder, or differs.
    """
    for name, expected in files.items():
        file = folder / name
        if not file.resolve().is_relative_to(folder.resolve()):
            raise ModelError(f"{folder}: its manifest lists {name}, which is outside the folder; remove it")
        if not file.is_file():
            raise ModelError(f"{file} is missing, but the manifest lists it; fetch the model again")
        found = sha256_of(file)
        if found != expected:
            raise ModelError(
                f"{file} has SHA-256 {found[:12]}..., the manifest says {expected[:12]}...; "
                "the file is damaged or was changed: fetch the model again"
            )


def head_of(onnx: Path) -> Path | None:
    """Return the file of the head that goes with ``onnx``, or ``None`` if that file holds a whole graph."""
    return onnx.with_name(HEAD_NAME) if onnx.name == BODY_NAME else None


def _onnx_file(folder: Path, manifest: Manifest) -> Path | None:
    listed = [folder / name for name in manifest.files if name.endswith(".onnx") and name != HEAD_NAME]
    usual = [folder / "model.onnx", folder / BODY_NAME, folder / "onnx" / "model.onnx"]
    files = [*listed, *usual, *sorted(folder.glob("onnx/model*.onnx"))]
    return next((file for file in files if file.is_file()), None)
