"""Whether sentence-transformers makes the same vectors of a folder as minirag.

    pip install torch sentence-transformers
    python3 scripts/reference/check_folder.py FOLDER VECTORS.json

VECTORS.json holds minirag's: {"texts": [...], "vectors": [[...], ...]}. Prints the largest
difference; no text may be empty, where the two differ by design (see static_model.py).
"""

import json
import os
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np  # noqa: E402
from sentence_transformers import SentenceTransformer  # noqa: E402

folder, path = sys.argv[1:]
with open(path, encoding="utf-8") as file:
    ours = json.load(file)
model = SentenceTransformer(folder, device="cpu")
theirs = model.encode(ours["texts"], convert_to_numpy=True)
expected = np.array(ours["vectors"])
assert theirs.shape == expected.shape, (theirs.shape, expected.shape)
print(f"{np.abs(theirs - expected).max():.3e}")
