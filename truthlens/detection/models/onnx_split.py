"""An ONNX graph cut in two: what does not depend on one of its inputs, and what does.

The costly part of a graph that takes lexical features does not read them; while an answer grows, its features change
with every word and the rest of a finished window does not. Cut in two, the first part runs once a window. Works on the
file's bytes, because serving does not have the library that writes such files; reads no weights and runs nothing.

Source: onnx.proto of ONNX 1.17 (ModelProto, GraphProto, NodeProto, TensorProto, ValueInfoProto).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

_MODEL_GRAPH = 7
_NODE, _GRAPH_NAME, _INITIALIZER, _INPUT, _OUTPUT = 1, 2, 5, 11, 12
_NODE_INPUT, _NODE_OUTPUT, _NODE_KIND, _NODE_ATTRIBUTE = 1, 2, 4, 5
_ATTRIBUTE_GRAPHS = frozenset({6, 11})
_TENSOR_NAME, _TENSOR_EXTERNAL = 8, 13
_NAME, _TYPE, _TENSOR_TYPE, _ELEMENT_TYPE = 1, 2, 1, 1
_ELEMENT_TYPES = {
    "tensor(float)": 1, "tensor(uint8)": 2, "tensor(int8)": 3, "tensor(int32)": 6, "tensor(int64)": 7,
    "tensor(bool)": 9, "tensor(float16)": 10, "tensor(double)": 11,
}  # fmt: skip
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

_Field = tuple[int, bytes | memoryview]
"""Number and contents of a field that is a message or a string."""


@dataclass(frozen=True, slots=True)
class GraphParts:
    """The two parts of a graph.

    ``early`` is a whole ONNX file whose outputs are ``border``: what the late part reads of it. ``late`` makes the
    other file, from the types of ``border`` in the words of onnxruntime (``tensor(float)``); its inputs are ``border``
    and those of the whole graph's inputs that it reads.
    """

    early: bytes
    border: tuple[str, ...]
    late: Callable[[Mapping[str, str]], bytes]


def part_graph(model: bytes, *, late_input: str, output: str) -> GraphParts | None:
    """The graph of the ONNX file ``model`` in two parts, or ``None`` where it cannot be cut.

    It cannot where it does not take ``late_input`` or does not make ``output`` of it, where weights lie outside of the
    file, where a node has a graph of its own within, and where the bytes are no ONNX file.

    Args:
        model: contents of the file.
        late_input: name of the input that only the late part gets.
        output: name of the output; others are left out.
    """
    try:
        return _part(model, late_input, output)
    except (IndexError, ValueError):
        return None


def _part(model: bytes, late_input: str, output: str) -> GraphParts | None:
    graph = _Graph(model)
    late: set[str] = {late_input}
    for node in graph.nodes:
        if not late.isdisjoint(node.inputs):
            late.update(node.outputs)
    if late_input not in graph.inputs or output not in late or output not in graph.outputs or not graph.plain:
        return None
    constants = {name for node in graph.nodes if node.kind == "Constant" for name in node.outputs}
    early_nodes = [node for node in graph.nodes if late.isdisjoint(node.outputs)]
    late_nodes = [node for node in graph.nodes if not late.isdisjoint(node.outputs)]
    made = {name for node in early_nodes for name in node.outputs} - constants
    read = dict.fromkeys(name for node in late_nodes for name in node.inputs)
    border = tuple(name for name in read if name in made)
    own_inputs = [raw for name, raw in graph.inputs.items() if name in read]

    def late_file(types: Mapping[str, str]) -> bytes:
        unknown = set(types.values()) - _ELEMENT_TYPES.keys()
        if unknown:
            raise ValueError(f"types {', '.join(sorted(unknown))} cannot stand at the border of two parts")
        nodes = [node for node in graph.nodes if node.kind == "Constant" and read.keys() & set(node.outputs)]
        inputs = [*(_value(name, _ELEMENT_TYPES[types[name]]) for name in border), *own_inputs]
        return graph.file([*nodes, *late_nodes], inputs=inputs, outputs=[graph.outputs[output]])

    early_inputs = [raw for name, raw in graph.inputs.items() if name != late_input]
    early = graph.file(early_nodes, inputs=early_inputs, outputs=[_value(name) for name in border])
    return GraphParts(early, border, late_file)


@dataclass(frozen=True, slots=True)
class _Node:
    raw: memoryview
    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


class _Graph:
    """The parts of a model file that cutting needs; all else is carried along as it stands.

    ``plain`` says that no node holds a graph and all weights lie in the file.
    """

    def __init__(self, model: bytes) -> None:
        self._around: list[memoryview] = []
        self._name = b""
        self._weights: dict[str, memoryview] = {}
        self.nodes: list[_Node] = []
        self.inputs: dict[str, bytes | memoryview] = {}
        self.outputs: dict[str, bytes | memoryview] = {}
        self.plain = True
        for number, contents, whole in _fields(memoryview(model)):
            if number == _MODEL_GRAPH:
                self._read(contents)
            else:
                self._around.append(whole)

    def file(
        self,
        nodes: Sequence[_Node],
        *,
        inputs: Sequence[bytes | memoryview],
        outputs: Sequence[bytes | memoryview],
    ) -> bytes:
        """A model file of these nodes, with the weights that they read."""
        read = {name for node in nodes for name in node.inputs}
        graph = _message(
            [
                *((_NODE, node.raw) for node in nodes),
                (_GRAPH_NAME, self._name),
                *((_INITIALIZER, raw) for name, raw in self._weights.items() if name in read),
                *((_INPUT, raw) for raw in inputs),
                *((_OUTPUT, raw) for raw in outputs),
            ]
        )
        return b"".join([*self._around, _message([(_MODEL_GRAPH, graph)])])

    def _read(self, graph: memoryview) -> None:
        for number, contents, _ in _fields(graph):
            if number == _NODE:
                self.nodes.append(self._node(contents))
            elif number == _INITIALIZER:
                fields = list(_fields(contents))
                self.plain &= all(field != _TENSOR_EXTERNAL for field, _, _ in fields)
                self._weights[_text(fields, _TENSOR_NAME)] = contents
            elif number == _INPUT:
                self.inputs[_text(_fields(contents), _NAME)] = contents
            elif number == _OUTPUT:
                self.outputs[_text(_fields(contents), _NAME)] = contents
            elif number == _GRAPH_NAME:
                self._name = bytes(contents)

    def _node(self, raw: memoryview) -> _Node:
        inputs: list[str] = []
        outputs: list[str] = []
        kind = ""
        for number, contents, _ in _fields(raw):
            if number == _NODE_INPUT:
                inputs.append(str(contents, "utf-8"))
            elif number == _NODE_OUTPUT:
                outputs.append(str(contents, "utf-8"))
            elif number == _NODE_KIND:
                kind = str(contents, "utf-8")
            elif number == _NODE_ATTRIBUTE:
                self.plain &= all(field not in _ATTRIBUTE_GRAPHS for field, _, _ in _fields(contents))
        return _Node(raw, kind, tuple(inputs), tuple(outputs))


def _fields(message: memoryview) -> Iterator[tuple[int, memoryview, memoryview]]:
    """Number, contents, and the whole with its key, of each field; contents are empty for plain numbers."""
    place = 0
    while place < len(message):
        start = place
        key, place = _varint(message, place)
        length = 0
        match key & 7:
            case _ if key & 7 == _VARINT:
                _, place = _varint(message, place)
            case _ if key & 7 == _FIXED64:
                place += 8
            case _ if key & 7 == _FIXED32:
                place += 4
            case _ if key & 7 == _BYTES:
                length, place = _varint(message, place)
                place += length
            case other:
                raise ValueError(f"wire type {other} is none of this format")
        if place > len(message):
            raise ValueError("a field reaches beyond its message")
        yield key >> 3, message[place - length : place], message[start:place]


def _varint(message: memoryview, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[place]
        place += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place
        shift += 7


def _text(fields: Iterable[tuple[int, memoryview, memoryview]], number: int) -> str:
    return next((str(contents, "utf-8") for field, contents, _ in fields if field == number), "")


def _value(name: str, element_type: int | None = None) -> bytes:
    """The description of a tensor; without a type onnxruntime finds it out."""
    fields: list[_Field] = [(_NAME, name.encode())]
    if element_type is not None:
        tensor = bytes([_ELEMENT_TYPE << 3 | _VARINT, element_type])
        fields.append((_TYPE, _message([(_TENSOR_TYPE, tensor)])))
    return _message(fields)


def _message(fields: Iterable[_Field]) -> bytes:
    return b"".join(part for number, contents in fields for part in _written(number, contents))


def _written(number: int, contents: bytes | memoryview) -> Iterator[bytes | memoryview]:
    yield _number(number << 3 | _BYTES)
    yield _number(len(contents))
    yield contents


def _number(value: int) -> bytes:
    written = bytearray()
    while value >= 0x80:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)
