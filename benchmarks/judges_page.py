"""The tables of the pages on judges, from the rows in `benchmarks/results/judges`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from kernel_gym.judges.adapter import NAMES, JudgeAdapter, load_adapter
from kernel_gym.judges.outside import CORPORA, OutsideCorpus
from kernel_gym.judges.page import kind_table, score_table
from kernel_gym.judges.report import held_out, present_rows, quick_rows, scores
from kernel_gym.judges.verdicts import JudgeVerdict, read_verdicts

ROWS = Path("benchmarks/results/judges")
"""Files of rows, one a judge, relative to a checkout; `outside/` has those on corpora of others."""
PAGES = ("docs/judges.md", "docs/judges/settings.md", "docs/judges/outside.md")
MARK = "<!-- {}: written by `python -m benchmarks renew` -->"
END = "<!-- end -->"


def judges_pages(root: Path = Path()) -> dict[Path, str]:
    """Returns the pages with new tables, by their paths.

    Args:
        root: The checkout.

    Raises:
        ValueError: A mark is on no page, or on several.
    """
    rows = present_rows(stored_rows(root / ROWS))
    parts = _parts(rows, read_verdicts(sorted((root / ROWS / "outside").glob("*.jsonl"))))
    texts = {root / page: (root / page).read_text(encoding="utf-8") for page in PAGES}
    for name, part in parts.items():
        mark = MARK.format(name)
        having = [page for page, text in texts.items() if mark in text]
        if len(having) != 1:
            raise ValueError(f"found {mark} on {len(having)} pages, expected one")
        texts[having[0]] = _replaced(texts[having[0]], mark, part)
    return texts


def _parts(rows: Sequence[JudgeVerdict], outside: Sequence[JudgeVerdict]) -> dict[str, str]:
    compared = quick_rows(rows)
    whole = rows_of_the_whole_corpus(rows, compared)
    runner = ", ".join(sorted({row.runner for row in rows}))
    commit = f"All rows are of kernel-gym at commit `{runner}`.\n"
    return {
        "rates": score_table(scores(compared)),
        "kinds": kind_table(compared),
        "held-out": score_table(scores(held_out(compared))),
        "whole": score_table(scores(whole)),
        "whole held-out": score_table(scores(held_out(whole))),
        "commit": commit,
        "settings": "\n".join([commit, *(_settings(name, rows) for name in NAMES)]),
        "outside": "\n".join(_outside(corpus, outside) for corpus in CORPORA),
    }


def rows_of_the_whole_corpus(
    rows: Sequence[JudgeVerdict], compared: Sequence[JudgeVerdict]
) -> list[JudgeVerdict]:
    """Returns the rows of judges that have more than the rows that are compared."""
    counts = Counter(row.judge for row in rows)
    quick = Counter(row.judge for row in compared)
    return [row for row in rows if counts[row.judge] > quick[row.judge]]


def stored_rows(folder: Path = ROWS) -> list[JudgeVerdict]:
    """Returns the stored rows on our corpus."""
    return read_verdicts(sorted(folder.glob("*.jsonl")))


def _settings(name: str, rows: Sequence[JudgeVerdict]) -> str:
    """Returns the section of a judge: its choices, and the commands that repeat its row."""
    adapter: JudgeAdapter = load_adapter(name)
    commits = {row.commit for row in rows if row.judge == name}
    lines = [f"### {name}", "", adapter.settings, "", "```sh"]
    for commit in sorted(commits):
        lines.append(getattr(adapter, "install", "") or _clone(adapter, commit))
    lines.append(f"kernel-gym judges run {name} {name} --quick --out {name}.jsonl")
    return "\n".join([*lines, "```", ""])


def _clone(adapter: JudgeAdapter, commit: str) -> str:
    url = f"https://github.com/{adapter.repository}"
    return f"git clone {url} {adapter.name} && git -C {adapter.name} checkout {commit}"


def _outside(corpus: OutsideCorpus, rows: Sequence[JudgeVerdict]) -> str:
    """Returns the table of a corpus of others."""
    known = [row for row in rows if row.candidate.startswith(corpus.prefix)]
    number = len({row.candidate for row in known})
    named = f"{corpus.repository}, licence: {corpus.licence}"
    return f"**{corpus.name}** ({named}), {number} candidates:\n\n{score_table(scores(known))}"


def _replaced(text: str, mark: str, part: str) -> str:
    head, _, rest = text.partition(mark + "\n")
    _, end, tail = rest.partition(END)
    if not end:
        raise ValueError(f"{mark} has no end")
    return f"{head}{mark}\n\n{part}\n{END}{tail}"
