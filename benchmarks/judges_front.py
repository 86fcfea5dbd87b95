"""The judges in README and on the home page: three lines of their table, and a chart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.judges_page import RENEW
from benchmarks.marks import filled
from kernel_gym.judges.corpus import ITSELF
from kernel_gym.judges.report import JudgeScore, quick_rows, scores
from kernel_gym.judges.verdicts import JudgeVerdict

SHOWN = ("kernel-gym", "flashinfer-bench", "kernelbench")
"""Judges on these pages: this one, the other one with the fewest errors, and the most used one."""
FRONT_PAGES = (Path("README.md"), Path("docs/index.md"))
CHART = Path("docs/images/judges.svg")


def front_page(page: Path, text: str, rows: Sequence[JudgeVerdict]) -> str:
    """Returns one of the front pages with three lines of the table.

    Args:
        page: The page, for errors.
        text: The page as it is.
        rows: The rows of all judges.

    Raises:
        InputError: The page lacks its mark.
    """
    compared = quick_rows(rows)
    judged = {score.judge: score for score in scores(compared)}
    number = len({row.candidate for row in compared if not row.candidate.endswith(f"/{ITSELF}")})
    lines = [
        f"Quick set, {number} candidates:",
        "",
        "| judge | right refused | wrong accepted | cheats accepted |",
        "|---|--:|--:|--:|",
    ]
    for name in SHOWN:
        score = judged[name]
        rates = (score.refused_right, score.accepted_wrong, score.accepted_cheats)
        cells = (f"{rate.errors} of {rate.number}" for rate in rates)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return filled(page, text, "judges", RENEW, "\n".join(lines) + "\n")


ROW, LABEL, BAR = 24, 170, 380
"""Height of a row, width of the names and of the longest bar, in pixels."""


def judge_chart(judged: Sequence[JudgeScore]) -> str:
    """Returns bars as SVG: the share of wrong and cheating kernels that each judge accepts."""
    shares = []
    for score in judged:
        rates = score.accepted_wrong, score.accepted_cheats
        number = sum(rate.number for rate in rates)
        if number:
            errors = sum(rate.errors for rate in rates)
            shares.append((errors / number, score.judge, f"{errors} of {number}"))
    height = ROW * len(shares) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {LABEL + BAR + 90} {height}" '
        'role="img" font-family="system-ui, sans-serif" font-size="13">',
        "<title>Wrong and cheating kernels that each judge accepts</title>",
        "<style>text{fill:#1b2129}rect{fill:#0b62bf}@media(prefers-color-scheme:dark)"
        "{text{fill:#e6e9ee}rect{fill:#6cb2ff}}</style>",
    ]
    for place, (share, judge, text) in enumerate(sorted(shares)):
        top = ROW * place + 5
        width = max(1.0, BAR * share)
        parts += [
            f'<text x="{LABEL - 8}" y="{top + 15}" text-anchor="end">{judge}</text>',
            f'<rect x="{LABEL}" y="{top + 3}" width="{width:.1f}" height="{ROW - 8}"/>',
            f'<text x="{LABEL + width + 6:.1f}" y="{top + 15}">{text}</text>',
        ]
    return "\n".join([*parts, "</svg>"]) + "\n"
