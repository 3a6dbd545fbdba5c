#!/usr/bin/env bash
# Fits a bi-encoder to each of some collections, from their documents alone, and measures it there.
# Usage: scripts/adapt.sh FOLDER OF BEIR SETS [SEED...]
#
# No query and no judgement is used in training. What is searched is what was learnt from: these
# figures are not to be compared with those of models that had not seen the collection.
set -euo pipefail
cd "$(dirname "$0")/.."
sets="$1"
shift
seeds=("${@:-0}")

cargo build --release --quiet --bin train-biencoder --bin evaluate
models="$(mktemp -d)"
trap 'rm -rf "$models"' EXIT
figures() {
    target/release/evaluate --quiet --dataset "$sets/$1" --stage retrieval --embedder "$2" \
        --sweep retriever=bm25,dense,hybrid --metrics ndcg@10
}
for set in scifact mlquestions anthropic-codebase cranfield wikiqa clapnq-dev; do
    for seed in "${seeds[@]}"; do
        model="$models/$set-$seed"
        echo
        target/release/train-biencoder --quiet --corpus "$sets/$set" --output "$model" --seed "$seed" |
            sed "s|^.*: |$set, seed $seed: |"
        echo
        figures "$set" "$model"
    done
done
