"""A tiny random BERT and sentence-transformers' vectors of folders made around it.

    pip install torch transformers sentence-transformers
    python scripts/reference/bert_tiny.py tests/data/bert-tiny

Writes the network, its tokenizer, a dense layer, and cases.json: each case has the JSON files that
make a folder of them (old and new forms), and what encode_query and encode_document give.
"""

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"

import torch  # noqa: E402
from safetensors.torch import save_file  # noqa: E402
from sentence_transformers import SentenceTransformer  # noqa: E402
from tokenizers import BertWordPieceTokenizer  # noqa: E402
from transformers import BertConfig, BertModel, PreTrainedTokenizerFast  # noqa: E402

TEXTS = ["the cat sat on the mat", "A dog.", "cats and dogs " * 20, "unknown zebra, the mat!"]
QUERIES = ["where is the cat", "the"]
OLD = "sentence_transformers.models."
NEW = {
    "Transformer": "sentence_transformers.base.modules.transformer.Transformer",
    "Pooling": "sentence_transformers.sentence_transformer.modules.pooling.Pooling",
    "Dense": "sentence_transformers.base.modules.dense.Dense",
    "Normalize": "sentence_transformers.base.modules.normalize.Normalize",
}
HIDDEN, OUT = 24, 10


def modules(*classes, new=False):
    path = {"Transformer": ""}
    return [
        {
            "idx": i,
            "name": str(i),
            "path": path.get(name, f"{i}_{name}"),
            "type": NEW[name] if new else OLD + name,
        }
        for i, name in enumerate(classes)
    ]


def old_pooling(*modes, **more):
    keys = ["cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens"]
    keys += ["weightedmean_tokens", "lasttoken"]
    on = {f"pooling_mode_{key}": key in modes for key in keys}
    return {"word_embedding_dimension": HIDDEN, **on, **more}


def new_pooling(mode, **more):
    return {"embedding_dimension": HIDDEN, "pooling_mode": mode, "include_prompt": True, **more}


def dense(activation):
    sizes = {"in_features": HIDDEN, "out_features": OUT, "bias": True}
    return {**sizes, "activation_function": f"torch.nn.modules.{activation}"}


LIMIT = {"sentence_bert_config.json": {"max_seq_length": 12, "do_lower_case": False}}
PROMPTS = {
    "config_sentence_transformers.json": {
        "prompts": {"query": "the query: ", "document": "on: "},
        "default_prompt_name": None,
    }
}
MEAN = {"modules.json": modules("Transformer", "Pooling"), "1_Pooling/config.json": old_pooling("mean_tokens")}
CASES = {
    "plain transformers folder": {},
    "mean, old names, 12 tokens": {**MEAN, **LIMIT},
    "mean, new names": {
        "modules.json": modules("Transformer", "Pooling", "Normalize", new=True),
        "1_Pooling/config.json": new_pooling("mean"),
    },
    "cls": {**MEAN, "1_Pooling/config.json": old_pooling("cls_token")},
    "last": {**MEAN, "1_Pooling/config.json": new_pooling("lasttoken")},
    "max": {**MEAN, "1_Pooling/config.json": old_pooling("max_tokens")},
    "sqrt": {**MEAN, "1_Pooling/config.json": new_pooling("mean_sqrt_len_tokens")},
    "weighted": {**MEAN, "1_Pooling/config.json": new_pooling("weightedmean")},
    "two side by side": {
        **MEAN,
        "1_Pooling/config.json": old_pooling("mean_tokens", "cls_token"),
    },
    "dense": {
        "modules.json": modules("Transformer", "Pooling", "Dense", "Normalize"),
        "1_Pooling/config.json": old_pooling("mean_tokens"),
        "2_Dense/config.json": dense("activation.Tanh"),
    },
    "prompts": {**MEAN, **PROMPTS},
    "prompts, not pooled": {
        **MEAN,
        **PROMPTS,
        **LIMIT,
        "1_Pooling/config.json": old_pooling("mean_tokens", include_prompt=False),
    },
    "prompts, not pooled, weighted": {
        **MEAN,
        **PROMPTS,
        "1_Pooling/config.json": new_pooling("weightedmean", include_prompt=False),
    },
    "lower case": {**MEAN, "sentence_bert_config.json": {"do_lower_case": True}},
}


def compose(base, target, files):
    for name in ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(base / name, target / name)
    for name, content in files.items():
        (target / name).parent.mkdir(exist_ok=True)
        (target / name).write_text(json.dumps(content))
        if name == "2_Dense/config.json":
            shutil.copy(base / "dense.safetensors", target / "2_Dense/model.safetensors")


def main(base):
    base.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    words = "the cat cats sat on mat dog dogs and where is query a ##s , . ! :".split()
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "vocab.txt").write_text("\n".join(vocabulary))
        tokenizer = BertWordPieceTokenizer(f"{scratch}/vocab.txt", lowercase=False)
        tokenizer.save(f"{scratch}/tokenizer.json")
        special = dict(zip(["pad", "unk", "cls", "sep", "mask"], vocabulary))
        fast = PreTrainedTokenizerFast(
            tokenizer_file=f"{scratch}/tokenizer.json",
            model_max_length=20,
            **{f"{name}_token": token for name, token in special.items()},
        )
        fast.save_pretrained(base)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=HIDDEN,
        num_attention_heads=3,
        num_hidden_layers=2,
        intermediate_size=40,
        max_position_embeddings=32,
        initializer_range=0.5,
    )
    BertModel(config, add_pooling_layer=False).eval().save_pretrained(base)
    layer = torch.nn.Linear(HIDDEN, OUT)
    weights = {"linear.weight": layer.weight.detach(), "linear.bias": layer.bias.detach()}
    save_file(weights, base / "dense.safetensors")
    cases = []
    for name, files in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            compose(base, Path(folder), files)
            model = SentenceTransformer(folder, device="cpu")
            row = lambda vectors: [[float(f"{x:.8g}") for x in v] for v in vectors]  # noqa: E731
            queries, passages = row(model.encode_query(QUERIES)), row(model.encode_document(TEXTS))
        cases.append({"name": name, "files": files, "queries": queries, "passages": passages})
    golden = {"queries": QUERIES, "passages": TEXTS, "cases": cases}
    (base / "cases.json").write_text(json.dumps(golden, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
