"""Golden figures of a bi-encoder's training from PyTorch, for tests/data/bi_encoder_golden.json.

A tiny network (weighted mean of token embeddings, MLP with the exact GELU) under InfoNCE with
masked false negatives and a ceiling for hard negatives: every gradient of the first step, and the
losses of ten steps of AdamW with groups, clipping, warm-up and a cosine.

    pip install torch
    python3 scripts/reference/bi_encoder.py > tests/data/bi_encoder_golden.json
"""

import json
import math

import torch

torch.manual_seed(3)
VOCABULARY, HIDDEN, INNER = 12, 4, 8
TEMPERATURE, CEILING = 0.1, 0.95
LR, BETAS, EPSILON, DECAY, CLIP = 0.03, (0.9, 0.98), 1e-8, 0.1, 1.0
WARMUP, STEPS = 3, 10
SHAPES = {
    "dense.0.bias": (INNER,),
    "dense.0.weight": (INNER, HIDDEN),
    "dense.1.bias": (HIDDEN,),
    "dense.1.weight": (HIDDEN, INNER),
    "embedding.weight": (VOCABULARY, HIDDEN),
    "token_weight": (VOCABULARY,),
}
ANCHORS = [[0, 1], [2], [3, 4, 4, 5], [0, 6, 1], [7, 7]]
POSITIVES = [[1, 8, 0, 2, 9], [2, 3], [5, 4, 3, 10, 1, 1, 0], [6], [7, 2, 3, 8]]
# The first is a near-copy of the third pair's positive, the second is free.
NEGATIVES = [[5, 4, 3, 10, 1], [1, 8, 0, 2]]
ANCHOR_GROUPS, POSITIVE_GROUPS, NEGATIVE_GROUPS = [1, 2, 3, 1, 4], [10, 11, 12, 13, 11], [12, 99]


def group(name):
    """Times the learning rate, and whether it decays."""
    if name == "embedding.weight":
        return 1.0, False
    return (0.2, False) if name == "token_weight" else (0.5, name.endswith("weight"))


start = {name: (0.6 * torch.randn(shape)).float() for name, shape in SHAPES.items()}
start["token_weight"] = (0.5 + torch.rand(VOCABULARY)).float()
params = {name: value.double().requires_grad_() for name, value in start.items()}


def embed(bags):
    table = params["embedding.weight"] * params["token_weight"][:, None]
    x = torch.stack([table[torch.tensor(bag)].mean(0) for bag in bags])
    x = torch.nn.functional.linear(x, params["dense.0.weight"], params["dense.0.bias"])
    x = torch.nn.functional.gelu(x)
    x = torch.nn.functional.linear(x, params["dense.1.weight"], params["dense.1.bias"])
    return torch.nn.functional.normalize(x)


def loss():
    anchors, positives, negatives = embed(ANCHORS), embed(POSITIVES), embed(NEGATIVES)
    n = len(ANCHORS)
    mask = torch.tensor(
        [
            [
                i != j
                and (ANCHOR_GROUPS[i] == ANCHOR_GROUPS[j] or POSITIVE_GROUPS[i] == POSITIVE_GROUPS[j])
                for j in range(n)
            ]
            for i in range(n)
        ]
    )
    in_batch = (anchors @ positives.T).masked_fill(mask, -math.inf) / TEMPERATURE
    hard = anchors @ negatives.T
    ceiling = (anchors * positives).sum(1, keepdim=True) * CEILING
    assert (hard > ceiling).any() and (hard < ceiling).any()
    hard = torch.minimum(hard, ceiling.expand_as(hard))
    hard_mask = torch.tensor([[p == m for m in NEGATIVE_GROUPS] for p in POSITIVE_GROUPS])
    assert mask.any() and hard_mask.any()
    hard = hard.masked_fill(hard_mask, -math.inf) / TEMPERATURE
    targets = torch.arange(n)
    forward = torch.nn.functional.cross_entropy(torch.cat([in_batch, hard], 1), targets)
    return (forward + torch.nn.functional.cross_entropy(in_batch.T, targets)) / 2


def factor(step):
    if step < WARMUP:
        return (step + 1) / WARMUP
    return (1 + math.cos(math.pi * (step - WARMUP) / (STEPS - WARMUP))) / 2


optimiser = torch.optim.AdamW(
    [
        {"params": [value], "lr": LR * group(name)[0], "weight_decay": DECAY * group(name)[1]}
        for name, value in params.items()
    ],
    betas=BETAS,
    eps=EPSILON,
)
schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, factor)
losses, norms, gradients = [], [], None
for _ in range(STEPS):
    optimiser.zero_grad()
    value = loss()
    value.backward()
    if gradients is None:
        gradients = {name: value.grad.flatten().tolist() for name, value in params.items()}
    norms.append(float(torch.nn.utils.clip_grad_norm_(params.values(), CLIP)))
    losses.append(value.item())
    optimiser.step()
    schedule.step()
assert max(norms) > CLIP > min(norms), norms

golden = {
    "anchors": ANCHORS,
    "positives": POSITIVES,
    "negatives": NEGATIVES,
    "anchor_groups": ANCHOR_GROUPS,
    "positive_groups": POSITIVE_GROUPS,
    "negative_groups": NEGATIVE_GROUPS,
    "start": {name: value.flatten().tolist() for name, value in start.items()},
    "gradients": gradients,
    "losses": losses,
    "norms": norms,
    "end": {name: value.flatten().tolist() for name, value in params.items()},
}


def compact(value):
    if isinstance(value, dict):
        return {key: compact(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [compact(inner) for inner in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value


print(
    "{\n"
    + ",\n".join(f"{json.dumps(k)}: {json.dumps(v, separators=(',', ':'))}" for k, v in compact(golden).items())
    + "\n}"
)
