"""The contract that scripts rely on: JSON on the last line, messages on standard error, exit codes."""
import json
import signal
import subprocess
import time

import pytest
import torch
from safetensors.torch import load_file, save_file

TRAIN_KEYS = {"steps", "tokens", "trained_tokens", "trained_tokens_per_s", "step_time_s", "stall_share", "final_loss", "out"}
TRAIN = ["--batch", 4, "--lr", "1e-3", "--max-length", 128, "--seed", 1]


def copy_model(source, target, change):
    """A copy of a model folder; change(folder) breaks it."""
    target.mkdir()
    for file in source.iterdir():
        (target / file.name).write_bytes(file.read_bytes())
    change(target)
    return target


def test_train_reports_what_it_did(headrace, tiny_model, chat_data, tmp_path):
    result = headrace.json("train", "--model", tiny_model, "--data", chat_data, "--out", tmp_path / "run", "--steps", 3, *TRAIN)
    assert TRAIN_KEYS <= set(result)
    assert result["steps"] == 3 and 0 < result["trained_tokens"] < result["tokens"]
    assert result["step_time_s"] > 0 and 0 <= result["stall_share"] <= 1
    lines = [json.loads(line) for line in (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()]
    assert len([line for line in lines if "loss" in line]) >= 3


def test_same_seed_same_bits(headrace, tiny_model, chat_data, tmp_path):
    for name in ("a", "b"):
        headrace.json("train", "--model", tiny_model, "--data", chat_data, "--out", tmp_path / name, "--steps", 3, *TRAIN)
    files = [tmp_path / name / "model.safetensors" for name in ("a", "b")]
    assert files[0].read_bytes() == files[1].read_bytes()


def test_eval_and_generate_print_their_keys(headrace, tiny_model, chat_data):
    result = headrace.json("eval", "--model", tiny_model, "--data", chat_data, "--max-length", 128, "--batch", 4)
    assert {"loss", "perplexity", "tokens"} <= set(result)
    first, second = (headrace.json("generate", "--model", tiny_model, "--prompt", "Define the noun: river", "--chat",
                                   "--max-new-tokens", 8) for _ in range(2))
    assert isinstance(first["text"], str) and first == second


def test_generate_is_transformers_greedy_answer(headrace, tiny_model):
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer, model = AutoTokenizer.from_pretrained(tiny_model), AutoModelForCausalLM.from_pretrained(tiny_model)
    question = [{"role": "user", "content": "Define the noun: river"}]
    given = tokenizer.apply_chat_template(question, add_generation_prompt=True, return_tensors="pt", return_dict=True)
    ids = model.generate(**given, max_new_tokens=12, do_sample=False)[0, given["input_ids"].shape[1] :]
    result = headrace.json("generate", "--model", tiny_model, "--prompt", "Define the noun: river", "--chat",
                           "--max-new-tokens", 12)
    assert result["text"].strip() == tokenizer.decode(ids, skip_special_tokens=True).strip()


def test_tokenize_prints_one_object_a_line(headrace, tiny_model):
    done = headrace.run("tokenize", "--model", tiny_model, stdin="river<|im_end|>\n\nstone 12\n")
    assert done.returncode == 0, done.stderr
    ids = [json.loads(line)["ids"] for line in done.stdout.splitlines()]
    assert len(ids) == 3 and ids[0][-1] == 2 and ids[1] == [] and 1 not in ids[2]


@pytest.mark.parametrize("arguments", [
    ["nonsense"],
    [],
    ["eval", "--no-such-flag"],
    ["eval", "--model", "/does/not/exist", "--data", "/does/not/exist"],
    ["train", "--model", "/does/not/exist", "--data", "/does/not/exist", "--out", "/does/not/exist", "--steps", "x"],
])
def test_wrong_use_is_two(headrace, arguments):
    done = headrace.run(*arguments)
    assert done.returncode == 2 and done.stderr.strip() and not done.stdout.strip()


def test_bad_line_is_two_and_named(headrace, tiny_model, chat_data, tmp_path):
    lines = chat_data.read_text().splitlines()
    (tmp_path / "bad.jsonl").write_text("\n".join([lines[0], '{"messages": [', lines[1]]) + "\n")
    done = headrace.run("eval", "--model", tiny_model, "--data", tmp_path / "bad.jsonl")
    assert done.returncode == 2 and "bad.jsonl" in done.stderr and "2" in done.stderr


def test_missing_tensor_is_two_and_named(headrace, tiny_model, chat_data, tmp_path):
    def drop(folder):
        weights = load_file(folder / "model.safetensors")
        del weights["model.layers.1.mlp.up_proj.weight"]
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})

    done = headrace.run("eval", "--model", copy_model(tiny_model, tmp_path / "m", drop), "--data", chat_data)
    assert done.returncode == 2 and "model.layers.1.mlp.up_proj.weight" in done.stderr


def test_loss_that_is_not_finite_is_one(headrace, tiny_model, chat_data, tmp_path):
    def poison(folder):
        weights = load_file(folder / "model.safetensors")
        weights["model.layers.1.mlp.up_proj.weight"][0, 0] = torch.nan
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})

    done = headrace.run("train", "--model", copy_model(tiny_model, tmp_path / "m", poison), "--data", chat_data, "--out",
                        tmp_path / "run", "--steps", 2, *TRAIN)
    assert done.returncode == 1 and "step" in done.stderr


def test_interrupt_is_130_and_says_what_was_saved(headrace, tiny_model, chat_data, tmp_path):
    command = [headrace.path, "train", "--model", tiny_model, "--data", chat_data, "--out", tmp_path / "run", "--steps",
               100000, *TRAIN]
    process = subprocess.Popen([str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    metrics, deadline = tmp_path / "run" / "metrics.jsonl", time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline and not (metrics.exists() and metrics.stat().st_size):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, messages = process.communicate(timeout=60)
    assert process.returncode == 130, messages
    assert str(tmp_path / "run") in messages
