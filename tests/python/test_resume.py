"""A run that is killed goes on as if it had not been: the real program, real signals, whatever the moment."""
import json
import os
import random
import signal
import subprocess
import time

import pytest

KILLS = int(os.environ.get("HEADRACE_KILLS", "12"))  # of all policies together
STEPS = 40
POLICIES = {
    "resident": [],
    "offload": ["--policy", "offload", "--device", "emulated", "--device-optimizer-share", "0.3"],
    "zenflow": ["--policy", "zenflow", "--device", "emulated", "--update-interval", 3, "--select-interval", 3],
}
# What the clock says; all else in metrics.jsonl is the same for the same run.
TIMES = {"trained_tokens_per_s", "step_time_s", "data_wait_s", "forward_s", "backward_s", "update_s", "stall_s",
         "memory_bytes", "eval_time_s", "h2d_bytes", "d2h_bytes", "host_update_bytes"}


class Run:
    """One run folder and how its program is started."""

    def __init__(self, program, model, data, out, policy, *more):
        self.out = out
        self.command = [str(part) for part in (
            program.path, "train", "--model", model, "--data", data, "--out", out, "--steps", STEPS, "--batch", 2,
            "--accumulate", 2, "--lr", "1e-3", "--max-length", 128, "--seed", 1, "--eval-data", data, "--eval-every", 9,
            *POLICIES[policy], *more)]

    def start(self, *more):
        command = [*self.command, *map(str, more)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def finish(self, *more):
        process = self.start(*more)
        _, messages = process.communicate(timeout=300)
        assert process.returncode == 0, messages
        return messages

    def lines(self):
        path = self.out / "metrics.jsonl"
        return path.read_text().splitlines() if path.exists() else []

    def numbers(self):
        return [{key: value for key, value in json.loads(line).items() if key not in TIMES} for line in self.lines()]

    def weights(self):
        return (self.out / "model.safetensors").read_bytes()

    def wait_for_steps(self, process, steps):
        deadline = time.monotonic() + 120
        while process.poll() is None and time.monotonic() < deadline and len(self.lines()) < steps:
            time.sleep(0.01)
        assert process.poll() is None and len(self.lines()) >= steps


@pytest.mark.parametrize("policy", POLICIES)
def test_killed_at_any_moment_it_goes_on_bit_for_bit(headrace, tiny_model, chat_data, tmp_path, policy):
    whole = Run(headrace, tiny_model, chat_data, tmp_path / "whole", policy)
    began = time.monotonic()
    whole.finish()
    duration = time.monotonic() - began
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    rng = random.Random(seed)
    wanted, kills, rounds = -(-KILLS // len(POLICIES)), 0, 0
    while kills < wanted:
        run = Run(headrace, tiny_model, chat_data, tmp_path / f"killed{rounds}", policy, "--save-every", 1,
                  "--resume", "auto")
        rounds += 1
        while kills < wanted:
            process = run.start()
            time.sleep(rng.uniform(0.0, duration))
            if process.poll() is None:
                process.kill()
                kills += 1
            _, messages = process.communicate(timeout=60)
            assert process.returncode in (0, -signal.SIGKILL), messages
            if process.returncode == 0:
                break
        run.finish()
        assert run.weights() == whole.weights(), f"seed {seed}"
        assert run.numbers() == whole.numbers(), f"seed {seed}"


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_saves_and_the_run_goes_on(headrace, tiny_model, chat_data, tmp_path, signal_number):
    whole = Run(headrace, tiny_model, chat_data, tmp_path / "whole", "zenflow")
    whole.finish()
    run = Run(headrace, tiny_model, chat_data, tmp_path / "run", "zenflow", "--resume", "auto")
    process = run.start()
    run.wait_for_steps(process, 5)
    process.send_signal(signal_number)
    _, messages = process.communicate(timeout=60)
    assert process.returncode == 130, messages
    assert "interrupted after step" in messages and (run.out / "model.safetensors").exists()
    assert "going on after step" in run.finish()
    assert run.weights() == whole.weights() and run.numbers() == whole.numbers()


def test_usr1_saves_and_goes_on(headrace, tiny_model, chat_data, tmp_path):
    run = Run(headrace, tiny_model, chat_data, tmp_path / "run", "resident")
    process = run.start()
    run.wait_for_steps(process, 3)
    process.send_signal(signal.SIGUSR1)
    _, messages = process.communicate(timeout=120)
    assert process.returncode == 0, messages
    result = headrace.json("inspect", run.out, "--verify")
    assert [row["status"] for row in result["checkpoints"]] == ["verified"]
    assert 3 <= result["checkpoints"][0]["step"] <= STEPS


def test_a_second_process_is_refused(headrace, tiny_model, chat_data, tmp_path):
    run = Run(headrace, tiny_model, chat_data, tmp_path / "run", "resident", "--save-every", 1, "--resume", "auto")
    first = run.start()
    run.wait_for_steps(first, 1)
    second = run.start()
    _, messages = second.communicate(timeout=60)
    assert second.returncode == 2 and f"in use by process {first.pid}" in messages
    first.communicate(timeout=120)
    assert first.returncode == 0


def test_a_flipped_byte_is_found_and_the_older_checkpoint_used(headrace, tiny_model, chat_data, tmp_path):
    run = Run(headrace, tiny_model, chat_data, tmp_path / "run", "offload", "--save-every", 5, "--resume", "auto")
    run.finish()
    weights, numbers = run.weights(), run.numbers()
    newest = max((run.out / "checkpoints").glob("step-*"))
    file = next(newest.glob("tensors-*"))
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    assert headrace.run("inspect", run.out, "--verify").returncode == 1
    assert headrace.run("inspect", run.out).returncode == 0  # sizes alone do not tell
    messages = run.finish()
    assert "damaged and was left out" in messages and f"going on after step {STEPS - 5}" in messages
    assert run.weights() == weights and run.numbers() == numbers
    assert headrace.run("inspect", run.out, "--verify").returncode == 0


def test_a_checkpoint_becomes_a_model_folder(headrace, tiny_model, chat_data, tmp_path):
    run = Run(headrace, tiny_model, chat_data, tmp_path / "run", "resident", "--save-every", STEPS,
              "--export-dtype", "fp32")
    run.finish()
    for path in (run.out, max((run.out / "checkpoints").glob("step-*"))):
        out = tmp_path / f"exported-{path.name}"
        headrace.json("export", "--checkpoint", path, "--model", tiny_model, "--out", out, "--dtype", "fp32")
        assert (out / "model.safetensors").read_bytes() == run.weights()
    result = headrace.json("inspect", run.out)
    assert result["latest"] == f"step-{STEPS:08d}" and result["checkpoints"][0]["bytes"] > 0


def test_settings_that_changed_are_named(headrace, tiny_model, chat_data, tmp_path):
    run = Run(headrace, tiny_model, chat_data, tmp_path / "run", "resident", "--save-every", 10, "--resume", "auto")
    run.finish()
    refused = run.start("--weight-decay", "0.5")
    _, messages = refused.communicate(timeout=60)
    assert refused.returncode == 2 and "weight_decay is 0.5, was 0.01" in messages and "--resume-changed" in messages
