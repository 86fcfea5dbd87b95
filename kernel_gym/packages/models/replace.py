"""Replaces what computes a package's operation in a model, and puts it back."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

from torch import nn

from kernel_gym.packages.models.operations import OPERATIONS, Operation
from kernel_gym.packages.models.pretrained import PretrainedModel
from kernel_gym.packages.models.probe import alike, choose
from kernel_gym.packages.models.sites import Matches, Replaced, site_of, swap
from kernel_gym.packages.models.special import (
    replace_attention,
    replace_in_decoder_layers,
    replace_loss,
    replace_whole_attention,
)
from kernel_gym.packages.models.trace import TracedModule, by_class, matches

SPECIAL = {
    "softmax": replace_attention,
    "cross_entropy": replace_loss,
    "gqa_attention": replace_whole_attention,
    "add_rms_norm": replace_in_decoder_layers,
}


def replace(
    model: PretrainedModel,
    traced: list[TracedModule],
    problem: str,
    kernel: ModuleType,
    folder: Path,
    backend: str,
) -> Replaced:
    """Finds what computes the operation and prepares its replacement.

    Args:
        model: The model, on the CPU.
        traced: Its trace.
        problem: The problem of the package.
        kernel: The package, as `kernels` has loaded it.
        folder: The folder of the package.
        backend: "rocm", "cuda" or "cpu": the variant that was loaded.
    """
    replaced = Replaced(model)
    sites = matches(traced, OPERATIONS[problem].signatures)
    if problem in SPECIAL:
        SPECIAL[problem](replaced, sites, traced, kernel)
    else:
        _layers(replaced, sites, OPERATIONS[problem], kernel, folder, backend)
    return replaced


def _layers(
    replaced: Replaced,
    sites: Matches,
    operation: Operation,
    kernel: ModuleType,
    folder: Path,
    backend: str,
) -> None:
    """Replaces modules and functions by layers of the package, through `kernels.kernelize`."""
    signature = dict((id(one), operators) for one, operators in sites)
    chosen: dict[str, list[TracedModule]] = {}
    for group in by_class([one for one, _ in sites]).values():
        for part in _parts(group):
            layer, reason = choose(part[0], operation, kernel)
            mechanism = "kernels.kernelize" if layer else ""
            values = {"replaced_by": layer, "mechanism": mechanism, "reason": reason}
            replaced.sites.append(site_of(part, signature[id(part[0])], **values))
            if layer:
                chosen.setdefault(layer, []).extend(part)
    if chosen:
        _kernelize(replaced, chosen, operation, folder, backend)


def _parts(group: list[TracedModule]) -> list[list[TracedModule]]:
    """Returns the modules of a class in parts that are alike."""
    parts: list[list[TracedModule]] = []
    for one in group:
        same = next((part for part in parts if alike(part[0], one)), None)
        if same is None:
            parts.append([one])
        else:
            same.append(one)
    return parts


def _kernelize(
    replaced: Replaced,
    chosen: dict[str, list[TracedModule]],
    operation: Operation,
    folder: Path,
    backend: str,
) -> None:
    """Lets `kernels` replace the forward methods, and notes them."""
    from kernels import LocalLayerRepository, Mode, get_local_kernel, kernelize, use_kernel_mapping
    from kernels import replace_kernel_forward_from_hub as extend

    class Repository(LocalLayerRepository):
        """A local package for a backend that PyTorch was not built for, such as a simulated one."""

        def load(self) -> type[nn.Module]:
            kernel = get_local_kernel(self._repo_path, backend=backend, trust_remote_code=True)
            return getattr(kernel.layers, self.layer_name)

    mapping: dict[str, dict[str, Repository]] = {}
    modules: dict[int, nn.Module] = {}

    def chosen_ones(module: nn.Module) -> bool:
        return id(module) in modules

    for layer, sites in chosen.items():
        modules |= {id(one.module): one.module for one in sites}
        for kind in {type(one.module) for one in sites}:
            name = getattr(kind, "kernel_layer_name", f"{kind.__name__}.{layer}")
            if name in mapping and mapping[name][backend].layer_name != layer:
                name = f"{kind.__name__}.{layer}"
            extend(kind, name, condition=chosen_ones)
            mapping[name] = {backend: Repository(folder, layer_name=layer)}
    with use_kernel_mapping(mapping, inherit_mapping=False):
        kernelize(replaced.model, mode=Mode.INFERENCE, device=backend)
    swap(
        replaced,
        [(m, m.__dict__.pop("forward")) for m in modules.values() if "forward" in vars(m)],
    )
