#!/usr/bin/env python3
"""Ours against PyTorch eager (transformers): the same model, batches, threads and torch wheel, in turn in one run.

    .deps/venv/bin/python bench/step/run.py [--case NAME ...] [--repeats 5] [--out bench/results/step.json]

Cases: demo_chat (SmolLM2-135M-Instruct on the demo's chat data, 16 pairs a batch, loss on answers only),
llama_135m and gpt2_124m (random weights of that shape, one unmasked text of 860 tokens a batch).
A step is forward, backward, clipping by global norm 1 and AdamW. Eager pads the documents of a batch to the longest, as
its users do; ours takes them packed. Losses of
the first step must agree, or the run ends. Both sides warm up first; medians and quartiles over all later steps. On a busy machine look at the processor-time ratio.
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# On both sides: threads that spin while they wait would take the other side's cores, and any neighbour's.
os.environ["OMP_WAIT_POLICY"] = "PASSIVE"

ROOT = Path(__file__).resolve().parents[2]
MODEL = ROOT / "demo" / "SmolLM2-135M-Instruct"
TOKENS, PAIRS, BATCHES = 860, 16, 4
MASKED = -100


def llama_135m():
    from transformers import LlamaConfig

    return LlamaConfig(vocab_size=49152, hidden_size=576, num_hidden_layers=30, num_attention_heads=9,
                       num_key_value_heads=3, intermediate_size=1536, tie_word_embeddings=True,
                       max_position_embeddings=2048)


def gpt2_124m():
    from transformers import GPT2Config

    # Dropout off: both sides then compute the same function.
    return GPT2Config(resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=0, eos_token_id=0)


def chat_batches():
    """The demo's pairs through the model's own chat template; labels on the answers and their end of turn."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(MODEL)
    batches, lines = [], iter(open(ROOT / "demo" / "train.jsonl", encoding="utf-8"))
    for _ in range(BATCHES):
        documents, labels = [], []
        for _ in range(PAIRS):
            messages = json.loads(next(lines))["messages"]
            text = tokenizer.apply_chat_template(messages, tokenize=False)
            prompt = tokenizer.apply_chat_template(messages[:-1], tokenize=False, add_generation_prompt=True)
            ids = tokenizer(text, add_special_tokens=False)["input_ids"]
            start = len(tokenizer(prompt, add_special_tokens=False)["input_ids"])
            end = len(ids) - 1 if tokenizer.decode(ids[-1:]) == "\n" else len(ids)
            documents.append(ids)
            labels.append([token if start <= i < end else MASKED for i, token in enumerate(ids)])
        batches.append({"documents": documents, "labels": labels})
    return batches


def text_batches(vocabulary):
    import numpy

    draw = numpy.random.default_rng(1)
    rows = [draw.integers(0, vocabulary, TOKENS).tolist() for _ in range(BATCHES)]
    return [{"documents": [row], "labels": [row]} for row in rows]


class Eager:
    def __init__(self, model, batches):
        import torch

        self.torch, self.model = torch, model.train()
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, weight_decay=0.01)
        self.batches = [self.pad(batch) for batch in batches]

    def pad(self, batch):
        longest = max(map(len, batch["documents"]))

        def fill(rows, value):
            return self.torch.tensor([row + [value] * (longest - len(row)) for row in rows])

        mask = None
        if len(batch["documents"]) > 1:
            mask = fill([[1] * len(row) for row in batch["documents"]], 0)
        return {"input_ids": fill(batch["documents"], 0), "labels": fill(batch["labels"], MASKED), "attention_mask": mask}

    def step(self, index):
        start, processor = time.perf_counter(), time.process_time()
        loss = self.model(**self.batches[index], use_cache=False).loss
        loss.backward()
        norm = self.torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - processor, "loss": loss.item(), "norm": norm.item()}


class Ours:
    def __init__(self, program, folder, batches, threads, scratch):
        path = Path(scratch) / "batches.json"
        path.write_text(json.dumps(batches))
        self.process = subprocess.Popen([program, folder, path, str(threads)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.read()

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"step_bench ended with exit code {self.process.wait()}")
        return json.loads(line)

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self.read()

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def spread(values):
    values = sorted(values)
    quartiles = statistics.quantiles(values, n=4) if len(values) > 1 else [values[0]] * 3
    return {"median": statistics.median(values), "min": values[0], "lower": quartiles[0], "upper": quartiles[2],
            "max": values[-1]}


def block_share(answer):
    """Operations a second of a layer's forward and backward over those of a square matrix product: the median over
    rounds, in each of which they ran one after the other, since a shared machine's rate drifts."""
    rounds = list(zip(answer["forward_s"], answer["backward_s"], answer["product_s"]))
    rates = [answer["product_operations"] / product for _, _, product in rounds]
    operations = answer["operations"]

    def share(count):
        return statistics.median(count / (f + b) / rate for (f, b, _), rate in zip(rounds, rates))

    return {
        "matrix_rate_gflop_s": statistics.median(rates) / 1e9,
        "block_s": statistics.median(f + b for f, b, _ in rounds),
        "share_matrices_only": share(operations["matrices"]),
        "share_with_attention": share(operations["matrices"] + operations["attention"]),
    }


def memory_ratio(answer):
    stated = sum(answer[key] for key in ("weights", "gradients", "moments", "activations"))
    return {**answer, "stated": stated, "peak_over_stated": answer["peak"] / stated,
            "peak_without_program_over_stated": (answer["peak"] - answer["program"]) / stated}


def compare(eager, ours, repeats):
    first_eager, first_ours = eager.step(0), ours.ask("step 0")
    difference = abs(first_eager["loss"] - first_ours["loss"]) / first_eager["loss"]
    if difference > 1e-4 or abs(first_eager["norm"] / first_ours["norm"] - 1) > 1e-2:
        sys.exit(f"losses or gradients differ: {first_eager} and {first_ours}: not the same model")
    trained = [sum(label != MASKED for row in batch["labels"] for label in row[1:]) for batch in ours.batches]
    times, ratios, cpu_ratios, last = {"eager": [], "ours": []}, [], [], {}
    for i in range(repeats):
        index = (i + 1) % BATCHES
        theirs, last = eager.step(index), ours.ask(f"step {index}")
        pair = {"eager": theirs["seconds"], "ours": last["seconds"]}
        cpu_ratios.append(theirs["cpu_seconds"] / last["cpu_seconds"])
        assert last["trained"] == trained[index], (last, trained)
        for side, seconds in pair.items():
            times[side].append(trained[index] / seconds)
        ratios.append(pair["eager"] / pair["ours"])
        print(f"  {i + 1}/{repeats}: eager {pair['eager']:.2f} s, ours {pair['ours']:.2f} s "
              f"({last['forward_s']:.2f} + {last['backward_s']:.2f} + {last['update_s']:.2f}), {ratios[-1]:.2f}x, "
              f"processor time {theirs['cpu_seconds']:.2f} and {last['cpu_seconds']:.2f} s, {cpu_ratios[-1]:.2f}x",
              file=sys.stderr, flush=True)
    return {"trained_tokens_per_s": {side: spread(values) for side, values in times.items()},
            "speedup": spread(ratios), "processor_time_ratio": spread(cpu_ratios),
            "first_loss": {"eager": first_eager["loss"], "ours": first_ours["loss"]},
            "last_step_ours": last}


def run_case(name, program, threads, repeats):
    import torch
    from transformers import AutoModelForCausalLM

    torch.manual_seed(1)
    if name == "demo_chat":
        model = AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32)
        batches = chat_batches()
    else:
        config = {"llama_135m": llama_135m, "gpt2_124m": gpt2_124m}[name]()
        model = AutoModelForCausalLM.from_config(config)
        batches = text_batches(config.vocab_size)
    print(f"{name}:", file=sys.stderr)
    with tempfile.TemporaryDirectory() as scratch:
        folder = MODEL
        if name != "demo_chat":
            folder = Path(scratch) / "model"
            model.save_pretrained(folder)
        eager, ours = Eager(model, batches), Ours(program, folder, batches, threads, scratch)
        ours.batches = batches
        result = compare(eager, ours, repeats)
        result["memory"] = memory_ratio(ours.ask("memory"))  # before the block's own matrices
        result["block"] = block_share(ours.ask(f"block {max(repeats, 5)}"))
        ours.close()
    tokens = [sum(map(len, batch["documents"])) for batch in batches]
    result["batches"] = {"tokens": tokens, "documents": [len(batch["documents"]) for batch in batches],
                         "trained": [sum(x != MASKED for r in b["labels"] for x in r[1:]) for b in batches]}
    return result


def facts(threads):
    import torch
    import transformers

    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo", encoding="utf-8") if "model name" in line),
               platform.machine())
    return {"commit": commit.stdout.strip(), "cpu": cpu, "cores": os.cpu_count(), "threads": threads,
            "python": platform.python_version(), "torch": torch.__version__, "transformers": transformers.__version__,
            "eager": "fp32, sdpa attention, torch.optim.AdamW (foreach as by default), clip_grad_norm_",
            "load_at_start": os.getloadavg()[0], "command": " ".join(sys.argv)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--case", action="append", choices=["demo_chat", "llama_135m", "gpt2_124m"])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--program", type=Path, default=ROOT / "build" / "release" / "bin" / "step_bench")
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "results" / "step.json")
    args = parser.parse_args()
    import torch

    torch.set_num_threads(args.threads)
    result = {"facts": facts(args.threads), "repeats": args.repeats, "cases": {}}
    for name in args.case or ["demo_chat", "llama_135m", "gpt2_124m"]:
        case = result["cases"][name] = run_case(name, args.program, args.threads, args.repeats)
        print(f"{name}: {case['speedup']['median']:.2f}x eager, "
              f"{case['trained_tokens_per_s']['ours']['median']:.0f} trained tokens/s; block at "
              f"{100 * case['block']['share_with_attention']:.0f} % of the matrix rate; peak memory "
              f"{case['memory']['peak_over_stated']:.2f}x of what is stated")
    args.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
