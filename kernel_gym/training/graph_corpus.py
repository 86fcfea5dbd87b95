"""A corpus without end: pairs of a generated graph and a right kernel for it.

Graphs are split before anything is drawn, by the names of their operators alone: one of ten pairs
of operators that follow each other is held out, and one of ten chains of the other pairs. A chain
has the same split with every dtype and constant. No training graph has a held-out pair.
"""

from __future__ import annotations

import ast
import builtins
import hashlib
import itertools
import multiprocessing
import os
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, suppress
from enum import StrEnum

from kernel_gym.episodes.episode import Prompt
from kernel_gym.tasks import Task, get_task
from kernel_gym.tasks.generated.graphs import DEPTHS, GeneratedGraph, count, graph
from kernel_gym.tasks.generated.problem import generated_id, generated_problem
from kernel_gym.tasks.names import Mode, UnknownName
from kernel_gym.training.corpus import CorpusError, CorpusRow
from kernel_gym.training.graph_kernels import (
    KernelPlan,
    bound_plan,
    draw_plan,
    kernel_source,
    writable,
)

HELD_OUT_SHARE = 10
"""One of this many pairs of operators is held out, and one of this many chains."""
MAX_REPEATS = 2000
"""Draws in a row without a new kernel after which the space is taken to be exhausted."""
SHARD = 4000
"""Most pairs that a process draws with one seed."""
SPARE = 100
"""Pairs that a shard draws beyond those that are missing, as others may have drawn the same."""

_NAMES = frozenset({"id", "arg", "name"})
"""Fields of a syntax tree with names that may be changed."""


class GraphSplit(StrEnum):
    """The split of a graph."""

    TRAIN = "train"
    HELD_OUT_GRAPH = "held-out graph"
    HELD_OUT_PAIR = "held-out pair"


def split_of(graph: GeneratedGraph) -> GraphSplit:
    """Returns the split of a graph, which depends on the names of its operators alone."""
    names = [step.op.name for step in graph.steps]
    if any(held_out_pair(*pair) for pair in itertools.pairwise(names)):
        return GraphSplit.HELD_OUT_PAIR
    return GraphSplit.HELD_OUT_GRAPH if _chosen(" ".join(names)) else GraphSplit.TRAIN


def held_out_pair(first: str, second: str) -> bool:
    """Whether no training graph may have one operator after the other."""
    return _chosen(f"pair {first} {second}")


def _chosen(text: str) -> bool:
    return hashlib.sha256(text.encode()).digest()[0] % HELD_OUT_SHARE == 0


def graph_tasks(splits: Sequence[GraphSplit], max_depth: int, seed: str) -> Iterator[str]:
    """Yields names of generated problems that the templates can compute, without end or order.

    Admission may refuse some of them as tasks, such as one whose input changes no output.

    Args:
        splits: The splits, which take turns.
        max_depth: Most operators of a graph. A chain of `d` operators is drawn with a weight of
            `d - 1`, since there are more long ones.
        seed: Seed of the draws.
    """
    rng, depths = random.Random(seed), range(DEPTHS.start, max_depth + 1)
    for split in itertools.cycle(splits):
        drawn: GeneratedGraph | None = None
        while drawn is None or split_of(drawn) is not split or not writable(drawn):
            depth = rng.choices(depths, [d - 1 for d in depths])[0]
            number = rng.randrange(count(depth))
            drawn = graph(number, depth)
        yield generated_id(number, depth)


def held_out_tasks(number: int, max_depth: int) -> list[str]:
    """Returns ids of different held-out tasks: half of new graphs, half of new pairs."""
    graphs = admitted_tasks(GraphSplit.HELD_OUT_GRAPH, number - number // 2, max_depth)
    return graphs + admitted_tasks(GraphSplit.HELD_OUT_PAIR, number // 2, max_depth)


def admitted_tasks(
    split: GraphSplit, number: int, max_depth: int, seed: str | None = None
) -> list[str]:
    """Returns ids of the first different tasks of a split that admission accepts.

    Args:
        split: The split.
        number: Number of tasks. More tasks begin with the same ones.
        max_depth: Most operators of a graph.
        seed: Seed of the draws; by default that of the configurations.

    Raises:
        CorpusError: There are fewer tasks.
    """
    tasks: dict[str, None] = {}
    drawn = graph_tasks([split], max_depth, seed or f"tasks {split}")
    repeats = 0
    while len(tasks) < number:
        before = len(tasks)
        with suppress(UnknownName):
            tasks[get_task(next(drawn)).id] = None
        repeats = repeats + 1 if len(tasks) == before else 0
        if repeats > MAX_REPEATS:
            raise CorpusError(f"found {len(tasks)} graphs ({split}), expected {number}")
    return list(tasks)


def graph_of(task: str) -> GeneratedGraph:
    """Returns the graph of a generated problem or task.

    Raises:
        ValueError: The name is malformed, or there is no such graph.
    """
    return generated_problem(task.rpartition("/")[2]).graph


def draw_pairs(
    number: int, max_depth: int, seed: int, prompt: Prompt, bound: float = 0.0
) -> list[CorpusRow]:
    """Draws pairs of training graphs: no two have both the same prompt and the same syntax tree.

    They are drawn in shards, by several processes if there are several shards. The pairs do not
    depend on the number of processes.

    Args:
        number: Number of pairs.
        max_depth: Most operators of a graph.
        seed: Seed of the draws.
        prompt: Writes the prompts, of which the first line ends with the sizes.
        bound: Share of the draws with a kernel that is right on the sizes of the prompt alone.

    Raises:
        CorpusError: There are fewer different kernels.
    """
    pairs: dict[str, CorpusRow] = {}
    drawn = 0
    with ExitStack() as stack:
        pool: ProcessPoolExecutor | None = None
        while (before := len(pairs)) < number:
            shards = -(-(number - before) // SHARD)
            size = min(SHARD, number - before + SPARE)
            seeds = [f"{seed}/{drawn + shard}" for shard in range(shards)]
            drawn += shards
            if shards > 1 and pool is None:
                workers = min(shards, os.cpu_count() or 1)
                context = multiprocessing.get_context("spawn")
                pool = stack.enter_context(ProcessPoolExecutor(workers, context))
            jobs = [(size, max_depth, name, prompt, bound) for name in seeds]
            full = True
            for made in (pool.map if pool else map)(_shard, jobs):
                full = full and len(made) == size
                for digest, row in made.items():
                    pairs.setdefault(digest, row)
            if len(pairs) < number and (not full or len(pairs) < before + shards):
                raise CorpusError(f"found {len(pairs)} different kernels, expected {number}")
    return list(pairs.values())[:number]


def _shard(job: tuple[int, int, str, Prompt, float]) -> dict[str, CorpusRow]:
    """Draws pairs, each with its digest; fewer if no new one is found."""
    number, max_depth, seed, prompt, bound = job
    rng = random.Random(f"plans {seed}")
    pairs: dict[str, CorpusRow] = {}
    repeats = 0
    for task in graph_tasks([GraphSplit.TRAIN], max_depth, f"pairs {seed}"):
        if len(pairs) == number or repeats > MAX_REPEATS:
            break
        graph = graph_of(task)
        plan = draw_plan(graph, rng)
        row = pair_of(task, plan, prompt)
        if rng.random() < bound:
            row = pair_of(task, bound_plan(graph, rng, _shown_width(row.prompt)), prompt)
        digest = syntax_digest(row.source) + row.prompt
        repeats = repeats + 1 if digest in pairs else 0
        pairs.setdefault(digest, row)
    return pairs


def _shown_width(prompt: str) -> int:
    """Returns the largest number of columns in a prompt."""
    return max(int(size.split()[-1]) for size in prompt.splitlines()[0].split(","))


def pair_of(task: str, plan: KernelPlan, prompt: Prompt) -> CorpusRow:
    """Returns the pair of a generated problem and a plan. It has not been judged."""
    named = Task(generated_problem(task.rpartition("/")[2]), Mode.TRITON2TRITON)
    return CorpusRow(
        task=named.id,
        prompt=prompt(named),
        source=kernel_source(graph_of(task), plan),
        structure=plan.structure,
        schedule=plan.schedule,
    )


def syntax_digest(source: str) -> str:
    """Returns a digest of a syntax tree: equal up to names, comments and layout.

    Names of functions, arguments and variables count by the order in which they first occur.
    Attributes, keywords and built-in names count as they are.
    """
    todo: list[object] = [ast.parse(source)]
    names: dict[str, str] = {}
    words: list[str] = []
    for node in todo:  # grows: nodes in breadth-first order, each with the values of its fields
        words.append(type(node).__name__)
        if isinstance(node, ast.AST):
            renamed = not isinstance(node, (ast.keyword, ast.alias))
            for field in node._fields:
                value = getattr(node, field, None)
                if isinstance(value, ast.AST):
                    words.append(field)
                    todo.append(value)
                elif isinstance(value, list):
                    words.append(str(len(value)))
                    todo += value
                elif renamed and field in _NAMES and value and not hasattr(builtins, value):
                    words.append(names.setdefault(value, f"n{len(names)}"))
                else:
                    words.append(repr(value))
    return hashlib.sha256("\n".join(words).encode()).hexdigest()
