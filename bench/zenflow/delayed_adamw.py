#!/usr/bin/env python3
"""What one step of delay alone costs, told by PyTorch: AdamW that uses each gradient one step late.

    .deps/venv/bin/python bench/zenflow/delayed_adamw.py        writes bench/results/delayed_adamw.json

Nothing of Headrace takes part. The small model, text and rates of convergence.py's study from random weights, with
transformers' model and torch's AdamW: every parameter's gradient on time, late from step 40 on, late from the start.
"""
import json
import math
import random
import sys
import tempfile
from pathlib import Path

import torch
from transformers import LlamaConfig, LlamaForCausalLM

sys.path.insert(0, str(Path(__file__).resolve().parent))
import convergence  # noqa: E402  the small model, its text and how results are signed

STEPS, WARMUP, RATE, BATCH, LENGTH = 150, 15, 1e-3, 8, 128


def batches(text, steps, seed):
    data, draw = text.read_bytes(), random.Random(seed)
    for _ in range(steps):
        starts = [draw.randrange(len(data) - LENGTH) for _ in range(BATCH)]
        yield torch.tensor([list(data[start:start + LENGTH]) for start in starts])


def rate_at(step):
    if step < WARMUP:
        return RATE * (step + 1) / WARMUP
    return RATE * (0.1 + 0.45 * (1 + math.cos(math.pi * (step - WARMUP) / (STEPS - WARMUP))))


def train(folder, late_from, seed):
    """Held-out loss after gradients from step `late_from` on came one step late; None: all on time."""
    torch.manual_seed(seed)
    shape = {key: value for key, value in convergence.SHAPE.items() if key not in ("architectures", "model_type")}
    model = LlamaForCausalLM(LlamaConfig(**shape))
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01)
    waiting = None
    for step, ids in enumerate(batches(folder / "train.txt", STEPS, seed)):
        optimizer.param_groups[0]["lr"] = rate_at(step)
        model(input_ids=ids, labels=ids).loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        gradients = [parameter.grad for parameter in model.parameters()]
        if late_from is not None and step >= late_from:
            gradients, waiting = waiting, gradients
        if gradients is not None:  # none has come in the first late step
            for parameter, gradient in zip(model.parameters(), gradients):
                parameter.grad = gradient
            optimizer.step()
        optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        losses = [model(input_ids=ids, labels=ids).loss.item() for ids in batches(folder / "heldout.txt", 10, 7)]
    return sum(losses) / len(losses)


def main():
    torch.set_num_threads(1)
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("train", "heldout"):
            convergence.make_text(convergence.DEMO / f"{part}.jsonl", folder / f"{part}.txt")
        for seed in (1, 2):
            for late_from in (None, 40, 0):
                rows.append({"seed": seed, "late_from_step": late_from, "heldout_loss": train(folder, late_from, seed)})
                print(rows[-1], flush=True)
    result = convergence.ROOT / "bench" / "results" / "delayed_adamw.json"
    result.write_text(json.dumps({"command": "bench/zenflow/delayed_adamw.py", "commit": convergence.commit(),
                                  "machine": convergence.machine(), "torch": torch.__version__, "rows": rows},
                                 indent=1) + "\n")


if __name__ == "__main__":
    main()
