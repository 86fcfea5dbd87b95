"""Textbook ladders of optimisation on the simulator, beside what each step gained on AMD GPUs.

Nothing was fitted to them. The kernels are our own. Sources: `HIP-Optimizations/daxpy/README.md` of
amd/HPCTrainingExamples@23862771 and `docs/tutorial/reduction.rst` of ROCm/HIP@0416f0f1, which have
directions alone; RRZE's gpu-benches and the SC25 CDNA3 artifact for occupancy (MI300X).
`transposes.py` has another ladder.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.figures import Text
from benchmarks.simulator.microbenchmarks import Micro, streams
from kernel_gym.records import Record

SOURCE = Path(__file__).with_name("ladders.hip")
STORED = Path("benchmarks/calibration/ladders.json")
CLOSE = 1.15
"""A step is met if the modelled gain is within this factor of the measured one."""
SAME = 1.01
"""Gains below this factor are none."""
NO_GAIN = "8 to 16 bytes a thread"
"""The step that its source found to be no gain."""
_TRAINING, _HIP = "amd/HPCTrainingExamples", "HIP's tutorial on reductions"
_SC25 = "RRZE and SC25 artifact"
_PART = 1 << 27


class Step(Record):
    """One step of a ladder: how many times shorter the time gets."""

    ladder: Text
    name: Text
    """From what to what."""
    source: Text
    """Who measured it, or says which way it goes."""
    device: Text
    """The GPU of the source."""
    modelled: float
    """The gain on the simulated GPU of the source."""
    on_gfx942: float
    measured: float | None = None
    """The gain in the source; None if that has only the direction."""
    helps: bool = True
    """Whether the step is a gain in the source."""

    @property
    def is_met(self) -> bool:
        """Whether the model has the direction, and the size where it is published."""
        if self.measured is not None:
            return 1 / CLOSE <= self.modelled / self.measured <= CLOSE
        return self.modelled > SAME if self.helps else self.modelled <= SAME


Published = tuple[str, str, str, str, float | None]
"""Ladder, step, source, device, and the gain there if it is published."""
Ladder = Callable[[Micro], Iterator[tuple[Published, float]]]
"""Yields steps with their modelled gains."""


def daxpys(micro: Micro, count: int = 1 << 22) -> Iterator[tuple[Published, float]]:
    """Adds vectors of doubles: one wave, workgroups of 64 and 256, two elements a thread."""
    places = (0, _PART, 2 * _PART, count)
    one_wave = micro.seconds("daxpy_wave", 1, 64, *places)
    small, large = (micro.seconds("daxpy", count // n, n, *places) for n in (64, 256))
    pairs = micro.seconds("daxpy_pairs", count // 512, 256, *places)
    source = (_TRAINING, "MI200 series", None)
    yield ("daxpy", "one wave to workgroups of 64", *source), one_wave / small
    yield ("daxpy", "workgroups of 64 to 256", *source), small / large
    yield ("daxpy", NO_GAIN, *source), large / pairs


def reductions(micro: Micro, count: int = 1 << 24) -> Iterator[tuple[Published, float]]:
    """Sums in workgroups of 256: three trees in LDS, and two elements a thread."""
    ways = {"divergent": 1, "strided_lds": 1, "sequential": 1, "of_two": 2}
    seconds = {
        name.replace("_", " "): micro.seconds(
            f"sum_{name}", count // 256 // each, 256, 0, _PART, each
        )
        for name, each in ways.items()
    }
    for (first, before), (second, after) in itertools.pairwise(seconds.items()):
        yield ("reduction", f"{first} to {second}", _HIP, "AMD GPU", None), before / after


LADDERS: tuple[Ladder, ...] = (daxpys, reductions)


def occupancies() -> Iterator[Step]:
    """Streams with 25, 50 and 100 % of the waves on an MI300X."""
    points = {point.name: point for point in streams(Micro())}
    for name, (few, many) in itertools.product(("read", "scale"), ((256, 512), (512, 1024))):
        low, high = points[f"{name} {few}x2"], points[f"{name} {many}x2"]
        measured, gain = high.measured / low.measured, high.modelled / low.modelled
        step = f"{name}, {few} to {many} threads"
        yield _step(("occupancy", step, _SC25, "MI300X", measured), gain, gain)


def run_ladders(ladders: Sequence[Ladder] = LADDERS) -> list[Step]:
    """Runs ladders on the simulated gfx90a, which the sources speak of, and on gfx942."""
    older, newer = (Micro(SOURCE, arch) for arch in ("gfx90a", "gfx942"))
    return [
        _step(published, gain, on_gfx942)
        for ladder in ladders
        for (published, gain), (_, on_gfx942) in zip(ladder(older), ladder(newer), strict=True)
    ]


def _step(published: Published, gain: float, on_gfx942: float) -> Step:
    ladder, name, source, device, measured = published
    return Step(
        ladder=ladder,
        name=name,
        source=source,
        device=device,
        modelled=round(gain, 3),
        on_gfx942=round(on_gfx942, 3),
        measured=measured and round(measured, 3),
        helps=name != NO_GAIN,
    )


class Ladders(Record):
    """The stored steps, with the model that they were made with."""

    timing_model: Text
    command: Text
    steps: tuple[Step, ...]


def markdown(steps: Sequence[Step]) -> str:
    """Returns the table of the documentation."""
    rows = [
        "| ladder | step | source | published gain | modelled gain | on gfx942 | met |",
        "|---|---|---|---|---|---|---|",
    ]
    for step in steps:
        gain = f"{step.measured:.2f}" if step.measured else "a gain" if step.helps else "none"
        cells = (step.ladder, step.name, f"{step.source}, {step.device}", gain)
        figures = f"{step.modelled:.2f} | {step.on_gfx942:.2f}"
        met = "yes" if step.is_met else "**no**"
        rows.append(f"| {' | '.join(cells)} | {figures} | {met} |")
    return "\n".join(rows) + "\n"
