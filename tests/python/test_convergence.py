"""Check k of docs/zenflow.md: on a real fine-tune ZenFlow ends within the seed noise of AdamW."""
import importlib.util
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "bench" / "zenflow" / "convergence.py"


def load():
    spec = importlib.util.spec_from_file_location("convergence", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def rows(adamw, zenflow):
    def row(policy, interval, topk, rate, loss):
        return {"policy": policy, "interval": str(interval), "topk": str(topk), "deferred_lr": rate,
                "heldout_loss": str(loss)}
    return ([row("adamw", 1, 1, "plain", loss) for loss in adamw] +
            [row("zenflow", 4, 0.1, "linear", loss) for loss in zenflow])


def test_the_measured_runs_are_within_seed_noise():
    done = subprocess.run([sys.executable, SCRIPT, "verdict"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith("within seed noise: ")


def test_the_verdict_can_fail():
    judge = load().judge
    assert judge(rows([2.50, 2.51, 2.52], [2.51, 2.52, 2.53]))[0]  # 0.01 above, seeds 0.02 apart
    assert not judge(rows([2.50, 2.51, 2.52], [2.53, 2.54, 2.55]))[0]  # 0.03 above
    assert not judge(rows([2.50, 2.51, 2.52], [2.51, 2.52]))[0]  # a seed is missing
    assert not judge(rows([], []))[0]
