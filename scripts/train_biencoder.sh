#!/usr/bin/env bash
# Trains the shipped models/biencoder. Usage: scripts/train_biencoder.sh OUTPUT [SEED]
set -euo pipefail
cd "$(dirname "$0")/.."
output="$1"
seed="${2:-0}"

cargo build --release --quiet --bin train-biencoder
mkdir -p target/train
# The name is part of the record of the run, so it is the same wherever this is run.
python3 scripts/biencoder_pairs.py > target/train/pairs.jsonl
target/release/train-biencoder --preset small --half --seed "$seed" \
    --pairs target/train/pairs.jsonl --output "$output"
