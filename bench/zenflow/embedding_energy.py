#!/usr/bin/env python3
"""Should the important tenth of an embedding be columns or rows? Told by PyTorch on the demo's fine-tune.

    .deps/venv/bin/python bench/zenflow/embedding_energy.py     writes bench/results/embedding_energy.json

SmolLM2-135M-Instruct, its embedding tied to the head, in transformers; AdamW over all parameters. At each step from the
fourth on: which share of the squared gradient of the embedding lies in the tenth of the columns, and in the tenth of the
rows, that a selection would have chosen before the step (exponential mean over earlier steps, as headrace/policy/zenflow/
column_score.h has it), and in the step's own best tenth.
"""
import json
import platform
import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

sys.path.insert(0, str(Path(__file__).resolve().parent))
import convergence  # noqa: E402  where the demo lies and how results are signed

STEPS, BATCH, LENGTH, SHARE, KEEP, RATE = 12, 16, 256, 0.1, 0.9, 3e-5


def batches(tokenizer):
    """The demo's conversations in order, learned where the assistant speaks."""
    lines = (convergence.DEMO / "train.jsonl").read_text().splitlines()
    for step in range(STEPS):
        losses = []
        for line in lines[step * BATCH:(step + 1) * BATCH]:
            messages = json.loads(line)["messages"]
            prompt = tokenizer.apply_chat_template(messages[:-1], add_generation_prompt=True, return_dict=False)
            whole = tokenizer.apply_chat_template(messages, return_dict=False)[:LENGTH]
            losses.append((torch.tensor([whole]), torch.tensor([[-100] * len(prompt) + whole[len(prompt):]])))
        yield losses


def share_of(energy, score):
    count = max(1, round(SHARE * energy.numel()))
    return (energy[score.topk(count).indices].sum() / energy.sum()).item()


def main():
    torch.set_num_threads(1)
    folder = convergence.DEMO / "SmolLM2-135M-Instruct"
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.01)
    smoothed, rows = {}, []
    for step, documents in enumerate(batches(tokenizer)):
        for ids, labels in documents:
            (model(input_ids=ids, labels=labels).loss / len(documents)).backward()
        squared = model.get_input_embeddings().weight.grad.double().square()
        row = {"step": step + 1}
        for name, axis in (("columns", 0), ("rows", 1)):
            energy = squared.sum(axis)
            if step >= 3:
                row[name] = share_of(energy, smoothed[name])
                row[f"{name}_at_best"] = share_of(energy, energy)
            smoothed[name] = energy if step == 0 else KEEP * smoothed[name] + energy
        if step >= 3:
            rows.append(row)
            print(row, flush=True)
        optimizer.step()
        optimizer.zero_grad()
    means = {key: sum(row[key] for row in rows) / len(rows) for key in rows[0] if key != "step"}
    result = convergence.ROOT / "bench" / "results" / "embedding_energy.json"
    result.write_text(json.dumps({"command": "bench/zenflow/embedding_energy.py", "commit": convergence.commit(),
                                  "machine": convergence.machine(), "platform": platform.platform(),
                                  "torch": torch.__version__, "share": SHARE, "mean": means, "rows": rows}, indent=1) + "\n")
    print(means)


if __name__ == "__main__":
    main()
