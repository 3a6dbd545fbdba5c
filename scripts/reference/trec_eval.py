"""Golden figures of trec_eval, by pytrec_eval-terrier, for tests/data/metrics_trec.json.

    pip install pytrec_eval-terrier
    python scripts/reference/trec_eval.py > tests/data/metrics_trec.json
"""

import json
import random

import pytrec_eval

MEASURES = {"map", "recip_rank"} | {
    f"{family}_{k}" for family in ("ndcg_cut", "recall", "P", "success") for k in (1, 3, 5, 10)
}


def made(seed, grades, levels, queries=8, documents=14):
    """Runs whose scores take few levels, so that most ranks are decided by the tie rule."""
    rng = random.Random(seed)
    ids = [f"d{i}" for i in range(documents)]
    # Ids whose bytes and whose letters sort differently.
    ids[:4] = ["D1", "é", "d-1", "d_1"]
    qrels, run = {}, {}
    for q in range(queries):
        qrels[f"q{q}"] = {d: rng.choice(grades) for d in rng.sample(ids, 8)}
        run[f"q{q}"] = {d: rng.choice(levels) for d in rng.sample(ids, rng.randint(4, documents))}
    return qrels, run


def cases():
    qrels, run = made(1, [0, 0, 1], [0.5])
    # A query's own id among the documents is a document like any other.
    qrels["d2"] = {"d2": 1, "d3": 1, "d4": 0}
    run["d2"] = {"d2": 0.5, "d3": 0.5, "d4": 0.5, "d1": 0.5}
    yield "all scores equal, query id equal to document id", qrels, run

    qrels, run = made(2, [0, 1, 2, 3], [1.5, 1.25, -2.0, 0.0, -0.0])
    yield "graded relevance, few score levels", qrels, run

    qrels, run = made(3, [-2, -1, 0, 1, 2], [0.1, 0.1 + 1e-10, 0.2, 30.0])
    qrels["none"] = {"d1": 0, "d2": -1}
    run["none"] = {"d1": 1.0}
    qrels["missing"] = {"d1": 1}
    qrels["empty"] = {"d1": 1, "d5": 2}
    run["empty"] = {}
    yield "negative relevance, nothing relevant, missing query, empty result", qrels, run


out = []
for name, qrels, run in cases():
    figures = pytrec_eval.RelevanceEvaluator(qrels, MEASURES).evaluate(
        {q: docs for q, docs in run.items() if docs}
    )
    # `trec_eval -c`: a judged query without result counts 0.
    for query in qrels:
        figures.setdefault(query, dict.fromkeys(sorted(next(iter(figures.values()))), 0.0))
    out.append({"name": name, "qrels": qrels, "run": run, "figures": figures})

rows = []
for case in out:
    parts = []
    for key in ("qrels", "run", "figures"):
        lines = [
            f"    {json.dumps(q)}: {json.dumps(v, sort_keys=key == 'figures')}"
            for q, v in case[key].items()
        ]
        parts.append(f'   "{key}": {{\n' + ",\n".join(lines) + "\n   }")
    rows.append(f'  {{"name": {json.dumps(case["name"])},\n' + ",\n".join(parts) + "}")
print("[\n" + ",\n".join(rows) + "\n]")
