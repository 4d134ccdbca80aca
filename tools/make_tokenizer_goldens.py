#!/usr/bin/env python3
"""Writes tests/golden/tokenizer: small tokenizers of every family, and what `tokenizers` and `jinja2` say about them.

  <name>/tokenizer.json   a few hundred to 900 tokens, trained on WordNet and FOLDOC (Debian wordnet-base, dict-foldoc)
  <name>/expected.json    per text of texts.json: ids, what they decode to where it is not the text, and for some the
                          byte ranges of the characters of each token; then decoded random ids, with special and without
  texts.json              hand-picked and random texts, and random id sequences in millionths of the vocabulary
  chat.json               conversations and their rendering by the templates as the models publish them

Run from the root of the checkout. The trainer breaks some ties by the order of a hash table, so a new run may give
other vocabularies; the expectations always go with the vocabularies beside them.
"""
import argparse
import gzip
import json
import random
from pathlib import Path

import jinja2
import tokenizers
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from chat_templates_published import TEMPLATES

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace("{1,3}", "")
# Mistral's tekken: letters by case, no scanner of ours: PCRE2.
TEKKEN = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
          r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
          r"|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
MARK = "\u2581"
# Offsets of the library count characters; here are those whose tokens map to the text without rewriting.
WITH_RANGES = ("gpt2", "llama3", "smollm2", "split_kept")

SCRIPTS = [(0x20, 0x7E), (0x20, 0x7E), (0xA0, 0x17F), (0x300, 0x36F), (0x370, 0x3FF), (0x400, 0x4FF), (0x531, 0x587),
           (0x591, 0x5F4), (0x600, 0x6FF), (0x900, 0x97F), (0x980, 0x9FE), (0xB80, 0xBFA), (0xE01, 0xE5B),
           (0x10A0, 0x10FF), (0x1100, 0x11FF), (0x13A0, 0x13F4), (0x1E00, 0x1EFF), (0x2000, 0x206F), (0x2070, 0x218B),
           (0x2190, 0x23FF), (0x2600, 0x27BF), (0x3000, 0x30FF), (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xFB1D, 0xFB4F),
           (0xFF00, 0xFFEF), (0x1D400, 0x1D7FF), (0x1F300, 0x1FAFF), (0x20000, 0x2A6DF), (0x1, 0x1F)]


def random_text(rng, length):
    """Runs of one script, often with spaces and line breaks: unassigned code points may be among them."""
    out = []
    while len(out) < length:
        low, high = rng.choice(SCRIPTS)
        out += [chr(rng.randint(low, high)) for _ in range(rng.randint(1, 8))]
        if rng.random() < 0.5:
            out.append(rng.choice([" ", "  ", "\n", "\r\n", "\t", "'s", "'LL", " 12", "1234567", "\u3000", "'\u017f"]))
    return "".join(out[:length])


HAND_PICKED = [
    "", " ", "  ", "\n", "\n\n", "\r\n", " \n ", "\t\t x", "a", " a", "a ", "  a  b  ", "x   \n\n   y \n", "\n x\r\n\r\ny",
    "Hello, world! How's it going? I'm fine; they've said we'll see, he'd know. DON'T SHOUT, IT'S OK.",
    "it'S 'sound 'T' ''s '", "can\u2019t isn\u2019t", "'\u017fo '\u212a", "1 12 123 1234 12345678 3.14159 1,000,000 v2.0",
    "\u0661\u0662\u0663 \u0967\u0968 \u2163 \u00bd \u00b2 \u4e00\u4e8c \u3007 \u2460", "snake_case CamelCase kebab-case",
    "def f(x):\n    return x**2  # square\n\n\nclass A:\n\tpass\n", "a\u00a0b\u2003c\u3000d\u200be\u2028f\u2029g\u0085h\u180ei",
    "\u4f60\u597d\uff0c\u4e16\u754c\uff01\u3053\u3093\u306b\u3061\u306f\u4e16\u754c\u3002\uc548\ub155\ud558\uc138\uc694 \uc138\uacc4",
    "\u1112\u1161\u11ab\u1100\u1173\u11af \ud55c\uae00 \u1112\u1161 \uac00\u11a8", "e\u0301 \u00e9 a\u0308\u0323 a\u0323\u0308 \u1ea1\u0308",
    "\u0041\u030a \u212b \u00c5 \u2126 \u03a9 \u0958 \u0915\u093c \u2adc \u1e9b\u0323 \u0344", "o\u0304\u0328\u0301 \u01ed\u0301",
    "\u0e01\u0e34\u0e19\u0e02\u0e49\u0e32\u0e27 \u0928\u092e\u0938\u094d\u0924\u0947 \u09ac\u09be\u0982\u09b2\u09be",
    "\u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627 \u0628\u0627\u0644\u0639\u0627\u0644\u0645 \u202eabc\u202c", "\u200f\u200e\ufeffBOM",
    "\U0001f600\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466 \U0001f1e9\U0001f1ea\U0001f3fd \u2764\ufe0f #\ufe0f\u20e3",
    "\u0000\u0001\u0007\u001b[31m\u007f\u009f", "\ufffd\ufffe\uffff\U0010ffff\U000e0041", "\u0130\u0131\u01c5\u1e9e\u00df\ufb01\ufb06",
    "https://example.org/a?b=c&d=%20#e user@example.com C:\\dir\\file.txt", "$100 \u20ac50 50% @home #tag *bold* ~x~ `y`",
    "a" * 60, "ab" * 60, " " * 60 + "x", "=" * 70 + "\n" + "-" * 9, "\u4e2d" * 50, "\u0301" * 20, "e" + "\u0301\u0323" * 20,
    "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n", "<|im_start|><|im_start|> <|im_end|>x<|im_en",
    "<s>[INST] hi [/INST] yes</s>", "x<s> y</s>z <unk>", "<0x41><0x0A>", "\u2581a \u2581\u2581 b\u2581c", "<|lstrip|> a  <|lstrip|>b",
    "a <|rstrip|>  b<|rstrip|>\n\nc", "a <|both|> <|both|> b", "word wordy sword word, (word) _word word1 \u00e9word word\u00e9 word",
    "caf\u00e9 cafe\u0301 na\u00efve nai\u0308ve CAFE\u0301", "the quick brown fox  jumps over\tthe lazy dog.\u2014 \u201cQuoted\u201d",
]


def corpus():
    lines = []
    for part in ("adj", "adv", "verb", "noun"):
        for line in Path(f"/usr/share/wordnet/data.{part}").read_text(encoding="utf-8").splitlines()[29:4029]:
            lines.append(line.split(" | ")[-1])
    foldoc = gzip.decompress(Path("/usr/share/dictd/foldoc.dict.dz").read_bytes()).decode("utf-8", "replace")
    lines += foldoc[:1_500_000].splitlines(keepends=True)
    rng = random.Random(7)
    lines += [random_text(rng, 60) for _ in range(300)]
    lines += [text for text in HAND_PICKED for _ in range(3)]
    return lines


def special(*contents, **flags):
    return [AddedToken(c, special=True, normalized=False, **flags) for c in contents]


def train_byte_level(pre_tokenizer, size, normalizer=None, specials=(), ignore_merges=False, tokens=()):
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    tokenizer.pre_tokenizer = pre_tokenizer
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=list(specials), show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(corpus(), trainer)
    if tokens:
        tokenizer.add_tokens(list(tokens))
    return tokenizer


def byte_level(add_prefix_space=False, use_regex=False):
    return pre_tokenizers.ByteLevel(add_prefix_space=add_prefix_space, use_regex=use_regex, trim_offsets=False)


def split(pattern, behavior="isolated", invert=False):
    return pre_tokenizers.Split(pattern, behavior, invert)


def sequence(*parts):
    return pre_tokenizers.Sequence(list(parts))


def train_byte_fallback(size, normalizer, pre_tokenizer, decoder, fallback=True, fuse_unk=True):
    """Trained on Metaspace words as SentencePiece does, then given the configuration under test."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=fuse_unk, byte_fallback=fallback))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always")
    tokens = ["<unk>", "<s>", "</s>"] + ([f"<0x{b:02X}>" for b in range(256)] if fallback else [])
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=tokens, show_progress=False, limit_alphabet=120)
    tokenizer.train_from_iterator(corpus(), trainer)
    data = json.loads(tokenizer.to_str())
    # The trainer makes every token given to it an added one; byte tokens are not.
    data["added_tokens"] = data["added_tokens"][:3]
    tokenizer = Tokenizer.from_str(json.dumps(data))
    tokenizer.normalizer, tokenizer.decoder = normalizer, decoder
    if pre_tokenizer is None:
        data = json.loads(tokenizer.to_str())
        data["pre_tokenizer"] = None
        return Tokenizer.from_str(json.dumps(data))
    tokenizer.pre_tokenizer = pre_tokenizer
    return tokenizer


def llama_normalizer():
    return normalizers.Sequence([normalizers.Prepend(MARK), normalizers.Replace(" ", MARK)])


def llama_decoder():
    return decoders.Sequence(
        [decoders.Replace(MARK, " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)])


def flagged():
    plain = [AddedToken("word", single_word=True, normalized=False), AddedToken("na\u00efve", normalized=True)]
    return special("<|lstrip|>", lstrip=True) + special("<|rstrip|>", rstrip=True) + special(
        "<|both|>", lstrip=True, rstrip=True) + plain


def splitting(pattern, behavior="isolated", invert=False, size=320, **settings):
    """Split by the pattern, then bytes."""
    return lambda: train_byte_level(sequence(split(pattern, behavior, invert), byte_level()), size, **settings)


def unknown_tokens(scheme, fuse_unk):
    """Metaspace words, characters without a token become <unk>."""
    return lambda: train_byte_fallback(400, None, pre_tokenizers.Metaspace(prepend_scheme=scheme, split=True),
                                       decoders.Metaspace(prepend_scheme=scheme), fallback=False, fuse_unk=fuse_unk)


def tokenizer_makers(scale=1):
    """Name to a function that trains it; `scale` multiplies the size of the vocabulary of the families."""
    chat = special("<|endoftext|>", "<|im_start|>", "<|im_end|>")
    small, large = 320, 900 * scale
    single_digits = sequence(pre_tokenizers.Digits(individual_digits=True), byte_level(use_regex=True))
    digit_runs = sequence(pre_tokenizers.Digits(individual_digits=False), byte_level())
    gemma_decoder = decoders.Sequence([decoders.Replace(MARK, " "), decoders.ByteFallback(), decoders.Fuse()])
    return {
        "gpt2": lambda: train_byte_level(byte_level(use_regex=True), large, specials=special("<|endoftext|>")),
        "llama3": splitting(Regex(LLAMA3), size=large, ignore_merges=True,
                            tokens=special("<|begin_of_text|>", "<|eot_id|>")),
        "qwen2": splitting(Regex(QWEN2), size=large, normalizer=normalizers.NFC(), tokens=chat),
        "smollm2": lambda: train_byte_level(single_digits, large, specials=chat),
        "tekken": splitting(Regex(TEKKEN), specials=special("<s>", "</s>")),
        "llama2": lambda: train_byte_fallback(large, llama_normalizer(), None, llama_decoder()),
        "mistral": lambda: train_byte_fallback(700, None, pre_tokenizers.Metaspace(prepend_scheme="first", split=False),
                                               llama_decoder()),
        "gemma": lambda: train_byte_fallback(600, normalizers.Replace(" ", MARK), split(" ", "merged_with_previous"),
                                             gemma_decoder),
        "metaspace": unknown_tokens("always", True),
        "unknown_apart": unknown_tokens("never", False),
        "prefix_space": lambda: train_byte_level(byte_level(add_prefix_space=True, use_regex=True), small,
                                                 tokens=flagged()),
        "digit_runs": lambda: train_byte_level(digit_runs, small, tokens=flagged(),
                                               normalizer=normalizers.Sequence([normalizers.NFC()])),
        "split_removed": splitting(Regex(r"\s+"), "removed"),
        "split_kept": splitting(Regex(r"\p{L}+|\d{2,3}|[^\s\p{L}]"), "removed", True),
        "split_next": splitting(Regex(r"[\s,.]"), "merged_with_next"),
        "split_previous": lambda: train_byte_level(
            sequence(split("e", "merged_with_previous"), byte_level(use_regex=True)), small),
        "split_contiguous": splitting(Regex(r"[\P{L}]"), "contiguous"),
        "split_empty": splitting(Regex(r"\d*")),
        "split_scripts": splitting(Regex(r"(?<=\p{Han})\p{Greek}+|\p{Han}+(?!\p{Latin})|[a-f\u00e0-\u00ff\-]+?")),
    }


def byte_ranges(text, offsets):
    starts = [0]
    for c in text:
        starts.append(starts[-1] + len(c.encode("utf-8", "surrogatepass")))
    return [[starts[b], starts[e]] for b, e in offsets]


def flat(pairs):
    """Begin relative to the end before it, then length: small numbers."""
    out, at = [], 0
    for begin, end in pairs:
        out += [begin - at, end - begin]
        at = end
    return out


def expected_of(tokenizer, texts, decode_fractions, with_ranges):
    size = max(tokenizer.get_vocab(with_added_tokens=True).values()) + 1
    rows = []
    for text in texts:
        encoding = tokenizer.encode(text, add_special_tokens=False)
        row = {"ids": encoding.ids}
        if with_ranges:
            row["ranges"] = flat(byte_ranges(text, encoding.offsets))
        decoded = tokenizer.decode(encoding.ids, skip_special_tokens=False)
        if decoded != text:
            row["decoded"] = decoded
        rows.append(row)
    decoded = []
    for fractions in decode_fractions:
        ids = [f * size // 1_000_000 for f in fractions]
        decoded.append([tokenizer.decode(ids, skip_special_tokens=False),
                        tokenizer.decode(ids, skip_special_tokens=True)])
    return {"tokenizers": tokenizers.__version__, "vocabulary": size, "texts": rows, "decoded": decoded}


def chat_cases():
    turns = [("system", "Be brief."), ("user", "Hi there"), ("assistant", "Hello!\nHow are you?"), ("user", " fine  "),
             ("assistant", "\n Good. \n"), ("user", "Bye \u00fc\u4e16\u3000")]
    thought = "<think>\nhm, hm\n\n</think>\n\nThe answer is 4."
    return [
        turns, turns[:5], turns[1:], turns[1:3], turns[1:2], turns[:2], [("system", "")] + turns[1:3],
        [("system", "")] + turns[1:2], [("user", ""), ("assistant", "")], turns[:1],
        [("system", "a\n\nb ")] + turns[1:] + [("assistant", "See you </s><|im_end|>")],
        [("user", "2+2?"), ("assistant", thought)], [("user", "2+2?"), ("assistant", thought), ("user", "and 3+3?")],
        [("user", "2+2?"), ("assistant", thought), ("user", "and 3+3?"), ("assistant", "6")],
        [("user", "2+2?"), ("assistant", thought), ("user", "<tool_response>\n4\n</tool_response>"),
         ("assistant", "4")],
        [("user", "x"), ("assistant", "a</think>b</think>\n\nc")], [("user", "x"), ("assistant", "\n\n<think>lone")],
        # Not every template takes these.
        [("user", "a"), ("user", "b")], [("assistant", "first"), ("user", "then")], [("user", "a"), ("system", "b")],
        [("user", "a"), ("assistant", "b"), ("assistant", "c")], [("system", "a"), ("assistant", "b")],
    ]


def render(jinja, messages, generation_prompt):
    """As transformers does it (utils/chat_template_utils.py): same environment, same flags."""
    def raise_exception(message):
        raise jinja2.exceptions.TemplateError(message)

    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True,
                                                extensions=["jinja2.ext.loopcontrols"])
    environment.globals["raise_exception"] = raise_exception
    specials = {"bos_token": "<|begin_of_text|>" if "header_id" in jinja else "<s>", "eos_token": "</s>"}
    try:
        return environment.from_string(jinja).render(
            messages=[{"role": r, "content": c} for r, c in messages], tools=None, documents=None,
            add_generation_prompt=generation_prompt, **specials)
    except jinja2.exceptions.TemplateError:
        return None


def write(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, ensure_ascii=True, separators=(",", ":")) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("tests/golden/tokenizer"))
    parser.add_argument("--large", type=Path, help="write only tokenizers of 18000 tokens there")
    args = parser.parse_args()
    if args.large:
        makers = tokenizer_makers(scale=20)
        for name in ("gpt2", "llama3", "qwen2", "llama2"):
            (args.large / name).mkdir(parents=True, exist_ok=True)
            makers[name]().save(str(args.large / name / "tokenizer.json"))
        return
    rng = random.Random(2026)
    texts = HAND_PICKED + [random_text(rng, rng.randint(1, 60)) for _ in range(40)]
    fractions = [[rng.randrange(1_000_000) for _ in range(rng.randint(1, 12))] for _ in range(40)]
    write(args.out / "texts.json", {"texts": texts, "fractions": fractions})
    for name, make in tokenizer_makers().items():
        tokenizer = make()
        data = json.loads(tokenizer.to_str())
        write(args.out / name / "tokenizer.json", data)
        write(args.out / name / "expected.json", expected_of(tokenizer, texts, fractions, name in WITH_RANGES))
        print(name, len(data["model"]["vocab"]))
    cases = [{"template": name, "messages": messages, "prompt": prompt, "text": render(jinja, messages, prompt)}
             for name, jinja in TEMPLATES.items() for messages in chat_cases() for prompt in (False, True)]
    write(args.out / "chat.json", {"jinja2": jinja2.__version__, "templates": TEMPLATES, "cases": cases})


if __name__ == "__main__":
    main()
