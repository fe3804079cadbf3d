"""Reads the weights of BERT models out of ONNX files, for the teachers of the reader.

    python training/teachers.py MODEL.onnx OUT.npz

Matrices are written as 8-bit numbers with a scale for each output (tables: for each row), vectors as they are.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

Array = NDArray[np.generic]


def main() -> None:
    """Write the weights of a model and say how many layers it has."""
    source, target = map(Path, sys.argv[1:])
    weights = read_weights(source)
    packed: dict[str, Array] = {}
    for name, array in weights.items():
        if array.ndim == 2 and min(array.shape) > 2:
            scale = np.abs(array).max(axis=1, keepdims=True) / 127 + 1e-12
            packed[name], packed[f"{name}.scale"] = np.rint(array / scale).astype(np.int8), scale.astype(np.float32)
        else:
            packed[name] = array.astype(np.float32)
    np.savez(target, **packed)  # type: ignore[arg-type]
    print(f"{source.name}: {len(weights)} arrays, {target.stat().st_size:,} bytes")


def read_weights(source: Path) -> dict[str, Array]:
    """The arrays by the names of the original model; matrices as outputs × inputs."""
    graph = onnx.load(source).graph
    stored: dict[str, Array] = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    makers = {output: node for node in graph.node for output in node.output}

    def value(name: str) -> Array | None:
        """An array, also one that the graph makes of 8-bit numbers by a cast and a scale, or stores with one scale."""
        if (base := name.removesuffix("_quantized")) != name and name in stored:
            zero_point, step = (stored[f"{base}_{part}"].astype(np.float32) for part in ("zero_point", "scale"))
            return np.asarray((stored[name].astype(np.float32) - zero_point) * step)
        if name in stored:
            return stored[name].astype(np.float32)
        node = makers.get(name)
        if node is not None and node.op_type == "Mul" and makers.get(node.input[0], node).op_type == "Cast":
            numbers, scale = stored[makers[node.input[0]].input[0]], stored[node.input[1]]
            return np.asarray(numbers.astype(np.float32) * scale.astype(np.float32))
        return None

    weights: dict[str, Array] = {}
    for node in graph.node:
        bias = next((name for name in node.input if name.endswith(".bias") and name in stored), None)
        if node.op_type == "Add" and bias is not None:
            product = makers.get(next(name for name in node.input if name != bias))
            while product is not None and product.op_type in ("Mul", "Cast"):
                product = makers.get(product.input[0])
            is_product = product is not None and product.op_type in ("MatMul", "MatMulInteger")
            if product is not None and is_product and (matrix := value(product.input[1])) is not None:
                weights[bias.replace(".bias", ".weight")] = matrix.T
        if (
            node.op_type == "Gather"
            and (table := value(node.input[0])) is not None
            and table.ndim == 2
            and table.shape[1] > 64
        ):
            kind = {30522: "word", 512: "position", 2: "token_type"}[table.shape[0]]
            weights[f"embeddings.{kind}_embeddings.weight"] = table
    for name, array in stored.items():
        if re.search(r"\.(bias|weight)$", name) and array.dtype == np.float32 and array.ndim < 3:
            weights.setdefault(name, array)
    return {re.sub(r"^(inner|bert|model)\.", "", name): array for name, array in weights.items()}


if __name__ == "__main__":
    main()
