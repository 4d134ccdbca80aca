"""`headrace tokenize` against Hugging Face `tokenizers`: the same ids on megabytes of real text and of random Unicode.

The C++ tests hold small goldens of every family; this one is about the amount. The texts are those of
bench/micro/tokenizer_bench.py, which makes the same comparison with larger vocabularies.
"""
import importlib.util
import json
from pathlib import Path

import pytest
import tokenizers

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "golden" / "tokenizer"


@pytest.fixture(scope="module")
def bench():
    spec = importlib.util.spec_from_file_location("tokenizer_bench", ROOT / "bench" / "micro" / "tokenizer_bench.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def check(headrace, family, text):
    lines = text.rstrip("\n").split("\n")
    done = headrace.run("tokenize", "--model", GOLDEN / family, stdin=text)
    assert done.returncode == 0, done.stderr
    ours = [json.loads(line)["ids"] for line in done.stdout.splitlines()[: len(lines)]]
    library = tokenizers.Tokenizer.from_file(str(GOLDEN / family / "tokenizer.json"))
    for number, (mine, theirs) in enumerate(zip(ours, library.encode_batch_fast(lines, add_special_tokens=False), strict=True)):
        assert mine == theirs.ids, f"{family}, line {number}: {lines[number]!r}"


@pytest.mark.parametrize("family", ["smollm2", "llama2"])
def test_real_text(headrace, bench, family):
    if not Path("/usr/share/wordnet/data.adj").exists() or not Path("/usr/share/dictd/foldoc.dict.dz").exists():
        pytest.skip("the Debian packages wordnet-base and dict-foldoc are not installed")
    check(headrace, family, bench.corpus(5.2))


@pytest.mark.parametrize("family", ["gpt2", "llama3", "qwen2", "mistral"])
def test_random_unicode(headrace, bench, family):
    check(headrace, family, bench.random_unicode(1.05))
