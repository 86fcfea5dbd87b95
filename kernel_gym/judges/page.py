"""The matrix of verdicts as a page that a reader can filter, and as tables of Markdown."""

from __future__ import annotations

from collections.abc import Sequence

from jinja2 import Environment, PackageLoader, StrictUndefined

from kernel_gym.judges.report import JudgeScore, is_error, kinds_of, present_rows, scores
from kernel_gym.judges.verdicts import JudgeVerdict

HEADS = (
    "judge",
    "right refused",
    "wrong accepted",
    "cheats accepted",
    "pays them (median)",
    "pays a kernel with itself",
    "CPU s a verdict",
    "could not say",
)


def matrix_page(rows: Sequence[JudgeVerdict]) -> str:
    """Returns a page of HTML with a cell for each judge and candidate."""
    present = present_rows(rows)
    judges = sorted({row.judge for row in present})
    cells: dict[str, dict[str, JudgeVerdict]] = {}
    for row in present:
        cells.setdefault(row.candidate, {})[row.judge] = row
    environment = Environment(
        loader=PackageLoader("kernel_gym.judges", "."),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    template = environment.get_template("matrix.html.j2")
    return template.render(
        heads=HEADS, scores=scores(present), judges=judges, cells=cells, is_error=is_error
    )


def score_table(judged: Sequence[JudgeScore]) -> str:
    """Returns the errors of judges as a table of Markdown."""
    lines = [_line(HEADS), _line(["---"] + ["--:"] * (len(HEADS) - 1))]
    return "\n".join([*lines, *(_line(score.cells) for score in judged)]) + "\n"


def kind_table(rows: Sequence[JudgeVerdict]) -> str:
    """Returns errors and verdicts by kind of candidate and judge as a table of Markdown."""
    judges = sorted({row.judge for row in present_rows(rows)})
    lines = [_line(["kind", *judges]), _line(["---"] + ["--:"] * len(judges))]
    for kind, counts in kinds_of(rows).items():
        cells = ("/".join(map(str, counts[name])) if name in counts else "-" for name in judges)
        lines.append(_line([f"`{kind}`", *cells]))
    return "\n".join(lines) + "\n"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
