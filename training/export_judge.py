"""Writes a fitted judge as a model folder: an ONNX file whose matrices and activations have 8 bits, and its card.

    python training/export_judge.py FITTED.npz FOLDER [--words READER.onnx] [--data DATA --labels labels.npy]
    python training/export_judge.py --table-of READER.onnx reader-table.npz

The file takes the tokens of one pair and their kinds, and gives one logit. A judge fitted with the words of the reader
needs them: `--words` puts a reference to the reader's file, which must lie beside it. It is then called `judge.onnx`.
With DATA it is held against the teacher's labels, and timed with ten pairs of 128 tokens.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime  # type: ignore[import-untyped]
from export_reader import DIMENSIONS, HEADS, MICROSOFT, Array, Graph
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

LONGEST = 128
SHARED = ("table", "table_scale")


def main() -> None:
    """Write the folder, and print the size and the sha256 of its model."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fitted", type=Path)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--table-of", type=Path)
    parser.add_argument("--words", type=Path, help="the reader whose words a shared judge reads")
    parser.add_argument("--tokenizer", type=Path, help="a tokenizer.json of BERT uncased, copied beside the model")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--labels", type=Path)
    options = parser.parse_args()
    if options.table_of:
        np.savez_compressed(options.fitted, **words_of(options.table_of))  # type: ignore[arg-type]
        return
    with np.load(options.fitted) as stored:
        fitted = {name: stored[name] for name in stored.files}
    if options.words:
        fitted |= words_of(options.words)
    model = JudgeGraph(fitted, options.words).model()
    options.folder.mkdir(parents=True, exist_ok=True)
    file = options.folder / ("judge.onnx" if options.words else "model.onnx")
    file.write_bytes(model)
    if options.words and options.words.parent.resolve() != options.folder.resolve():
        (options.folder / options.words.name).write_bytes(options.words.read_bytes())
    sha256 = hashlib.sha256(model).hexdigest()
    card = {
        "name": options.folder.name,
        "file": file.name,
        "sha256": sha256,
        "dimensions": DIMENSIONS,
        "max_tokens": LONGEST,
        "size": len(model),
        "licence": "Apache-2.0",
        "languages": "English",
        "kind": "reranker",
    }
    if options.tokenizer:  # else it is packaged, and its card stands in the catalogue
        (options.folder / "tokenizer.json").write_bytes(options.tokenizer.read_bytes())
        (options.folder / "findling-model.json").write_text(json.dumps(card, indent=2) + "\n", encoding="utf-8")
    print(f"{len(model):,} bytes, sha256 {sha256}")
    measure(file, options.data, options.labels)


def words_of(reader: Path) -> dict[str, Array]:
    """The table of words of a reader, as it is packed."""
    tensors = {tensor.name: tensor for tensor in onnx.load(reader).graph.initializer}
    return {name: numpy_helper.to_array(tensors[name]) for name in SHARED}


class JudgeGraph(Graph):
    """The nodes and constants of a judge. Its last layer is asked for the first token alone."""

    def __init__(self, fitted: dict[str, Array], words: Path | None) -> None:
        super().__init__(fitted)
        self.words = words

    def rows(self) -> str:
        rows = super().rows()
        if "turn" in self.fitted:
            rows = self.node("MatMul", [rows, self.float_constant("turn")], "turned_rows")
        self.node("Cast", ["token_type_ids"], "kinds", to=TensorProto.FLOAT)
        self.node("Unsqueeze", ["kinds", "behind"], "kinds_of_tokens")
        self.constant("second_kind", self.fitted["second"])
        self.node("Mul", ["kinds_of_tokens", "second_kind"], "own_kinds")
        return self.node("Add", [rows, "own_kinds"], "rows_of_kinds")

    def split(self, small: str, layer: int, part: str, rows: slice) -> str:
        """A part of the product that gives queries, keys and values."""
        name = f"{layer}_{part}"
        self.constant(f"{name}_w", self.fitted[f"{layer}_qkv_w"][rows].T, "int8")
        self.constant(f"{name}_ws", self.fitted[f"{layer}_qkv_w_scale"][rows])
        self.constant(f"{name}_wz", np.zeros(rows.stop - rows.start), "int8")
        self.constant(f"{name}_b", self.fitted[f"{layer}_qkv_b"][rows])
        scales = [f"{layer}_qkv_s", f"{name}_ws", f"{layer}_qkv_z", f"{name}_wz", f"{name}_b"]
        return self.node("MatMulIntegerToFloat", [small, f"{name}_w", *scales], f"{name}_product", MICROSOFT)

    def attended(self, states: str, layer: int) -> tuple[str, str]:
        """What the tokens give each other, and the states it belongs to: of the last layer those of the first token."""
        if layer < self.depth - 1:
            parts = [f"{layer}_{part}" for part in ("query", "key", "value")]
            product = self.linear(states, layer, "qkv")
        else:
            self.constant(f"{layer}_qkv_s", self.fitted["steps"][4 * layer])
            self.constant(f"{layer}_qkv_z", self.fitted["zeros"][4 * layer], "uint8")
            small = self.node("QuantizeLinear", [states, f"{layer}_qkv_s", f"{layer}_qkv_z"], f"{layer}_qkv_small")
            first = self.node("Slice", [small, "first", "second", "second"], f"{layer}_first_small")
            states = self.node("Slice", [states, "first", "second", "second"], f"{layer}_first")
            parts = [f"{layer}_key", f"{layer}_value"]
            product = self.split(small, layer, "both", slice(DIMENSIONS, 3 * DIMENSIONS))
        split: dict[str, Any] = {"axis": -1, "num_outputs": len(parts)}
        self.nodes.append(helper.make_node("Split", [product], parts, name=f"Split_{layer}", **split))
        if layer == self.depth - 1:
            parts = [self.split(first, layer, "query", slice(0, DIMENSIONS)), *parts]
        return self.node("MultiHeadAttention", parts, f"{layer}_mixed", MICROSOFT, num_heads=HEADS), states

    def model(self) -> bytes:
        for name, number in (("first", 0), ("second", 1), ("behind", -1)):
            self.constant(name, [number], "int64")
        states = self.embedded()
        for layer in range(self.depth):
            mixed, states = self.attended(states, layer)
            states = self.normed(states, self.linear(mixed, layer, "out"), f"{layer}_norm1")
            wide = self.node("Gelu", [self.linear(states, layer, "wide")], f"{layer}_gelu", MICROSOFT)
            states = self.normed(states, self.linear(wide, layer, "thin"), f"{layer}_norm2")
        self.fitted["head_w"] = self.fitted["head_w"].T
        self.node("Squeeze", [states, "second"], "last")
        self.node("MatMul", ["last", self.float_constant("head_w")], "head_product")
        self.node(
            "Tanh", [self.node("Add", ["head_product", self.constant("hb", self.fitted["head_b"])], "head")], "pooled"
        )
        self.constant("score", self.fitted["score"][:, None])
        self.node("MatMul", ["pooled", "score"], "score_product")
        self.node("Add", ["score_product", self.constant("sb", self.fitted["score_b"])], "logits")
        graph = helper.make_graph(
            self.nodes,
            "judge",
            [
                helper.make_tensor_value_info(f"{name}_ids", TensorProto.INT64, [1, "tokens"])
                for name in ("input", "token_type")
            ],
            [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, 1])],
            [self.tensor(name, value) for name, value in self.constants.items()],
        )
        operators = [helper.make_opsetid("", 18), helper.make_opsetid(MICROSOFT, 1)]
        model = helper.make_model(graph, opset_imports=operators, producer_name="findling")
        model.ir_version = 8
        return bytes(model.SerializeToString())

    def tensor(self, name: str, value: Array) -> TensorProto:
        """A constant; for the words of a reader, where they stand in its file."""
        tensor = numpy_helper.from_array(value, name)
        if self.words is None or name not in SHARED:
            return tensor
        place = self.words.read_bytes().index(tensor.raw_data)
        for key, number in (
            ("location", self.words.name),
            ("offset", str(place)),
            ("length", str(len(tensor.raw_data))),
        ):
            tensor.external_data.add(key=key, value=number)
        tensor.ClearField("raw_data")
        tensor.data_location = TensorProto.EXTERNAL
        return tensor


def measure(model: Path, data: Path | None, labels: Path | None) -> None:
    """Print the CPU time of ten pairs of 128 tokens on one thread, and how near the logits come to the labels."""
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(model), settings, providers=["CPUExecutionProvider"])

    def logit(ids: list[int], second: int) -> float:
        given = np.array([ids], dtype=np.int64)
        kinds = (np.arange(len(ids)) >= second).astype(np.int64)[None]
        return float(session.run(["logits"], {"input_ids": given, "token_type_ids": kinds})[0][0, 0])

    rng = np.random.default_rng(7)
    rows = [[101, *rng.integers(2000, 29000, LONGEST - 2).tolist(), 102] for _ in range(10)]
    spent = []
    for _ in range(12):
        started = time.process_time()
        for row in rows:
            logit(row, 12)
        spent.append(1000 * (time.process_time() - started))
    print(f"ten pairs of {LONGEST} tokens: {np.median(spent[2:]):.0f} CPU ms, at best {min(spent):.0f}")
    if data is not None and labels is not None:
        agree(data, np.load(labels), logit)


def agree(data: Path, labels: NDArray[np.float16], logit: Any, most: int = 60) -> None:
    """Print how near the order of the file's logits comes to the teacher's, for questions that were held back."""
    import torch
    from train_judge import Pairs, agreement, arrays_of

    arrays = arrays_of(data / "judge.npz.xz")
    for name in ("candidates", "held", "question_lengths"):
        arrays[name] = arrays[name][: len(labels) // arrays["candidates"].shape[1]]
    pairs = Pairs(arrays)
    wanted = (pairs.held[:most, None] * pairs.width + np.arange(pairs.width)).ravel()
    told = []
    for pair in wanted:
        ids, _ = pairs.batch(np.array([pair]))
        row = ids[0, : int(pairs.lengths[pair])].tolist()
        told.append(logit(row, row.index(102) + 1))
    given = torch.tensor(told).view(-1, pairs.width)
    goal = torch.from_numpy(labels[wanted].astype(np.float32)).view_as(given)
    print(f"{len(told)} pairs held back:", {name: round(value, 4) for name, value in agreement(given, goal).items()})


if __name__ == "__main__":
    main()
