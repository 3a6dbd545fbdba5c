#!/usr/bin/env bash
# Prints the tables of the README's "Figures". Usage: scripts/figures.sh [FOLDER OF BEIR SETS]
# The grammar tables need nothing but this repository; the rest is left out without the folder.
set -euo pipefail
cd "$(dirname "$0")/.."
sets="${1:-}"

cargo build --release --quiet --bin evaluate
evaluate() { target/release/evaluate --quiet "$@"; }

echo "### Grammar set, test split"
echo
evaluate --sweep retriever=bm25,dense,hybrid --metrics \
    recall@5,mrr@10,doc_recall@5,reranked_recall@5,reranked_mrr@10,answer_contains,citation_recall,faithfulness,refusal_auroc,word_overlap
echo
echo "### Grammar set, test split, by class"
echo
evaluate --by-class --metrics \
    recall@5,mrr@10,reranked_mrr@10,answer_rate,answer_contains,refusal_f1_balanced,word_overlap
for embedder in hashing models/biencoder; do
    echo
    echo "### Dense search alone, $embedder, grammar test, by class"
    echo
    evaluate --stage retrieval --retriever dense --embedder "$embedder" --by-class \
        --metrics ndcg@10,recall@5
done
echo
echo "### Chunkers: recall@5 of gold spans, grammar test"
echo
evaluate --sweep chunker=token-window,sentence,recursive,markdown,semantic,auto \
    --metrics recall@5,mrr@10
echo
echo "### Order of the passages in the prompt, grammar test (the extractive reader ignores it)"
echo
evaluate --sweep order=best-first,best-last --metrics answer_contains,citation_recall,faithfulness
[ -n "$sets" ] || exit 0
echo
echo "### Chunkers: recall@5 of gold spans, chroma-chunking"
echo
evaluate --dataset "$sets/chroma-chunking" --stage retrieval \
    --sweep chunker=token-window,sentence,recursive,markdown,semantic,auto --metrics recall@5,mrr@10
echo
echo "### Extractive reader, squad-dev-v2.0"
echo
evaluate --dataset "$sets/squad-dev-v2.0" --sweep threshold=0,0.4 \
    --metrics answer_rate,answer_contains,refusal_auroc
echo
echo "### nDCG@10 of the searches on other collections, one chunk a document"
for set in scifact squad-dev-v2.0 xquad-es xquad-zh xquad-th mlquestions; do
    echo
    echo "$set:"
    echo
    evaluate --dataset "$sets/$set" --stage retrieval --sweep retriever=bm25,dense,hybrid \
        --metrics ndcg@10
done
