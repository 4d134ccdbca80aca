"""The last line of `make test` counts what really ran."""
import subprocess
import sys

from conftest import ROOT

CTEST = """<testsuite><testcase name="base.a" status="run"/><testcase name="python.x" status="{python}"/>
<testcase name="gpu.b" status="notrun"><skipped message="no GPU"/></testcase>
<testcase name="base.c" status="{c}">{failure}</testcase></testsuite>"""
PYTEST = """<testsuites><testsuite><testcase name="p1"/><testcase name="p2"/><testcase name="p3"><skipped/></testcase>
<testcase name="p4">{failure}</testcase></testsuite></testsuites>"""


def count(tmp_path, ctest, pytest=None):
    (tmp_path / "ctest.xml").write_text(ctest)
    (tmp_path / "pytest").mkdir()
    if pytest:
        (tmp_path / "pytest" / "python.x.xml").write_text(pytest)
    command = [sys.executable, ROOT / "tools" / "test_count.py", tmp_path / "ctest.xml", tmp_path / "pytest"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout.splitlines()[-1]


def test_all_pass(tmp_path):
    ctest = CTEST.format(python="run", c="run", failure="")
    assert count(tmp_path, ctest, PYTEST.format(failure="")) == (0, "5 passed, 0 failed, 2 skipped")


def test_failures_on_both_sides_count(tmp_path):
    ctest = CTEST.format(python="fail", c="fail", failure="<failure/>")
    assert count(tmp_path, ctest, PYTEST.format(failure="<failure/>")) == (1, "3 passed, 2 failed, 2 skipped")


def test_pytest_that_dies_counts_as_failed(tmp_path):
    ctest = CTEST.format(python="fail", c="run", failure="")
    assert count(tmp_path, ctest) == (1, "2 passed, 1 failed, 1 skipped")


def test_pytest_that_ends_badly_after_its_cases_counts_as_failed(tmp_path):
    ctest = CTEST.format(python="fail", c="run", failure="")
    assert count(tmp_path, ctest, PYTEST.format(failure="")) == (1, "5 passed, 1 failed, 2 skipped")


def test_nothing_ran_is_a_failure(tmp_path):
    assert count(tmp_path, "<testsuite/>") == (1, "0 passed, 0 failed")
