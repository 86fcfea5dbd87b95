"""How a checkpoint is prompted and sampled, and the file of a checkpoint that says it."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

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
        top_k: Number of the most likely tokens that are drawn from; 0 for all.
    """

    prompt: str = "full"
    max_tokens: int = 4096
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0

    @classmethod
    def of(cls, folder: Path) -> SamplingParams:
        """Reads the parameters of a checkpoint.

        Without `gym.json` they are those of its `generation_config.json`, if that one samples.
        """
        path = folder / SAMPLING_PARAMS
        if path.is_file():
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        return cls._of_generation(folder)

    @classmethod
    def _of_generation(cls, folder: Path) -> SamplingParams:
        try:
            from transformers import GenerationConfig

            config = GenerationConfig.from_pretrained(str(folder))
        except (ImportError, OSError, ValueError):
            return cls()
        if not config.do_sample:
            return cls()
        names = ("temperature", "top_p", "top_k")
        stated = {name: getattr(config, name) for name in names}
        return cls(**{name: value for name, value in stated.items() if value is not None})

    def write(self, folder: Path) -> None:
        """Writes the parameters into a checkpoint."""
        (folder / SAMPLING_PARAMS).write_text(json.dumps(asdict(self)) + "\n", encoding="utf-8")
