"""How a checkpoint is prompted and sampled, and the file of a checkpoint that says it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from kernel_gym.policies.names import PolicyError
from kernel_gym.storage.json_lines import first_line

SAMPLING_PARAMS = "gym.json"
"""The file in a checkpoint that has its :class:`SamplingParams`."""


@dataclass(frozen=True, config=ConfigDict(extra="forbid", strict=True))
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
    max_tokens: Annotated[int, Field(ge=1)] = 4096
    temperature: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0
    top_p: Annotated[float, Field(gt=0, le=1)] = 1.0
    top_k: Annotated[int, Field(ge=0)] = 0

    @classmethod
    def of(cls, folder: Path) -> SamplingParams:
        """Reads the parameters of a checkpoint.

        Without `gym.json` they are those of its `generation_config.json`, if that one samples.

        Raises:
            PolicyError: A file states something else than these parameters.
        """
        path = folder / SAMPLING_PARAMS
        try:
            if path.is_file():
                return _ADAPTER.validate_json(path.read_bytes())
            return cls._of_generation(folder)
        except ValidationError as error:
            raise PolicyError(f"sampling of {folder}: {first_line(error)}") from None

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
        (folder / SAMPLING_PARAMS).write_bytes(_ADAPTER.dump_json(self) + b"\n")


_ADAPTER: TypeAdapter[SamplingParams] = TypeAdapter(SamplingParams)
