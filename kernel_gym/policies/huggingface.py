"""A checkpoint of transformers as a policy."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernel_gym.episodes.edits import submission
from kernel_gym.policies.base import Conversation, PolicyError, Reply, Response
from kernel_gym.policies.options import Options
from kernel_gym.storage.run_records import Sampling

if TYPE_CHECKING:
    import torch

MANNER = "gym.json"


@dataclass(frozen=True)
class Manner:
    """How a checkpoint is played; one that this project trained carries it, as `gym.json`.

    Attributes:
        prompt: How tasks are put, one of `kernel_gym.episodes.conversation.PROMPTS`.
        max_tokens: Length of a reply, at most.
        temperature: 0 takes the likeliest token.
        top_p: Tokens are drawn from the likeliest whose chances add up to this.
    """

    prompt: str = "full"
    max_tokens: int = 4096
    temperature: float = 1.0
    top_p: float = 1.0

    @classmethod
    def of(cls, folder: Path) -> Manner:
        """That of a checkpoint; the usual one where it carries none."""
        path = folder / MANNER
        return cls(**json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else cls()

    def write(self, folder: Path) -> None:
        """Puts it into a checkpoint."""
        (folder / MANNER).write_text(json.dumps(asdict(self)) + "\n", encoding="utf-8")


class HuggingFace:
    """Writes with a causal language model and its chat template.

    Args:
        path: A checkpoint folder with model and tokenizer, or of a LoRA adapter; a model's name
            where the Hugging Face hub can be reached.
        manner: How it is played; by default as the checkpoint says.
        batch_size: Conversations at a time; generation with continuous batching ignores it.
        continuous: Continuous batching, which transformers offers on GPUs.
        seed: What is drawn depends on it and on the calls before.

    Raises:
        PolicyError: transformers is missing, or the path holds no checkpoint.
    """

    def __init__(
        self,
        path: str | Path,
        manner: Manner | None = None,
        batch_size: int = 32,
        continuous: bool = False,
        seed: int = 0,
    ) -> None:
        try:
            import torch
            import transformers
        except ImportError as error:
            mend = "install kernel-gym[train]"
            raise PolicyError(f"policy 'hf': {error.name} is missing; {mend}") from error
        try:
            tokenizer = transformers.AutoTokenizer.from_pretrained(path, padding_side="left")
            model: Any = transformers.AutoModelForCausalLM.from_pretrained(path)
        except (OSError, ValueError) as error:
            what = str(error).splitlines()[0]
            raise PolicyError(f"policy 'hf': no checkpoint at {path}: {what}") from error
        device = "cuda" if torch.cuda.is_available() else "cpu"
        self._set(model.to(device).eval(), tokenizer, manner or Manner.of(Path(path)), batch_size)
        self.continuous = continuous and hasattr(model, "generate_batch")
        torch.manual_seed(seed)

    @classmethod
    def at(cls, path: str, options: Options) -> HuggingFace:
        """The policy with what was asked for in place of what the checkpoint says."""
        asked = options.only_sampling("hf")
        return cls(path, replace(Manner.of(Path(path)), **asked))

    @property
    def sampling(self) -> Sampling:
        """How replies are drawn."""
        manner = self.manner
        return Sampling(
            max_tokens=manner.max_tokens, temperature=manner.temperature, top_p=manner.top_p
        )

    @classmethod
    def of(cls, model: Any, tokenizer: Any, manner: Manner, batch_size: int = 32) -> HuggingFace:
        """The policy of a model that is in memory already, such as one in training."""
        policy = cls.__new__(cls)
        policy._set(model, tokenizer, manner, batch_size)
        policy.continuous = False
        return policy

    def _set(self, model: Any, tokenizer: Any, manner: Manner, batch_size: int) -> None:
        self.model, self.tokenizer, self.batch_size = model, tokenizer, batch_size
        self.manner, self.prompt = manner, manner.prompt

    def reply(self, conversations: Sequence[Conversation]) -> list[Response]:
        """Answers all, the batch at a time."""
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
        """The tokens of a chat, up to where the reply begins."""
        encoded = self.tokenizer.apply_chat_template(
            list(conversation.messages), add_generation_prompt=True, return_dict=True
        )
        return list(encoded["input_ids"])

    def generate(self, prompts: Sequence[list[int]]) -> list[list[int]]:
        """Continues token sequences.

        Args:
            prompts: Token ids.

        Returns:
            What was written after each, up to and with the end token.
        """
        if self.continuous:
            found = self.model.generate_batch(
                inputs=list(prompts), generation_config=self._generation()
            )
            return [list(output.generated_tokens) for output in found.values()]
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
        """The tokens up to and with the first end token."""
        end = self.tokenizer.eos_token_id
        return row[: row.index(end) + 1] if end in row else row

    def _generation(self) -> Any:
        from transformers import GenerationConfig

        heat = self.manner.temperature
        sampling = {"do_sample": True, "temperature": heat, "top_k": 0, "top_p": self.manner.top_p}
        return GenerationConfig(
            max_new_tokens=self.manner.max_tokens,
            eos_token_id=self.tokenizer.eos_token_id,
            pad_token_id=self.tokenizer.pad_token_id,
            **(sampling if heat > 0 else {"do_sample": False}),
        )
