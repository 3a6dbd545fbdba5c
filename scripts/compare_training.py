#!/usr/bin/env python3
"""Pairs per CPU second in the training of a bi-encoder: ours beside torch.

    pip install numpy torch safetensors
    python3 scripts/compare_training.py

One network on both sides, from the same parameters and on the same random token ids: the weighted
mean of token embeddings, an MLP with the exact GELU, unit length, InfoNCE both ways, gradients
clipped to norm 1, AdamW over all. The losses of both must agree. torch has its embeddings in
three ways, of which the fastest counts. Every contender has one thread; a step is forward,
backward and optimiser, the ids at hand; seven runs, taking turns, and the median of the CPU
times. Exits 1 under the bound.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from race import Ours, race, verdict  # (sets the threads: must come before torch)

import numpy as np
import torch
from safetensors.torch import load_file
from torch.nn import functional as F

VOCABULARY, DIM, BATCH, BATCHES = 8192, 64, 256, 10
BOUND = 0.95


def random_batches():
    """Ids with the frequencies of language (Zipf); about 12 an anchor, 120 a positive."""
    generator = np.random.default_rng(1)
    shares = 1 / np.arange(10, VOCABULARY + 10)
    shares /= shares.sum()
    names = generator.permutation(VOCABULARY).astype(np.uint32)

    def text(mean):
        length = max(2, int(generator.normal(mean, mean / 4)))
        return names[generator.choice(VOCABULARY, length, p=shares)]

    return [[(text(12), text(120)) for _ in range(BATCH)] for _ in range(BATCHES)]


def write_ids(path, batches):
    words = [part for batch in batches for pair in batch for text in pair
             for part in ([len(text)], text)]
    np.concatenate(words).astype("<u4").tofile(path)


class Peer:
    """The network in torch; `embed` is one of the methods below."""

    def __init__(self, params, batches, embed):
        self.params = {name: torch.nn.Parameter(value.clone()) for name, value in params.items()}
        self.optimiser = torch.optim.AdamW(
            self.params.values(), lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.01,
            fused=True)
        self.embed = getattr(self, embed)
        self.targets = torch.arange(BATCH)
        self.batches = [self.tensors(batch) for batch in batches]
        self.step = 0

    @staticmethod
    def tensors(batch):
        texts = [anchor for anchor, _ in batch] + [positive for _, positive in batch]
        lengths = torch.tensor([len(text) for text in texts])
        ids = torch.from_numpy(np.concatenate(texts).astype(np.int64))
        return {
            "ids": ids,
            "starts": lengths.cumsum(0) - lengths,
            "shares": (1 / lengths).repeat_interleave(lengths),
            "texts": torch.arange(len(texts)).repeat_interleave(lengths),
            "lengths": lengths,
        }

    def bag_of_weighted_rows(self, batch):
        table, weights = self.params["embedding.weight"], self.params["token_weight"]
        return F.embedding_bag(batch["ids"], table * weights[:, None], batch["starts"], mode="mean")

    def bag_with_weights(self, batch):
        table, weights = self.params["embedding.weight"], self.params["token_weight"]
        weights = F.embedding(batch["ids"], weights[:, None])[:, 0] * batch["shares"]
        return F.embedding_bag(batch["ids"], table, batch["starts"], mode="sum",
                               per_sample_weights=weights)

    def gather_and_mean(self, batch):
        table, weights = self.params["embedding.weight"], self.params["token_weight"]
        rows = F.embedding(batch["ids"], table * weights[:, None])
        sums = torch.zeros(2 * BATCH, DIM).index_add(0, batch["texts"], rows)
        return sums / batch["lengths"][:, None]

    def loss(self, batch):
        p = self.params
        x = F.gelu(F.linear(self.embed(batch), p["dense.0.weight"], p["dense.0.bias"]))
        x = F.normalize(F.linear(x, p["dense.1.weight"], p["dense.1.bias"]), dim=1)
        logits = x[:BATCH] @ x[BATCH:].T / 0.1
        losses = F.cross_entropy(logits, self.targets), F.cross_entropy(logits.T, self.targets)
        return sum(losses) / 2

    def train(self, steps):
        losses = []
        for _ in range(steps):
            loss = self.loss(self.batches[self.step % BATCHES])
            self.optimiser.zero_grad(set_to_none=True)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.params.values(), 1.0)
            self.optimiser.step()
            losses.append(loss.item())
            self.step += 1
        return losses


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--steps", type=int, default=20, help="steps of a run")
    steps = parser.parse_args().steps
    torch.set_num_threads(1)
    batches = random_batches()
    with tempfile.TemporaryDirectory() as folder:
        ids, params = Path(folder) / "ids.u32", Path(folder) / "params.safetensors"
        write_ids(ids, batches)
        ours = Ours("train_peer", ids, params, VOCABULARY, DIM, BATCH)
        params = load_file(params)
    ways = ("bag_of_weighted_rows", "bag_with_weights", "gather_and_mean")
    peers = {f"torch, {way.replace('_', ' ')}": Peer(params, batches, way) for way in ways}

    losses = np.array(ours.run("train", steps))
    apart = max(np.abs(losses - peer.train(steps)).max() for peer in peers.values())
    print(f"{VOCABULARY:,} tokens x {DIM}, batches of {BATCH}; the losses of {steps} steps, "
          f"{losses[0]:.4f} to {losses[-1]:.4f}, are at most {apart:.1e} apart")
    contenders = {"ours": (lambda: ours.run("train", steps), ours.clock)}
    for name, peer in peers.items():
        contenders[name] = (lambda peer=peer: peer.train(steps), time.process_time)
    seconds = race(contenders)
    for name, value in sorted(seconds.items(), key=lambda item: item[1]):
        print(f"    {name:28} {steps * BATCH / value:8,.0f} pairs a CPU second, "
              f"{value / steps * 1e3:6.2f} ms a step")
    fast = verdict(seconds, BOUND)
    ours.close()
    sys.exit(0 if fast and apart < 1e-3 else 1)


if __name__ == "__main__":
    main()
