#!/usr/bin/env python3
"""Writes tests/golden/safetensors: small files made by the reference implementation, which the C++ reader and writer must
reproduce byte for byte. Run with the project's Python environment; the versions lie in mixed.json."""

import json
import pathlib

import numpy
import safetensors
import torch
from safetensors.torch import save_file

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "safetensors"


def tensors():
    """One of each common dtype, shapes from scalar to empty, names that need escapes or are not ASCII."""
    count = torch.arange(24, dtype=torch.float32).reshape(2, 3, 4) - 11.5
    return {
        "fp32": count,
        "bf16": count.to(torch.bfloat16),
        "fp16": count.to(torch.float16),
        "fp64": count.to(torch.float64),
        "fp8": count.to(torch.float8_e4m3fn),
        "int64": torch.tensor([-1, 2**62], dtype=torch.int64),
        "uint8": torch.tensor([1, 2, 3], dtype=torch.uint8),
        "bool": torch.tensor([True, False, True]),
        "scalar": torch.tensor(0.5),
        "empty": torch.zeros(0, 7),
        "name \"with\" \\ escapes\n": torch.tensor([1.0]),
        "имя": torch.tensor([2.0]),
    }


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    named = tensors()
    versions = {"safetensors": safetensors.__version__, "torch": torch.__version__}
    save_file(named, OUT / "mixed.safetensors", metadata={"format": "pt"})
    (OUT / "mixed.safetensors").chmod(0o644)
    expected = {"versions": versions, "tensors": {}}
    for name, tensor in named.items():
        raw = tensor.contiguous().flatten().view(torch.uint8).numpy() if tensor.numel() else numpy.zeros(0, numpy.uint8)
        expected["tensors"][name] = {"shape": list(tensor.shape), "hex": raw.tobytes().hex()}
    (OUT / "mixed.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
