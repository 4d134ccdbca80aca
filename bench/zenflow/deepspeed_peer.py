#!/usr/bin/env python3
"""The same small model and text under DeepSpeed's ZenFlow and ours: loss and step time, one after the other in one run.

    python3 -m venv PEER && PEER/bin/pip install deepspeed==0.19.8 ninja    (with the torch wheel of tools/setup)
    PEER/bin/python bench/zenflow/deepspeed_peer.py [--steps 100] [--out bench/results/zenflow_deepspeed.json]

DeepSpeed on its CPU accelerator, stage 2, fp32, optimizer offloaded, overlap_step off and on; ours on the emulated device,
overlap none and exact; AdamW beside both. Both start from the same weights (saved by transformers), learn from the same
text in batches of 8 x 128 bytes with the same rates, clipping and ZenFlow settings, and compute with one thread; each
shuffles by itself, so losses are compared as means over ten steps. DeepSpeed computes on plain PyTorch and the host's
memory is the device's: of the step times only each side's off beside its own on says something about overlap.
"""
import argparse
import json
import os
import platform
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import convergence  # noqa: E402  the small model, its tokenizer and text

BATCH, LENGTH, SEED = 8, 128, 1
TOPK, INTERVAL, SELECT, RATE = 0.1, 4, 16, 1e-3
ENVIRONMENT = {"DS_ACCELERATOR": "cpu", "RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0", "LOCAL_SIZE": "1",
               "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "29541", "OMP_NUM_THREADS": "1"}


def batches(text, steps):
    """Lists of byte sequences, drawn from the text by one seed."""
    data, draw = text.read_bytes(), random.Random(SEED)
    for _ in range(steps):
        starts = [draw.randrange(len(data) - LENGTH) for _ in range(BATCH)]
        yield [list(data[start:start + LENGTH]) for start in starts]


def peer(model, text, steps, overlap):
    """This process becomes DeepSpeed's; prints one JSON line."""
    import deepspeed
    import torch
    from transformers import LlamaForCausalLM
    torch.set_num_threads(1)
    zenflow = {"topk_ratio": TOPK, "select_strategy": "step", "select_interval": SELECT, "update_interval": INTERVAL,
               "full_warm_up_rounds": 1, "overlap_step": overlap == "on"}
    zero = {"stage": 2, "offload_optimizer": {"device": "cpu"}}
    if overlap != "adamw":
        zero["zenflow"] = zenflow
    module = LlamaForCausalLM.from_pretrained(model, dtype=torch.float32)
    engine, _, _, _ = deepspeed.initialize(model=module, model_parameters=module.parameters(), config={
        "train_micro_batch_size_per_gpu": BATCH, "gradient_accumulation_steps": 1, "gradient_clipping": 1.0,
        "optimizer": {"type": "AdamW", "params": {"lr": RATE, "weight_decay": 0.01}}, "zero_optimization": zero})
    losses, seconds = [], []
    for ids in batches(Path(text), int(steps)):
        begin = time.perf_counter()
        tokens = torch.tensor(ids)
        loss = engine(input_ids=tokens, labels=tokens).loss
        engine.backward(loss)
        engine.step()
        losses.append(loss.item())
        seconds.append(time.perf_counter() - begin)
    print(json.dumps({"loss": losses, "step_time_s": seconds}), flush=True)


def theirs(model, text, steps, overlap):
    command = [sys.executable, __file__, "--peer", str(model), str(text), str(steps), overlap]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True,
                               env={**os.environ, **ENVIRONMENT})
    line = next((line for line in process.stdout if line.startswith('{"loss"')), None)
    os.killpg(process.pid, signal.SIGKILL)  # with overlap its optimizer process does not end by itself
    process.wait()
    if line is None:
        sys.exit(f"DeepSpeed ended without a result, overlap {overlap}: run {' '.join(command)} to see why")
    return json.loads(line)


def ours(model, text, steps, overlap, scratch):
    out = scratch / "out"
    policy = ["--policy", "resident"] if overlap == "adamw" else [
        "--policy", "zenflow", "--topk-ratio", TOPK, "--update-interval", INTERVAL, "--select-interval", SELECT,
        "--warmup-steps", 1, "--deferred-lr", "plain", "--overlap", "exact" if overlap == "on" else "none"]
    command = [convergence.PROGRAM, "train", "--model", model, "--data", text, "--out", out, "--overwrite", "--layout", "packed",
               "--max-length", LENGTH, "--batch", BATCH, "--steps", steps, "--lr", RATE, "--schedule", "constant", "--seed", SEED,
               "--device", "emulated", *policy, "--json"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stderr)
    rows = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return {key: [row[key] for row in rows if "lr" in row] for key in ("loss", "step_time_s")}


def make_model(scratch):
    """The small model with transformers' random weights, and the text."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM
    folder = scratch / "model"
    convergence.make_model(folder)
    config = json.loads((folder / "config.json").read_text())
    torch.manual_seed(SEED)
    LlamaForCausalLM(LlamaConfig(**{key: value for key, value in config.items() if key not in ("architectures", "model_type")})
                     ).save_pretrained(folder)
    convergence.make_text(convergence.DEMO / "train.jsonl", scratch / "train.txt")
    return folder, scratch / "train.txt"


def summary(run):
    tens = [sum(run["loss"][i:i + 10]) / len(run["loss"][i:i + 10]) for i in range(0, len(run["loss"]), 10)]
    times = sorted(run["step_time_s"][10:] or run["step_time_s"])
    return {"loss_by_tens": [round(loss, 4) for loss in tens], "median_step_time_s": round(times[len(times) // 2], 4)}


def main():
    if sys.argv[1:2] == ["--peer"]:
        return peer(*sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--out", default=convergence.ROOT / "bench" / "results" / "zenflow_deepspeed.json")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        model, text = make_model(scratch)
        for overlap in ("adamw", "off", "on"):
            for side, run in (("deepspeed", theirs(model, text, options.steps, overlap)),
                              ("headrace", ours(model, text, options.steps, overlap, scratch))):
                rows.append({"side": side, "overlap": overlap, **summary(run)})
                print(rows[-1], flush=True)
    import deepspeed
    import torch
    Path(options.out).write_text(json.dumps({
        "command": "bench/zenflow/deepspeed_peer.py", "commit": convergence.commit(), "machine": convergence.machine(),
        "platform": platform.platform(), "deepspeed": deepspeed.__version__, "torch": torch.__version__, "steps": options.steps,
        "topk_ratio": TOPK, "update_interval": INTERVAL, "select_interval": SELECT, "lr": RATE, "rows": rows}, indent=1) + "\n")
    return None


if __name__ == "__main__":
    main()
