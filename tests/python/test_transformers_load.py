"""What the program writes, transformers loads; what the program computes, transformers computes."""
import json
import shutil

import pytest
import torch
from conftest import chat_loss, logits_of
from safetensors.torch import load_file
from transformers import AutoTokenizer

IDS = [1, 40, 50, 60, 70, 2, 80]
TRAIN = ["--steps", 4, "--batch", 4, "--lr", "1e-2", "--max-length", 128, "--seed", 1]


def evaluate(headrace, model, data):
    return headrace.json("eval", "--model", model, "--data", data, "--max-length", 128, "--batch", 4)


def test_eval_is_transformers_loss(headrace, family_model, chat_data):
    result = evaluate(headrace, family_model, chat_data)
    loss, tokens = chat_loss(family_model, chat_data)
    assert result["tokens"] == tokens
    assert result["loss"] == pytest.approx(loss, rel=1e-5)
    assert result["perplexity"] == pytest.approx(torch.tensor(loss).double().exp().item(), rel=1e-5)


def test_export_has_the_same_logits(headrace, family_model, tmp_path):
    done = headrace.run("export", "--model", family_model, "--out", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert torch.equal(logits_of(tmp_path / "out", IDS), logits_of(family_model, IDS))
    text = "Define the noun: mirror<|im_end|>"
    mine, given = (AutoTokenizer.from_pretrained(folder) for folder in (tmp_path / "out", family_model))
    assert mine(text).input_ids == given(text).input_ids
    assert mine.chat_template == given.chat_template


def test_export_in_bf16_rounds_to_nearest(headrace, tiny_model, tmp_path):
    done = headrace.run("export", "--model", tiny_model, "--out", tmp_path / "out", "--dtype", "bf16")
    assert done.returncode == 0, done.stderr
    given, written = load_file(tiny_model / "model.safetensors"), load_file(tmp_path / "out" / "model.safetensors")
    assert set(written) == set(given)
    for name, tensor in given.items():
        assert torch.equal(written[name], tensor.bfloat16()), name


def test_trained_model_loads_with_the_reported_loss(headrace, family_model, chat_data, tmp_path):
    before, _ = chat_loss(family_model, chat_data)
    result = headrace.json("train", "--model", family_model, "--data", chat_data, "--out", tmp_path / "run", *TRAIN)
    folder = tmp_path / "run"
    assert result["steps"] == 4 and result["out"]
    loss, tokens = chat_loss(folder, chat_data)
    assert loss < before
    after = evaluate(headrace, folder, chat_data)
    assert after["tokens"] == tokens and after["loss"] == pytest.approx(loss, rel=1e-5)
    given, written = (load_file(path / "model.safetensors") for path in (family_model, folder))
    assert set(written) == set(given)
    assert [name for name in given if torch.equal(given[name], written[name].float())] == []  # every tensor is trained
    config, original = (json.loads((path / "config.json").read_text()) for path in (folder, family_model))
    assert config["model_type"] == original["model_type"]
    assert config.get("tie_word_embeddings") == original.get("tie_word_embeddings")


def test_sharded_input_loads(headrace, tiny_model, chat_data, tmp_path):
    from transformers import AutoModelForCausalLM

    folder = tmp_path / "sharded"
    AutoModelForCausalLM.from_pretrained(tiny_model).save_pretrained(folder, max_shard_size="20KB")
    assert (folder / "model.safetensors.index.json").exists()
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(tiny_model / name, folder / name)
    assert evaluate(headrace, folder, chat_data) == evaluate(headrace, tiny_model, chat_data)
