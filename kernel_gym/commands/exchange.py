"""`kernel-gym export` and `kernel-gym import`: datasets of judged replies, and checkouts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernel_gym.commands.common import (
    FAILED,
    DeviceOption,
    ExecutorOption,
    JsonOption,
    SecretOption,
    console,
    executor_arguments,
    note,
    one_line_errors,
    print_json,
)
from kernel_gym.commands.imports import import_checkout

if TYPE_CHECKING:
    from kernel_gym.exchange.files import Row


def export(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="A run folder.")],
    out: Annotated[
        Path, typer.Option(help="A file: .parquet, or .jsonl for JSON lines; or a folder.")
    ],
    form: Annotated[
        str,
        typer.Option(
            "--format",
            help="messages, preferences, verl or apex; for imported suites tritonbench, or as a "
            "folder agentkernelarena, geak-eval, geak-agent, kernelbenchx, kernelbench, "
            "sol-execbench or flashinfer-bench.",
        ),
    ] = "messages",
    only: Annotated[
        str, typer.Option(help="all, right, or gain: faster than the baseline for certain.")
    ] = "all",
) -> None:
    """Write the judged replies of a run as a dataset, each with the evidence to replay it.

    Example: kernel-gym export runs/demo --format preferences --out pairs.jsonl
    """
    from kernel_gym.exchange.files import write_rows
    from kernel_gym.exchange.formats import SUITE_FORMATS
    from kernel_gym.exchange.replies import ONLY, REPLY_FORMATS, reply_rows
    from kernel_gym.storage.run_store import RunStore
    from kernel_gym.tasks import UnknownName

    with one_line_errors():
        formats = [*REPLY_FORMATS, *SUITE_FORMATS]
        for what, name, known in (("format", form, formats), ("filter", only, ONLY)):
            if name not in known:
                raise UnknownName(what, name, known)
        store = RunStore(folder)
        if form in SUITE_FORMATS:
            line = SUITE_FORMATS[form](store, out)
            console.print(line, highlight=False, soft_wrap=True)
            return
        rows = reply_rows(store, form, only)
        write_rows(out, rows)
    console.print(f"{len(rows)} rows: {out}", highlight=False, soft_wrap=True)


def import_(
    source: Annotated[Path, typer.Argument(help="A dataset of replies, or a suite's checkout.")],
    suite: Annotated[str | None, typer.Option(help="Only this suite of a checkout.")] = None,
    only: Annotated[
        str,
        typer.Option(help="Tasks of a checkout whose names fit a glob; commas separate several."),
    ] = "*",
    out: Annotated[
        Path | None,
        typer.Option(
            help="A folder for manifests, the suite file for a dataset of prompts, or the dataset "
            "for a corpus of pairs."
        ),
    ] = None,
    device: DeviceOption = "sim:gfx942",
    executor: ExecutorOption = "local",
    workers: Annotated[
        int | None, typer.Option(min=1, help="Tasks or evaluations at a time.")
    ] = None,
    secret: SecretOption = None,
    json: JsonOption = False,
) -> None:
    """Import the suites of a checkout as tasks, or the prompts or replies of a dataset.

    A folder is a checkout (docs/suites.md). A file is a dataset: prompts become a suite of their
    tasks, replies are evaluated, and the corpus of KernelBenchX becomes a dataset of chats. Exit
    code 1 says that a reply differs from its evidence; rows with evidence need the --secret of
    their run, others are only judged.

    Examples: kernel-gym import TritonBench --only 'softmax*'
    kernel-gym import pairs.jsonl --secret runs/demo
    """
    if source.is_dir():
        import_checkout(source, suite, only, out, device, workers, json)
        return
    from kernel_gym.exchange.back import is_prompt
    from kernel_gym.exchange.files import read_rows
    from kernel_gym.exchange.kbx_corpus import is_corpus
    from kernel_gym.executors import require_executor

    with one_line_errors():
        require_executor(executor)
        rows = read_rows(source)
        if is_corpus(rows):
            _write_chats(source, out or source.with_suffix(".chats.jsonl"), rows, device)
            return
        if rows and all(map(is_prompt, rows)):
            _write_suite(source, out or source.with_suffix(".toml"), rows)
            return
    _judge_rows(rows, executor, device, workers, secret, json)


def _judge_rows(
    rows: Sequence[Row],
    executor: str,
    device: str,
    workers: int | None,
    secret: Path | None,
    json: bool,
) -> None:
    """Evaluates the replies of a dataset. Exit code 1 when one differs from its evidence."""
    from kernel_gym.exchange.back import judged, submissions
    from kernel_gym.executors import is_service, make_executor
    from kernel_gym.storage.secret import PUBLIC, read_secret

    with one_line_errors():
        stored = submissions(rows)
        arguments = executor_arguments(executor, device, None, workers)
        if not is_service(executor):
            # A run without a seed drew its seeds at random and without a secret.
            named = {row.evidence["secret_sha256"] for row in stored if row.evidence}
            arguments["secret"] = read_secret(secret) if secret and named != {""} else PUBLIC
        pool = make_executor(executor, **arguments)
    with pool, one_line_errors():
        results = list(judged(stored, pool))
    differ = [f"{row.task}: {difference}" for row, _, difference in results if difference]
    outcomes = Counter(str(evaluation.outcome) for _, evaluation, _ in results)
    if json:
        print_json({"evaluated": len(results), "outcomes": outcomes, "differ": differ})
    else:
        for line in differ:
            note(line)
        counted = ", ".join(f"{name} {count}" for name, count in outcomes.most_common())
        console.print(f"{len(results)} evaluated: {counted}; {len(differ)} differ")
    if differ:
        raise typer.Exit(FAILED)


def _write_chats(source: Path, path: Path, rows: Sequence[Row], device: str) -> None:
    """Writes the pairs of a corpus as chats."""
    from kernel_gym.exchange.files import write_rows
    from kernel_gym.exchange.kbx_corpus import corpus_rows

    chats = corpus_rows(rows, device)
    write_rows(path, chats)
    told = f"{len(chats)} of {len(rows)} pairs of {source.name}: {path}"
    console.print(told, highlight=False, soft_wrap=True)


def _write_suite(source: Path, path: Path, rows: Sequence[Row]) -> None:
    """Writes the tasks of a dataset of prompts as a suite."""
    from json import dumps

    from kernel_gym.exchange.back import tasks_of
    from kernel_gym.storage.json_lines import write_whole

    tasks = tasks_of(rows)
    summary = dumps(f"The tasks of {source.name}.")
    lines = [f"name = {dumps(source.stem)}", f"summary = {summary}", f"tasks = {dumps(tasks)}"]
    write_whole(path, "\n".join(lines) + "\n")
    told = f"{len(tasks)} tasks: {path}; play them with --suite {path}"
    console.print(told, highlight=False, soft_wrap=True)
