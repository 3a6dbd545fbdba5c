#!/usr/bin/env python3
"""Makes the training pairs of the shipped bi-encoder, as JSON lines on standard output.

In: data/train/*.jsonl (questions and passages written for training, without sight of the held-out
questions and documents), and the train split of data/eval with its documents in data/rag-kb.

Held out strictly: documents of the dev and test splits are read only to be avoided. A pair whose
question nearly is a dev or test question, or whose passage shares a run of words with a dev or
test document, is dropped and counted.

Tried on dev and left out: questions for each row of the train documents' tables of verbs, and the
train documents as unlabelled text; both made the dense search worse.

    python3 scripts/biencoder_pairs.py > pairs.jsonl
"""

import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Words in a row that a passage may not share with a held-out document.
RUN = 10
# Jaccard similarity of word sets from which on two questions are one.
SAME = 0.7


def words(text):
    return re.findall(r"[a-z0-9']+", text.lower())


def runs(text):
    tokens = words(text)
    return {tuple(tokens[i : i + RUN]) for i in range(len(tokens) - RUN + 1)}


def questions():
    lines = (ROOT / "data/eval/questions.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def title_of(text):
    return re.search(r"^# (.+)$", text, re.M).group(1)


def section_of(text, at):
    """The headings above a place, outermost first, and the bounds of its section."""
    path, start = {}, 0
    for heading in re.finditer(r"^(#{2,6}) (.+)$", text, re.M):
        if heading.start() > at:
            return " > ".join(path.values()), start, heading.start()
        level = len(heading.group(1))
        path = {k: v for k, v in path.items() if k < level} | {level: heading.group(2)}
        start = heading.end()
    return " > ".join(path.values()), start, len(text)


def passage_around(text, quote):
    """What the index holds of the section around a quote: title, headings, body."""
    heading, start, end = section_of(text, text.index(quote))
    body = text[start:end].strip()
    return "\n\n".join(part for part in (title_of(text), heading, spell_tables(body)) if part)


def cells(row):
    return [cell.strip() for cell in row.strip().strip("|").split("|")]


def spell_tables(text):
    """Rows of tables as `Base: eat, Past simple: ate`, as the index spells them."""
    out, header = [], None
    for line in text.splitlines():
        if not line.startswith("|"):
            header = None
            out.append(line)
        elif header is None:
            header = cells(line)
        elif not set(line) <= set("|-: "):
            out.append("- " + ", ".join(f"{h}: {c}" for h, c in zip(header, cells(line))))
    return "\n".join(out)


def main():
    every = questions()
    train = [q for q in every if q["split"] == "train" and q["gold"]]
    held = [q for q in every if q["split"] != "train"]
    names = sorted({gold["document"] for q in train for gold in q["gold"]})
    held_names = sorted(
        path.name for path in (ROOT / "data/rag-kb").glob("*.md") if path.name not in names
    )
    read = lambda name: (ROOT / "data/rag-kb" / name).read_text()
    documents = {name: read(name) for name in names}
    held_runs = set().union(*(runs(read(name)) for name in held_names))
    held_questions = [set(words(q["question"])) for q in held]

    pairs = []
    for path in sorted((ROOT / "data/train").glob("*.jsonl")):
        for line in path.read_text().splitlines():
            pair = json.loads(line)
            pairs.append({"anchor": pair["anchor"], "positive": pair["positive"]})
    for question in train:
        for gold in question["gold"]:
            passage = passage_around(documents[gold["document"]], gold["quote"])
            pairs.append({"anchor": question["question"], "positive": passage})

    kept, same_question, same_passage = 0, 0, 0
    for pair in pairs:
        asked = set(words(pair["anchor"]))
        if any(len(asked & q) >= SAME * len(asked | q) for q in held_questions):
            same_question += 1
        elif runs(pair["positive"]) & held_runs:
            same_passage += 1
        else:
            kept += 1
            print(json.dumps(pair, ensure_ascii=False))
    print(
        f"{kept} pairs; dropped for a held-out question {same_question}, "
        f"for a held-out document {same_passage}; {len(names)} documents to learn from, "
        f"{len(held_names)} held out",
        file=sys.stderr,
    )


if __name__ == "__main__":
    main()
