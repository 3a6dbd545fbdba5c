#!/usr/bin/env python3
"""Megabytes per CPU second: our chunker beside LangChain's RecursiveCharacterTextSplitter.

Both count the tokens of models/tokenizer and aim at 150 with 20 shared. The sides run by turns,
each in one thread; ours is charged its whole process (start, reading files and tokenizer,
chunking), LangChain's only its splitting. Exit 1 under the bound.

    pip install langchain-text-splitters tokenizers
    python scripts/compare_chunkers.py FOLDER
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

BINARY = "target/release/examples/bench_chunk"

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"


def ours(binary, folder, settings):
    """One run: (CPU seconds of the process, what it printed)."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([binary, str(folder), settings], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return cpu, json.loads(done.stdout)


def theirs(splitter, texts):
    """One run: (CPU seconds of splitting, number of chunks)."""
    start = time.process_time()
    chunks = sum(len(splitter.split_text(text)) for text in texts)
    return time.process_time() - start, chunks


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path, help="a folder of .md and .txt files")
    parser.add_argument("--tokenizer", default="models/tokenizer/tokenizer.json")
    parser.add_argument("--strategies", default="token-window,sentence,recursive,markdown")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--bound", type=float, default=3.0)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    build = ["cargo", "build", "--quiet", "--release", "--example", "bench_chunk"]
    subprocess.run(build, check=True)

    from langchain_text_splitters import RecursiveCharacterTextSplitter
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(args.tokenizer)
    splitter = RecursiveCharacterTextSplitter(
        chunk_size=150,
        chunk_overlap=20,
        length_function=lambda text: len(tokenizer.encode(text).ids),
    )
    paths = sorted(p for p in args.folder.rglob("*") if p.suffix in (".md", ".txt"))
    texts = [path.read_text(encoding="utf-8") for path in paths]
    megabytes = sum(len(text.encode()) for text in texts) / 1e6

    strategies = args.strategies.split(",")
    seconds = {name: [] for name in ["langchain", *strategies]}
    chunks = {}
    for _ in range(args.runs):
        cpu, chunks["langchain"] = theirs(splitter, texts)
        seconds["langchain"].append(cpu)
        for strategy in strategies:
            cpu, printed = ours(BINARY, args.folder, f"{strategy}:150:20")
            seconds[strategy].append(cpu)
            chunks[strategy] = printed["chunks"]

    speed = {name: megabytes / statistics.median(runs) for name, runs in seconds.items()}
    rows = {
        name: {
            "mb_per_cpu_second": round(value, 3),
            "ratio": round(value / speed["langchain"], 2),
            "chunks": chunks[name],
        }
        for name, value in speed.items()
    }
    passed = all(rows[name]["ratio"] >= args.bound for name in strategies)
    if args.json:
        print(json.dumps({"files": len(texts), "megabytes": megabytes, "rows": rows, "passed": passed}))
    else:
        print(f"{len(texts)} files, {megabytes:.2f} MB, median of {args.runs} interleaved runs")
        print(f"{'chunker':14} {'MB/CPU s':>9} {'ratio':>7} {'chunks':>7}")
        for name, row in rows.items():
            print(f"{name:14} {row['mb_per_cpu_second']:9.2f} {row['ratio']:7.2f} {row['chunks']:7}")
        print(f"bound {args.bound} times: {'OK' if passed else 'FAIL'}")
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
