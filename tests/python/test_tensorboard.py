"""Our event files, read back with the `tensorboard` package. The C++ test that writes them runs here too, into a folder
of ours."""
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FIRST_SECONDS = 1700000000.25


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    named = os.environ.get("HEADRACE_BIN")  # CTest names the program; the tests lie beside it
    binaries = Path(named).parent if named else ROOT / "build" / "release" / "bin"
    program = binaries / "telemetry_test"
    if not program.exists() and not named:
        pytest.skip(f"{program} is not built; run `make build`")
    folder = tmp_path_factory.mktemp("events")
    done = subprocess.run([program, "--gtest_filter=TensorBoard.WritesAFileThatGrowsWithEachScalar"], timeout=60,
                          env={**os.environ, "HEADRACE_TEST_OUT": str(folder)}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    return folder


def test_the_package_reads_every_scalar(folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    events.Reload()
    assert events.Tags()["scalars"] == ["train/loss"]
    assert events.file_version == 2.0
    scalars = events.Scalars("train/loss")
    assert [scalar.step for scalar in scalars] == list(range(1, 301))
    assert [scalar.value for scalar in scalars] == pytest.approx([10 / step for step in range(1, 301)], rel=1e-6)
    assert scalars[-1].wall_time == FIRST_SECONDS + 300


def test_checksums_hold(folder):
    """The strict reader raises on a wrong checksum, where the accumulator might skip."""
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

    (path,) = folder.iterdir()
    assert len(list(EventFileLoader(str(path)).Load())) == 301
