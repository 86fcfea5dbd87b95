"""Counts rows whose largest value is at another place with the package of `bitnet_matmul`.

    kernel-gym sim -- python -m benchmarks.deployment.largest_values PACKAGE ARCHITECTURE ...

A layer with ternary weights rounds each row of its input to 8 bits by its largest value, through
which the gradient of the row's scale goes. Where another value becomes the largest, this gradient
goes to another place, though both values are nearly equal.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn


@torch.compiler.set_stance("force_eager")
def main() -> None:
    """Prints the counts of each layer in which a row differs."""
    import transformers

    from benchmarks.deployment.architectures import config_of
    from kernel_gym.packages.models import child, parity
    from kernel_gym.packages.models.build import build, inputs_of

    transformers.logging.set_verbosity_error()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("package", type=Path)
    parser.add_argument("architectures", nargs="+")
    options = parser.parse_args()
    loaded = child.load(options.package, "cuda")
    for name in options.architectures:
        model: Any = build(config_of(name, loaded.problem.name), torch.bfloat16, "sdpa")
        inputs = inputs_of(model, child.BATCH, child.PROMPT)
        replaced = child._replaced(loaded, loaded.problem, model, inputs)
        truth = parity.truth_of(model, inputs)
        right = _places(truth, parity.cast(inputs, truth))
        model.to("cuda")
        there = {key: value.to("cuda") for key, value in inputs.items()}
        original = _places(model, there)
        with replaced.package() as changed:
            ours = _places(changed, there)
        for path, rows in right.items():
            counts = [int((places[path] != rows).sum()) for places in (original, ours)]
            if any(counts):
                print(
                    f"{name} {path}: of {len(rows)} rows the largest value is at another place "
                    f"than in fp64 in {counts[0]}, with the package in {counts[1]}"
                )


@torch.no_grad()
def _places(model: Any, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    """Returns the place of the largest value of each input row, by the path of the layer."""
    places: dict[str, Tensor] = {}

    def watch(path: str, module: nn.Module) -> Any:
        def note(module: nn.Module, given: tuple[Tensor, ...]) -> None:
            places[path] = given[0].flatten(0, -2).abs().argmax(-1).cpu()

        return module.register_forward_pre_hook(note)

    handles = [
        watch(path, module)
        for path, module in model.named_modules()
        if type(module).__name__ == "BitLinear"
    ]
    try:
        model(**inputs)
    finally:
        for handle in handles:
            handle.remove()
    return places


if __name__ == "__main__":
    main()
