#!/usr/bin/env python3
"""Compares our exact search and our BM25 with the fastest peers on this machine.

    pip install numpy faiss-cpu usearch bm25s numba PyStemmer tantivy
    scripts/compare_search.py ../shared/data/beir        # a folder of BEIR folders

Every contender has one thread. A case is run seven times, the contenders taking turns, and the
median of the CPU times counts, so that other work on the machine disturbs all alike. Ratios are
our speed over the fastest peer's. Exits 1 if a ratio is under its bound.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from race import Ours, race, verdict  # (sets the threads: must come before the others)

import bm25s
import faiss
import numpy as np
import Stemmer
import tantivy
from usearch.index import MetricKind, search as usearch_search


def agreement(ours, theirs):
    """Share of our rows that the peer found too."""
    shared = sum(len(set(a) & set(map(int, b))) for a, b in zip(ours, theirs))
    return shared / max(1, sum(map(len, ours)))


def numpy_search(rows, queries, k):
    scores = queries @ rows.T if len(queries) > 1 else (rows @ queries[0])[None]
    best = np.argpartition(scores, -k, axis=1)[:, -k:]
    order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1)
    return np.take_along_axis(best, order, axis=1)


def compare_flat(folder, count, dim, k=10, many=32):
    generator = np.random.default_rng(7)
    rows, queries = (generator.standard_normal((n, dim), dtype=np.float32) for n in (count, many))
    for matrix in (rows, queries):
        matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    rows.tofile(folder / "rows.f32")
    queries.tofile(folder / "queries.f32")
    ours = Ours("search_peer", "flat", folder / "rows.f32", folder / "queries.f32", dim)
    index = faiss.IndexFlatIP(dim)
    index.add(rows)

    searches = {
        "faiss": lambda q: index.search(q, k)[1],
        "numpy": lambda q: numpy_search(rows, q, k),
        "usearch": lambda q: usearch_search(rows, q, k, MetricKind.IP, exact=True, threads=1).keys,
    }
    found = agreement(ours.run("batch", k), searches["faiss"](queries))
    clock = time.process_time
    reading = race({"read": (rows.max, clock)})["read"]
    gigabytes = rows.nbytes / 1e9
    print(f"\nexact search, {count:,} x {dim}, k {k}; memory is read at "
          f"{gigabytes / reading:.1f} GB/s; same rows as faiss: {found:.3f}")
    passed = found > 0.999
    for command in ("single", "batch"):
        singly = command == "single"
        contenders = {"ours": (lambda command=command: ours.run(command, k), ours.clock)}
        for name, search in searches.items():
            parts = [queries[i : i + 1] for i in range(many)] if singly else [queries]
            run = lambda search=search, parts=parts: [search(part) for part in parts]  # noqa: E731
            contenders[name] = (run, clock)
        seconds = race(contenders)
        print(f"  {'one query at a time' if singly else f'{many} queries at once'}")
        for name, value in sorted(seconds.items(), key=lambda item: item[1]):
            rate = f", {gigabytes * many / value:5.1f} GB/s" if singly else ""
            print(f"    {name:8} {value / many * 1e3:8.3f} ms a query{rate}")
        passed &= verdict(seconds, 0.95)
    ours.close()
    return passed


class Tantivy:
    """An index in memory, one segment, frequencies without positions."""

    def __init__(self, texts, analyzer):
        builder = tantivy.SchemaBuilder()
        builder.add_text_field("body", tokenizer_name="chosen", index_option="freq")
        self.schema = builder.build()
        self.index = tantivy.Index(self.schema)
        self.index.register_tokenizer("chosen", analyzer)
        writer = self.index.writer(num_threads=1)
        for text in texts:
            writer.add_document(tantivy.Document(body=text))
        writer.commit()
        writer.wait_merging_threads()
        self.index.reload()
        self.searcher = self.index.searcher()

    def terms(self, terms):
        term = tantivy.Query.term_query
        parts = [(tantivy.Occur.Should, term(self.schema, "body", t, "freq")) for t in terms]
        return tantivy.Query.boolean_query(parts)

    def raw(self, text):
        return self.index.parse_query_lenient(text, ["body"])[0]

    def search(self, query, k):
        return self.searcher.search(query, k, count=False).hits


def bm25s_index(tokens):
    index = bm25s.BM25(k1=1.2, b=0.75, method="lucene", backend="numba")
    index.index(tokens, show_progress=False)
    return index


def compare_bm25(folder, data):
    ours = Ours("search_peer", "bm25", data, folder / "terms.json")
    shared = json.loads((folder / "terms.json").read_text())
    queries, clock = shared["queries"], time.process_time
    print(f"\nBM25, {data.name}: {len(shared['texts']):,} passages, {len(queries):,} queries")

    # The same terms for all: what is compared is the search alone.
    exact = bm25s_index(shared["passages"])
    ids = [[exact.vocab_dict[t] for t in terms if t in exact.vocab_dict]
           for terms in shared["query_terms"]]
    words = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace()).build()
    plain = Tantivy([" ".join(terms) for terms in shared["passages"]], words)
    built = [plain.terms(terms) for terms in shared["query_terms"]]

    # Raw text: each with its own words, stems and stop words of English.
    stemmer = Stemmer.Stemmer("english")
    tokenize = lambda texts: bm25s.tokenize(  # noqa: E731
        texts, stopwords="en", stemmer=stemmer, show_progress=False)
    own = bm25s_index(tokenize(shared["texts"]))
    english = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
    for step in (tantivy.Filter.remove_long(40), tantivy.Filter.lowercase(),
                 tantivy.Filter.stopword("english"), tantivy.Filter.stemmer("english")):
        english = english.filter(step)
    text = Tantivy(shared["texts"], english.build())

    options = {"show_progress": False, "n_threads": 1}
    found = agreement(ours.run("terms", 10), exact.retrieve(ids, k=10, **options).documents)
    print(f"  same rows as bm25s from the same terms: {found:.3f}")
    passed = found > 0.99
    for k in (10, 100):
        races = {
            "terms": {
                "bm25s": lambda: exact.retrieve(ids, k=k, **options),
                "tantivy": lambda: [plain.search(query, k) for query in built],
            },
            "raw": {
                "bm25s": lambda: own.retrieve(tokenize(queries), k=k, **options),
                "tantivy": lambda: [text.search(text.raw(query), k) for query in queries],
            },
        }
        for command, peers in races.items():
            contenders = {"ours": (lambda command=command: ours.run(command, k), ours.clock)}
            contenders |= {name: (run, clock) for name, run in peers.items()}
            seconds = race(contenders)
            print(f"  k {k}, {'raw text' if command == 'raw' else 'the same terms for all'}")
            for name, value in sorted(seconds.items(), key=lambda item: item[1]):
                print(f"    {name:8} {len(queries) / value:10,.0f} queries a CPU second")
            passed &= verdict(seconds, 1.5)
    ours.close()
    return passed


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("beir", type=Path, help="the folder that holds scifact and mlquestions")
    parser.add_argument("--only", choices=("flat", "bm25"), help="one half of the comparison")
    arguments = parser.parse_args()
    faiss.omp_set_num_threads(1)
    passed = True
    with tempfile.TemporaryDirectory() as folder:
        if arguments.only != "bm25":
            for count, dim in ((100_000, 384), (1_000_000, 64)):
                passed &= compare_flat(Path(folder), count, dim)
        if arguments.only != "flat":
            for name in ("scifact", "mlquestions"):
                passed &= compare_bm25(Path(folder), arguments.beir / name)
    print(f"\n{'all bounds kept' if passed else 'a bound is missed'}")
    sys.exit(0 if passed else 1)


if __name__ == "__main__":
    main()
