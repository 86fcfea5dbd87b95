"""`kernel-gym deploy`: put a package's kernel into a model and compare the whole model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernel_gym.commands.common import (
    FAILED,
    JsonOption,
    console,
    messages,
    one_line_errors,
    print_json,
)

if TYPE_CHECKING:
    from kernel_gym.packages.models import Deployment
    from kernel_gym.packages.models.report import Phase, Tokens


def deploy(
    package: Annotated[Path, typer.Argument(help="A package.", exists=True, file_okay=False)],
    model: Annotated[
        str,
        typer.Option(help="A config.json, a folder with one, or a model type for a tiny model."),
    ],
    device: Annotated[
        str, typer.Option("--device", "-d", help="sim:gfx942, cuda:0 or cpu.")
    ] = "sim:gfx942",
    json: JsonOption = False,
) -> None:
    """Put a package into a model of transformers with random weights; compare values and times.

    Reports what was replaced and what was not; errors against the model in fp64, gradients and 64
    greedy tokens; and the gain of prefill and decode beside its prediction from the operator alone.
    The package's code runs as you would run it. Exit code 1 if nothing was replaced, or the model
    is not right with the package.

    Example: kernel-gym deploy swiglu-package --model llama
    """
    from kernel_gym.packages.models import deploy as deploy_package

    with one_line_errors(), messages.status(f"running {model} on {device}"):
        deployment = deploy_package(package, model, device)
    if json:
        print_json(deployment.model_dump(mode="json"))
    else:
        _show(deployment)
    if not deployment.parity:
        raise typer.Exit(FAILED)


def _show(deployment: Deployment) -> None:
    lines = [
        f"{deployment.task} in {deployment.model} ({deployment.parameters} parameters, "
        f"{deployment.dtype}) on {deployment.device}, times are {deployment.clock}"
    ]
    if deployment.omitted_quantization:
        lines.append(
            f"  the configuration asks for quantization {deployment.omitted_quantization!r}; the "
            "model is built without it"
        )
    for site in deployment.sites:
        where = f"{len(site.modules)} x {site.kind}"
        how = f"replaced by {site.replaced_by} ({site.mechanism})"
        lines.append(f"  {where}: {how if site.replaced_by else f'not replaced: {site.reason}'}")
    for part in deployment.closeness:
        lines.append(
            f"  {part.output}: error {part.replaced:.2e} of the values, "
            f"{part.original:.2e} without the package: {'right' if part.right else 'WRONG'}"
        )
    if deployment.tokens is not None:
        lines.append(_tokens_line(deployment.tokens))
    for phase in deployment.phases:
        lines += _phase_lines(phase)
    for refusal in deployment.refusals:
        calls = f"{refusal.calls} calls of replaced places ran the model's own code"
        lines.append(f"  {refusal.phase}: {calls}: {refusal.reason}")
    if deployment.uncaptured:
        lines.append(f"  a token could not be captured: {deployment.uncaptured}")
    if deployment.failure:
        lines.append(f"  the model failed: {deployment.failure}")
    lines.append(f"  parity: {'yes' if deployment.parity else 'NO'}")
    for line in lines:
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def _tokens_line(tokens: Tokens) -> str:
    line = f"  tokens: {tokens.equal} of {tokens.steps} equal in {tokens.requests} sequences"
    if tokens.margin is not None and tokens.error is not None:
        line += f"; then fp64 differs by {tokens.margin:.1e}, errors are {tokens.error:.1e}"
    return line


def _phase_lines(phase: Phase) -> list[str]:
    rate = f", {phase.tokens / phase.replaced_seconds:.0f} tokens/s" if phase.tokens else ""
    lines = [
        f"  {phase.name}: {1e6 * phase.seconds:.1f} us, with the package "
        f"{1e6 * phase.replaced_seconds:.1f} us: gain {phase.gain:.3f} "
        f"({phase.gain_low:.3f} to {phase.gain_high:.3f} of {phase.pairs} pairs){rate}"
    ]
    if phase.operator_gain is not None and phase.predicted_gain is not None:
        lines.append(
            f"    predicted {phase.predicted_gain:.3f}: the operator alone is "
            f"{phase.operator_gain:.2f} times faster, its share is {100 * phase.share:.1f} %"
        )
    if phase.kernel_calls < phase.calls:
        calls = f"{phase.kernel_calls} of {phase.calls} calls ran the kernel"
        lines.append(f"    {calls}: {phase.fallback_reason}")
    return lines + ([f"    {phase.note}"] if phase.note else [])
