#!/usr/bin/env python3
"""Writes headrace/tokenizer/unicode_ranges.inc: the character classes that Hugging Face's `tokenizers` uses.

Libraries carry tables of different Unicode versions, and one character classed differently means other ids. So the
classes are asked of `tokenizers` itself, code point by code point, and kept as ranges:
  letters, numbers   \\p{L} and \\p{N} of its regex engine, which the pre-tokenizers of the model families use
  numeric            what its Digits pre-tokenizer isolates
  word               what `single_word` added tokens take for part of a word
  composing          what its NFC moves, splits or joins: everything that plain text without them need not normalize
"""
import argparse
import unicodedata

import tokenizers
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]


def regex_class(pattern):
    text = "".join(map(chr, POINTS))
    pieces = pre_tokenizers.Split(Regex(f"(?:{pattern})+"), "removed", invert=True).pre_tokenize_str(text)
    return {ord(c) for piece, _ in pieces for c in piece}


def numeric_class():
    """A digit is alone between two letters; anything else stays with them."""
    text = "".join("a" + chr(c) for c in POINTS)
    pieces = pre_tokenizers.Digits(individual_digits=True).pre_tokenize_str(text)
    return {ord(piece) for piece, _ in pieces if len(piece) == 1 and piece != "a"}


def word_class():
    tokenizer = Tokenizer(models.BPE({"!": 0}, []))
    tokenizer.add_tokens([AddedToken("<x>", single_word=True, normalized=False)])
    token = tokenizer.token_to_id("<x>")
    found = tokenizer.encode_batch(["<x>" + chr(c) for c in POINTS])
    return {c for c, e in zip(POINTS, found) if token not in e.ids}


def composing_class():
    """Active in NFC: rewritten alone, reordered among marks, or joined with what stands before."""
    nfc = normalizers.NFC().normalize_str
    low, high = "\u0334", "\u0345"  # combining classes 1 and 240, the ends of the order
    active = set()
    for c in POINTS:
        s = chr(c)
        if nfc(s) != s or nfc("." + high + s) != "." + high + s or nfc("." + s + low) != "." + s + low:
            active.add(c)
        # The second half of a composition: everything whose canonical decomposition ends in it.
        parts = nfd(s)
        if len(parts) > 1 and nfc(parts) == s:
            active.update(map(ord, parts[1:]))
    active.update(range(0x1161, 0x1176))  # Hangul vowels and finals join by arithmetic
    active.update(range(0x11A8, 0x11C3))
    return active


nfd = normalizers.NFD().normalize_str


def ranges(points):
    out = []
    for c in sorted(points):
        if out and c == out[-1][1] + 1:
            out[-1][1] = c
        else:
            out.append([c, c])
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="headrace/tokenizer/unicode_ranges.inc")
    args = parser.parse_args()
    classes = {
        "kLetterRanges": regex_class(r"\p{L}"),
        "kNumberRanges": regex_class(r"\p{N}"),
        "kNumericRanges": numeric_class(),
        "kWordRanges": word_class(),
        "kComposingRanges": composing_class(),
    }
    with open(args.out, "w", encoding="utf-8") as out:
        out.write(f"// Made by tools/make_unicode_ranges.py from tokenizers {tokenizers.__version__}; do not edit.\n")
        for name, points in classes.items():
            rows = ranges(points)
            out.write(f"constexpr CodePointRange {name}[] = {{  // {len(points)} code points\n")
            cells = [f"{{0x{a:x}, 0x{b:x}}}," for a, b in rows]
            line = "   "
            for cell in cells:
                if len(line) + 1 + len(cell) > 120:
                    out.write(line + "\n")
                    line = "   "
                line += " " + cell
            out.write(line + "\n};\n")
            print(name, len(points), "code points,", len(rows), "ranges")
    missing = classes["kNumericRanges"] ^ classes["kNumberRanges"]
    print("numeric but not \\p{N} or the reverse:", [hex(c) for c in sorted(missing)])


if __name__ == "__main__":
    main()
