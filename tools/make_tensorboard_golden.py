#!/usr/bin/env python3
"""Writes tests/golden/telemetry/scalars.tfevents with the `tensorboard` package: the bytes that our own event writer must
reproduce. Run with the project's Python environment."""

import pathlib

import tensorboard
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "telemetry"
SCALARS = [("train/loss", 0, 2.5), ("train/loss", 1, 2.25), ("eval/perplexity", 300, 1e30), ("имя", 2**40, -0.0)]


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    with open(OUT / "scalars.tfevents", "wb") as out:
        writer = RecordWriter(out)
        writer.write(Event(wall_time=1700000000.25, file_version="brain.Event:2").SerializeToString())
        for i, (tag, step, value) in enumerate(SCALARS):
            summary = Summary(value=[Summary.Value(tag=tag, simple_value=value)])
            writer.write(Event(wall_time=1700000001.5 + i, step=step, summary=summary).SerializeToString())
        writer.flush()
    (OUT / "versions.txt").write_text(f"tensorboard {tensorboard.__version__}\n")


if __name__ == "__main__":
    main()
