"""tools/setup on a checkout that is ready, and in a copy of it under conditions that must end in one clear sentence."""
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from conftest import ROOT

TORCH = Path(find_spec("torch").origin).parent
NO_NETWORK = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "1", "PIP_NO_CACHE_DIR": "1"}


def run_setup(checkout, *arguments, fakes=None, **environment):
    """Runs a checkout's setup outside any Python environment; `fakes` is a folder that stands first in PATH."""
    path = f"{fakes}:/usr/bin:/bin" if fakes else "/usr/bin:/bin"
    inherited = {key: value for key, value in os.environ.items() if key in ("HOME", "LANG", "LD_LIBRARY_PATH")}
    return subprocess.run(["bash", str(checkout / "tools" / "setup"), *arguments], capture_output=True, text=True,
                          env={**inherited, "PATH": path, **environment}, check=False, timeout=300)


def is_one_sentence(done):
    return done.returncode == 1 and done.stderr.startswith("tools/setup: ") and len(done.stderr.splitlines()) == 1


def write_fake(folder, name, body):
    (folder / name).write_text(f"#!/bin/bash\n{body}\n")
    (folder / name).chmod(0o755)


@pytest.fixture
def copy(tmp_path):
    shutil.copytree(ROOT / "tools", tmp_path / "copy" / "tools")
    return tmp_path / "copy"


@pytest.fixture
def fakes(tmp_path):
    (tmp_path / "fakes").mkdir()
    return tmp_path / "fakes"


def test_second_run_needs_no_network():
    named = {} if TORCH.is_relative_to(ROOT / ".deps") else {"HEADRACE_TORCH": str(TORCH)}
    done = run_setup(ROOT, "--tests", **named, **NO_NETWORK)
    assert done.returncode == 0, done.stderr
    assert "downloading" not in done.stdout and done.stdout.startswith("setup: ready: torch 2.")


def test_unknown_argument_is_wrong_use(copy):
    done = run_setup(copy, "--everything")
    assert done.returncode == 2 and "--everything" in done.stderr
    assert "tools/setup --tests" in run_setup(copy, "--help").stdout


def test_existing_torch_is_used(copy):
    done = run_setup(copy, HEADRACE_TORCH=str(TORCH), **NO_NETWORK)
    assert done.returncode == 0, done.stderr
    assert (copy / ".deps" / "torch_path").read_text().strip() == str(TORCH.resolve())
    assert "downloading" not in done.stdout


def test_torch_of_the_active_environment_is_used(copy):
    done = run_setup(copy, fakes=Path(sys.executable).parent, VIRTUAL_ENV=sys.prefix, **NO_NETWORK)
    assert done.returncode == 0, done.stderr
    assert (copy / ".deps" / "torch_path").read_text().strip() == str(TORCH.resolve())


def test_named_torch_that_is_none_is_refused(copy, tmp_path):
    done = run_setup(copy, HEADRACE_TORCH=str(tmp_path))
    assert is_one_sentence(done) and str(tmp_path) in done.stderr and "2.11" in done.stderr


def test_named_torch_that_is_too_old_is_refused(copy, tmp_path):
    old = tmp_path / "torch"
    for name in ("lib/libtorch_cpu.so", "include/torch/csrc/api/include/torch/torch.h"):
        (old / name).parent.mkdir(parents=True)
        (old / name).touch()
    (old / "version.py").write_text("__version__ = '2.9.1+cpu'\n")
    done = run_setup(copy, HEADRACE_TORCH=str(old))
    assert is_one_sentence(done) and "2.9.1" in done.stderr and "2.11" in done.stderr


def test_no_network_and_little_disk(copy, fakes):
    """One environment for both, since making it takes seconds; then a broken one is made anew."""
    done = run_setup(copy, **NO_NETWORK)
    assert is_one_sentence(done) and "network" in done.stderr, done.stderr
    assert "531 MB" in done.stdout
    write_fake(fakes, "df", "echo header; echo '/dev/fake 100 90 10 90% /'")
    done = run_setup(copy, fakes=fakes, **NO_NETWORK)
    assert is_one_sentence(done) and "2124 MB" in done.stderr and "10 MB" in done.stderr, done.stderr
    (copy / ".deps" / "venv" / "bin" / "python").unlink()
    done = run_setup(copy, fakes=fakes, **NO_NETWORK)
    assert "making it anew" in done.stdout and is_one_sentence(done)


def test_without_root_the_packages_are_named(copy, fakes):
    """PATH holds the fakes alone, so that no real sudo or apt-get can be reached."""
    for name in ("bash", "dirname", "mkdir", "flock", "realpath", "cat"):
        (fakes / name).symlink_to(shutil.which(name))
    write_fake(fakes, "dpkg-query", 'case "$*" in *zlib1g-dev | *cmake) exit 1 ;; *) echo -n installed ;; esac')
    write_fake(fakes, "id", "echo 1000")
    done = run_setup(copy, PATH=str(fakes))
    assert is_one_sentence(done) and "apt-get install cmake zlib1g-dev" in done.stderr, done.stderr
