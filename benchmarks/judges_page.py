"""The tables of docs/judges.md, from the rows in `benchmarks/results/judges`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.marks import filled
from kernel_gym.judges.adapter import NAMES, JudgeAdapter, load_adapter
from kernel_gym.judges.page import kind_table, score_table
from kernel_gym.judges.report import held_out, quick_rows
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
