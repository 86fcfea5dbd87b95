"""A causal language model of transformers as a policy."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from kernel_gym.episodes.edits import submission
from kernel_gym.policies.answers import CUT_OFF
from kernel_gym.policies.base import Conversation, Policy, PolicyError, Reply, Response, Stop
from kernel_gym.policies.options import Options
from kernel_gym.policies.registry import register_policy
from kernel_gym.policies.sampling_params import SamplingParams
from kernel_gym.storage.run_records import ReplyTokens, Sampling

log = logging.getLogger(__name__)
MIN_ROOM = 1024
"""Tokens of a reply below which the policy warns, if it may write as many. A kernel of 50 lines has
about 600, and most models write about it first."""
Written = tuple[list[int], list[float]]
"""Token ids of a reply and their log-probabilities."""


class HuggingFace(Policy):
    """Generates replies with a causal language model and its chat template.

    A model without a chat template gets the messages as plain text. A reply ends with any of the
    end tokens of the tokenizer and of the model's generation configuration. An episode whose
    prompt fills the context ends.

    Args:
        path: A checkpoint folder with model and tokenizer or with a LoRA adapter, or the name of a
            model on the Hugging Face hub.
        params: How it is prompted and sampled; by default the parameters in the checkpoint.
        batch_size: Number of conversations in a batch.
        seed: Seed of sampling. Replies also depend on the calls before.

    Raises:
        PolicyError: transformers is missing, or the path has no checkpoint.
    """

    def __init__(
        self,
        path: str | Path,
        params: SamplingParams | None = None,
        batch_size: int = 32,
        seed: int = 0,
    ) -> None:
        try:
            import torch
            import transformers
        except ImportError as error:
            fix = "install kernel-gym[train]"
            raise PolicyError(f"policy 'hf': {error.name} is missing; {fix}") from error
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(path, padding_side="left")
            model: Any = transformers.AutoModelForCausalLM.from_pretrained(path)
        except (OSError, ValueError) as error:
            what = str(error).splitlines()[0]
            raise PolicyError(f"policy 'hf': no checkpoint at {path}: {what}") from error
        device = "cuda" if torch.cuda.is_available() else "cpu"
        params = params or SamplingParams.of(Path(path))
        self._set(model.to(device).eval(), tokenizer, params, batch_size)
        torch.manual_seed(seed)

    @classmethod
    def of(
        cls, model: object, tokenizer: object, params: SamplingParams, batch_size: int = 32
    ) -> HuggingFace:
        """The policy of a model that is in memory, such as one in training."""
        policy = cls.__new__(cls)
        policy._set(model, tokenizer, params, batch_size)
        return policy

    def _set(self, model: Any, tokenizer: Any, params: SamplingParams, batch_size: int) -> None:
        self.model, self.tokenizer, self.batch_size = model, tokenizer, batch_size
        self.params, self.prompt = params, params.prompt
        self._warned = False
        self.sampling = Sampling(
            max_tokens=params.max_tokens,
            temperature=params.temperature,
            top_p=params.top_p,
            extra={"top_k": params.top_k} if params.top_k else {},
        )
        self.ends = _ends(model, tokenizer)
        """The token ids that end a reply."""
        self.context = _context(model, tokenizer)
        """The most tokens of a prompt and its reply."""

    def reply(self, conversations: Sequence[Conversation], /) -> list[Response]:
        """Answers all conversations, one batch after another."""
        prompts = [self.prompt_ids(conversation) for conversation in conversations]
        replies: list[Response] = []
        for chat, prompt, (written, logprobs) in zip(
            conversations, prompts, self._written(prompts), strict=True
        ):
            if self._room(prompt) < 1:
                full = f"the prompt has {len(prompt)} tokens, and the context {self.context}"
                replies.append(Stop(full))
                continue
            self._warn_of_little_room(chat, prompt)
            text = self.tokenizer.decode(written, skip_special_tokens=True)
            source = submission(chat.episode, text)
            cut = not self.ends.intersection(written) and len(written) >= self._room(prompt)
            problem = CUT_OFF if cut else ""
            tokens = ReplyTokens(
                prompt_ids=tuple(prompt), ids=tuple(written), logprobs=tuple(logprobs)
            )
            counts = len(prompt), len(written)
            replies.append(Reply(text, source, *counts, problem=problem, tokens=tokens))
        return replies

    def prompt_ids(self, conversation: Conversation) -> list[int]:
        """The token ids of a chat, up to the beginning of the reply.

        Raises:
            PolicyError: The chat template refuses the messages.
        """
        from jinja2 import TemplateError

        messages = list(conversation.messages)
        if not self.tokenizer.chat_template:
            text = "\n\n".join(message["content"].rstrip("\n") for message in messages)
            return list(self.tokenizer(f"{text}\n\n")["input_ids"])
        try:
            encoded = self.tokenizer.apply_chat_template(
                messages, add_generation_prompt=True, return_dict=True
            )
        except TemplateError as error:
            raise PolicyError(f"policy 'hf': the chat template fails: {error}") from error
        return list(encoded["input_ids"])

    def _warn_of_little_room(self, chat: Conversation, prompt: Sequence[int]) -> None:
        """Logs once that a prompt leaves less of the context than a reply needs."""
        room = self._room(prompt)
        if self._warned or room >= min(self.params.max_tokens, MIN_ROOM):
            return
        self._warned = True
        log.warning(
            "policy 'hf': the prompt of %s has %d tokens and the context %d, so a reply ends after "
            "%d tokens, too early for most kernels: take a model with a longer context",
            chat.episode.task.id,
            len(prompt),
            self.context,
            room,
        )

    def _room(self, prompt: Sequence[int]) -> int:
        """The most tokens of the reply to a prompt."""
        return min(self.params.max_tokens, self.context - len(prompt))

    def generate(self, prompts: Sequence[list[int]]) -> list[list[int]]:
        """Continues token sequences.

        Args:
            prompts: Token ids of each sequence.

        Returns:
            The token ids after each sequence, up to and including the end token; none after a
            sequence that fills the context.
        """
        return [ids for ids, _ in self._written(prompts)]

    def _written(self, prompts: Sequence[list[int]]) -> list[Written]:
        """The token ids after each sequence, with their log-probabilities."""
        written: list[Written] = [([], [])] * len(prompts)
        rooms = [self._room(prompt) for prompt in prompts]
        for room in dict.fromkeys(rooms):  # nearly always one: the most tokens of a reply
            places = [place for place, own in enumerate(rooms) if own == room > 0]
            for first in range(0, len(places), self.batch_size):
                batch = places[first : first + self.batch_size]
                replies = self._generate([prompts[place] for place in batch], room)
                for place, reply in zip(batch, replies, strict=True):
                    written[place] = reply
        return written

    def _generate(self, prompts: Sequence[list[int]], room: int) -> list[Written]:
        import torch

        from kernel_gym.policies.drawn_logprobs import DrawnLogprobs

        longest = max(map(len, prompts))
        padding = [longest - len(prompt) for prompt in prompts]
        rows = [[self._pad] * gap + prompt for gap, prompt in zip(padding, prompts, strict=True)]
        masks = [[0] * gap + [1] * (longest - gap) for gap in padding]
        place = self.model.device
        drawn = DrawnLogprobs(self.params)
        with torch.inference_mode():
            out = self.model.generate(
                input_ids=torch.tensor(rows, device=place),
                attention_mask=torch.tensor(masks, device=place),
                generation_config=self._generation(room),
                logits_processor=[drawn],
            )
        written = out[:, longest:]
        pairs = zip(written.tolist(), drawn.of(out).tolist(), strict=True)
        cut = [(self._cut(row), logprobs) for row, logprobs in pairs]
        return [(row, logprobs[: len(row)]) for row, logprobs in cut]

    @property
    def _pad(self) -> int:
        """The token id before shorter prompts and after shorter replies."""
        pad = self.tokenizer.pad_token_id
        return min(self.ends, default=0) if pad is None else int(pad)

    def _cut(self, row: list[int]) -> list[int]:
        """The tokens up to and including the first end token."""
        ends = [place for place, token in enumerate(row) if token in self.ends]
        return row[: ends[0] + 1] if ends else row

    def _generation(self, room: int) -> object:
        from transformers import GenerationConfig

        params = self.params
        sampling = {
            "do_sample": True,
            "temperature": params.temperature,
            "top_k": params.top_k,
            "top_p": params.top_p,
        }
        return GenerationConfig(
            max_new_tokens=room,
            eos_token_id=sorted(self.ends) or None,
            pad_token_id=self._pad,
            **(sampling if params.temperature > 0 else {"do_sample": False}),
        )


def _ends(model: Any, tokenizer: Any) -> frozenset[int]:
    """The end tokens of a tokenizer and of a model's generation configuration."""
    ends: set[int] = set()
    for value in (tokenizer.eos_token_id, model.generation_config.eos_token_id):
        ends.update([value] if isinstance(value, int) else value or ())
    return frozenset(ends)


def _context(model: Any, tokenizer: Any) -> int:
    """The most tokens of a prompt and its reply."""
    config = model.config.get_text_config()
    limits = (getattr(config, "max_position_embeddings", None), tokenizer.model_max_length)
    return int(min(limit for limit in limits if limit))


@register_policy("hf")
def hugging_face(path: Path, options: Options) -> HuggingFace:
    """The policy of a checkpoint, with options in place of the checkpoint's parameters.

    Raises:
        PolicyError: An option is for requests to a server, or there is no checkpoint.
    """
    given = options.only_sampling("hf")
    return HuggingFace(path, replace(SamplingParams.of(path), **given))
