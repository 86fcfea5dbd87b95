"""Files of rows: Parquet for the formats that trainers read so, JSON lines for the others."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path

from kernel_gym.storage.json_lines import StoreError, write_whole

Row = dict[str, object]
PARQUET = ".parquet"


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """Writes rows, as Parquet if the name ends in `.parquet`, else as JSON lines.

    Raises:
        StoreError: There are no rows, or pyarrow is missing.
    """
    if not rows:
        raise StoreError(f"{path}: found no row to write; are the filters too narrow?")
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == PARQUET:
        _write_parquet(path, rows)
    else:
        write_whole(path, "".join(json.dumps(row) + "\n" for row in rows))


def read_rows(path: Path) -> list[Row]:
    """Reads rows of a Parquet file or of JSON lines.

    Raises:
        StoreError: The file is missing or malformed; the message names the line.
    """
    if not path.is_file():
        raise StoreError(f"{path}: there is no such file, expected Parquet or JSON lines")
    if path.suffix == PARQUET:
        return _read_parquet(path)
    return list(_lines(path))


def _lines(path: Path) -> Iterable[Row]:
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
    except UnicodeDecodeError as error:
        raise StoreError(f"{path}: found no UTF-8 at byte {error.start}") from None
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise StoreError(f"{path}, line {number}: found no JSON ({error})") from None
        if not isinstance(row, dict):
            raise StoreError(f"{path}, line {number}: found {type(row).__name__}, expected a row")
        yield row


def _write_parquet(path: Path, rows: Sequence[Row]) -> None:
    _require_arrow(path)
    import pyarrow
    import pyarrow.parquet

    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows)), path)


def _read_parquet(path: Path) -> list[Row]:
    _require_arrow(path)
    import pyarrow
    import pyarrow.parquet

    try:
        rows: list[Row] = pyarrow.parquet.read_table(path).to_pylist()
    except (pyarrow.ArrowException, OSError, ValueError, OverflowError) as error:
        raise StoreError(f"{path}: found no Parquet ({error})") from None
    return rows


def _require_arrow(path: Path) -> None:
    if find_spec("pyarrow") is None:
        raise StoreError(f"{path}: pyarrow is missing; install kernel-gym[train], or write .jsonl")
