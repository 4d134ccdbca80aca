"""A run that is killed goes on as if it had not been: the real program, real signals, whatever the moment."""
import os
import random
import signal
import time

import pytest

from train_run import POLICIES, Run, append_row, record

KILLS = int(os.environ.get("HEADRACE_KILLS", "12"))  # of all policies together
STEPS = int(os.environ.get("HEADRACE_STEPS", "40"))  # of the runs that are killed
SHORT = 40  # steps of all others
# One thread and little beside the steps: the kills should fall into steps and saves.
PLAIN = ("--threads", 1, "--no-tensorboard")


def kill_at_some_moment(run, process, rng, most_steps):
    """In its start-up, or after up to so many steps more, unless it comes to its end before."""
    if rng.random() < 0.1:
        time.sleep(rng.uniform(0.0, 1.0))
    else:
        steps = run.num_lines() + rng.uniform(1, most_steps)
        while process.poll() is None and run.num_lines() < steps:
            time.sleep(0.005)
        time.sleep(rng.uniform(0.0, 0.02))
    process.kill()


def kill_until_done(run, wanted, rng):
    """How often a run was killed before it was done, or `wanted`."""
    kills = 0
    while kills < wanted:
        process = run.start()
        # So that the run comes to its end at about the last kill.
        kill_at_some_moment(run, process, rng, max(2, 2 * STEPS / wanted))
        _, messages = process.communicate(timeout=run.timeout)
        assert process.returncode in (0, -signal.SIGKILL), messages
        kills += process.returncode == -signal.SIGKILL
        if process.returncode == 0:
            break
    return kills


@pytest.mark.parametrize("policy", POLICIES)
def test_killed_at_any_moment_it_goes_on_bit_for_bit(headrace, tiny_model, chat_data, tmp_path, policy):
    whole = Run(headrace, tiny_model, chat_data, tmp_path / "whole", policy, *PLAIN, steps=STEPS)
    whole.finish()
    seed = random.randrange(1 << 30)
    print(f"seed {seed}")
    rng = random.Random(seed)
    wanted, save_every, kills = -(-KILLS // len(POLICIES)), max(1, STEPS // 200), []
    while sum(kills) < wanted:
        run = Run(headrace, tiny_model, chat_data, tmp_path / f"killed{len(kills)}", policy, *PLAIN, "--save-every",
                  save_every, "--resume", "auto", steps=STEPS)
        kills.append(kill_until_done(run, wanted - sum(kills), rng))
        run.finish()
        assert run.weights() == whole.weights(), f"seed {seed}"
        assert run.numbers() == whole.numbers(), f"seed {seed}"
    for _ in range(sum(kills)):
        record("process killed at a random moment (SIGKILL), then resumed", f"a run while it trains: {policy}",
               "the same metrics and the same model as never killed", "the steps since the last checkpoint, done again")
    append_row("HEADRACE_RESULTS", {"policy": policy, "steps": STEPS, "save_every": save_every, "seed": seed,
                                    "kills_of_each_run": kills, "result": "same metrics and same model, bit for bit"})


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
    assert 3 <= result["checkpoints"][0]["step"] <= SHORT


def test_a_second_process_is_refused(headrace, tiny_model, chat_data, tmp_path):
    run = Run(headrace, tiny_model, chat_data, tmp_path / "run", "resident", "--save-every", 1, "--resume", "auto",
              steps=100_000)  # it must outlast the second one's start
    first = run.start()
    try:
        run.wait_for_steps(first, 1)
        second = run.start()
        _, messages = second.communicate(timeout=60)
        assert second.returncode == 2 and f"in use by process {first.pid}" in messages
    finally:
        first.kill()
        first.communicate()


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
    assert "damaged and was left out" in messages and f"going on after step {SHORT - 5}" in messages
    assert run.weights() == weights and run.numbers() == numbers
    assert headrace.run("inspect", run.out, "--verify").returncode == 0


def test_a_checkpoint_becomes_a_model_folder(headrace, tiny_model, chat_data, tmp_path):
    run = Run(headrace, tiny_model, chat_data, tmp_path / "run", "resident", "--save-every", SHORT,
              "--export-dtype", "fp32")
    run.finish()
    for path in (run.out, max((run.out / "checkpoints").glob("step-*"))):
        out = tmp_path / f"exported-{path.name}"
        headrace.json("export", "--checkpoint", path, "--model", tiny_model, "--out", out, "--dtype", "fp32")
        assert (out / "model.safetensors").read_bytes() == run.weights()
    result = headrace.json("inspect", run.out)
    assert result["latest"] == f"step-{SHORT:08d}" and result["checkpoints"][0]["bytes"] > 0


def test_settings_that_changed_are_named(headrace, tiny_model, chat_data, tmp_path):
    run = Run(headrace, tiny_model, chat_data, tmp_path / "run", "resident", "--save-every", 10, "--resume", "auto")
    run.finish()
    refused = run.start("--weight-decay", "0.5")
    _, messages = refused.communicate(timeout=60)
    assert refused.returncode == 2 and "weight_decay is 0.5, was 0.01" in messages and "--resume-changed" in messages
