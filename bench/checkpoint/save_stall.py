#!/usr/bin/env python3
"""How long a checkpoint holds training up, beside a plain write of the same bytes, and memory while a run is resumed.

    .deps/venv/bin/python bench/checkpoint/save_stall.py [--steps 16] [--save-every 4]

The demo's fine-tune of SmolLM2-135M under each policy, in turn: without checkpoints, with them, and resumed; then as
many bytes written and synced by nothing but write and fsync: the plain write. What a save costs is the time in which
the trainer waited for it, and what the steps after it took longer than the median step without one: they wait for
blocks that are not copied yet, and share cores and memory with the writer. bench/results/save_stall.json.
"""
import argparse
import json
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "demo"
PROGRAM = Path(os.environ.get("HEADRACE_BIN", ROOT / "build" / "headrace"))
RESULT = ROOT / "bench" / "results" / "save_stall.json"
POLICIES = {
    "resident": ["--device", "cpu", "--policy", "resident"],
    "offload": ["--device", "emulated", "--policy", "offload"],
    "zenflow": ["--device", "emulated", "--policy", "zenflow", "--update-interval", "4"],
}
UNITS = {"ms": 1e-3, "s": 1, "min": 60, "us": 1e-6}


def seconds(text):
    value, unit = re.match(r"([\d.]+) ?(\w+)", text).groups()
    return float(value) * UNITS[unit]


def most_memory(pid):
    """The most resident memory that the process has had so far [bytes]; 0 when it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) * 1024 if found else 0


class Run:
    """One run of the program: its metrics by step, its log, and the most memory it had until its first step ended."""

    def __init__(self, out, policy, steps, *more):
        command = [PROGRAM, "train", "--model", DEMO / "SmolLM2-135M-Instruct", "--data", DEMO / "train.jsonl", "--out",
                   out, "--batch", 16, "--max-length", 256, "--lr", "3e-5", "--seed", 1, "--steps", steps,
                   *POLICIES[policy], *more]
        metrics = out / "metrics.jsonl"
        had = metrics.stat().st_size if metrics.exists() else 0
        self.loading_bytes = 0
        out.parent.mkdir(parents=True, exist_ok=True)
        with (out.parent / "messages").open("w+") as messages:
            process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=messages)
            while process.poll() is None and (not metrics.exists() or metrics.stat().st_size <= had):
                self.loading_bytes = max(self.loading_bytes, most_memory(process.pid))
                time.sleep(0.01)
            if process.wait() != 0:
                messages.seek(0)
                sys.exit(f"{' '.join(map(str, command))}\n{messages.read()}")
        self.log = (out / "log.txt").read_text()
        self.steps = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
        self.step_times = [step["step_time_s"] for step in self.steps if "step_time_s" in step]

    def said(self, what):
        return [seconds(text) for text in re.findall(what + r" ([\d.]+ ?\w+)", self.log)]

    def steady_bytes(self, steps):
        """Of the last so many steps."""
        return statistics.median([step["memory_bytes"] for step in self.steps if "memory_bytes" in step][-steps:])


def plain_write(path, size):
    block = os.urandom(16 << 20)
    begin = time.monotonic()
    with path.open("wb", buffering=0) as file:
        for left in range(size, 0, -len(block)):
            file.write(block[:left])
        os.fsync(file.fileno())
    taken = time.monotonic() - begin
    path.unlink()
    return taken


def measure(policy, steps, every, work):
    """Saves of steps every, 2 every, ...; the last step is not one of them."""
    out = work / policy
    plain = Run(out / "plain", policy, steps)
    saving = Run(out / "saving", policy, steps, "--save-every", every, "--keep-last", 1)
    usual = statistics.median(plain.step_times[1:])
    slower = [sum(time - usual for time in saving.step_times[step:step + every])
              for step in range(every, steps - every + 1, every)]
    waited = saving.said("training waited")
    size = sum(file.stat().st_size for file in (out / "saving" / "checkpoints").rglob("*.safetensors"))
    written = [plain_write(out / "file", size) for _ in range(3)]
    resumed = Run(out / "saving", policy, steps + 3, "--resume", "auto", "--resume-changed")
    row = {"policy": policy, "saves": len(waited), "usual_step_s": usual, "waited_s": waited, "slower_s": slower,
           "checkpoint_bytes": size, "plain_write_s": written, "copied_s": saving.said("copied in"),
           "waited_for_copy_s": saving.said("compute waited"), "written_s": saving.said("written in"),
           "step_times_plain_s": plain.step_times, "step_times_saving_s": saving.step_times,
           "loading_bytes": resumed.loading_bytes, "steady_bytes": resumed.steady_bytes(2)}
    shutil.rmtree(out)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--save-every", type=int, default=4)
    parser.add_argument("--policies", default=",".join(POLICIES))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as work:
        rows = [measure(policy, options.steps, options.save_every, Path(work)) for policy in options.policies.split(",")]
    for row in rows:
        whole = statistics.median(row["plain_write_s"])
        row["waited_share"] = statistics.median(row["waited_s"]) / whole
        row["gate_share"] = statistics.median(row["waited_for_copy_s"]) / whole
        row["whole_share"] = (statistics.median(row["waited_s"]) + statistics.median(row["slower_s"])) / whole
        print(f"{row['policy']}: training waited {row['waited_share']:.1%} of a plain write ({whole:.2f} s), "
              f"compute for the copy {row['gate_share']:.1%}, "
              f"with slower steps {row['whole_share']:.1%}; memory while resuming "
              f"{row['loading_bytes'] / row['steady_bytes']:.3f} of that in steps")
    commit = subprocess.run(["git", "-C", ROOT, "rev-parse", "--short", "HEAD"], capture_output=True, text=True,
                            check=True).stdout.strip()
    RESULT.write_text(json.dumps({"commit": commit, "machine": f"{platform.machine()}, {os.cpu_count()} cores",
                                  "command": "bench/checkpoint/save_stall.py " + " ".join(sys.argv[1:]),
                                  "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
