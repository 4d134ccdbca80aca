"""headrace bench offload: its rows, its table, what it refuses."""
import json

import pytest

SMALL = ["--tokens", 32, "--steps", 1]


def test_rows_for_each_policy_and_ratio(headrace, tiny_model, tmp_path):
    result = headrace.json("bench", "offload", "--model", tiny_model, "--host-ratios", "0.5,1", "--clip", "on", "--device-share",
                           "0.5", "--trace", tmp_path / "trace.json", *SMALL)
    rows = result["rows"]
    cells = [(row["policy"], row["host_ratio"]) for row in rows]
    assert cells == [(policy, ratio) for ratio in (0.5, 1) for policy in ("none", "exact", "exact+share")]
    for row in rows:
        assert row["bytes"] == pytest.approx(row["bytes_formula"])
        assert row["step_time_s"] > 0 and 0 <= row["stall_share"] <= 1 and row["practicality"] > 0
        assert sum(reason["share"] for reason in row["stall_by_reason"]) == pytest.approx(row["stall_share"])
    assert "emulated" in result["setting"]["device"]
    traces = sorted(path.name for path in tmp_path.iterdir())
    assert len(traces) == 6 and "trace-exact-0.5-clip.json" in traces
    assert json.loads((tmp_path / traces[0]).read_text())["traceEvents"]


def test_zenflow_and_its_control(headrace, tiny_model):
    result = headrace.json("bench", "offload", "--model", tiny_model, "--host-ratios", 2, "--policies",
                           "exact,zenflow,zenflow-free", "--device-share", 0, "--max-interval", 4, "--topk", 0.2, *SMALL)
    exact, zenflow, control = [row for row in result["rows"] if row["clip"]]
    assert [row["policy"] for row in (exact, zenflow, control)] == ["exact", "zenflow", "zenflow-free"]
    assert zenflow["update_interval"] == 2 and zenflow["topk"] == 0.2 and zenflow["host_floor"] <= 1
    assert zenflow["staleness"]["max"] <= 3
    for row in (zenflow, control):
        for lane, formula in row["bytes_formula"].items():
            assert row["bytes"][lane] - row["bytes_exchanged"][lane] == pytest.approx(formula, rel=0.02)
        assert sum(reason["share"] for reason in row["stall_by_reason"]) == pytest.approx(row["stall_share"])


def test_the_table_says_emulated(headrace, tiny_model):
    done = headrace.run("bench", "offload", "--model", tiny_model, "--host-ratios", 1, "--clip", "off", "--policies", "none",
                        *SMALL)
    assert done.returncode == 0, done.stderr
    assert "emulated" in done.stdout and "none" in done.stdout


@pytest.mark.parametrize("arguments", [
    ["--policies", "magic"],
    ["--host-ratios", "1,0"],
    ["--host-ratios", "x"],
    ["--clip", "maybe"],
    ["--device-share", "2"],
    ["--topk", "0"],
    ["--max-interval", "0"],
    ["--policies", "exact,zenflow-free"],
    ["--model", "/does/not/exist"],
])
def test_wrong_use_is_two(headrace, arguments):
    done = headrace.run("bench", "offload", *arguments)
    assert done.returncode == 2 and done.stderr.strip() and not done.stdout.strip()
