#!/usr/bin/env python3
"""Host AdamW beside DeepSpeed's CPUAdam: millions of parameters a second, both sides in turn, round after round.

    python3 -m venv PEER && PEER/bin/pip install deepspeed==0.19.8 ninja    (with the torch wheel of tools/setup)
    PEER/bin/python bench/adam/deepspeed_peer.py [--rounds 5] [--out bench/results/adam_deepspeed.json]

DeepSpeed compiles its kernel for this machine at first use (about two minutes). Same number of parameters, threads and
moments in fp32 on both sides. fp32: gradient and weight fp32. bf16: gradient and travelling weight bf16; DeepSpeed's
then has no fp32 master at all, ours keeps one (split master), so that ours does the more exact work.
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import time
from pathlib import Path

os.environ.setdefault("DS_ACCELERATOR", "cpu")
ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("HEADRACE_BIN", ROOT / "build" / "headrace"))
THREADS = 2
PARAMETERS = 32 << 20
# Our variant for each of theirs, as `headrace bench adam` names them.
VARIANTS = {"fp32": "fp32 gradient, fp32 master", "bf16": "bf16 gradient, split master"}


def deepspeed_steps():
    """By dtype: a function that times one step [s]."""
    import torch
    from deepspeed.ops.adam import DeepSpeedCPUAdam
    torch.set_num_threads(THREADS)
    steps = {}
    for name, dtype in (("fp32", torch.float32), ("bf16", torch.bfloat16)):
        parameter = torch.nn.Parameter(torch.ones(PARAMETERS, dtype=dtype))
        parameter.grad = torch.full_like(parameter, 0.1)
        optimizer = DeepSpeedCPUAdam([parameter], lr=1e-3, weight_decay=0.01, fp32_optimizer_states=True)
        optimizer.step()  # compiles, touches memory

        def step(optimizer=optimizer):
            begin = time.perf_counter()
            optimizer.step()
            return time.perf_counter() - begin
        steps[name] = step
    return steps


def ours():
    """By variant: Mparam/s, with our threads."""
    done = subprocess.run([PROGRAM, "bench", "adam", "--json", "--params", str(PARAMETERS), "--repeats", "5", "--threads",
                           str(THREADS)], capture_output=True, text=True, check=True)
    return {row["variant"]: row for row in json.loads(done.stdout.splitlines()[-1])["rows"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", default=ROOT / "bench" / "results" / "adam_deepspeed.json")
    options = parser.parse_args()
    import deepspeed
    import torch
    steps = deepspeed_steps()
    theirs, mine = {name: [] for name in steps}, {name: [] for name in steps}
    for _ in range(options.rounds):
        rows = ours()
        for name, step in steps.items():
            mine[name].append(rows[VARIANTS[name]]["mparam_per_s"])
            theirs[name].append(PARAMETERS / 1e6 / min(step() for _ in range(5)))
    rows = []
    for name in steps:
        ratios = [a / b for a, b in zip(mine[name], theirs[name])]
        rows.append({"variant": name, "ours": VARIANTS[name], "mparam_per_s": statistics.median(mine[name]),
                     "deepspeed_mparam_per_s": statistics.median(theirs[name]), "ratio": statistics.median(ratios),
                     "ratio_lowest": min(ratios), "ratio_highest": max(ratios)})
        print(rows[-1])
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=True)
    Path(options.out).write_text(json.dumps({
        "command": "bench/adam/deepspeed_peer.py", "commit": commit.stdout.strip(), "machine": platform.processor() or
        platform.machine(), "cores": os.cpu_count(), "threads": THREADS, "parameters": PARAMETERS,
        "deepspeed": deepspeed.__version__, "torch": torch.__version__, "rounds": options.rounds,
        "what": "ours is the median of a run's rounds, theirs the best of five steps, run in turn", "rows": rows},
        indent=1) + "\n")


if __name__ == "__main__":
    main()
