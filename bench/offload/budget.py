#!/usr/bin/env python3
"""The demo's fine-tune under device budgets: the same bits as resident, and the smallest budget that works.

    .deps/venv/bin/python bench/offload/budget.py [--steps 4] [--out bench/results/budget.json]

Device `emulated`. Half the training state is (weights + gradients + moments) / 2 = 8 bytes a parameter. The smallest
budget is what the refusal of a too small one names; one byte less is refused, and that much trains. Every run's losses,
gradient norms and exported model are compared with the resident run's, bit for bit.
"""
import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM, MODEL = ROOT / "build" / "headrace", ROOT / "demo" / "SmolLM2-135M-Instruct"
SETTINGS = ["--data", ROOT / "demo" / "train.jsonl", "--batch", 16, "--lr", "3e-5", "--max-length", 256, "--seed", 1,
            "--export-dtype", "fp32"]
OFFLOAD = ["--device", "emulated", "--policy", "offload"]
KEPT = ("loss", "gradient_norm", "clip_factor", "trained_tokens")


def train(out, steps, *arguments):
    command = [PROGRAM, "train", "--model", MODEL, "--out", out, "--steps", steps, *SETTINGS, *arguments, "--json"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    return done, json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None


def curve(out):
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return [[row[key] for key in KEPT] for row in rows if "lr" in row]


def smallest(scratch, *arguments):
    """[bytes] named by the refusal of a budget of one MiB."""
    done, _ = train(scratch / "refused", 1, *OFFLOAD, "--device-budget", "1MiB", *arguments)
    assert done.returncode == 2, done.stderr
    found = re.search(r"\((\d+) bytes\)", done.stderr)
    assert found, done.stderr
    return int(found.group(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--out", default=ROOT / "bench" / "results" / "budget.json")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        done, resident = train(scratch / "resident", options.steps, "--device", "emulated", "--policy", "resident")
        assert resident, done.stderr
        expected, weights = curve(scratch / "resident"), (scratch / "resident" / "model.safetensors").read_bytes()
        for title, extra in {"half of the state": ["--recompute"], "smallest": [], "smallest, recomputed": ["--recompute"]}.items():
            state = 16 * parameters(scratch / "resident")
            budget = state // 2 if title.startswith("half") else smallest(scratch, *extra)
            out = scratch / title
            done, result = train(out, options.steps, *OFFLOAD, "--device-budget", budget, *extra)
            assert result, done.stderr
            refused, _ = train(scratch / "less", 1, *OFFLOAD, "--device-budget", budget - 1, *extra)
            rows.append({"budget": title, "device_budget": budget, "share_of_state": budget / state,
                         "one_byte_less_is_refused": refused.returncode == 2,
                         "same_curve": curve(out) == expected,
                         "same_model": (out / "model.safetensors").read_bytes() == weights,
                         "peak": result["policy"]["device_memory"]["peak"],
                         "peak_by_kind": result["policy"]["device_memory"]["by_kind"],
                         "host_peak": result["policy"]["host_memory"]["peak"],
                         "step_time_s": result["step_time_s"], "stall_share": result["stall_share"],
                         "resident_step_time_s": resident["step_time_s"]})
            print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    result = {"commit": commit.stdout.strip(), "machine": platform.machine(), "cores": os.cpu_count(),
              "device": "emulated", "command": "bench/offload/budget.py --steps " + str(options.steps),
              "curve": {"keys": KEPT, "resident": expected}, "rows": rows}
    Path(options.out).write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0 if all(row["same_curve"] and row["same_model"] for row in rows) else 1


def parameters(run):
    """Trained numbers, from the run's log."""
    return int(re.search(r"tensors, ([\d,]+) numbers", (run / "log.txt").read_text()).group(1).replace(",", ""))


if __name__ == "__main__":
    sys.exit(main())
