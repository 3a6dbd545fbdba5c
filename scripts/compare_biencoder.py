#!/usr/bin/env python3
"""Passages per CPU second, tokenisation included: our bi-encoder beside its peers.

    pip install numpy torch sentence-transformers model2vec
    python3 scripts/compare_biencoder.py [DOCUMENTS]     # a folder, or a BEIR folder

Ours is a fresh checkpoint of 8,192 tokens x 64 with its MLP, made by `train-biencoder` of the same
documents (or one given by --model). The peers: sentence-transformers with that same folder, whose
vectors must be ours (to 1e-6 for all but one passage in a thousand: where the rows of many tokens
all but cancel out, the rounding of f32 is more than that on both sides); the same without the MLP, StaticEmbedding and Normalize; model2vec with the
same table, which is cut as they come, at 512 tokens. Every contender has one thread; seven runs,
taking turns, and the median of the CPU times. Exits 1 under the bound.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from race import ROOT, Ours, race, verdict  # (sets the threads: must come before torch)

import numpy as np
import torch
from model2vec import StaticModel
from sentence_transformers import SentenceTransformer
from tokenizers import Tokenizer

BOUND = 1.3
BATCH = 1024  # sentence-transformers has gained all that a larger one gives


def train(documents, model):
    """A checkpoint of the preset `small`; what it has learnt changes no speed."""
    command = ["cargo", "run", "--quiet", "--release", "--bin", "train-biencoder", "--", "--quiet",
               "--corpus", documents, "--preset", "small", "--steps", "1", "--output", model]
    subprocess.run(list(map(str, command)), cwd=ROOT, check=True)


def peers(model):
    """{name: function that embeds a list of texts}."""
    whole = SentenceTransformer(str(model), device="cpu")
    static = SentenceTransformer(modules=[whole[0], whole[-1]], device="cpu")
    table = whole[0].embedding.weight.detach().numpy()
    tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
    model2vec = StaticModel(table, tokenizer, normalize=True)

    def transformers(network):
        return lambda texts: network.encode(texts, batch_size=BATCH, show_progress_bar=False)

    return {
        "sentence-transformers, same folder": transformers(whole),
        "sentence-transformers, no MLP": transformers(static),
        "model2vec": lambda texts: model2vec.encode(texts, use_multiprocessing=False),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("documents", type=Path, nargs="?", default=ROOT / "data/rag-kb")
    parser.add_argument("--model", type=Path, help="a folder that is there")
    parser.add_argument("--passages", type=int, default=5000,
                        help="passages of a run; fewer are repeated")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        model = arguments.model or folder / "model"
        if arguments.model is None:
            train(arguments.documents.resolve(), model)
        texts, vectors = folder / "texts.json", folder / "vectors.f32"
        ours = Ours("biencoder_peer", model.resolve(), arguments.documents.resolve(), texts, vectors)
        texts = json.loads(texts.read_text())
        vectors = np.fromfile(vectors, dtype="<f4").reshape(len(texts), -1)
        contenders = peers(model)
    whole = contenders["sentence-transformers, same folder"]
    apart = np.abs(whole(texts) - vectors).max(axis=1)
    alike = np.mean(apart <= 1e-6)
    times = max(1, arguments.passages // len(texts))
    count = times * len(texts)
    print(f"{len(texts):,} passages of {arguments.documents}, {times} times over; "
          f"{alike:.2%} of the vectors are sentence-transformers' to 1e-6, all to {apart.max():.1e}")
    runs = {"ours": (lambda: ours.run("embed", times), ours.clock)}
    for name, embed in contenders.items():
        runs[name] = (lambda embed=embed: embed(texts * times), time.process_time)
    seconds = race(runs)
    for name, value in sorted(seconds.items(), key=lambda item: item[1]):
        print(f"    {name:36} {count / value:10,.0f} passages a CPU second")
    fast = verdict(seconds, BOUND)
    ours.close()
    sys.exit(0 if fast and alike >= 0.999 else 1)


if __name__ == "__main__":
    main()
