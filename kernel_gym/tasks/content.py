"""The texts that define a problem: a verdict is void when one of them changes."""

from __future__ import annotations

import hashlib
import inspect
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

_SHARED = "kernel_gym.tasks.shared."
_DIGEST = "_digest_of_content"
"""The attribute that keeps the digest of a problem."""
_TEXTS = frozenset({".py", ".hip", ".toml"})
"""The suffixes of the files of a folder that define a problem: ranges decide what is drawn. Its
verdict is no such file."""


class _Defined(Protocol):
    def content(self) -> Iterator[str]: ...


def digest_of(problem: _Defined) -> str:
    """Returns the SHA-256 of a problem's texts as they were when it was asked for first."""
    held = vars(problem)
    if _DIGEST not in held:
        held[_DIGEST] = hashlib.sha256(json.dumps(list(problem.content())).encode()).hexdigest()
    digest: str = held[_DIGEST]
    return digest


def identity_of(problem: _Defined) -> tuple[type, str]:
    """Returns what tells a problem from others with its name, in the caches of one process.

    Two problems may have equal names: one of a folder that was edited and loaded again, or those of
    two claims. One class may have several problems, too.
    """
    return type(problem), digest_of(problem)


def defining_texts(folder: Path | None, modules: Sequence[str]) -> Iterator[str]:
    """Yields the files of a problem's folder, each after its name, and what they use.

    Args:
        folder: The folder, if it has one.
        modules: The modules of the problem's classes. Those that lie elsewhere follow, and so do
            the modules of `tasks/shared/` that they use.
    """
    files = _files(folder)
    for name, path in files.items():
        yield f"{name}\n{path.read_text(encoding='utf-8')}"
    for module in _with_shared(modules):
        if Path(sys.modules[module].__file__ or "") not in files.values():
            yield inspect.getsource(sys.modules[module])


def _files(folder: Path | None) -> dict[str, Path]:
    """Returns the files of a folder that define a problem, by their names in it."""
    if folder is None:
        return {}
    paths = sorted(folder.rglob("*"))
    return {p.relative_to(folder).as_posix(): p for p in paths if p.suffix in _TEXTS}


def _with_shared(modules: Sequence[str]) -> list[str]:
    """Returns modules and the shared ones they use, each once."""
    values = [value for name in modules for value in vars(sys.modules[name]).values()]
    used = {str(getattr(value, "__module__", "")) for value in values}
    return [*dict.fromkeys(modules), *sorted(name for name in used if name.startswith(_SHARED))]
