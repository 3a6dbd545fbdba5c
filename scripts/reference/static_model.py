"""A tiny static model as sentence-transformers saves it, and its vectors, for tests/data/st_static.

Its tokenizer is a WordPiece with an unknown token and a template of special tokens, which a static
model must not add. For an empty text sentence-transformers runs the dense layers on zeros, which
gives what their biases are; minirag gives zeros, so that one vector is there to be seen, not met.

    pip install torch sentence-transformers tokenizers
    python3 scripts/reference/static_model.py tests/data/st_static
"""

import json
import shutil
import sys
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, StaticEmbedding
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

CORPUS = """The verb to be has more forms than any other verb. I am, you are, he is, they were.
The past participle of eat is eaten and the past participle of go is gone. A café serves coffee.
Das Mädchen aß einen Apfel. Příliš žluťoučký kůň úpěl ďábelské ódy. An adverb says how a verb is done.
Questions begin with who, what, when, where, why or how; answers end with a full stop."""
TEXTS = [
    "What is the past participle of eat?",
    "eaten",
    "Příliš žluťoučký kůň, ein MÄDCHEN — 猫 and 🙂",
    "",
    "an unknown Zebra: 12,345",
    "The verb is done. " * 30,
]
HIDDEN, INNER, OUT = 8, 16, 6

folder = Path(sys.argv[1])
torch.manual_seed(5)

tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
trainer = trainers.WordPieceTrainer(
    vocab_size=300, special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]"], show_progress=False
)
tokenizer.train_from_iterator(CORPUS.splitlines(), trainer)
tokenizer.post_processor = processors.TemplateProcessing(
    single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
)

model = SentenceTransformer(
    modules=[
        StaticEmbedding(tokenizer, embedding_weights=torch.randn(tokenizer.get_vocab_size(), HIDDEN)),
        Dense(HIDDEN, INNER, activation_function=torch.nn.GELU()),
        Dense(INNER, OUT, activation_function=None),
        Normalize(),
    ],
    device="cpu",
)
shutil.rmtree(folder, ignore_errors=True)
model.save(str(folder))
(folder / "README.md").unlink(missing_ok=True)
vectors = model.encode(TEXTS, convert_to_numpy=True).tolist()
cases = [{"text": text, "vector": vector} for text, vector in zip(TEXTS, vectors)]
lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
(folder / "expected.json").write_text(f"[\n{lines}\n]\n")
