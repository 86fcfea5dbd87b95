"""The tables of docs/judges.md, from the rows in `benchmarks/results/judges`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.marks import filled
from kernel_gym.judges.adapter import NAMES, JudgeAdapter, load_adapter
from kernel_gym.judges.page import kind_table, score_table
from kernel_gym.judges.report import JudgeScore, held_out, quick_rows, scores
from kernel_gym.judges.verdicts import JudgeVerdict, read_verdicts

ROWS = Path("benchmarks/results/judges")
"""Files of rows, one a judge, relative to a checkout."""
PAGE = Path("docs/judges.md")
RENEW = "python -m benchmarks renew"


def judges_page(text: str, rows: Sequence[JudgeVerdict]) -> str:
    """Returns the page with new tables.

    Args:
        text: The page as it is.
        rows: The rows of all judges.

    Raises:
        InputError: The page lacks a mark.
    """
    commits = sorted({(row.judge, row.commit) for row in rows})
    settings = [f"- **{name}** ({one.repository}): {one.settings}" for name, one in _adapters()]
    compared = quick_rows(rows)
    whole = rows_of_the_whole_corpus(rows, compared)
    parts = {
        "rates": score_table(compared),
        "kinds": kind_table(compared),
        "held-out": score_table(held_out(compared)),
        "whole": score_table(whole),
        "whole held-out": score_table(held_out(whole)),
        "settings": "\n".join(settings) + "\n",
        "commits": "\n".join(f"- {judge}: `{commit[:16]}`" for judge, commit in commits) + "\n",
    }
    for name, part in parts.items():
        text = filled(PAGE, text, name, RENEW, part)
    return text


SHOWN = ("kernel-gym", "flashinfer-bench", "kernelbench")
"""Judges in the README: this one, the other one with the fewest errors, and the most used one."""
README, CHART = Path("README.md"), Path("docs/images/judges.svg")


def readme_page(text: str, rows: Sequence[JudgeVerdict]) -> str:
    """Returns the README with three lines of the table.

    Args:
        text: The README as it is.
        rows: The rows of all judges.

    Raises:
        InputError: The README lacks its mark.
    """
    judged = {score.judge: score for score in scores(quick_rows(rows))}
    lines = ["| judge | right refused | wrong accepted | cheats accepted |", "|---|--:|--:|--:|"]
    for name in SHOWN:
        score = judged[name]
        rates = (score.refused_right, score.accepted_wrong, score.accepted_cheats)
        cells = (f"{rate.errors} of {rate.number}" for rate in rates)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return filled(README, text, "judges", RENEW, "\n".join(lines) + "\n")


def rows_of_the_whole_corpus(
    rows: Sequence[JudgeVerdict], compared: Sequence[JudgeVerdict]
) -> list[JudgeVerdict]:
    """Returns the rows of judges that have more than the rows that are compared."""
    counts = Counter(row.judge for row in rows)
    quick = Counter(row.judge for row in compared)
    return [row for row in rows if counts[row.judge] > quick[row.judge]]


def stored_rows(folder: Path = ROWS) -> list[JudgeVerdict]:
    """Returns the stored rows."""
    return read_verdicts(sorted(folder.glob("*.jsonl")))


def _adapters() -> list[tuple[str, JudgeAdapter]]:
    return [(name, load_adapter(name)) for name in NAMES]


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
