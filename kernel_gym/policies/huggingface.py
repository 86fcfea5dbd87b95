"""A causal language model of transformers as a policy."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernel_gym.episodes.edits import submission
from kernel_gym.policies.base import Conversation, Policy, PolicyError, Reply, Response
from kernel_gym.policies.options import Options
from kernel_gym.policies.registry import register_policy
from kernel_gym.storage.run_records import Sampling

if TYPE_CHECKING:
    import torch

SAMPLING_PARAMS = "gym.json"
"""The file in a checkpoint that has its :class:`SamplingParams`."""


@dataclass(frozen=True)
class SamplingParams:
    """How a checkpoint is prompted and sampled. `gym.json` in a checkpoint of this project has it.

    Attributes:
        prompt: The kind of prompts, one of `kernel_gym.episodes.conversation.PROMPTS`.
        max_tokens: Longest reply, in tokens.
        temperature: Sampling temperature; 0 takes the most likely token.
        top_p: Probability mass of nucleus sampling, from 0 to 1.
    """

    prompt: str = "full"
    max_tokens: int = 4096
    temperature: float = 1.0
    top_p: float = 1.0

    @classmethod
    def of(cls, folder: Path) -> SamplingParams:
        """Reads the parameters of a checkpoint; a checkpoint without a file has the defaults."""
        path = folder / SAMPLING_PARAMS
        return cls(**json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else cls()

    def write(self, folder: Path) -> None:
        """Writes the parameters into a checkpoint."""
        (folder / SAMPLING_PARAMS).write_text(json.dumps(asdict(self)) + "\n", encoding="utf-8")


class HuggingFace(Policy):
    """Generates replies with a causal language model and its chat template.

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
        cls, model: Any, tokenizer: Any, params: SamplingParams, batch_size: int = 32
    ) -> HuggingFace:
        """The policy of a model that is in memory, such as one in training."""
        policy = cls.__new__(cls)
        policy._set(model, tokenizer, params, batch_size)
        return policy

    def _set(self, model: Any, tokenizer: Any, params: SamplingParams, batch_size: int) -> None:
        self.model, self.tokenizer, self.batch_size = model, tokenizer, batch_size
        self.params, self.prompt = params, params.prompt
        self.sampling = Sampling(
            max_tokens=params.max_tokens, temperature=params.temperature, top_p=params.top_p
        )

    def reply(self, conversations: Sequence[Conversation], /) -> list[Response]:
        """Answers all conversations, one batch after another."""
        prompts = [self.prompt_ids(conversation) for conversation in conversations]
        replies: list[Response] = []
        for chat, prompt, written in zip(
            conversations, prompts, self.generate(prompts), strict=True
        ):
            text = self.tokenizer.decode(written, skip_special_tokens=True)
            source = submission(chat.episode, text)
            replies.append(Reply(text, source, len(prompt), len(written)))
        return replies

    def prompt_ids(self, conversation: Conversation) -> list[int]:
        """The token ids of a chat, up to the beginning of the reply."""
        encoded = self.tokenizer.apply_chat_template(
            list(conversation.messages), add_generation_prompt=True, return_dict=True
        )
        return list(encoded["input_ids"])

    def generate(self, prompts: Sequence[list[int]]) -> list[list[int]]:
        """Continues token sequences.

        Args:
            prompts: Token ids of each sequence.

        Returns:
            The token ids after each sequence, up to and including the end token.
        """
        written: list[list[int]] = []
        for first in range(0, len(prompts), self.batch_size):
            written += self._generate(prompts[first : first + self.batch_size])
        return written

    def _generate(self, prompts: Sequence[list[int]]) -> list[list[int]]:
        import torch

        padded = self.tokenizer.pad({"input_ids": list(prompts)}, return_tensors="pt")
        ids: torch.Tensor = padded["input_ids"].to(self.model.device)
        mask = padded["attention_mask"].to(self.model.device)
        with torch.inference_mode():
            out = self.model.generate(
                input_ids=ids, attention_mask=mask, generation_config=self._generation()
            )
        return [self._cut(row) for row in out[:, ids.shape[1] :].tolist()]

    def _cut(self, row: list[int]) -> list[int]:
        """The tokens up to and including the first end token."""
        end = self.tokenizer.eos_token_id
        return row[: row.index(end) + 1] if end in row else row

    def _generation(self) -> Any:
        from transformers import GenerationConfig

        params = self.params
        sampling = {
            "do_sample": True,
            "temperature": params.temperature,
            "top_k": 0,
            "top_p": params.top_p,
        }
        return GenerationConfig(
            max_new_tokens=params.max_tokens,
            eos_token_id=self.tokenizer.eos_token_id,
            pad_token_id=self.tokenizer.pad_token_id,
            **(sampling if params.temperature > 0 else {"do_sample": False}),
        )


@register_policy("hf")
def hugging_face(path: Path, options: Options) -> HuggingFace:
    """The policy of a checkpoint, with options in place of the checkpoint's parameters.

    Raises:
        PolicyError: An option is for requests to a server, or there is no checkpoint.
    """
    given = options.only_sampling("hf")
    return HuggingFace(path, replace(SamplingParams.of(path), **given))
