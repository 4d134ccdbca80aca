"""The demo's ingredients: GGUF to Hugging Face folder, WordNet to chat data, and the folder that results."""
import json
import math
import random
import subprocess
import sys
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from conftest import ROOT, logits_of, tiny_llama
from tokenizers import Tokenizer

WORDNET = Path("/usr/share/wordnet")
TOP = {"model.embed_tokens": "token_embd", "model.norm": "output_norm"}
LAYER = {"input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
         "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "post_attention_layernorm": "ffn_norm",
         "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}


def interleave(weight, heads):
    """Rows as llama GGUFs hold them: row r of a head's first half beside row r of its second half."""
    rows = weight.shape[0] // heads
    order = [head * rows + half * (rows // 2) + r for head in range(heads) for r in range(rows // 2) for half in (0, 1)]
    return weight[order]


def write_gguf(model, path, architecture="llama"):
    config = model.config
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_rope_freq_base(10000.0)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(["<|endoftext|>", "<|im_start|>", "<|im_end|>", "a", "b", "ab", "1"])
    writer.add_token_types([3, 3, 3, 1, 1, 1, 1])
    writer.add_token_merges(["a b"])
    for kind, token in (("bos", 1), ("eos", 2), ("unk", 0), ("pad", 2)):
        getattr(writer, f"add_{kind}_token_id")(token)
    writer.add_chat_template("{{ messages[0]['content'] }}")
    for name, tensor in model.model.named_parameters(prefix="model"):
        base = name.removesuffix(".weight")
        part = base.split(".", 3)
        values = tensor.detach().numpy()
        if base.endswith(("q_proj", "k_proj")):
            values = interleave(values, config.num_attention_heads if "q_proj" in base else config.num_key_value_heads)
        writer.add_tensor(TOP.get(base) and f"{TOP[base]}.weight" or f"blk.{part[2]}.{LAYER[part[3]]}.weight",
                          np.ascontiguousarray(values))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def convert(source, out):
    command = [sys.executable, ROOT / "tools" / "gguf_to_hf.py", source, out]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_converted_gguf_has_the_models_logits(tmp_path):
    model = tiny_llama(vocab_size=7)
    write_gguf(model, tmp_path / "tiny.gguf")
    done = convert(tmp_path / "tiny.gguf", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    ids = [3, 4, 5, 6, 1, 2, 0, 5]
    with torch.no_grad():
        expected = model(input_ids=torch.tensor([ids])).logits[0]
    assert torch.equal(logits_of(tmp_path / "out", ids), expected)
    tokenizer = Tokenizer.from_file(str(tmp_path / "out" / "tokenizer.json"))
    assert tokenizer.encode("ab<|im_end|>1ba", add_special_tokens=False).ids == [5, 2, 6, 4, 3]
    assert json.loads((tmp_path / "out" / "config.json").read_text())["tie_word_embeddings"] is True
    assert "dequantised" in (tmp_path / "out" / "README.md").read_text()


def test_quantised_values_are_kept_exactly(tmp_path):
    from gguf_to_hf import read_weights

    values = np.random.default_rng(5).normal(size=(8, 32)).astype(np.float32)
    writer = gguf.GGUFWriter(tmp_path / "q.gguf", "llama")
    writer.add_tensor("token_embd.weight", gguf.quantize(values, gguf.GGMLQuantizationType.Q4_1),
                      raw_dtype=gguf.GGMLQuantizationType.Q4_1)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    reader = gguf.GGUFReader(tmp_path / "q.gguf")
    raw = np.asarray(reader.tensors[0].data).reshape(8, -1)
    scale, least = (raw[:, i : i + 2].copy().view(np.float16).astype(np.float32) for i in (0, 2))
    nibbles = np.concatenate([raw[:, 4:] & 15, raw[:, 4:] >> 4], axis=1).astype(np.float32)
    restored = read_weights(reader, 1, 1)["model.embed_tokens.weight"]
    assert np.array_equal(restored, nibbles * scale + least)
    assert np.abs(restored - values).max() < 0.25


@pytest.mark.parametrize("content", [b"", b"GGUF", b"not a model at all" * 100])
def test_bad_file_is_one_sentence_and_leaves_nothing(tmp_path, content):
    (tmp_path / "bad.gguf").write_bytes(content)
    done = convert(tmp_path / "bad.gguf", tmp_path / "out" / "model")
    assert done.returncode == 1 and "bad.gguf" in done.stderr and "Traceback" not in done.stderr
    assert list((tmp_path / "out").iterdir()) == []


def test_other_architecture_is_refused_by_name(tmp_path):
    write_gguf(tiny_llama(vocab_size=7), tmp_path / "other.gguf", architecture="falcon")
    done = convert(tmp_path / "other.gguf", tmp_path / "out")
    assert done.returncode == 1 and "falcon" in done.stderr and not (tmp_path / "out").exists()


def make_data(out, *arguments):
    command = [sys.executable, ROOT / "tools" / "make_demo_data.py", out, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def read_pairs(path):
    for line in path.read_text(encoding="utf-8").splitlines():
        item = json.loads(line)
        question, answer = item["messages"]
        assert (question["role"], answer["role"]) == ("user", "assistant")
        assert question["content"] == f"Define the noun: {item['headword']}"
        yield item["headword"], answer["content"]


@pytest.mark.skipif(not WORDNET.exists(), reason=f"{WORDNET} is not there (Debian package wordnet-base)")
def test_demo_data_trains_no_held_out_word_or_answer(tmp_path):
    assert make_data(tmp_path / "a").returncode == 0 and make_data(tmp_path / "b").returncode == 0
    for name in ("train.jsonl", "heldout.jsonl"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    train, heldout = (list(read_pairs(tmp_path / "a" / name)) for name in ("train.jsonl", "heldout.jsonl"))
    assert (len(train), len(heldout)) == (3000, 200)
    for column in (0, 1):
        values = [pair[column] for pair in train + heldout]
        assert len(set(values)) == len(values)
    assert all(";" not in answer and '"' not in answer for _, answer in train + heldout)


def test_missing_wordnet_names_the_package(tmp_path):
    done = make_data(tmp_path, "--wordnet", tmp_path / "nowhere")
    assert done.returncode == 1 and "wordnet-base" in done.stderr and "Traceback" not in done.stderr


def test_demo_model_speaks_english(demo_model):
    """A wrong row order, a transposed matrix or a shifted vocabulary would give a loss near ln(49152) = 10.8."""
    from transformers import AutoTokenizer

    ids = AutoTokenizer.from_pretrained(demo_model)("The capital of France is Paris, and the river that runs through "
                                                    "the city is called the Seine.").input_ids
    loss = float(torch.nn.functional.cross_entropy(logits_of(demo_model, ids)[:-1], torch.tensor(ids[1:])))
    assert math.isfinite(loss) and loss < 3.0


def odd_lines(seed=11):
    """Lines of text over many scripts, with special tokens, digits, spaces and broken-off sequences in them."""
    generator = random.Random(seed)
    pieces = ["the river", " 12345", "  ", "\t", "don't", "<|im_end|>", "<|im_start|>user", "naïve", "日本語", "नमस्ते",
              "مرحبا", "👩‍👩‍👧", "e\u0301", "½", "Ⅷ", "٣٤", "<|im_", "|>", "\u00a0", "\u200b", "ﬁ", "Ωmega"]
    return ["".join(generator.choices(pieces, k=generator.randint(1, 12))) for _ in range(400)]


def test_tokenize_agrees_with_transformers(headrace, demo_model):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(demo_model)
    lines = odd_lines() + [json.dumps(answer) for _, answer in zip(range(200), range(200))]
    done = headrace.run("tokenize", "--model", demo_model, stdin="\n".join(lines) + "\n")
    assert done.returncode == 0, done.stderr
    got = [json.loads(line)["ids"] for line in done.stdout.splitlines()]
    assert got == [tokenizer(line, add_special_tokens=False).input_ids for line in lines]
