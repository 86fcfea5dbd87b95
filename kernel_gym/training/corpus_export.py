"""Writes a corpus of graphs as a dataset: pairs in TRL's format, a suite, and a data card."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernel_gym.executors import Executor
from kernel_gym.records import Outcome
from kernel_gym.training.corpus import CorpusRow
from kernel_gym.training.inductor_corpus import JOURNAL, GraphTrial, refusals

TRAIN, HELD_OUT, CARD, SUITE = "train.jsonl", "held_out.jsonl", "README.md", "held_out.toml"

_CARD = """\
---
license: {license}
task_categories: [text-generation]
tags: [code, triton, gpu-kernels, synthetic]
configs:
- config_name: default
  data_files:
  - split: train
    path: {train_file}
  - split: test
    path: {held_out_file}
---

# Graphs and Triton kernels

Synthetic pairs of a graph of operators and a whole Triton kernel that computes it, from {origins}.
The operators work on each row of a matrix; there are no matrix products.

| split | pairs | graphs | judged | of these right |
|---|--:|--:|--:|--:|
{table}

Structures of the kernels in `train`: {structures}.

- **Limits**: kernels of the structures `whole` and `persistent` are right up to 16,384 columns. For
  some wider rows they need more LDS than there is, and do not compile.
- **Made by** `{command}`,
  from nothing: no data of others is in it.{inductor}
- **Rows** have `prompt` and `completion` as chats, which TRL reads, the `task` of kernel-gym that
  judges replies, and the `structure` and `schedule` of the kernel.
- **Split**: one of ten pairs of operators that follow each other is held out, and one of ten chains
  of the others, whatever the dtypes and constants. Half of the held-out graphs have such a pair.
- **Duplicates**: no two pairs have the same prompt and the same syntax tree, with names replaced.
- **Judged** means evaluated by kernel-gym on `{device}`: values against an fp64 oracle on train,
  adversarial and unseen workloads. A judged kernel that is not right is left out.
"""


_INDUCTOR = """
- **TorchInductor**: it was asked for {trials} training graphs, and {pairs} of its kernels passed.
  These are the pairs of the structure `inductor`, in a short form with names of the graph.
  Refused: {refused} (`{journal}` has the reasons). {made_by}.
  PyTorch has the license BSD-3-Clause, and these kernels are written by its code generator."""


@dataclass(frozen=True)
class JudgedRows:
    """The rows of one split, after those that were judged and not right have been left out."""

    rows: Sequence[CorpusRow]
    judged: int
    right: int


def judge_rows(rows: Sequence[CorpusRow], count: int, executor: Executor) -> JudgedRows:
    """Evaluates the first rows and leaves out those that are not right.

    Args:
        rows: The rows of a split.
        count: Most rows that are evaluated.
        executor: Evaluates them.
    """
    waiting = [executor.submit(row.task, row.source) for row in rows[:count]]
    kept = []
    for row, future in zip(rows, waiting, strict=False):
        result = future.result()
        if result.outcome is Outcome.PASSED:
            known = {name: getattr(result, name) for name in ("outcome", "clock", "speedup")}
            kept.append(row.model_copy(update={**known, "unseen_speedup": result.unseen_speedup}))
    return JudgedRows([*kept, *rows[count:]], len(waiting), len(kept))


def inductor_rows(trials: Sequence[GraphTrial]) -> JudgedRows:
    """Returns the pairs of the graphs for which PyTorch's compiler was asked."""
    judged = sum(each.row.outcome is not None for each in trials)
    rows = [each.row for each in trials if not each.refused]
    return JudgedRows(rows, judged, len(rows))


def write_dataset(
    folder: Path,
    train: JudgedRows,
    held_out: JudgedRows,
    command: str,
    device: str,
    trials: Sequence[GraphTrial] = (),
) -> None:
    """Writes a folder that Hugging Face's `datasets` loads.

    Args:
        folder: A folder; files of an earlier dataset are replaced.
        train: The training pairs from templates.
        held_out: One pair for each held-out graph.
        command: The command that makes it again, for the card.
        device: The device that judged it, for the card.
        trials: Training graphs for which PyTorch's compiler was asked. Their pairs come first, as a
            new tokenizer learns from the first rows.
    """
    compiled, templates = inductor_rows(trials), train
    train = JudgedRows(
        [*compiled.rows, *train.rows],
        compiled.judged + train.judged,
        compiled.right + train.right,
    )
    folder.mkdir(parents=True, exist_ok=True)
    for name, split in ((TRAIN, train), (HELD_OUT, held_out)):
        text = "".join(json.dumps(trl_row(row)) + "\n" for row in split.rows)
        (folder / name).write_text(text, encoding="utf-8")
    tasks = json.dumps([row.task for row in held_out.rows])
    suite = f'name = "held-out"\nsummary = "Held-out graphs of a corpus."\ntasks = {tasks}\n'
    (folder / SUITE).write_text(suite, encoding="utf-8")
    structures = Counter(row.structure for row in train.rows)
    card = _CARD.format(
        train_file=TRAIN,
        held_out_file=HELD_OUT,
        table="\n".join(_lines({"train": train, "test": held_out}.items())),
        structures=", ".join(f"{count} `{name}`" for name, count in structures.most_common()),
        command=command,
        device=device,
        license="[apache-2.0, bsd-3-clause]" if trials else "apache-2.0",
        origins=" and ".join(
            ["templates"] * bool(templates.rows) + ["TorchInductor"] * bool(compiled.rows)
        ),
        inductor=_inductor(trials) if trials else "",
    )
    (folder / CARD).write_text(card, encoding="utf-8")


def _inductor(trials: Sequence[GraphTrial]) -> str:
    return _INDUCTOR.format(
        trials=len(trials),
        pairs=len(inductor_rows(trials).rows),
        refused=refusals(trials),
        journal=JOURNAL,
        made_by=trials[0].made_by,
    )


def trl_row(row: CorpusRow) -> dict[str, object]:
    """Returns a row in TRL's conversational format of prompts and completions."""
    return {
        "prompt": [{"role": "user", "content": row.prompt}],
        "completion": [{"role": "assistant", "content": row.source}],
        "task": row.task,
        "structure": row.structure,
        "schedule": row.schedule,
        "outcome": row.outcome,
        "speedup": row.speedup,
    }


def _lines(splits: Iterable[tuple[str, JudgedRows]]) -> Iterable[str]:
    for name, split in splits:
        graphs = len({row.task for row in split.rows})
        yield f"| {name} | {len(split.rows)} | {graphs} | {split.judged} | {split.right} |"
