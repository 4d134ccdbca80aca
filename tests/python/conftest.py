"""What the Python tests share: the program under test, and a tiny chat model that is made on the spot."""
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

os.environ.setdefault("HF_HUB_OFFLINE", "1")
ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

CHAT_TEMPLATE = (  # SmolLM2's, by which the program recognises it
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}{{ '<|im_start|>system\nYou are "
    "a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n' }}{% endif %}{{'<|im_start|>' + "
    "message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}{% if add_generation_prompt %}"
    "{{ '<|im_start|>assistant\n' }}{% endif %}"
)
WORDS = ["mirror", "river", "wheel", "stone", "cloud", "bridge", "candle", "garden"]


class Program:
    """build/headrace and the ways in which tests call it."""

    def __init__(self, path):
        self.path = path

    def run(self, *arguments, stdin="", timeout=300):
        command = [str(self.path), *map(str, arguments)]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=timeout, check=False)

    def json(self, *arguments):
        """The JSON object that a successful command prints as its last line."""
        done = self.run(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.strip().splitlines()[-1])


@pytest.fixture(scope="session")
def headrace():
    named = os.environ.get("HEADRACE_BIN")  # CTest names it
    path = Path(named or ROOT / "build" / "headrace")
    if named and not path.exists():
        pytest.fail(f"HEADRACE_BIN={named} does not exist")
    if not path.exists():
        pytest.skip(f"{path} is not built; run `make build`")
    return Program(path)


@pytest.fixture(scope="session")
def demo_model():
    folder = ROOT / "demo" / "SmolLM2-135M-Instruct"
    if not (folder / "model.safetensors").exists():
        pytest.skip(f"{folder} is not there; `make demo` makes it")
    return folder


def make_tokenizer(folder):
    """A byte-level BPE of 320 tokens with SmolLM2's special tokens and template."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    digits = pre_tokenizers.Digits(individual_digits=True)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=320, special_tokens=["<|endoftext|>", "<|im_start|>", "<|im_end|>"],
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator([f"Define the noun: {word}. A {word} is a thing." for word in WORDS], trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>", "pad_token": "<|im_end|>",
              "unk_token": "<|endoftext|>", "chat_template": CHAT_TEMPLATE, "model_max_length": 256,
              "tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))


COMMON = {"vocab_size": 320, "max_position_embeddings": 256, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 2}
GROUPED = {**COMMON, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
           "num_key_value_heads": 2}
LLAMA3_ROPE = {"rope_type": "llama3", "rope_theta": 10000.0, "factor": 8.0, "low_freq_factor": 1.0,
               "high_freq_factor": 4.0, "original_max_position_embeddings": 32}
FAMILIES = {  # name -> (transformers' configuration class, what is special)
    "llama": ("LlamaConfig", {**GROUPED, "tie_word_embeddings": True}),
    "llama3": ("LlamaConfig", {**GROUPED, "tie_word_embeddings": False, "rope_parameters": LLAMA3_ROPE}),
    "mistral": ("MistralConfig", {**GROUPED, "sliding_window": 16}),
    "qwen2": ("Qwen2Config", {**GROUPED, "tie_word_embeddings": True}),
    "qwen3": ("Qwen3Config", {**GROUPED, "head_dim": 12, "tie_word_embeddings": False}),
    "gpt2": ("GPT2Config", {**COMMON, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 256, "resid_pdrop": 0.0,
                            "embd_pdrop": 0.0, "attn_pdrop": 0.0}),
    "opt": ("OPTConfig", {**COMMON, "hidden_size": 32, "word_embed_proj_dim": 32, "ffn_dim": 48, "num_hidden_layers": 2,
                          "num_attention_heads": 4, "dropout": 0.0}),
}


def tiny_of(family, **changes):
    """A random model of two layers of that family, of transformers' own making."""
    import transformers

    config_class, values = FAMILIES[family]
    torch.manual_seed(3)
    config = getattr(transformers, config_class)(**{**values, **changes})
    return transformers.AutoModelForCausalLM.from_config(config).eval()


def tiny_llama(**changes):
    return tiny_of("llama", **changes)


def save_folder(family, folder):
    tiny_of(family).save_pretrained(folder)
    make_tokenizer(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory):
    """A Hugging Face folder of a random Llama of two layers, with tokenizer and chat template."""
    return save_folder("llama", tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session", params=list(FAMILIES))
def family_model(request, tmp_path_factory):
    """The same for each family that the program knows."""
    return save_folder(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="session")
def chat_data(tmp_path_factory):
    path = tmp_path_factory.mktemp("chat") / "chat.jsonl"
    with open(path, "w", encoding="utf-8") as file:
        for number, word in enumerate(WORDS):
            messages = [{"role": "user", "content": f"Define the noun: {word}"},
                        {"role": "assistant", "content": f"A {word} is thing {number}."}]
            file.write(json.dumps({"messages": messages}) + "\n")
    return path


def logits_of(folder, ids):
    """transformers' logits in fp32 of the model in a folder."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    with torch.no_grad():
        return model(input_ids=torch.tensor([ids])).logits[0]


def chat_loss(folder, path):
    """transformers' loss per trained token: the assistant's turn with its end-of-turn token. (loss, tokens)"""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    total, tokens = 0.0, 0
    for line in path.read_text(encoding="utf-8").splitlines():
        messages = json.loads(line)["messages"]
        prompt = tokenizer.apply_chat_template(messages[:1], add_generation_prompt=True, tokenize=False)
        whole = tokenizer.apply_chat_template(messages, tokenize=False).removesuffix("\n")
        ids = tokenizer(whole, add_special_tokens=False).input_ids
        start = len(tokenizer(prompt, add_special_tokens=False).input_ids)
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([ids])).logits[0]
        losses = torch.nn.functional.cross_entropy(logits[start - 1 : -1], torch.tensor(ids[start:]), reduction="sum")
        total, tokens = total + float(losses), tokens + len(ids) - start
    return total / tokens, tokens
