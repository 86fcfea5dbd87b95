"""Sizes and seeds in the trees of a call's arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

MIN_SIZE = 4
"""Smaller integers among the arguments are constants, such as an axis or a number of groups."""
MAX_SEEDS = 16
"""Most seeds among the arguments of a call."""
Place = tuple[str | int, ...]
"""The way to a value in a call: keys and positions."""


def size_in(tree: object) -> int | None:
    """The size that an argument is; None if it is no number that may be a size."""
    value = tree.get("number") if isinstance(tree, dict) else None
    return value if type(value) is int and value >= MIN_SIZE else None


def without_sizes(tree: object) -> object:
    """Returns a tree without its sizes: calls of one template have equal ones."""
    if size_in(tree) is not None:
        return "size"
    if isinstance(tree, dict):
        return {key: without_sizes(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [without_sizes(value) for value in tree]
    return tree


def seed_name(number: int) -> str:
    """Returns the name of a seed."""
    return f"seed{number}"


def seeds_in(tree: object) -> set[int]:
    """The numbers of the seeds in a tree."""
    if isinstance(tree, dict):
        number = tree.get("seed")
        own = {number} if type(number) is int and 0 <= number < MAX_SEEDS else set()
        return own.union(*map(seeds_in, tree.values()))
    return set().union(*map(seeds_in, tree)) if isinstance(tree, list) else set()


def sizes_in(tree: object, path: Place = ()) -> Iterator[tuple[Place, int]]:
    """Yields each size in a tree, with its place."""
    if (size := size_in(tree)) is not None:
        yield path, size
    elif isinstance(tree, dict):
        for key, value in tree.items():
            yield from sizes_in(value, (*path, key))
    elif isinstance(tree, list):
        for index, value in enumerate(tree):
            yield from sizes_in(value, (*path, index))


def with_sizes(tree: object, texts: Mapping[Place, str], path: Place) -> object:
    """Returns a tree with texts in place of its sizes, and names in place of its seeds."""
    if size_in(tree) is not None:
        text = texts[path]
        return {"number": int(text)} if text.isdigit() else {"size": text}
    if isinstance(tree, dict) and "seed" in tree and seeds_in(tree):
        return {"size": seed_name(tree["seed"])}
    if isinstance(tree, dict):
        return {key: with_sizes(value, texts, (*path, key)) for key, value in tree.items()}
    if isinstance(tree, list):
        return [with_sizes(value, texts, (*path, i)) for i, value in enumerate(tree)]
    return tree
