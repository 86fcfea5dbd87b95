"""The tables of the pages on judges, from the rows in `benchmarks/results/judges`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.marks import MARK, filled
from kernel_gym.judges.adapter import NAMES, JudgeAdapter, load_adapter
from kernel_gym.judges.outside import CORPORA, OutsideCorpus
from kernel_gym.judges.page import kind_table, score_table
from kernel_gym.judges.report import held_out, present_rows, quick_rows, scores
from kernel_gym.judges.verdicts import JudgeVerdict, read_verdicts

ROWS = Path("benchmarks/results/judges")
"""Files of rows on the quick set, one a judge, relative to a checkout. `whole/` has those on the
whole corpus, `sums/` those on the second corpus, `outside/` those on corpora of others."""
PAGES = (
    *("docs/judges.md", "docs/judges/whole.md", "docs/judges/sums.md"),
    *("docs/judges/settings.md", "docs/judges/outside.md"),
)
RENEW = "python -m benchmarks renew"


def judges_pages(root: Path = Path()) -> dict[Path, str]:
    """Returns the pages with new tables, by their paths.

    Args:
        root: The checkout.

    Raises:
        ValueError: A mark is on no page, or on several.
    """
    rows = present_rows(stored_rows(root / ROWS))
    whole = present_rows(stored_rows(root / ROWS / "whole"))
    sums = present_rows(stored_rows(root / ROWS / "sums"))
    parts = _parts(rows, whole, sums, stored_rows(root / ROWS / "outside"))
    texts = {root / page: (root / page).read_text(encoding="utf-8") for page in PAGES}
    for name, part in parts.items():
        mark = MARK.format(name, RENEW)
        having = [page for page, text in texts.items() if mark in text]
        if len(having) != 1:
            raise ValueError(f"found {mark} on {len(having)} pages, expected one")
        texts[having[0]] = filled(having[0], texts[having[0]], name, RENEW, part)
    return texts


def _parts(
    rows: Sequence[JudgeVerdict],
    whole: Sequence[JudgeVerdict],
    sums: Sequence[JudgeVerdict],
    outside: Sequence[JudgeVerdict],
) -> dict[str, str]:
    compared = quick_rows(rows)
    commit = commit_lines(rows)
    return {
        "rates": score_table(scores(compared)),
        "kinds": kind_table(compared),
        "held-out": score_table(scores(held_out(compared))),
        "whole": score_table(scores(whole)),
        "whole kinds": kind_table(whole),
        "whole held-out": score_table(scores(held_out(whole))),
        "whole commit": commit_lines(whole) + repeated_line(rows, whole),
        "sums": score_table(scores(sums)),
        "sums kinds": kind_table(sums),
        "sums held-out": score_table(scores(held_out(sums))),
        "sums commit": commit_lines(sums),
        "commit": commit,
        "settings": "\n".join([commit, *(_settings(name, rows, whole, sums) for name in NAMES)]),
        "outside": "\n".join(_outside(corpus, outside) for corpus in CORPORA),
    }


def commit_lines(rows: Sequence[JudgeVerdict]) -> str:
    """Returns how many rows each judge has, and which commit of kernel-gym made them."""
    counts = Counter((row.judge, row.runner) for row in rows)
    judges: dict[tuple[str, int], list[str]] = {}
    for (judge, runner), number in sorted(counts.items()):
        judges.setdefault((runner, number), []).append(judge)
    lines = [
        f"- {', '.join(names)}: {number} verdicts each, kernel-gym at commit `{runner}`."
        for (runner, number), names in sorted(judges.items(), reverse=True)
    ]
    return "\n".join(lines) + "\n"


def repeated_line(rows: Sequence[JudgeVerdict], whole: Sequence[JudgeVerdict]) -> str:
    """Returns how many verdicts the run on the whole corpus repeats, and which it does not."""
    first = {(row.judge, row.digest): row.answer for row in rows}
    both = [(row, first.get((row.judge, row.digest))) for row in whole]
    repeated = [(row, answer) for row, answer in both if answer is not None]
    changed = [
        f"{row.judge} on `{row.candidate}` ({answer}, then {row.answer})"
        for row, answer in repeated
        if row.answer is not answer
    ]
    named = f": {', '.join(changed)}" if changed else ""
    number = f"{len(repeated)} verdicts of the quick set were repeated"
    return f"- {number}, and {len(changed)} changed{named}.\n"


def stored_rows(folder: Path = ROWS) -> list[JudgeVerdict]:
    """Returns the stored rows of a folder."""
    return read_verdicts(sorted(folder.glob("*.jsonl")))


def _settings(
    name: str,
    rows: Sequence[JudgeVerdict],
    whole: Sequence[JudgeVerdict],
    sums: Sequence[JudgeVerdict],
) -> str:
    """Returns the section of a judge: its choices, and the commands that repeat its rows."""
    adapter: JudgeAdapter = load_adapter(name)
    commits = {row.commit for row in rows if row.judge == name}
    lines = [f"## {name}", "", adapter.settings, "", "```sh"]
    for commit in sorted(commits) or [""]:
        lines.append(getattr(adapter, "install", "") or _clone(adapter, commit))
    run = f"kernel-gym judges run {name} {name}"
    lines.append(f"{run} --quick --out {name}.jsonl")
    if any(row.judge == name for row in whole):
        lines.append(f"{run} --out whole-{name}.jsonl")
    if any(row.judge == name for row in sums):
        lines.append(f"{run} --sums --out sums-{name}.jsonl")
    return "\n".join([*lines, "```", ""])


def _clone(adapter: JudgeAdapter, commit: str) -> str:
    url = f"https://github.com/{adapter.repository}"
    clone = f"git clone {url} {adapter.name}"
    return f"{clone} && git -C {adapter.name} checkout {commit}" if commit else clone


def _outside(corpus: OutsideCorpus, rows: Sequence[JudgeVerdict]) -> str:
    """Returns the table of a corpus of others."""
    known = [row for row in rows if row.candidate.startswith(corpus.prefix)]
    number = len({row.candidate for row in known})
    named = f"{corpus.repository}, licence: {corpus.licence}"
    return f"**{corpus.name}** ({named}), {number} candidates:\n\n{score_table(scores(known))}"
