"""Writes a fitted reader as a model folder: an ONNX file whose matrices and activations have 8 bits, and its card.

    python training/export_reader.py FITTED.npz FOLDER

Scales are constants, so that no number depends on other texts of a run. Weights reach from −63 to 63: two products then
fit into 16 bits, so that processors without VNNI need no slower sums. The file takes the tokens of one text.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, helper, numpy_helper

HEADS, DIMENSIONS, LONGEST = 12, 384, 256
MICROSOFT = "com.microsoft"
Array = NDArray[np.generic]


def main() -> None:
    """Write the folder, and print the size and the sha256 of its model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fitted", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--tokenizer", type=Path, help="a tokenizer.json of BERT uncased, copied beside the model")
    parser.add_argument("--usual-cosines", nargs=2, type=float, help="mean and deviation for unrelated texts")
    options = parser.parse_args()
    with np.load(options.fitted) as stored:
        model = Graph({name: stored[name] for name in stored.files}).model()
    options.folder.mkdir(parents=True, exist_ok=True)
    (options.folder / "model.onnx").write_bytes(model)
    if options.tokenizer:
        (options.folder / "tokenizer.json").write_bytes(options.tokenizer.read_bytes())
    sha256 = hashlib.sha256(model).hexdigest()
    card = {
        "name": options.folder.name,
        "file": "model.onnx",
        "sha256": sha256,
        "dimensions": DIMENSIONS,
        "max_tokens": LONGEST,
        "size": len(model),
        "licence": "Apache-2.0",
        "languages": "English",
        "usual_cosines": options.usual_cosines,
    }
    (options.folder / "findling-model.json").write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")
    print(f"{len(model):,} bytes, sha256 {sha256}")


class Graph:
    """The nodes and constants of a reader."""

    def __init__(self, fitted: dict[str, Array]) -> None:
        self.fitted = fitted
        self.depth = len(fitted["steps"]) // 4
        self.constants: dict[str, Array] = {}
        self.nodes: list[NodeProto] = []

    def constant(self, name: str, value: object, kind: str = "float32") -> str:
        self.constants[name] = np.array(value, dtype=kind, order="C")
        return name

    def node(self, operation: str, inputs: list[str], output: str, domain: str = "", **attributes: Any) -> str:
        self.nodes.append(
            helper.make_node(operation, inputs, [output], name=f"{operation}_{output}", domain=domain, **attributes)
        )
        return output

    def float_constant(self, name: str) -> str:
        """A constant stored with 16 bits, read with 32."""
        self.constant(name, self.fitted[name], "float16")
        return self.node("Cast", [name], f"{name}_32", to=TensorProto.FLOAT)

    def normed(self, states: str, more: str, name: str) -> str:
        self.constant(f"{name}_w", self.fitted[f"{name}_w"])
        self.constant(f"{name}_b", self.fitted[f"{name}_b"])
        return self.node(
            "SkipLayerNormalization", [states, more, f"{name}_w", f"{name}_b"], name, MICROSOFT, epsilon=1e-12
        )

    def linear(self, states: str, layer: int, part: str) -> str:
        name, place = f"{layer}_{part}", 4 * layer + ("qkv", "out", "wide", "thin").index(part)
        matrix = self.fitted[f"{name}_w"].T
        self.constant(f"{name}_w", matrix, "int8")
        self.constant(f"{name}_ws", self.fitted[f"{name}_w_scale"])
        self.constant(f"{name}_wz", np.zeros(matrix.shape[1]), "int8")
        self.constant(f"{name}_b", self.fitted[f"{name}_b"])
        self.constant(f"{name}_s", self.fitted["steps"][place])
        self.constant(f"{name}_z", self.fitted["zeros"][place], "uint8")
        small = self.node("QuantizeLinear", [states, f"{name}_s", f"{name}_z"], f"{name}_small")
        given = [small, f"{name}_w", f"{name}_s", f"{name}_ws", f"{name}_z", f"{name}_wz", f"{name}_b"]
        return self.node("MatMulIntegerToFloat", given, f"{name}_product", MICROSOFT)

    def embedded(self) -> str:
        rows = self.rows()
        self.fitted["places"] = self.fitted["places"][None]
        self.node("Shape", ["input_ids"], "count", start=1, end=2)
        places = self.node("Slice", [self.float_constant("places"), "first", "count", "second"], "own_places")
        return self.normed(rows, places, "norm")

    def rows(self) -> str:
        """The rows of the tokens, 4 bits a number: the lower half of a byte belongs to the first 192 numbers."""
        self.constant("table", self.fitted["table"], "uint8")
        self.node("Gather", ["table", "input_ids"], "packed")
        low = self.node("BitwiseAnd", ["packed", self.constant("fifteen", 15, "uint8")], "low")
        high = self.node("BitShift", ["packed", self.constant("four", 4, "uint8")], "high", direction="RIGHT")
        self.node("Concat", [low, high], "fours", axis=-1)
        self.node("Cast", ["fours"], "fours_32", to=TensorProto.FLOAT)
        self.node("Sub", ["fours_32", self.constant("middle", 7.5)], "centred")
        self.constant("table_scale", self.fitted["table_scale"], "float16")
        self.node("Gather", ["table_scale", "input_ids"], "row_scales_16")
        self.node("Cast", ["row_scales_16"], "row_scales", to=TensorProto.FLOAT)
        return self.node("Mul", ["centred", "row_scales"], "rows")

    def halved(self, states: str, layer: int) -> str:
        """The means of neighbouring tokens; the last of an odd count stays as it is."""
        last = self.node("Slice", [states, "last", "end", "second"], f"{layer}_last")
        more = self.node("Concat", [states, last], f"{layer}_more", axis=1)
        even = self.node("Slice", [states, "first", "end", "second", "two"], f"{layer}_even")
        odd = self.node("Slice", [more, "second", "end", "second", "two"], f"{layer}_odd")
        return self.node("Mul", [self.node("Add", [even, odd], f"{layer}_sum"), "half"], f"{layer}_halved")

    def model(self) -> bytes:
        for name, number in (("first", 0), ("second", 1), ("two", 2), ("last", -1), ("end", 1 << 40)):
            self.constant(name, [number], "int64")
        self.constant("half", 0.5)
        states = self.embedded()
        for layer in range(self.depth):
            if layer in self.fitted["pooled"]:
                states = self.halved(states, layer)
            product = self.linear(states, layer, "qkv")
            parts = [f"{layer}_{part}" for part in ("query", "key", "value")]
            self.nodes.append(
                helper.make_node("Split", [product], parts, name=f"Split_{layer}", axis=-1, num_outputs=3)
            )
            mixed = self.node("MultiHeadAttention", parts, f"{layer}_mixed", MICROSOFT, num_heads=HEADS)
            states = self.normed(states, self.linear(mixed, layer, "out"), f"{layer}_norm1")
            wide = self.node("Gelu", [self.linear(states, layer, "wide")], f"{layer}_gelu", MICROSOFT)
            states = self.normed(states, self.linear(wide, layer, "thin"), f"{layer}_norm2")
        mean = self.node("ReduceMean", [states, "second"], "mean", keepdims=0)
        self.fitted["head_w"] = self.fitted["head_w"].T
        self.node("MatMul", [mean, self.float_constant("head_w")], "sentence_embedding")
        graph = helper.make_graph(
            self.nodes,
            "reader",
            [helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, "tokens"])],
            [helper.make_tensor_value_info("sentence_embedding", TensorProto.FLOAT, [1, DIMENSIONS])],
            [numpy_helper.from_array(value, name) for name, value in self.constants.items()],
        )
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", 18), helper.make_opsetid(MICROSOFT, 1)],
            producer_name="findling",
        )
        model.ir_version = 8
        return bytes(model.SerializeToString())


if __name__ == "__main__":
    main()
