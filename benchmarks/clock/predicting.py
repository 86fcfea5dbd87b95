"""Models the launches of points in a process that has a simulated GPU and no measured time."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.clock.points import Point
from benchmarks.clock.tuning_rows import LANGUAGE, TIMED_WITH_OPERATORS

if TYPE_CHECKING:
    from benchmarks.clock.flydsl_launches import FlyDslKernels

READY = "ready"
"""The first line of the process that predicts: its device is there."""
MIN_EXPLAINED = 0.98
"""Share of a launch's work that recorded workgroups must have done."""
SKIPPED_FOLDERS = frozenset({".git", "perf", "golden_results"})


def main(arguments: list[str]) -> None:
    """Predicts points: checkouts and device are arguments, points come as lines on stdin.

    Writes one line a point to stdout, in order. The kernels run in this process.
    """
    import kernel_gym
    from benchmarks.clock.older_triton import support_older_triton

    device, *checkouts = arguments
    out = sys.stdout
    sys.stdout = sys.stderr  # the files of others print
    simulation = kernel_gym.enable_simulation(device, threads=1)
    support_older_triton()
    predictor = Predictor(simulation, [Path(each) for each in checkouts], device)
    print(READY, file=out, flush=True)
    for line in sys.stdin:
        point = Point(**json.loads(line))
        print(json.dumps({"id": point.identity, **predictor.predict(point)}), file=out, flush=True)


class Predictor:
    """A simulated GPU with the checkouts that hold the kernels.

    Args:
        simulation: The simulated GPU of this process.
        checkouts: Folders with the files of kernels.
        device: The architecture of the GPU.
    """

    def __init__(self, simulation: Any, checkouts: list[Path], device: str = "gfx942") -> None:
        self._simulation, self._checkouts, self._device = simulation, checkouts, device
        self._flydsl: FlyDslKernels | None = None
        self._files: dict[str, list[Path]] = {}
        for folder in checkouts:
            for path in sorted(folder.rglob("*.py")):
                if not SKIPPED_FOLDERS & set(path.parts):
                    self._files.setdefault(path.name, []).append(path)

    def predict(self, point: Point) -> dict[str, Any]:
        """The modelled time of a point with what it rests on, or why there is none."""
        begin = time.process_time()
        try:
            prediction = self._model(point)
        except Exception as error:  # whatever a kernel's file raises belongs to this point alone
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            prediction = {"refused": reason[:300]}
            self._simulation.take_fault()
        return {**prediction, "cpu_seconds": round(time.process_time() - begin, 3)}

    def _model(self, point: Point) -> dict[str, Any]:
        call = self._call(point)
        runtime = self._simulation.runtime
        runtime.gpu.launches.clear()
        before, operators = runtime.seconds, self._operator_seconds()
        call()
        seconds, launches = runtime.seconds - before, runtime.gpu.launches
        fault = self._simulation.take_fault()
        if fault:  # FlyDSL prints what HIP answers, and continues
            raise RuntimeError(str(fault["message"]))
        if not launches:
            raise RuntimeError("the call launched no kernel on the simulated GPU")
        if point.launch.get("language") == LANGUAGE:
            seconds = sum(each["seconds"] for each in launches)
            if point.launch["family"] in TIMED_WITH_OPERATORS:
                seconds += self._operator_seconds() - operators
        longest = max(launches, key=lambda launch: launch["seconds"])
        require_explained(longest["profile"])
        return {
            "seconds": seconds,
            "launches": len(launches),
            "kernel_seconds": longest["seconds"],
            "workgroups": longest["grid"][0] * longest["grid"][1] * longest["grid"][2],
            "profile": _short(longest["profile"]),
            **_certainty(self._device, seconds, longest["profile"]),
        }

    def _call(self, point: Point) -> Callable[[], object]:
        """The call that makes the launch of a point; its inputs exist."""
        from benchmarks.clock.benchmark_file import benchmarked_call, has_tuner
        from benchmarks.clock.launches import TritonLaunch, launcher

        if point.launch.get("language") == LANGUAGE:
            return self._flydsl_kernels().call(point.launch)
        path = self._file(point.kernel)
        if point.launch:
            return launcher(path, TritonLaunch.from_json(point.launch))
        call = benchmarked_call(path, point.parameters)
        if has_tuner(path):
            call()  # chooses a configuration
        return call

    def _flydsl_kernels(self) -> FlyDslKernels:
        """FlyDSL with aiter's kernels; made ready at the first point that needs it."""
        if self._flydsl is None:
            from benchmarks.clock.flydsl_launches import FlyDslKernels

            units = self._simulation.runtime.gpu.spec.compute_units
            self._flydsl = FlyDslKernels(self._checkouts, self._device, units)
        return self._flydsl

    def _operator_seconds(self) -> float:
        """Modelled seconds of PyTorch's operators so far."""
        return float(sum(each["seconds"] for each in self._simulation.operators.values()))

    def _file(self, kernel: str) -> Path:
        """The file of a kernel: the one of its name that shares most of its path."""
        name = Path(kernel).name
        files = self._files.get(name, [])
        if not files:
            raise FileNotFoundError(f"no checkout has {name}")
        texts = {path.read_bytes() for path in files}
        if len(texts) > 1:
            exact = [path for path in files if str(path).endswith(f"/{kernel}")]
            if len(exact) != 1:
                places = ", ".join(str(path.parent.name) for path in files)
                raise FileNotFoundError(f"several unlike files {name}, in {places}")
            return exact[0]
        return files[0]


def require_explained(profile: Mapping[str, Any]) -> None:
    """Refuses the time of a launch whose recorded workgroups did not do most of its kinds of work.

    The model charges work that no recorded workgroup did with full latencies. A judge runs such a
    launch again, but a program with much memory does not, so its time is only an upper bound.

    Args:
        profile: That of the launch.

    Raises:
        RuntimeError: The recorded workgroups explain less than `MIN_EXPLAINED`.
    """
    explained = profile.get("sampling", {}).get("explained", 1.0)
    if explained < MIN_EXPLAINED:
        raise RuntimeError(f"the recorded workgroups explain only {explained:.0%} of the work")


def _certainty(device: str, seconds: float, profile: dict[str, Any]) -> dict[str, Any]:
    """The factor either way that a verdict would state of this time, or why it states none."""
    from kernel_gym.sim.timing.compared import stored, time_factor

    reason = stored().why_not(device, seconds, profile)
    return {"uncalibrated": reason} if reason else {"time_factor": time_factor()}


def _short(profile: dict[str, Any]) -> dict[str, Any]:
    """The profile without its places in the code."""
    return {name: value for name, value in profile.items() if name not in ("hot", "lines")}


if __name__ == "__main__":
    main(sys.argv[1:])
