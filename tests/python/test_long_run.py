"""A long run takes no more memory, file handles and threads at its end than once it is warm."""
import json
import os
import time
from pathlib import Path

import pytest

from train_run import POLICIES, Run, append_row

STEPS = int(os.environ.get("HEADRACE_LONG_STEPS", "600"))
SAVE_EVERY = min(500, STEPS // 6)
MOST_GROWTH = 2 << 20  # [bytes] over the whole run; 10,000 steps that each lose 250 bytes are found


def entries(pid, kind):
    try:
        return len(os.listdir(f"/proc/{pid}/{kind}"))
    except OSError:  # it has ended
        return None


class Samples:
    """What a process holds, looked at as it goes."""

    def __init__(self, process, steps_of):
        self.rows = []  # (steps done, file handles, threads)
        while process.poll() is None:
            handles, threads = entries(process.pid, "fd"), entries(process.pid, "task")
            if handles and threads:
                self.rows.append((steps_of(), handles, threads))
            time.sleep(0.02)

    def fewest(self, column, begin, end):
        """Within these steps: a checkpoint that is being written has files open for a moment."""
        return min(row[column] for row in self.rows if begin <= row[0] < end)


@pytest.mark.parametrize("policy", POLICIES)
def test_nothing_grows(headrace, tiny_model, chat_data, tmp_path, policy):
    run = Run(headrace, tiny_model, chat_data, tmp_path / "run", policy, "--threads", 1, "--save-every", SAVE_EVERY,
              "--keep-last", 2, steps=STEPS, on_one_core=True)
    process = run.start()
    metrics = tmp_path / "run" / "metrics.jsonl"
    line_bytes = 300  # about: counting lines of a long file each time would take the time of the steps
    samples = Samples(process, lambda: metrics.stat().st_size // line_bytes if metrics.exists() else 0)
    _, messages = process.communicate(timeout=300)
    assert process.returncode == 0, messages
    lines = [json.loads(line) for line in run.lines()]
    memory = [line["memory_bytes"] for line in lines if "memory_bytes" in line]
    assert len(memory) == STEPS
    warm = slice(STEPS // 3, STEPS // 2)  # after the second checkpoint, for which the copy is made
    last = slice(STEPS - STEPS // 6, STEPS)
    at_end = samples.rows[-1][0]
    row = {"policy": policy, "steps": STEPS, "save_every": SAVE_EVERY,
           "memory_bytes_warm": min(memory[warm]), "memory_bytes_end": min(memory[last])}
    for column, name in ((1, "file_handles"), (2, "threads")):
        row[name + "_warm"] = samples.fewest(column, at_end // 3, at_end // 2)
        row[name + "_end"] = samples.fewest(column, at_end - at_end // 6, at_end)
    append_row("HEADRACE_RESULTS", row)
    assert row["memory_bytes_end"] - row["memory_bytes_warm"] <= MOST_GROWTH, row
    assert row["file_handles_end"] <= row["file_handles_warm"], row
    assert row["threads_end"] <= row["threads_warm"], row  # the data's has ended when the last batch is made
    assert len(list(Path(run.out / "checkpoints").glob("step-*"))) == 2
