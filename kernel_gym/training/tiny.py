"""A small policy from scratch: a tokenizer trained on the corpus and a small Llama decoder.

A token is at most one word and occurs in many texts of the corpus, so that unseen texts consist of
known tokens and rare names are spelled letter by letter. A number at the end of a line or after a
`=` is one token, so that each number of a schedule is one choice. A line without such numbers that
many texts share is one token too, and so is an edit of all occurrences: constant text costs one
token.

For policies that write whole kernels, a token is at most a clause: the text of a line between two
names of values (`h2`, `w3`) or numbers, which are tokens of their own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from kernel_gym.training.config import PolicyModel

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

END, PAD, START = "<|im_end|>", "<|endoftext|>", "<|im_start|>"
CHAT = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
"""The chat template: ChatML, the format of many open models."""
_NUMBER = r"\d+(?=\n)|(?<==)\d+(?![\d.])"
_WORD = r"\n *| ?\w+| ?[^\w\s]+"
_VALUE = r"\n *|\b[a-z]\d+(?=\b|_)|\b\d[\d.e-]*"
_EVERYWHERE = r"<<<<<<< SEARCH\n(?:(?!>>>>>>>).*\n)*>>>>>>> REPLACE ALL\n"


def make_tokenizer(
    texts: Sequence[str], vocabulary: int, tokens: Literal["words", "clauses"] = "words"
) -> PreTrainedTokenizerBase:
    """Trains a tokenizer.

    Args:
        texts: Prompts and replies.
        vocabulary: Most tokens.
        tokens: The longest tokens: words and shared lines, or clauses.

    Returns:
        A fast tokenizer of transformers with a chat template and padding on the left.
    """
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    words = tokens == "words"
    lines = _shared_lines(texts)[: vocabulary // 4] if words else []
    patterns = (_NUMBER, _WORD) if words else (_VALUE,)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            *(pre_tokenizers.Split(Regex(pattern), "isolated") for pattern in patterns),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary - len(lines),
        special_tokens=[PAD, START, END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        min_frequency=max(len(texts) // 16, 2) if words else 2,
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
    """Lines that occur in an eighth of the texts and contain no choice, most common first.

    An edit of all occurrences counts as one line.
    """
    parts = re.compile(rf"{_EVERYWHERE}|.*\n|.+")
    lines = Counter(line for text in texts for line in dict.fromkeys(parts.findall(text)))
    often = [line for line, count in lines.most_common() if count >= max(len(texts) / 8, 2)]
    chosen = re.compile(rf"(?!{_EVERYWHERE})[\s\S]*?(?:{_NUMBER})")
    return [line for line in often if line.strip() and not chosen.match(line)]


def make_model(
    tokenizer: PreTrainedTokenizerBase, shape: PolicyModel, seed: int
) -> PreTrainedModel:
    """A small decoder with random weights.

    It is a Llama, because a Llama checkpoint accepts any tokenizer, while Qwen comes with its own.
    The standard deviation of the weights is `hidden**-0.5`, which preserves the variance of
    activations (LeCun et al., 1998). With the usual 0.02 for wide models, a narrow model attends to
    all tokens alike and does not learn to copy from its prompt in a short training.

    Args:
        tokenizer: The tokenizer of its prompts and replies.
        shape: The sizes of the model.
        seed: Seed of the weights.

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
