#!/usr/bin/env python3
"""Make the demo's chat data from WordNet: python3 tools/make_demo_data.py OUT_DIR

Writes train.jsonl and heldout.jsonl: one question and answer a line,
  {"messages": [{"role": "user", "content": "Define the noun: lantern"}, {"role": "assistant", "content": "..."}],
   "headword": "lantern"}
One headword a group of synonyms (a synset), no headword and no definition twice: no held-out word or answer is trained.
The same files on every machine: the order is that of a hash of the headword.
Source: Debian's wordnet-base (WordNet 3.0, (c) 2006 Princeton University, free to use with its notice).
"""
import argparse
import hashlib
import json
import re
import sys
from pathlib import Path

PLAIN_WORD = re.compile(r"[a-z]+(?: [a-z]+)?$")
PLAIN_DEFINITION = re.compile(r"[A-Za-z][A-Za-z ,'-]*$")
MIN_WORDS, MAX_WORDS = 4, 14  # of a definition: short ones keep the demo short


def read_lines(path):
    """The data lines of a WordNet file; its licence stands first, indented."""
    with open(path, encoding="latin-1") as file:
        return [line for line in file if not line.startswith(" ")]


def read_definitions(path):
    """Synset offset -> (first word, definition without examples)."""
    synsets = {}
    for line in read_lines(path):
        fields, _, gloss = line.partition(" | ")
        offset, _, _, _, word = fields.split(" ")[:5]
        synsets[offset] = (word.replace("_", " "), re.split(r'[;"]', gloss)[0].strip())
    return synsets


def read_known_words(path):
    """Word -> offset of its most frequent sense, for words that WordNet's tagged texts use at all."""
    known = {}
    for line in read_lines(path):
        fields = line.split()  # word pos senses pointer_count pointers... senses tagged_senses offsets...
        senses = int(fields[2])
        if int(fields[5 + int(fields[3])]) > 0:
            known[fields[0].replace("_", " ")] = fields[-senses]
    return known


def make_pairs(folder):
    """(headword, definition) of common nouns, in hash order."""
    synsets = read_definitions(folder / "data.noun")
    pairs, seen = [], set()
    for word, offset in read_known_words(folder / "index.noun").items():
        first_word, definition = synsets[offset]
        plain = PLAIN_WORD.match(word) and PLAIN_DEFINITION.match(definition)
        if word != first_word or not plain or not MIN_WORDS <= len(definition.split()) <= MAX_WORDS:
            continue
        if definition not in seen:
            seen.add(definition)
            pairs.append((word, definition))
    return sorted(pairs, key=lambda pair: hashlib.sha256(pair[0].encode()).digest())


def write_jsonl(path, pairs):
    with open(path, "w", encoding="utf-8") as file:
        for word, definition in pairs:
            messages = [
                {"role": "user", "content": f"Define the noun: {word}"},
                {"role": "assistant", "content": definition},
            ]
            file.write(json.dumps({"messages": messages, "headword": word}) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, help="folder for train.jsonl and heldout.jsonl")
    parser.add_argument("--wordnet", type=Path, default=Path("/usr/share/wordnet"), help="folder of data.noun, index.noun")
    parser.add_argument("--heldout", type=int, default=200, help="pairs held out (default 200)")
    parser.add_argument("--train", type=int, default=3000, help="pairs to train on, at most (default 3000)")
    args = parser.parse_args()
    try:
        pairs = make_pairs(args.wordnet)
        args.out.mkdir(parents=True, exist_ok=True)
        train = pairs[args.heldout : args.heldout + args.train]
        write_jsonl(args.out / "train.jsonl", train)
        write_jsonl(args.out / "heldout.jsonl", pairs[: args.heldout])
    except OSError as error:
        print(f"make_demo_data: {error}. Debian's package wordnet-base has these files.", file=sys.stderr)
        return 1
    print(f"{args.out}: {len(train)} pairs to train on, {len(pairs[:args.heldout])} held out, of {len(pairs)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
