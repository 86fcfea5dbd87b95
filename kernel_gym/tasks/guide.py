"""Optimisation guides by architecture and language: short texts that prompts show.

A guide file holds a Markdown list. Lines below a heading are about the topic that it names, and
prompts show them only for problems that the topic concerns.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from kernel_gym.tasks.embedded import EXTRAS
from kernel_gym.tasks.names import GUIDES
from kernel_gym.tasks.problem import Problem

EMBEDDED = ("gluon", *EXTRAS)
"""Languages inside of Python that tasks in Triton accept: their guides stand beside Triton's."""
_FAMILIES = {
    "gfx90a": "cdna",
    "gfx942": "cdna",
    "gfx950": "cdna",
    "sm_90": "hopper",
    "sm_90a": "hopper",
}
"""The folder with the guides of an architecture and its family."""
TOPICS = frozenset({"rows", "product", "float8"})
"""The headings of guide files: statistics of rows, matrix products, 8-bit floats."""
_ROWS = re.compile(r"tl\.(sum|max|min|argmax|argmin|cumsum|sort|reduce|associative_scan)\(")
_PRODUCT = re.compile(r" @ |matmul|einsum|mm\(|scaled_dot_product|conv\w*\d?d\(|linear\(|tl\.dot\(")


def guide(arch: str, language: str, topics: Collection[str] = TOPICS) -> str:
    """Returns what to know about a device when writing kernels for it.

    Args:
        arch: The name of the architecture, such as gfx942 or sm_90a.
        language: "triton", "hip", or one of `EMBEDDED` for what that needs in addition to Triton.
        topics: The topics to include, beside what concerns every kernel; by default all.

    Returns:
        A Markdown list; empty if there is no guide for the architecture.
    """
    names = (language,) if language in EMBEDDED else ("common", arch, language)
    return _joined(arch, names, topics)


def whole_guide(arch: str, language: str, topics: Collection[str] = TOPICS) -> str:
    """Returns what to know about a device when writing kernels in one language alone.

    Args:
        arch: As in `guide`.
        language: "triton", "hip", or one of `EMBEDDED`. What concerns every language is included.
        topics: As in `guide`.
    """
    return _joined(arch, ("common", arch, language), topics)


def _joined(arch: str, names: Sequence[str], topics: Collection[str]) -> str:
    """Returns the files of these names for an architecture, as one list."""
    if arch not in _FAMILIES:
        return ""
    folder = GUIDES / _FAMILIES[arch]
    paths = [folder / f"{name}.md" for name in names]
    texts = [path.read_text(encoding="utf-8") for path in paths if path.is_file()]
    return "\n".join(line for text in texts for line in _lines(text, topics))


def topics_of(problem: Problem) -> frozenset[str]:
    """Returns the topics that concern a problem, from its start kernel, reference and dtypes.

    A problem without a start kernel in Triton has all of them.
    """
    start = problem.kernel("triton")
    if start is None:
        return TOPICS
    concerned = {
        "rows": _ROWS.search(start),
        "product": _PRODUCT.search(start) or _PRODUCT.search(problem.reference_source()),
        "float8": any(t.is_floating_point and t.itemsize == 1 for t in problem.dtypes),
    }
    return frozenset(topic for topic, concerns in concerned.items() if concerns)


def _lines(text: str, topics: Collection[str]) -> list[str]:
    """Returns the lines of a guide file that are under no heading or under that of a topic."""
    first, *sections = re.split(r"^## ", text, flags=re.MULTILINE)
    shown = [body for name, _, body in (s.partition("\n") for s in sections) if name in topics]
    return [line for part in (first, *shown) for line in part.splitlines() if line]
