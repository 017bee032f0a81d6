"""Cut an exported graph that takes lexical features in two files: expensive body, and head.

While an answer grows its features change with every word, and what the body makes of a finished window does
not: cut in two, the body runs once a window. ``python -m truthlens.lab.export.split_graph FOLDER`` cuts
the ``model.onnx`` of a folder that an earlier version exported.
"""

from __future__ import annotations

import tempfile
from itertools import chain
from pathlib import Path

import onnx
import typer
from onnx.shape_inference import infer_shapes
from onnx.utils import Extractor

from truthlens.core.errors import ModelError
from truthlens.detection.detectors.encoder.loading import BODY_NAME, HEAD_NAME, verify_files
from truthlens.detection.models.inputs.manifest import load_manifest
from truthlens.lab.export.convert import ONNX_NAME
from truthlens.lab.export.model_folder import write_folder

_FEATURES = "features"
_OUTPUT = "logits"


def split_graph(file: Path, folder: Path) -> None:
    """Write the graph of the ONNX ``file`` as ``body.onnx`` and ``head.onnx`` into ``folder``.

    The body takes every input but the features; its outputs are what the head reads of it. Run in turn they
    give what the whole gives, to the bit.

    Raises:
        ModelError: the graph makes no logits of features, or has graphs within its nodes.
    """
    model = infer_shapes(onnx.load(str(file)))
    graph = model.graph
    late, head_nodes = {_FEATURES}, []
    for node in graph.node:
        if not late.isdisjoint(node.input):
            late.update(node.output)
            head_nodes.append(node)
    inputs = [value.name for value in graph.input]
    if _FEATURES not in inputs or _OUTPUT not in late:
        raise ModelError(
            f"{file} makes no logits of features, so it has no head to cut off; serve it as it is"
        )
    attributes = chain.from_iterable(node.attribute for node in graph.node)
    if any(each.HasField("g") or each.graphs for each in attributes):
        raise ModelError(
            f"{file} has graphs within its nodes, and what those read cannot be cut; serve it as it is"
        )
    # Constants are cheap, so that either part has its own.
    made = (node.output for node in graph.node if node.op_type != "Constant")
    early = set(chain.from_iterable(made)) - late
    read = list(chain.from_iterable(node.input for node in head_nodes))
    border = [name for name in dict.fromkeys(read) if name in early]
    own = [name for name in inputs if name in read]
    extractor = Extractor(model)
    body = extractor.extract_model([name for name in inputs if name != _FEATURES], border)
    head = extractor.extract_model([*border, *own], [_OUTPUT])
    for part, name in ((body, BODY_NAME), (head, HEAD_NAME)):
        onnx.save(part, str(folder / name))


def split_folder(folder: Path) -> None:
    """Replace the ``model.onnx`` of a model folder and its manifest by ``body.onnx`` and ``head.onnx``.

    Raises:
        ModelError: the folder has no such file, a file is damaged, or the graph cannot be cut; nothing was
            changed.
    """
    manifest = load_manifest(folder)
    verify_files(folder, manifest.files)
    if not (folder / ONNX_NAME).is_file():
        raise ModelError(f"{folder} has no {ONNX_NAME} to cut in two")
    with tempfile.TemporaryDirectory() as scratch:
        split_graph(folder / ONNX_NAME, Path(scratch))
        write_folder(folder, manifest, Path(scratch), replaced=(ONNX_NAME,))


if __name__ == "__main__":
    typer.run(split_folder)
