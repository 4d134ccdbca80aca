"""A real `headrace train` of a tiny model, as the tests that kill, watch and resume it start it."""
import json
import os
import subprocess
import time

POLICIES = {
    "resident": [],
    "offload": ["--policy", "offload", "--device", "emulated", "--device-optimizer-share", "0.3"],
    "zenflow": ["--policy", "zenflow", "--device", "emulated", "--update-interval", 3, "--select-interval", 3],
}
# What the clock says; all else in metrics.jsonl is the same for the same run.
TIMES = {"trained_tokens_per_s", "step_time_s", "data_wait_s", "forward_s", "backward_s", "update_s", "stall_s",
         "memory_bytes", "eval_time_s", "h2d_bytes", "d2h_bytes", "host_update_bytes"}
# Such steps are nearly all hand-over between threads: on a core that others use too, each may wait for a time slice.
SECONDS_A_STEP = 1.0


class Run:
    """One run folder and how its program is started; on one core, lanes wait for nobody else's time slice."""

    def __init__(self, program, model, data, out, policy, *more, steps=40, on_one_core=False):
        self.out = out
        self.timeout = 300 + SECONDS_A_STEP * steps
        self.command = [str(part) for part in (
            program.path, "train", "--model", model, "--data", data, "--out", out, "--steps", steps, "--batch", 2,
            "--accumulate", 2, "--lr", "1e-3", "--max-length", 128, "--seed", 1, "--eval-data", data, "--eval-every",
            max(9, steps // 20), *POLICIES[policy], *more)]
        if on_one_core:
            self.command = ["taskset", "-c", str(max(os.sched_getaffinity(0))), *self.command]

    def start(self, *more):
        command = [*self.command, *map(str, more)]
        # Named here, the program need not start itself a second time to set it.
        environment = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE"}
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)

    def finish(self, *more):
        process = self.start(*more)
        try:
            _, messages = process.communicate(timeout=self.timeout)
        finally:
            process.kill()
        assert process.returncode == 0, messages
        return messages

    def lines(self):
        path = self.out / "metrics.jsonl"
        return path.read_text().splitlines() if path.exists() else []

    def num_lines(self):
        try:
            return (self.out / "metrics.jsonl").read_bytes().count(b"\n")
        except FileNotFoundError:
            return 0

    def numbers(self):
        return [{key: value for key, value in json.loads(line).items() if key not in TIMES} for line in self.lines()]

    def weights(self):
        return (self.out / "model.safetensors").read_bytes()

    def wait_for_steps(self, process, steps):
        deadline = time.monotonic() + 120
        while process.poll() is None and time.monotonic() < deadline and len(self.lines()) < steps:
            time.sleep(0.01)
        assert process.poll() is None and len(self.lines()) >= steps


def append_row(variable, row):
    """One line of JSON for whoever names a file in the environment; nothing otherwise."""
    if variable in os.environ:
        with open(os.environ[variable], "a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


def record(fault, where, happened, lost):
    """One thing that was tried, for the table in docs/reliability.md; tools/reliability_table asks for it."""
    append_row("HEADRACE_FAULT_TABLE", {"fault": fault, "where": where, "happened": happened, "lost": lost})
