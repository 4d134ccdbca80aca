#!/usr/bin/env python3
"""Our tokenizer against Hugging Face `tokenizers`: same tokenizer.json, same lines, one thread each, in turn.

    bench/micro/tokenizer_bench.py --program build/bin/tokenizer_bench --tokenizer MODEL_FOLDER [...] [--out FILE]

Text: WordNet and FOLDOC (Debian packages wordnet-base and dict-foldoc), or --text FILE. Every id is compared; a
difference ends the run. The library is timed at encode_batch_fast of all lines, which leaves out offsets, as
encode() does; a pass of each comes first to warm up. Times are processor seconds: machines are shared.
"""
import argparse
import gzip
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"
import numpy as np  # noqa: E402
import tokenizers  # noqa: E402


def corpus(megabytes):
    text = "".join(Path(f"/usr/share/wordnet/data.{part}").read_text(encoding="utf-8")
                   for part in ("adj", "adv", "verb"))[: int(megabytes * 500_000)]
    text += gzip.decompress(Path("/usr/share/dictd/foldoc.dict.dz").read_bytes()).decode("utf-8", "replace")
    return text.encode("utf-8")[: int(megabytes * 1_000_000)].decode("utf-8", "ignore")


def random_unicode(megabytes):
    """Runs of neighbouring code points from all of Unicode (assigned and not), and what pre-tokenizers look for."""
    rng = random.Random(4)
    pieces = [" ", "  ", "\n", "\t", "\r", "'s", "'LL", "'\u017f", "12", "3456", "\u3000", "\u0301", "e\u0301", "a", "The "]
    out, size = [], 0
    while size < megabytes * 1_000_000:
        # Half of the runs lie in the first two planes' scripts, where text is.
        start = rng.choice((rng.randrange(0x20, 0x3000), rng.randrange(0x20, 0x20000), rng.randrange(0x20, 0x110000)))
        run = "".join(chr(c) for c in (start + rng.randrange(16) for _ in range(rng.randrange(1, 9)))
                      if c < 0x110000 and not 0xD800 <= c < 0xE000)
        run += rng.choice(pieces)
        out.append(run)
        size += len(run.encode("utf-8"))
    return "".join(out)


def compare(ids_file, library_ids):
    ours = np.fromfile(ids_file, dtype=np.int32)
    theirs = np.concatenate([np.append(np.asarray(ids, dtype=np.int32), np.int32(-1)) for ids in library_ids])
    if len(ours) != len(theirs) or (ours != theirs).any():
        first = next(i for i in range(min(len(ours), len(theirs))) if ours[i] != theirs[i])
        line = int((theirs[:first] == -1).sum())
        sys.exit(f"ids differ in line {line} (from 0)")
    return int((theirs >= 0).sum())


def run(program, folder, text, repeats):
    file = Path(folder)
    file = file / "tokenizer.json" if file.is_dir() else file
    library = tokenizers.Tokenizer.from_file(str(file))
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "text"
        path.write_bytes(text.encode("utf-8"))
        lines = text.split("\n")
        if lines[-1] == "":
            lines.pop()
        ours = subprocess.Popen([program, str(file), str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

        def our_pass():
            ours.stdin.write("go\n")
            ours.stdin.flush()
            return float(ours.stdout.readline())

        def library_pass():
            start = time.process_time()
            encoded = library.encode_batch_fast(lines, add_special_tokens=False)
            return time.process_time() - start, encoded

        our_pass()
        tokens = compare(str(path) + ".ids", [e.ids for e in library_pass()[1]])
        pairs = [(library_pass()[0], our_pass()) for _ in range(repeats)]
        ours.stdin.close()
        ours.wait()
    ratios = [theirs / mine for theirs, mine in pairs]
    megabytes = len(text.encode("utf-8")) / 1e6
    return {"tokenizer": file.parent.name, "megabytes": round(megabytes, 3), "lines": len(lines), "tokens": tokens,
            "library_s": [round(t, 4) for t, _ in pairs], "headrace_s": [round(m, 4) for _, m in pairs],
            "library_mb_per_s": round(megabytes / statistics.median(t for t, _ in pairs), 2),
            "headrace_mb_per_s": round(megabytes / statistics.median(m for _, m in pairs), 2),
            "ratio_median": round(statistics.median(ratios), 2), "ratio_range": [round(min(ratios), 2),
                                                                                round(max(ratios), 2)]}


def machine():
    model = next((line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), platform.processor())
    return {"cpu": model, "cpus": os.cpu_count(), "system": platform.platform()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/bin/tokenizer_bench")
    parser.add_argument("--tokenizer", nargs="+", required=True)
    parser.add_argument("--text", type=Path)
    parser.add_argument("--random", action="store_true", help="random Unicode instead of text")
    parser.add_argument("--megabytes", type=float, default=5.2)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    if args.text:
        text = args.text.read_text(encoding="utf-8")
    else:
        text = (random_unicode if args.random else corpus)(args.megabytes)
    results = []
    for folder in args.tokenizer:
        results.append(run(args.program, folder, text, args.repeats))
        print(json.dumps(results[-1]))
    if args.out:
        commit = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
        report = {"what": "one thread, all lines once, ids compared; processor seconds", "commit": commit, "machine": machine(),
                  "versions": {"tokenizers": tokenizers.__version__, "python": platform.python_version()},
                  "command": " ".join(["bench/micro/tokenizer_bench.py", *(Path(a).name if "/" in a else a for a in sys.argv[1:])]), "results": results}
        args.out.parent.mkdir(parents=True, exist_ok=True)
        args.out.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
