#!/usr/bin/env python3
"""Makes tests/golden/model: a tiny random model of every family, a batch, and what transformers computes on it in fp32.

Usage: make_model_goldens.py                     every family
       make_model_goldens.py --smollm2 FOLDER    only smollm2_135m.safetensors, from the demo's model folder

Each family gets a folder with config.json and model.safetensors as transformers saves them, and golden.safetensors with
  ids, positions, targets, starts   the batch: documents back to back; targets already shifted, -100 where masked
  logits                            [N, V] of each document alone
  loss_sum                          summed over the trained tokens, in nats
  grad.<parameter>                  gradient of the summed loss, named as in model.safetensors
Weights are drawn wider than usual, and biases and norms are not left at 0 and 1, so that every part of the maths shows.
smollm2_135m.safetensors holds the same for real weights that are not committed, of the logits every 97th column and of
the gradients their norms. The versions used are in each golden's metadata.
"""

import argparse
import pathlib
import shutil

import safetensors.torch
import torch
import transformers
from transformers import AutoModelForCausalLM

VOCAB = 97
DOCUMENT_LENGTHS = [5, 19, 11]

LLAMA = dict(vocab_size=VOCAB, hidden_size=24, intermediate_size=40, num_hidden_layers=2, num_attention_heads=3,
             max_position_embeddings=64, bos_token_id=1, eos_token_id=2, tie_word_embeddings=False)
LLAMA3_ROPE = dict(rope_type="llama3", rope_theta=10000.0, factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                   original_max_position_embeddings=16)

FAMILIES = {
    "gpt2": ("gpt2", dict(vocab_size=VOCAB, n_positions=32, n_embd=24, n_layer=2, n_head=3, bos_token_id=1,
                          eos_token_id=2)),
    "opt": ("opt", dict(vocab_size=VOCAB, hidden_size=24, ffn_dim=40, num_hidden_layers=2, num_attention_heads=3,
                        max_position_embeddings=32, word_embed_proj_dim=24, pad_token_id=7)),
    "llama2": ("llama", dict(LLAMA, num_key_value_heads=3, rms_norm_eps=1e-5)),
    "llama3": ("llama", dict(LLAMA, num_key_value_heads=1, head_dim=16, rope_parameters=LLAMA3_ROPE,
                             attention_bias=True, mlp_bias=True)),
    # Sizes that leave gaps between parameters in a flat buffer.
    "llama_linear": ("llama", dict(LLAMA, hidden_size=18, intermediate_size=27, num_key_value_heads=1, pad_token_id=7,
                                   mlp_bias=True,
                                   rope_parameters=dict(rope_type="linear", rope_theta=5000.0, factor=2.5))),
    "mistral": ("mistral", dict(LLAMA, num_key_value_heads=1, sliding_window=7)),
    "qwen2": ("qwen2", dict(LLAMA, num_attention_heads=4, hidden_size=32, num_key_value_heads=2,
                            use_sliding_window=True, sliding_window=6, max_window_layers=1)),
    "qwen3": ("qwen3", dict(LLAMA, num_key_value_heads=1, head_dim=16, tie_word_embeddings=True,
                            rope_parameters=dict(rope_type="default", rope_theta=1e6))),
    "smollm2": ("llama", dict(LLAMA, num_attention_heads=6, num_key_value_heads=2, tie_word_embeddings=True,
                              pad_token_id=2, rope_parameters=dict(rope_type="default", rope_theta=1e5))),
}


def spread_weights(model, generator):
    """Matrices wide enough for attention to be sharp, norms around 1, biases around 0."""
    for name, parameter in model.named_parameters():
        draw = torch.randn(parameter.shape, generator=generator)
        if parameter.dim() > 1:
            parameter.data.copy_(draw * 0.15)
        elif "bias" in name:
            parameter.data.copy_(draw * 0.1)
        else:
            parameter.data.copy_(1.0 + draw * 0.1)


def make_batch(generator):
    ids, targets = [], []
    for length in DOCUMENT_LENGTHS:
        document = torch.randint(0, VOCAB, (length,), generator=generator)
        document[length // 2] = 2  # the padding token of some configs must occur
        document[length // 3] = 7
        masked = torch.rand(length, generator=generator) < 0.3
        target = torch.cat([document[1:], torch.tensor([-100])])
        ids.append(document)
        targets.append(torch.where(masked, torch.tensor(-100), target))
    return ids, targets


def batch_tensors(ids, targets):
    lengths = [len(document) for document in ids]
    return {"ids": torch.cat(ids), "targets": torch.cat(targets),
            "positions": torch.cat([torch.arange(length) for length in lengths]),
            "starts": torch.tensor([0] + lengths).cumsum(0)}


def make_golden(folder, model_type, arguments, seed):
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    config = transformers.AutoConfig.for_model(model_type, **arguments)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32, attn_implementation="eager").eval()
    spread_weights(model, generator)
    ids, targets = make_batch(generator)
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    logits = [model(document.unsqueeze(0), use_cache=False).logits[0] for document in ids]
    loss_sum = sum(torch.nn.functional.cross_entropy(rows, target, ignore_index=-100, reduction="sum")
                   for rows, target in zip(logits, targets))
    loss_sum.backward()
    tensors = {f"grad.{name}": parameter.grad for name, parameter in model.named_parameters()}
    tensors["logits"] = torch.cat(logits).detach()
    tensors["loss_sum"] = loss_sum.detach().reshape(1)
    tensors |= batch_tensors(ids, targets)
    safetensors.torch.save_file(tensors, folder / "golden.safetensors", metadata=versions())


def versions():
    return {"torch": torch.__version__, "transformers": transformers.__version__, "format": "pt"}


def make_smollm2_golden(folder, out):
    """Two short documents; greedy text would do as well, but ids alone need no tokenizer."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    generator = torch.Generator().manual_seed(0)
    documents = [torch.randint(0, model.config.vocab_size, (length,), generator=generator) for length in (23, 9)]
    logits = [model(document.unsqueeze(0), use_cache=False).logits[0] for document in documents]
    targets = [torch.cat([document[1:], torch.tensor([-100])]) for document in documents]
    loss_sum = sum(torch.nn.functional.cross_entropy(rows, target, ignore_index=-100, reduction="sum")
                   for rows, target in zip(logits, targets))
    loss_sum.backward()
    tensors = {f"grad_norm.{name}": parameter.grad.double().norm().float().reshape(1)
               for name, parameter in model.named_parameters()}
    tensors |= batch_tensors(documents, targets)
    tensors["logits"] = torch.cat(logits).detach()[:, ::97].contiguous()
    tensors["loss_sum"] = loss_sum.detach().reshape(1)
    safetensors.torch.save_file(tensors, out, metadata=versions())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smollm2", type=pathlib.Path)
    arguments = parser.parse_args()
    out = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden" / "model"
    torch.set_num_threads(1)
    if arguments.smollm2:
        make_smollm2_golden(arguments.smollm2, out / "smollm2_135m.safetensors")
        return
    for seed, (name, (model_type, settings)) in enumerate(FAMILIES.items()):
        folder = out / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        make_golden(folder, model_type, settings, seed)
        size = sum(path.stat().st_size for path in folder.iterdir())
        print(f"{name}: {size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
