"""Writes an evidence card: JSON for programs, HTML for people, Markdown for a pull request."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined

from kernel_gym.formatting import describe, duration, factor
from kernel_gym.inert import inert_line
from kernel_gym.profiles import profile_of
from kernel_gym.records import Clock
from kernel_gym.referee.judge import Card, Ruling
from kernel_gym.tasks.problem import Scale

SCHEMA_VERSION = 1
CLOCKS = {
    Clock.MODELLED: "Times are modelled by a simulator of the machine code. No GPU was measured.",
    Clock.MEASURED: "Times are measured on the device, in paired blocks.",
}
_MARKS = {True: "yes", False: "**no**", None: "cannot be judged"}


def card_data(card: Card) -> dict[str, object]:
    """The card as JSON. It has the whole records, so that an evaluation can be repeated."""
    kernel = card.evaluations.get("kernel")
    return {
        "schema_version": SCHEMA_VERSION,
        "ruling": str(card.ruling),
        "checks": [{"name": c.name, "holds": c.holds, "text": c.text} for c in card.checks],
        "speedup": kernel.speedup if kernel else None,
        "speedup_low": kernel.speedup_low if kernel else None,
        "derived_speedup_low": kernel.unseen_speedup_low if kernel else None,
        "device": card.device,
        "clock": card.clock,
        "files": card.claim.files,
        "sha256": card.digests,
        "statement": card.claim.statement.model_dump(mode="json"),
        "judged_shapes": [dict(dims) for dims in card.claim.problem.train[_scale(card)]],
        "profile": profile_of(kernel) if kernel else {},
        "evaluations": {n: e.model_dump(mode="json") for n, e in card.evaluations.items()},
    }


def card_markdown(card: Card) -> str:
    """The card as a comment for a pull request. Texts of the kernel are inert."""
    lines = [
        f"### kernel-gym referee: the claim {card.ruling}",
        "",
        f"`{_cell(card.claim.files.get('kernel', ''))}` on {card.device}. "
        f"{CLOCKS[Clock(card.clock)]}",
        "",
        "| statement | holds | evidence |",
        "|---|---|---|",
        *(f"| {_cell(c.name)} | {_MARKS[c.holds]} | {_cell(c.text)} |" for c in card.checks),
        "",
    ]
    rows = _rows(card)
    if rows:
        lines += ["| workload | baseline | kernel | speedup |", "|---|---|---|---|"]
        lines += [f"| {' | '.join(map(_cell, row))} |" for row in rows] + [""]
    return "\n".join(lines)


def card_html(card: Card) -> str:
    """The card as one HTML page without scripts."""
    environment = Environment(
        loader=PackageLoader("kernel_gym.referee", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("card.html.j2").render(
        card=card,
        good=card.ruling is Ruling.HOLDS,
        reading=CLOCKS[Clock(card.clock)],
        rows=_rows(card),
    )


def _scale(card: Card) -> Scale:
    """The scale of the workloads that a device of this clock is given."""
    return Scale.FULL if card.clock == Clock.MEASURED else Scale.SIM


def _rows(card: Card) -> list[tuple[str, str, str, str]]:
    kernel = card.evaluations.get("kernel")
    return [
        (
            f"{result.split}: {describe(result)}",
            duration(result.baseline_seconds),
            duration(result.candidate_seconds),
            factor(result.speedup),
        )
        for result in (kernel.workloads if kernel else ())
        if result.speedup is not None
    ]


def _cell(text: str) -> str:
    r"""One inert cell of a Markdown table.

    Example:
        >>> _cell("a | b\n<img> [x](y) @all")
        'a \\| b\\\\n&lt;img&gt; \\[x\\](y) @\u200ball'
    """
    safe = inert_line(text, 500).replace("\\", "\\\\").replace("|", "\\|").replace("&", "&amp;")
    safe = safe.replace("<", "&lt;").replace(">", "&gt;").replace("[", "\\[").replace("]", "\\]")
    return safe.replace("`", "'").replace("@", "@\u200b")
