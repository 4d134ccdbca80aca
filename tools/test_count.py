#!/usr/bin/env python3
"""Count test cases: python3 tools/test_count.py CTEST.xml PYTEST_FOLDER

Prints what failed and, as the last line, `N passed, N failed` (and `, N skipped`). CTest sees a file of pytest as one
test, so those named python.* are counted from pytest's own reports instead. Exits 1 when a test failed or none ran.
"""
import sys
import xml.etree.ElementTree as xml
from pathlib import Path


def read_cases(path):
    """(name, outcome) of every case in a JUnit file."""
    for case in xml.parse(path).iter("testcase"):
        name = case.get("name", "?")
        if case.get("status") == "fail" or case.find("failure") is not None or case.find("error") is not None:
            yield name, "failed"
        elif case.get("status") in ("notrun", "disabled") or case.find("skipped") is not None:
            yield name, "skipped"
        else:
            yield name, "passed"


def collect(ctest_report, pytest_folder):
    cases = []
    for name, outcome in read_cases(ctest_report):
        report = pytest_folder / f"{name}.xml"
        if name.startswith("python.") and report.exists():
            inner = list(read_cases(report))
            cases += [(f"{name}.{case}", result) for case, result in inner]
            # pytest itself may end badly with all its cases passed (a crash at exit, nothing collected).
            if outcome == "failed" and not any(result == "failed" for _, result in inner):
                cases.append((name, "failed"))
        else:
            cases.append((name, outcome))
    return cases


def main():
    report = Path(sys.argv[1])
    cases = collect(report, Path(sys.argv[2])) if report.exists() else [("ctest wrote no report", "failed")]
    count = {outcome: sum(result == outcome for _, result in cases) for outcome in ("passed", "failed", "skipped")}
    for outcome in ("skipped", "failed"):
        for name, result in cases:
            if result == outcome:
                print(f"{outcome}: {name}")
    skipped = f", {count['skipped']} skipped" if count["skipped"] else ""
    print(f"{count['passed']} passed, {count['failed']} failed{skipped}")
    return 0 if count["passed"] and not count["failed"] else 1


if __name__ == "__main__":
    sys.exit(main())
