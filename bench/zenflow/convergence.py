#!/usr/bin/env python3
"""What ZenFlow's deferral costs in held-out loss at equal tokens, beside AdamW, over seeds.

    .deps/venv/bin/python bench/zenflow/convergence.py scratch      a small model from random weights on real text
    .deps/venv/bin/python bench/zenflow/convergence.py finetune     the demo's fine-tune of SmolLM2-135M, 50 steps
    .deps/venv/bin/python bench/zenflow/convergence.py longer       the same of 200 steps with half the batch
    .deps/venv/bin/python bench/zenflow/convergence.py verdict      check k: is ZenFlow within AdamW's seeds in `longer`?
    .deps/venv/bin/python bench/zenflow/convergence.py plot         bench/results/zenflow_convergence.png from the CSV

Every run is one line of bench/results/zenflow_convergence.csv as soon as it has ended; runs that are there are not
repeated, so a study may be stopped and gone on with at any time. What a run computes does not depend on how fast the
machine was: the interval is set, never `auto`. The text is the demo's: definitions from WordNet.
"""
import argparse
import csv
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "demo"
PROGRAM = Path(os.environ.get("HEADRACE_BIN", ROOT / "build" / "headrace"))
CSV = ROOT / "bench" / "results" / "zenflow_convergence.csv"
COLUMNS = ["study", "policy", "interval", "topk", "deferred_lr", "warmup_steps", "seed", "lr", "steps", "tokens", "heldout_loss",
           "final_loss", "staleness_mean", "energy_of_top_1_percent", "energy_of_important", "selection_churn", "run_s",
           "commit", "machine"]
SEEDS = (1, 2, 3)
INTERVALS = (1, 2, 4, 8, 16)
RATIOS = (0.01, 0.05, 0.1, 0.2)
# Exact steps before deferral. From random weights the first steps are what deferral disturbs most: ZeRO-Offload's
# delayed update (arXiv 2101.06840) waits about as long.
WARM = {"scratch": 40, "finetune": 1, "longer": 1}
RATE = {"scratch": "plain", "finetune": "linear", "longer": "linear"}  # of deferred updates: the best one of each study

# 1.9 M parameters over single bytes: small enough for many runs, deep enough to be a transformer.
SHAPE = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 258, "hidden_size": 192,
         "intermediate_size": 512, "num_hidden_layers": 4, "num_attention_heads": 4, "num_key_value_heads": 4,
         "max_position_embeddings": 512, "rms_norm_eps": 1e-5, "hidden_act": "silu", "tie_word_embeddings": True,
         "rope_theta": 10000.0, "initializer_range": 0.02, "bos_token_id": 256, "eos_token_id": 257}


def byte_alphabet():
    """The printable stand-ins of the 256 bytes, as byte-level BPE writes them."""
    kept = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = {byte: chr(byte) for byte in kept}
    for count, byte in enumerate(byte for byte in range(256) if byte not in letters):
        letters[byte] = chr(256 + count)
    return [letters[byte] for byte in range(256)]


def make_model(folder):
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(SHAPE))
    special = [{"id": 256 + i, "content": word, "single_word": False, "lstrip": False, "rstrip": False,
                "normalized": False, "special": True} for i, word in enumerate(["<s>", "</s>"])]
    vocabulary = {letter: byte for byte, letter in enumerate(byte_alphabet())}
    vocabulary |= {"<s>": 256, "</s>": 257}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    (folder / "tokenizer.json").write_text(json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": special, "normalizer": None,
        "pre_tokenizer": byte_level, "post_processor": None, "decoder": byte_level,
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                  "vocab": vocabulary, "merges": []}}))
    (folder / "tokenizer_config.json").write_text(json.dumps({"eos_token": "</s>", "bos_token": "<s>"}))


def make_text(source, target):
    """One definition a line."""
    lines = []
    for line in source.read_text().splitlines():
        question, answer = (message["content"] for message in json.loads(line)["messages"])
        lines.append(f"{question.removeprefix('Define the ')}: {answer}")
    target.write_text("\n".join(lines) + "\n")


def scratch_settings(folder):
    """Model folder and what both sides share, made where they are missing."""
    if not (folder / "model").exists():
        make_model(folder / "model")
        for name in ("train", "heldout"):
            make_text(DEMO / f"{name}.jsonl", folder / f"{name}.txt")
    return ["--model", folder / "model", "--init", "random", "--data", folder / "train.txt", "--eval-data",
            folder / "heldout.txt", "--layout", "packed", "--max-length", 128, "--batch", 8, "--schedule", "cosine",
            "--min-lr-ratio", 0.1, "--epochs", 100]


def finetune_settings(_, batch=16):
    return ["--model", DEMO / "SmolLM2-135M-Instruct", "--data", DEMO / "train.jsonl", "--eval-data",
            DEMO / "heldout.jsonl", "--batch", batch, "--max-length", 256, "--schedule", "cosine"]


STUDIES = {"scratch": {"settings": scratch_settings, "steps": 150, "lr": 1e-3, "warmup": 15},
           "finetune": {"settings": finetune_settings, "steps": 50, "lr": 3e-5, "warmup": 5},
           "longer": {"settings": lambda _: finetune_settings(_, batch=8), "steps": 200, "lr": 3e-5, "warmup": 5}}


def plan(study):
    """Runs in order: the baseline, which rate deferred updates should have, then the grid."""
    def run_of(policy, interval, topk, rate, seed, warmup):
        return {"policy": policy, "interval": interval, "topk": topk, "deferred_lr": rate, "warmup_steps": warmup, "seed": seed}

    def zenflow(interval, topk, rate, seed):
        return run_of("zenflow", interval, topk, rate, seed, WARM[study])

    if study == "longer":
        return [run for seed in SEEDS for run in (run_of("adamw", 1, 1, "plain", seed, 1), zenflow(4, 0.1, "linear", seed))]
    runs = [run_of("adamw", 1, 1, "plain", seed, 1) for seed in SEEDS]
    if study == "finetune":
        runs += [zenflow(4, 0.1, rate, 1) for rate in ("plain", "linear", "sqrt")]
        runs += [zenflow(4, 0.1, "linear", seed) for seed in SEEDS]
        return runs + [zenflow(interval, 0.1, "linear", 1) for interval in (8, 1, 16, 2)]
    runs += [zenflow(4, 0.1, rate, seed) for rate in ("plain", "sqrt") for seed in SEEDS]
    runs += [zenflow(4, 0.1, "linear", 1)]
    runs += [run_of("zenflow", interval, 0.1, "plain", 1, 1) for interval in (1, 4)]  # deferring from the start
    for seed in SEEDS:
        runs += [zenflow(interval, topk, "plain", seed) for topk in RATIOS for interval in INTERVALS]
    return runs


def key_of(study, run):
    return tuple(str(value) for value in (study, run["policy"], run["interval"], run["topk"], run["deferred_lr"],
                                          run["warmup_steps"], run["seed"]))


def done_keys():
    if not CSV.exists():
        return set()
    with CSV.open() as file:
        return {tuple(row[name] for name in COLUMNS[:7]) for row in csv.DictReader(file)}


def flags(run):
    if run["policy"] == "adamw":
        return ["--device", "cpu", "--policy", "resident", "--threads", 1]
    return ["--device", "emulated", "--policy", "zenflow", "--update-interval", run["interval"], "--topk-ratio",
            run["topk"], "--deferred-lr", run["deferred_lr"], "--warmup-steps", run["warmup_steps"], "--window-sum", "running"]


def commit():
    return subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True,
                          check=True).stdout.strip()


def machine():
    model = [line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line]
    return f"{model[0] if model else platform.machine()}, {os.cpu_count()} cores"


def train(study, run, work):
    setting = STUDIES[study]
    out = work / "out"
    command = [PROGRAM, "train", *setting["settings"](work), "--out", out, "--overwrite", "--steps", setting["steps"],
               "--lr", setting["lr"], "--warmup", setting["warmup"], "--seed", run["seed"], *flags(run), "--json"]
    begin = time.monotonic()
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stderr}")
    result = json.loads(done.stdout.splitlines()[-1])
    steps = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    last = [step for step in steps if "lr" in step][-1]
    return {"study": study, **run, "lr": setting["lr"], "steps": result["steps"], "tokens": result["trained_tokens"],
            "heldout_loss": result["eval"]["loss"], "final_loss": result["final_loss"],
            "staleness_mean": last.get("staleness_mean", 0),
            "energy_of_top_1_percent": last.get("energy_of_top_1_percent", ""),
            "energy_of_important": last.get("energy_of_important", ""),
            "selection_churn": last.get("selection_churn", ""), "run_s": round(time.monotonic() - begin, 1),
            "commit": commit(), "machine": machine()}


def append(row):
    is_new = not CSV.exists()
    CSV.parent.mkdir(parents=True, exist_ok=True)
    with CSV.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if is_new:
            writer.writeheader()
        writer.writerow(row)


def study(name):
    runs = plan(name)
    with tempfile.TemporaryDirectory() as scratch:
        for number, run in enumerate(runs):
            if key_of(name, run) in done_keys():
                continue
            row = train(name, run, Path(scratch))
            append(row)
            print(f"{number + 1}/{len(runs)} {run}: held-out {row['heldout_loss']:.4f} in {row['run_s']} s", flush=True)


def read_rows(name):
    with CSV.open() as file:
        return [row for row in csv.DictReader(file) if row["study"] == name]


def losses(rows, **wanted):
    return [float(row["heldout_loss"]) for row in rows if all(row[key] == str(value) for key, value in wanted.items())]


def judge(rows):
    """(whether it holds, why): k = 0.1 with S = 4 ends no further above AdamW, in the mean of the same seeds, than
    AdamW's own seeds lie apart."""
    adamw = losses(rows, policy="adamw")
    zenflow = losses(rows, policy="zenflow", interval=4, topk=0.1, deferred_lr="linear")
    if len(adamw) != len(SEEDS) or len(zenflow) != len(SEEDS):
        return False, f"{len(adamw)} runs of AdamW and {len(zenflow)} of ZenFlow, {len(SEEDS)} of each are needed"
    above, spread = (sum(zenflow) - sum(adamw)) / len(SEEDS), max(adamw) - min(adamw)
    return above <= spread, f"ZenFlow {above:+.4f} nats from AdamW in the mean, whose seeds are {spread:.4f} apart"


def verdict():
    holds, why = judge(read_rows("longer"))
    print(("within seed noise: " if holds else "not within seed noise: ") + why)
    sys.exit(0 if holds else 1)


def draw(axes, rows, title):
    baseline = losses(rows, policy="adamw")
    axes.axhspan(min(baseline), max(baseline), alpha=0.25, color="gray", label=f"AdamW, {len(baseline)} seeds")
    for topk in RATIOS:
        points = [(s, losses(rows, policy="zenflow", topk=topk, interval=s, deferred_lr=RATE[title],
                             warmup_steps=WARM[title])) for s in INTERVALS]
        points = [(s, values) for s, values in points if values]
        if not points:
            continue
        means = [sum(values) / len(values) for _, values in points]
        spread = [[mean - min(values) for mean, (_, values) in zip(means, points)],
                  [max(values) - mean for mean, (_, values) in zip(means, points)]]
        axes.errorbar([s for s, _ in points], means, yerr=spread, marker="o", capsize=3, label=f"k = {topk}")
    axes.set_xscale("log", base=2)
    axes.set_xticks(INTERVALS, [str(s) for s in INTERVALS])
    axes.set_xlabel("update interval S [steps]")
    axes.set_ylabel("held-out loss [nats a token]")
    axes.set_title(title)
    axes.legend()


def plot():
    import matplotlib
    matplotlib.use("Agg")
    from matplotlib import pyplot
    names = [name for name in STUDIES if read_rows(name)]
    figure, all_axes = pyplot.subplots(1, len(names), figsize=(6.5 * len(names), 4.5), squeeze=False)
    for axes, name in zip(all_axes[0], names):
        draw(axes, read_rows(name), name)
    figure.tight_layout()
    figure.savefig(CSV.with_suffix(".png"), dpi=110)
    print(CSV.with_suffix(".png"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    other = {"plot": plot, "verdict": verdict}
    parser.add_argument("what", choices=[*STUDIES, *other])
    what = parser.parse_args().what
    other[what]() if what in other else study(what)


if __name__ == "__main__":
    main()
