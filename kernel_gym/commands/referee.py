"""`kernel-gym referee`: judge a kernel that someone claims is faster."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Annotated

import typer

from kernel_gym.commands.common import (
    BAD_INPUT,
    FAILED,
    DeviceOption,
    JsonOption,
    SeedOption,
    console,
    messages,
    note,
    one_line_errors,
    print_json,
)


def referee(
    kernel: Annotated[Path, typer.Option(help="The claimed kernel: .py, .hip or solution .json.")],
    inputs: Annotated[
        Path, typer.Option(help="The statement of inputs (.toml), or a KernelBench Model (.py).")
    ],
    baseline: Annotated[
        Path | None, typer.Option(help="What the claim compares with; by default PyTorch.")
    ] = None,
    device: DeviceOption = "auto",
    seed: SeedOption = None,
    out: Annotated[
        Path | None, typer.Option(help="Write card.json, card.html and comment.md here.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Judge a claim: is the kernel right, and faster than what it is compared with?

    Exit code 0 if the claim holds, 1 if it does not, 2 if it cannot be judged. Kernel, baseline and
    inputs run in confined processes. They decide what is claimed: read them before you believe it.

    Example: kernel-gym referee --kernel new.py --baseline old.py --inputs softmax.toml --out card
    """
    from kernel_gym.evaluator import Evaluator
    from kernel_gym.referee.card import card_data, card_html, card_markdown
    from kernel_gym.referee.claim import read_claim
    from kernel_gym.referee.judge import Ruling, judge
    from kernel_gym.storage.secret import RunSecret

    with one_line_errors(), messages.status(f"judging on {device}"):
        claim = read_claim(kernel, inputs, baseline)
        with Evaluator(device=device, seed=seed, secret=RunSecret.fresh()) as evaluator:
            card = judge(claim, evaluator)
    data, comment = card_data(card), card_markdown(card)
    if out is not None:
        with one_line_errors():
            out.mkdir(parents=True, exist_ok=True)
            text = json_module.dumps(data, indent=2, ensure_ascii=False) + "\n"
            (out / "card.json").write_text(text, encoding="utf-8")
            (out / "card.html").write_text(card_html(card), encoding="utf-8")
            (out / "comment.md").write_text(comment, encoding="utf-8")
    if json:
        print_json(data)
    else:
        console.print(comment, markup=False, highlight=False, soft_wrap=True)
    if card.ruling is Ruling.OPEN:
        note("error: the claim cannot be judged: " + "; ".join(card.reasons))
        raise typer.Exit(BAD_INPUT)
    if card.ruling is Ruling.FAILS:
        raise typer.Exit(FAILED)
