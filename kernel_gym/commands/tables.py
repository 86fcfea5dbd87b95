"""Tables that a narrow terminal folds and never cuts."""

from __future__ import annotations

from collections.abc import Collection

from rich import box
from rich.table import Table


def folding_table(
    *headers: str, right: Collection[str] = (), whole: Collection[str] = (), title: str = ""
) -> Table:
    """Returns an empty table. A cell that does not fit continues in the next line.

    Args:
        headers: The names of the columns. The first one tells the rows apart.
        right: The columns of numbers, which are set to the right.
        whole: The columns whose cells stay in one line. All of them have to fit the terminal.
        title: What stands above the table.
    """
    table = Table(title=title or None, title_style="bold", title_justify="left", box=box.SIMPLE)
    table.show_edge = table.pad_edge = False
    table.collapse_padding = True
    for header in headers:
        table.add_column(
            header,
            justify="right" if header in right else "left",
            overflow="fold",
            no_wrap=header in whole,
        )
    return table
