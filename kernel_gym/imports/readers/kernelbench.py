"""Reads KernelBench: one PyTorch module and its input generator in each file.

A candidate defines the class `ModelNew` with the constructor and `forward` of `Model` (in Triton),
or the launcher that the prompt shows (in HIP).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from kernel_gym.imports.readers.base import (
    CheckoutError,
    ConfinedRunner,
    FoundTask,
    Unsupported,
    read_text,
)
from kernel_gym.imports.readers.traced_reader import ENTRY, TracedReader
from kernel_gym.tasks.names import Mode

_FOLDER = "KernelBench"
_LEVEL = re.compile(r"level[1-4]")
_FILE = re.compile(r"(\d+)_[\w.,() -]+\.py")


class KernelBenchReader(TracedReader):
    """Reads one language of KernelBench's tasks."""

    source = "KernelBench, github.com/ScalingIntelligence/KernelBench"

    def detect(self, checkout: Path) -> bool:
        """Whether the folder holds the first level of KernelBench."""
        return (checkout / _FOLDER / "level1").is_dir()

    def entries(self, checkout: Path) -> Iterator[FoundTask | Unsupported]:
        """Yields the tasks by level and number."""
        folders = sorted(p for p in (checkout / _FOLDER).iterdir() if _LEVEL.fullmatch(p.name))
        for folder in folders:
            paths = [path for path in folder.glob("*.py") if _FILE.fullmatch(path.name)]
            for path in sorted(paths, key=lambda path: int(path.name.split("_")[0])):
                name = f"{folder.name}/{path.stem}"
                try:
                    text = read_text(checkout, str(path.relative_to(checkout)))
                except CheckoutError as error:
                    yield Unsupported(name, folder.name, str(error))
                    continue
                if "from_pretrained" in text:
                    yield Unsupported(
                        name, folder.name, "needs weights from the network: they are not there"
                    )
                    continue
                files = (str(path.relative_to(checkout)),)
                yield FoundTask(name, folder.name, self.mode, files)

    def prepare(self, checkout: Path, found: FoundTask, bench: ConfinedRunner) -> dict[str, object]:
        """Traces the module at many sizes."""
        text = read_text(checkout, found.files[0])
        return bench.trace(
            {"problem.py": text},
            "problem.py:Model",
            "problem.py:get_inputs",
            "problem.py:get_init_inputs",
            ENTRY,
        )


TRITON = KernelBenchReader("kernelbench", Mode.TORCH2TRITON)
HIP = KernelBenchReader("kernelbench-hip", Mode.TORCH2HIP)
