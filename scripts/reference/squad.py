"""Golden figures of SQuAD's exact match and F1, for tests/data/metrics_squad.json.

The normalisation and the two measures are those of SQuAD's evaluate-v1.1.py (Rajpurkar et al.
2016), written out here so that the script needs nothing but Python.

    python scripts/reference/squad.py > tests/data/metrics_squad.json
"""

import collections
import json
import re
import string

CASES = [
    ("Eaten [#1].", ["eaten"]),
    ("The past participle of eat is eaten.", ["eaten", "is eaten"]),
    ("burnt", ["burned", "burnt"]),
    ("won't", ["wont"]),
    ("the", ["a"]),
    ("the", ["cat"]),
    ("", ["eaten"]),
    ("a the an", ["the"]),
    ("$12.00", ["nearly $12", "$12", "$12.00"]),
    ("to be, or not to be", ["to be or to be"]),
    ("The  Theory of a\tTheorem", ["theory of theorem"]),
    ("don't-stop_now", ["dontstopnow"]),
    ("In October 1973, the embargo began.", ["October 1973", "October", "1973"]),
    ("la catedral de Nuestra Señora", ["Nuestra Señora"]),
    ("x x x y", ["x y y"]),
]


def normalize(text):
    text = re.sub(r"\s*\[#\d+\]", "", text)  # citation markers are no part of an answer
    text = "".join(c for c in text.lower() if c not in string.punctuation)
    text = re.sub(r"\b(a|an|the)\b", " ", text)
    return " ".join(text.split())


def f1(answer, gold):
    answer, gold = normalize(answer).split(), normalize(gold).split()
    if not answer or not gold:
        return float(answer == gold)
    same = sum((collections.Counter(answer) & collections.Counter(gold)).values())
    if same == 0:
        return 0.0
    precision, recall = same / len(answer), same / len(gold)
    return 2 * precision * recall / (precision + recall)


rows = [
    json.dumps(
        {
            "answer": answer,
            "gold": gold,
            "exact_match": max(float(normalize(answer) == normalize(g)) for g in gold),
            "f1": max(f1(answer, g) for g in gold),
        },
        ensure_ascii=False,
    )
    for answer, gold in CASES
]
print("[\n  " + ",\n  ".join(rows) + "\n]")
