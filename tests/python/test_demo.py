"""The demo's driver with a stand-in for the program: what it asks for, what it prints, how it fails."""
import json
import os
import shutil
import subprocess
import sys

import pytest
from conftest import ROOT

PROGRAM = """#!{python}
import json, os, sys
command, tuned = sys.argv[1], "result" in " ".join(sys.argv)
open({log!r}, "a").write(json.dumps(sys.argv[1:]) + "\\n")
print("progress goes to standard error", file=sys.stderr)
if command == {fails!r}:
    sys.exit(3)
if command == "train":
    out = sys.argv[sys.argv.index("--out") + 1]
    if os.path.exists(out) and "--overwrite" not in sys.argv:
        sys.exit(2)
    os.makedirs(out, exist_ok=True)
    rows = [{{"lr": 1, "loss": 2.5, "step_time_s": 2.0, "stall_s": s}} for s in (2.0, 2.0, 0.5, 0.5, 0.5)]
    open(os.path.join(out, "metrics.jsonl"), "w").write("\\n".join(map(json.dumps, rows)))
print("a line before the result")
print(json.dumps({{"eval": {{"loss": 3.0, "perplexity": {after} if tuned else 20.0, "tokens": 9}}, "generate": {{"text": "one\\ntwo"}},
  "train": {{"steps": 5, "tokens": 90, "trained_tokens": 40, "trained_tokens_per_s": 8.0,
    "policy": {{"device_memory": {{"peak": 5 << 20, "limit": 9 << 20}}}}}}}}[command]))
"""


@pytest.fixture
def checkout(tmp_path):
    """tools/ beside a demo folder that has model and data, so that nothing is fetched."""
    shutil.copytree(ROOT / "tools", tmp_path / "tools")
    model = tmp_path / "demo" / "SmolLM2-135M-Instruct"
    model.mkdir(parents=True)
    (model / "model.safetensors").touch()
    pair = {"messages": [{"role": "user", "content": "Define the noun: mill"}, {"role": "assistant", "content": "a plant"}]}
    for name in ("train.jsonl", "heldout.jsonl"):
        (tmp_path / "demo" / name).write_text(json.dumps(pair) + "\n")
    return tmp_path


def run_demo(checkout, after=7.5, fails=""):
    program = checkout / "headrace"
    program.write_text(PROGRAM.format(python=sys.executable, log=str(checkout / "log"), after=after, fails=fails))
    program.chmod(0o755)
    environment = {**os.environ, "HEADRACE_BIN": str(program), "DEMO_STEPS": "5"}
    return subprocess.run([sys.executable, checkout / "tools" / "demo"], capture_output=True, text=True, check=False,
                          env=environment)


def test_demo_ends_with_the_perplexities(checkout):
    done = run_demo(checkout)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "held-out perplexity: 20.00 -> 7.50"
    assert "before:   one two" in done.stdout and "demo/result" in done.stdout
    calls = [json.loads(line) for line in (checkout / "log").read_text().splitlines()]
    assert [call[0] for call in calls] == ["eval", "generate", "train", "eval", "generate", "train", "train"]
    assert all(call[-1] == "--json" for call in calls)
    assert calls[2][calls[2].index("--steps") + 1] == "5"
    assert "heldout" not in " ".join(calls[2])


def test_demo_reports_both_offloaded_runs_within_half_the_state(checkout):
    done = run_demo(checkout)
    rows = [line for line in done.stdout.splitlines() if line.startswith(("  exact", "  zenflow"))]
    assert len(rows) == 2, done.stdout
    for row in rows:
        assert "2.0 s a step, compute idle 25.0 %, loss 2.500, device memory 5 of 9 MiB" in row
    calls = [json.loads(line) for line in (checkout / "log").read_text().splitlines()][-2:]
    for call, policy in zip(calls, ("offload", "zenflow")):
        assert call[call.index("--policy") + 1] == policy
        assert call[call.index("--device-budget") + 1] == f"{8 * 134_515_008}B"
    assert not list((checkout / "demo").glob("result-*"))


def test_demo_can_be_run_again(checkout):
    assert run_demo(checkout).returncode == 0
    done = run_demo(checkout)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", ["eval", "generate", "train"])
def test_demo_passes_on_the_programs_exit_code(checkout, command):
    done = run_demo(checkout, fails=command)
    assert done.returncode == 3 and f"headrace {command}" in done.stderr and "Traceback" not in done.stderr


def test_demo_that_learns_nothing_fails(checkout):
    assert run_demo(checkout, after=20.0).returncode == 1
