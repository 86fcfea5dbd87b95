"""A policy made from nothing: a tokenizer learnt from the corpus and a small Llama decoder.

The tokenizer's pieces are at most a word long, and in many of its texts, so that a text it has not
seen is made of pieces that it has: names are spelled by the letter. Numbers at the end of a line or
behind a `=` are pieces of their own, so that each number of a schedule is one choice. A line
without such numbers that many texts share is one too, and so is an edit that is made everywhere:
what is always the same costs one token.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from kernel_gym.training.config import Model

END, PAD, START = "<|im_end|>", "<|endoftext|>", "<|im_start|>"
CHAT = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""ChatML, the format of many open models."""
_NUMBER = r"\d+(?=\n)|(?<==)\d+(?![\d.])"
_WORD = r"\n *| ?\w+| ?[^\w\s]+"
_EVERYWHERE = r"<<<<<<< SEARCH\n(?:(?!>>>>>>>).*\n)*>>>>>>> REPLACE ALL\n"


def make_tokenizer(texts: Sequence[str], vocabulary: int) -> Any:
    """Learns a tokenizer.

    Args:
        texts: What it will have to write: kernels and prompts.
        vocabulary: Tokens, at most.

    Returns:
        A fast tokenizer of transformers with a chat template; it pads on the left.
    """
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    lines = _shared_lines(texts)[: vocabulary // 4]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_NUMBER), "isolated"),
            pre_tokenizers.Split(Regex(_WORD), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary - len(lines),
        special_tokens=[PAD, START, END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        min_frequency=max(len(texts) // 16, 2),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.add_tokens(lines)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, eos_token=END, pad_token=PAD, padding_side="left"
    )
    fast.chat_template = CHAT
    return fast


def _shared_lines(texts: Sequence[str]) -> list[str]:
    """Lines that an eighth of the texts have and that hold nothing to choose, most common first.

    An edit that is made everywhere is a line of them.
    """
    parts = re.compile(rf"{_EVERYWHERE}|.*\n|.+")
    lines = Counter(line for text in texts for line in dict.fromkeys(parts.findall(text)))
    often = [line for line, count in lines.most_common() if count >= max(len(texts) / 8, 2)]
    chosen = re.compile(rf"(?!{_EVERYWHERE})[\s\S]*?(?:{_NUMBER})")
    return [line for line in often if line.strip() and not chosen.match(line)]


def make_model(tokenizer: Any, shape: Model, seed: int) -> Any:
    """A small decoder with random weights.

    Llama, since a checkpoint of it takes any tokenizer as it is; Qwen brings its own. Weights are
    drawn with a variance of one over the width, which keeps that of activations (LeCun et al.,
    1998): with the 0.02 that suits wide models a narrow one attends to everything alike, and in a
    short training never learns to copy from its prompt.

    Args:
        tokenizer: What it reads and writes.
        shape: Its sizes.
        seed: What the weights are drawn from.

    Returns:
        A causal language model of transformers in float32.
    """
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=shape.hidden,
            intermediate_size=4 * shape.hidden,
            num_hidden_layers=shape.layers,
            num_attention_heads=shape.heads,
            num_key_value_heads=shape.heads,
            initializer_range=shape.hidden**-0.5,
            max_position_embeddings=shape.context,
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )
