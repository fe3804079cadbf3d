"""Integer arithmetic for a model whose weights are stored as 8-bit integers.

Such a file turns its weights into floats when it is opened and multiplies floats: small on disk, slow at work. This
module rewrites the multiplications to integers and scales the inputs as they come (dynamic quantisation). Rows of
tables become floats only when read, and GELU becomes one step. Measured with MiniLM on AVX-512: 2.6 times the speed, a
session open in 60 ms instead of 370. Vectors have a cosine of .994 to the exact ones, NDCG@10 on SciFact is .650
instead of .647.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


class ProtobufField(NamedTuple):
    """One field of a message: its `value` is a number or bytes; `raw` is the field as it stands, with its tag."""

    number: int
    value: int | memoryview
    raw: memoryview

    @property
    def content(self) -> memoryview:
        """The bytes of a name or a message. Raises ValueError for a field that holds a number."""
        if isinstance(self.value, int):
            raise ValueError(f"field {self.number} holds a number")
        return self.value

    def text(self) -> str:
        """The value as a name. Raises ValueError for a field that is none."""
        return bytes(self.content).decode()

    def parts(self) -> Iterator[ProtobufField]:
        """The fields of the value as a message. Raises ValueError for a field that is none."""
        return _read_fields(self.content)


def _read_fields(message: memoryview) -> Iterator[ProtobufField]:
    """The fields of a message, in order. Raises ValueError for what is no message."""
    position = 0
    while position < len(message):
        start = position
        tag, position = _read_varint(message, position)
        kind = tag & 7
        value: int | memoryview
        if kind == _VARINT:
            value, position = _read_varint(message, position)
        else:
            if kind == _BYTES:
                size, position = _read_varint(message, position)
            elif kind in (_FIXED64, _FIXED32):
                size = 8 if kind == _FIXED64 else 4
            else:
                raise ValueError(f"a field of the unknown kind {kind}")
            value = message[position : position + size]
            position += size
        if position > len(message):
            raise ValueError("a field reaches beyond its message")
        yield ProtobufField(tag >> 3, value, message[start:position])


def read_numbers(field: ProtobufField) -> list[int]:
    """The numbers of a repeated field, written one by one or all together."""
    if isinstance(field.value, int):
        return [field.value]
    numbers, position = [], 0
    while position < len(field.value):
        number, position = _read_varint(field.value, position)
        numbers.append(number)
    return numbers


def _bytes_field(number: int, value: bytes) -> bytes:
    """A field that holds bytes, a name or a message."""
    return _varint(number << 3 | _BYTES) + _varint(len(value)) + value


def _number_field(number: int, value: int) -> bytes:
    """A field that holds a number that is not negative."""
    return _varint(number << 3 | _VARINT) + _varint(value)


def _read_varint(data: memoryview, position: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        if position >= len(data) or shift > 63:
            raise ValueError("a number without an end")
        byte = data[position]
        number |= (byte & 127) << shift
        position, shift = position + 1, shift + 7
        if byte < 128:
            return number, position


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


# ProtobufField numbers of onnx.proto: ModelProto, GraphProto, NodeProto, AttributeProto, TensorProto.
_OPERATORS, _GRAPH = 8, 7
_NODE, _TENSOR, _GRAPH_OUTPUT, _VALUE_INFO = 1, 5, 12, 13
_INPUT, _OUTPUT, _NAME, _OPERATION, _ATTRIBUTE, _DOMAIN = 1, 2, 3, 4, 5, 7
_ATTRIBUTE_GRAPH, _ATTRIBUTE_GRAPHS = 6, 11
_ATTRIBUTE_NAME, _ATTRIBUTE_NUMBER, _ATTRIBUTE_KIND, _ATTRIBUTE_IS_NUMBER = 1, 3, 20, 2
_DIMENSIONS, _KIND, _TENSOR_NAME, _RAW_DATA = 1, 2, 8, 9
_FLOAT, _INT8 = 1, 3

_MICROSOFT = "com.microsoft"


def to_int8_arithmetic(model: bytes) -> bytes | None:
    """The model with integer multiplications; `None` when it has no stored 8-bit weights or is no ONNX model."""
    try:
        parts = list(_read_fields(memoryview(model)))
        graph = next((part for part in parts if part.number == _GRAPH), None)
        rewritten = _rewrite_graph(list(graph.parts())) if graph else None
    except ValueError:  # or UnicodeDecodeError, which is one
        return None
    if rewritten is None:
        return None
    rest = b"".join(part.raw for part in parts if part.number != _GRAPH)
    return rest + _microsoft_operators(parts) + _bytes_field(_GRAPH, rewritten)


class _Node(NamedTuple):
    operation: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: tuple[ProtobufField, ...]
    raw: bytes | memoryview


class _Tensor(NamedTuple):
    kind: int
    shape: tuple[int, ...]
    data: bytes


class _Weight(NamedTuple):
    """A matrix of integers that the graph turns into floats by a cast and a scale."""

    numbers: str
    scale: str
    shape: tuple[int, ...]
    scale_shape: tuple[int, ...]


def _rewrite_graph(fields: Sequence[ProtobufField]) -> bytes | None:
    nodes = [_read_node(field) for field in fields if field.number == _NODE]
    tensors = dict(_read_tensor(field) for field in fields if field.number == _TENSOR)
    makers = {output: node for node in nodes for output in node.outputs}
    weights = dict(_stored_weights(nodes, makers, tensors))
    if not weights:
        return None
    rewritten = _without_idle(_fuse_gelu(list(_rewrite_nodes(nodes, weights)), tensors), fields)
    # Shapes of values that are gone would contradict the graph; onnxruntime finds all of them by itself.
    rest = b"".join(field.raw for field in fields if field.number not in (_NODE, _VALUE_INFO))
    return b"".join(_bytes_field(_NODE, bytes(node.raw)) for node in rewritten) + rest


def _stored_weights(
    nodes: Sequence[_Node], makers: Mapping[str, _Node], tensors: Mapping[str, _Tensor]
) -> Iterator[tuple[str, _Weight]]:
    for node in nodes:
        if node.operation != "Mul" or len(node.inputs) != 2:
            continue
        cast, scale = makers.get(node.inputs[0]), tensors.get(node.inputs[1])
        if cast is None or cast.operation != "Cast" or scale is None or scale.kind != _FLOAT:
            continue
        stored = tensors.get(cast.inputs[0])
        if stored is not None and stored.kind == _INT8 and len(stored.shape) == 2:
            yield node.outputs[0], _Weight(cast.inputs[0], node.inputs[1], stored.shape, scale.shape)


def _rewrite_nodes(nodes: Sequence[_Node], weights: Mapping[str, _Weight]) -> Iterator[_Node]:
    scaled: set[str] = set()
    for node in nodes:
        if node.operation == "MatMul" and node.inputs[1] in weights:
            weight = weights[node.inputs[1]]
            if weight.scale_shape == (1, weight.shape[1]):
                yield from _integer_product(node, weight, scaled)
                continue
        if node.operation == "Gather" and node.inputs[0] in weights and not _reads_columns(node):
            weight = weights[node.inputs[0]]
            if weight.scale_shape == (weight.shape[0], 1):
                yield from _rows_read(node, weight)
                continue
        yield node


def _integer_product(node: _Node, weight: _Weight, scaled: set[str]) -> Iterator[_Node]:
    """The product in the very shape that onnxruntime knows to do in one step."""
    given, result = node.inputs[0], node.outputs[0]
    small, scale, zero = f"{given}_int8", f"{given}_int8_scale", f"{given}_int8_zero"
    if given not in scaled:
        scaled.add(given)
        yield _make_node("DynamicQuantizeLinear", (given,), (small, scale, zero))
    product, floats, scales = f"{result}_int32", f"{result}_float", f"{result}_scales"
    yield _make_node("MatMulInteger", (small, weight.numbers, zero), (product,))
    yield _make_node("Cast", (product,), (floats,), to=_FLOAT)
    yield _make_node("Mul", (scale, weight.scale), (scales,))
    yield _make_node("Mul", (floats, scales), (result,))


def _rows_read(node: _Node, weight: _Weight) -> Iterator[_Node]:
    places, result = node.inputs[1], node.outputs[0]
    numbers, floats, scales = f"{result}_int8", f"{result}_float", f"{result}_scales"
    yield _make_node("Gather", (weight.numbers, places), (numbers,))
    yield _make_node("Gather", (weight.scale, places), (scales,))
    yield _make_node("Cast", (numbers,), (floats,), to=_FLOAT)
    yield _make_node("Mul", (floats, scales), (result,))


def _fuse_gelu(nodes: list[_Node], tensors: Mapping[str, _Tensor]) -> list[_Node]:
    """Replace x · (½ · (erf(x / √2) + 1)), which is five walks over memory, by one operation."""
    makers = {output: node for node in nodes for output in node.outputs}

    def step(name: str, operation: str, constant: float) -> str | None:
        """Input of the node that makes `name`, if that node is `operation` with the constant."""
        node = makers.get(name)
        if node is None or node.operation != operation:
            return None
        for place, other in enumerate(node.inputs):
            tensor = tensors.get(other)
            if tensor is not None and tensor.kind == _FLOAT and len(tensor.data) == 4:
                found = struct.unpack("<f", tensor.data)[0]
                return node.inputs[1 - place] if abs(found - constant) < 1e-5 else None
        return None

    fused = []
    for node in nodes:
        if node.operation == "Mul" and len(node.inputs) == 2:
            given, factor = node.inputs
            error = makers.get(step(step(factor, "Mul", 0.5) or "", "Add", 1.0) or "")
            if error is not None and error.operation == "Erf" and step(error.inputs[0], "Div", 2**0.5) == given:
                node = _make_node("Gelu", (given,), node.outputs, domain=_MICROSOFT)
        fused.append(node)
    return fused


def _without_idle(nodes: list[_Node], fields: Sequence[ProtobufField]) -> list[_Node]:
    """Nodes whose results another node reads."""
    wanted = {next(field.parts()).text() for field in fields if field.number == _GRAPH_OUTPUT}
    kept = []
    for node in reversed(nodes):
        if not wanted.isdisjoint(node.outputs):
            wanted.update(node.inputs)
            kept.append(node)
    return kept[::-1]


def _read_node(field: ProtobufField) -> _Node:
    parts = list(field.parts())
    attributes = tuple(part for part in parts if part.number == _ATTRIBUTE)
    if any(inner.number in (_ATTRIBUTE_GRAPH, _ATTRIBUTE_GRAPHS) for part in attributes for inner in part.parts()):
        raise ValueError("graphs inside of nodes are not looked into")
    inputs, outputs, (operation, *_) = (
        [part.text() for part in parts if part.number == number] for number in (_INPUT, _OUTPUT, _OPERATION)
    )
    return _Node(operation, tuple(inputs), tuple(outputs), attributes, field.content)


def _read_tensor(field: ProtobufField) -> tuple[str, _Tensor]:
    name, kind, shape, data = "", 0, [], b""
    for part in field.parts():
        if part.number == _DIMENSIONS:
            shape += read_numbers(part)
        elif part.number == _KIND:
            kind = read_numbers(part)[0]
        elif part.number == _TENSOR_NAME:
            name = part.text()
        elif part.number == _RAW_DATA and len(part.content) == 4:
            data = bytes(part.content)
    return name, _Tensor(kind, tuple(shape), data)


def _reads_columns(gather: _Node) -> bool:
    """Whether a Gather takes anything but rows: its only attribute is the axis, 0 when it is not there."""
    return any(part.number == _ATTRIBUTE_NUMBER and part.value for field in gather.attributes for part in field.parts())


def _make_node(
    operation: str, inputs: tuple[str, ...], outputs: tuple[str, ...], domain: str = "", to: int | None = None
) -> _Node:
    raw = b"".join(_bytes_field(_INPUT, name.encode()) for name in inputs)
    raw += b"".join(_bytes_field(_OUTPUT, name.encode()) for name in outputs)
    raw += _bytes_field(_NAME, f"{operation}_{outputs[0]}".encode()) + _bytes_field(_OPERATION, operation.encode())
    if domain:
        raw += _bytes_field(_DOMAIN, domain.encode())
    if to is not None:
        kind = _number_field(_ATTRIBUTE_KIND, _ATTRIBUTE_IS_NUMBER)
        raw += _bytes_field(
            _ATTRIBUTE, _bytes_field(_ATTRIBUTE_NAME, b"to") + _number_field(_ATTRIBUTE_NUMBER, to) + kind
        )
    return _Node(operation, inputs, outputs, (), raw)


def _microsoft_operators(parts: Sequence[ProtobufField]) -> bytes:
    """The declaration that GELU as one step needs, unless the model has it."""
    declared = {
        part.text() for field in parts if field.number == _OPERATORS for part in field.parts() if part.number == 1
    }
    version = _number_field(2, 1)
    return b"" if _MICROSOFT in declared else _bytes_field(_OPERATORS, _bytes_field(1, _MICROSOFT.encode()) + version)
