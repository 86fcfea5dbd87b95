"""The used part of transformers' models and configurations, in types that all of them have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle


class ModelConfig(Protocol):
    """The configuration of a model. Sizes that only some have are read by their names."""

    @property
    def model_type(self) -> str:
        """The name of the kind of model, such as `llama`."""

    def to_dict(self) -> dict[str, object]:
        """Returns all values by name."""

    def get_text_config(self) -> object:
        """Returns the part for the text, which is often the configuration itself."""


class KeysAndValues(Protocol):
    """A cache: the keys and values of the tokens that a decoder has seen."""

    layers: list[object]


class ModelOutput(Protocol):
    """The result of a forward pass: a loss if labels were given, logits if the model has any."""

    loss: Tensor
    logits: Tensor
    past_key_values: KeysAndValues

    def __getitem__(self, place: int) -> Tensor: ...


class GeneratedTokens(Protocol):
    """The result of a generation that is asked for logits, which are [requests, tokens] a step."""

    logits: tuple[Tensor, ...]


class PretrainedModel(Protocol):
    """A model; it is a module of PyTorch as well."""

    dtype: torch.dtype
    device: torch.device
    main_input_name: str
    loss_function: object
    _supports_sdpa: bool

    @property
    def config(self) -> ModelConfig:
        """Its configuration."""

    def __call__(self, *arguments: object, **inputs: object) -> ModelOutput:
        """Runs the forward pass."""

    def can_generate(self) -> bool:
        """Whether the model writes tokens."""

    def generate(self, **options: object) -> Tensor | GeneratedTokens:
        """Returns sequences [requests, tokens], or more if `return_dict_in_generate` is given."""

    def set_attn_implementation(self, name: str) -> None:
        """Chooses the implementation of attention by its name in transformers' table."""

    def to(self, target: torch.dtype | str) -> PretrainedModel:
        """Moves the model to a type or a device, in place."""

    def eval(self) -> PretrainedModel:
        """Prepares the model for inference, in place."""

    def zero_grad(self) -> None:
        """Forgets the gradients."""

    def modules(self) -> Iterator[nn.Module]:
        """Yields the model and all modules in it."""

    def named_modules(self) -> Iterator[tuple[str, nn.Module]]:
        """Yields them with their paths."""

    def get_submodule(self, target: str) -> nn.Module:
        """Returns the module at a path."""

    def set_submodule(self, target: str, module: nn.Module) -> None:
        """Replaces the module at a path."""

    def parameters(self) -> Iterator[nn.Parameter]:
        """Yields all parameters."""

    def named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Yields them with their paths."""

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """Yields all buffers with their paths."""

    def register_forward_pre_hook(self, hook: Callable[..., object]) -> RemovableHandle:
        """Has a function called before each forward pass."""

    def register_forward_hook(self, hook: Callable[..., object]) -> RemovableHandle:
        """Has a function called after each forward pass."""
