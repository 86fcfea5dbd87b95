"""Runs the tests of a suite and records every call of the functions that they test."""

from __future__ import annotations

import importlib.machinery
import itertools
import linecache
import math
import random
import runpy
import signal
import sys
import time
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Required, TypedDict

import torch

from kernel_gym.imports.upstream.calls import CallRecorder
from kernel_gym.imports.upstream.seeds import MovedSeeds
from kernel_gym.triton_versions import accept_annotated_globals

if TYPE_CHECKING:
    import pytest

MAX_FAILURES = 4
"""After so many tests that fail, no more run. The largest sizes fail first, for memory."""
ALARM_INTERVAL_CPU_SECONDS = 2.0
"""Processor seconds after which a recording that continues is stopped again."""
MAX_RERUNS = 3
"""How often the tests run again with other seeds, to learn other values of linked integers."""
RERUN_TIME_SHARE = 0.5
"""The share of the time for recording after which no further run with other seeds begins."""
STYLES: dict[str, Callable[..., dict[str, object]]] = {}


class RecordingTimeUp(KeyboardInterrupt):
    """The time for recording is over. What was recorded so far is used.

    Test runners take other exceptions for a test that fails, and continue with the next one.
    """


class RecordingOptions(TypedDict, total=False):
    """How the calls of one task are recorded."""

    style: Required[str]
    """One of `STYLES`."""
    seconds: Required[float]
    """Seconds of CPU time for the recording."""
    seed: Required[int]
    file: Required[str]
    stubs: list[str]
    """Modules that are replaced by empty ones."""
    path: list[str]
    """Folders of modules, within the files of the suite."""
    functions: list[str]
    """The functions whose calls are recorded."""
    line: int
    """For `halves`: the first line of the tests."""
    implementation: str
    """For `runner`: the file that the script loads."""
    arguments: list[str]
    """For `runner`: the arguments of the script."""
    most: int
    """For `pytest` and `cases`: most tests or cases."""


def run(folder: Path, options: RecordingOptions) -> dict[str, object]:
    """Records the calls of one task.

    Args:
        folder: The files of the suite.
        options: `style` (`halves`, `runner`, `pytest` or `cases`), `file`, `seconds`, `seed`, and
            what the style needs.

    Returns:
        `calls` as JSON, and `ended`: how the tests ended.
    """
    _first_configuration_only()
    accept_annotated_globals()
    seeds = MovedSeeds()
    random.seed(options["seed"])
    torch.manual_seed(options["seed"])
    prepare(folder, options.get("path", ()), options.get("stubs", ()))
    recorder = CallRecorder()
    signal.signal(signal.SIGPROF, _stop)
    # Of the processor. It rings again, since code of a suite may swallow the exception.
    signal.setitimer(signal.ITIMER_PROF, options["seconds"], ALARM_INTERVAL_CPU_SECONDS)
    ended = "well"
    try:
        more = STYLES[options["style"]](folder, options, recorder)
        _again(folder, options, recorder, seeds)
    except RecordingTimeUp:
        more, ended = {}, "time"
    except BaseException as error:  # tests may end in any way; what was recorded counts
        if not recorder.calls:
            raise
        more, ended = {}, f"{type(error).__name__}: {error}"[:300]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return {"calls": recorder.calls, "refused": recorder.refused, "ended": ended, **more}


def prepare(folder: Path, paths: Sequence[str], stubs: Sequence[str]) -> None:
    """Makes the modules of a suite importable, and stubs of those that only take times.

    Args:
        folder: The files of the suite.
        paths: Folders of modules, within the files.
        stubs: Names of modules.
    """
    sys.meta_path.append(_StubFinder())
    for name in stubs:
        sys.modules.setdefault(name, _Stub(name))
    for name in reversed(paths):
        sys.path.insert(0, str(folder / name))


def _again(
    folder: Path, options: RecordingOptions, recorder: CallRecorder, seeds: MovedSeeds
) -> None:
    """Runs the tests with other seeds, to see which other integers their generators draw."""
    if options["style"] not in REPEATABLE:
        return
    recorder.known_only = True
    for shift in range(1, MAX_RERUNS + 1):
        if not recorder.linked or time.process_time() > RERUN_TIME_SHARE * options["seconds"]:
            return
        seeds.shift = shift
        random.seed(options["seed"])
        torch.manual_seed(options["seed"])
        try:
            STYLES[options["style"]](folder, options, recorder)
        except (Exception, RecordingTimeUp, SystemExit):  # the first run counts
            return


class _Stub(types.ModuleType):
    """A module that a suite imports for timing: any name in it, and calls of it do nothing."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        full = f"{self.__name__}.{name}"
        return sys.modules.setdefault(full, _Stub(full))

    def __call__(self, *args: object, **kwargs: object) -> object:
        return args[0] if len(args) == 1 and callable(args[0]) else self


class _StubFinder:
    """Finds submodules of stubs."""

    @staticmethod
    def find_spec(
        name: str, path: object = None, target: object = None
    ) -> importlib.machinery.ModuleSpec | None:
        parent = sys.modules.get(name.rpartition(".")[0])
        if not isinstance(parent, _Stub):
            return None
        loader: Any = _StubLoader()
        return importlib.machinery.ModuleSpec(name, loader)


class _StubLoader:
    @staticmethod
    def create_module(spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _Stub(spec.name)

    @staticmethod
    def exec_module(module: types.ModuleType) -> None:
        pass


def _halves(folder: Path, options: RecordingOptions, recorder: CallRecorder) -> dict[str, object]:
    """Runs a file whose two halves are an implementation and its tests."""
    path = folder / options["file"]
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    at = options["line"]
    module = types.ModuleType("upstream")
    module.__file__ = str(path)
    sys.modules["upstream"] = module
    linecache.checkcache(str(path))
    implementation, tests = "".join(lines[:at]), "\n" * at + "".join(lines[at:])
    exec(compile(implementation, str(path), "exec", dont_inherit=True), module.__dict__)
    recorder.wrap(module.__dict__, options["functions"])
    known = set(module.__dict__)
    exec(compile(tests, str(path), "exec", dont_inherit=True), module.__dict__)
    if not recorder.calls:  # some files define tests and leave them to a test runner
        for name in sorted(module.__dict__.keys() - known):
            if name.startswith("test") and isinstance(module.__dict__[name], types.FunctionType):
                module.__dict__[name]()
    return {}


def _runner(folder: Path, options: RecordingOptions, recorder: CallRecorder) -> dict[str, object]:
    """Runs a script that loads the implementation from a file of its own."""
    target = (folder / options["implementation"]).resolve()
    load = importlib.machinery.SourceFileLoader.exec_module

    def loaded(loader: importlib.machinery.SourceFileLoader, module: types.ModuleType) -> None:
        load(loader, module)
        if Path(module.__file__ or "").resolve() == target:
            recorder.wrap(module.__dict__, options["functions"])

    loaders: Any = importlib.machinery.SourceFileLoader
    loaders.exec_module = loaded
    sys.argv = [options["file"], *options["arguments"]]
    status = 0
    try:
        runpy.run_path(str(folder / options["file"]), run_name="__main__")
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        loaders.exec_module = load
    return {"status": status}


def _pytest(folder: Path, options: RecordingOptions, recorder: CallRecorder) -> dict[str, object]:
    """Runs a sample of the tests of a pytest file, without those that time or save."""
    import pytest

    ends: list[str] = []

    class Plugin:
        @pytest.hookimpl(tryfirst=True)
        def pytest_collection_modifyitems(self, items: list[pytest.Function]) -> None:
            kept = [i for i in items if not any(w in i.name for w in ("performance", "save"))]
            step = max(1, len(kept) // options["most"])
            items[:] = sorted(kept[::step][: options["most"]], key=_extent)
            for module in {id(i.module): i.module for i in items}.values():
                recorder.wrap(module.__dict__, options["functions"])

        def pytest_collectreport(self, report: pytest.CollectReport) -> None:
            if report.failed:
                ends.append(f"a file cannot be collected: {_cause(report)}"[:300])

        def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
            if report.outcome != "passed":
                ends.append(f"a test {report.outcome}: {_cause(report)}"[:300])

    arguments = [
        "-q",
        f"--maxfail={MAX_FAILURES}",
        "-p",
        "no:cacheprovider",
        str(folder / options["file"]),
    ]
    status = int(pytest.main(arguments, plugins=[Plugin()]))
    if status == pytest.ExitCode.INTERRUPTED and not ends:
        return {"status": status, "ended": "time"}
    return {"status": status, **({"ended": ends[-1]} if ends else {})}


def _extent(item: object) -> int:
    """Returns the product of the integers of a test: small sizes run first, for the time."""
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    return math.prod(max(1, value) for value in parameters.values() if type(value) is int)


def _cause(report: pytest.CollectReport | pytest.TestReport) -> str:
    """Returns the message of the exception that ended a test, in one line."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:
        return " ".join(crash.message.split())
    return (str(report.longrepr).strip().splitlines() or [""])[-1]


def _cases(folder: Path, options: RecordingOptions, recorder: CallRecorder) -> dict[str, object]:
    """Runs a module's generator of inputs, and records them as calls of `forward`."""
    names = runpy.run_path(str(folder / options["file"]))
    given = names["get_init_inputs"]()
    pair = len(given) == 2 and isinstance(given[0], list) and isinstance(given[1], dict)
    args, kwargs = given if pair else (list(given), {})
    made = names["get_inputs"]()
    for case in itertools.islice(made if hasattr(made, "__next__") else [made], options["most"]):
        recorder.call("forward", lambda *_: None, tuple(case), {})
    return {"init": {"args": list(args), "kwargs": kwargs}}


REPEATABLE = ("halves", "runner")
"""Styles whose tests can run again in one process."""
STYLES |= {"halves": _halves, "runner": _runner, "pytest": _pytest, "cases": _cases}


def _first_configuration_only() -> None:
    """Makes autotuned kernels take the first configuration that runs: nothing is timed here."""
    from triton.runtime.autotuner import Autotuner

    bench, run = Autotuner._bench, Autotuner.run
    settled: set[int] = set()

    def once(call: Callable[[], object], quantiles: object = None) -> list[float]:
        call()
        return [1.0, 1.0, 1.0]

    def first(tuner: object, *args: object, config: object, **meta: object) -> object:
        if id(tuner) in settled:
            return [2.0, 2.0, 2.0]
        tuner.__dict__["do_bench"] = once
        times = bench(tuner, *args, config=config, **meta)
        if times[0] == 1.0:
            settled.add(id(tuner))
        return times

    def tuned(tuner: object, *args: object, **kwargs: object) -> object:
        settled.discard(id(tuner))
        return run(tuner, *args, **kwargs)

    changed: Any = Autotuner
    changed._bench, changed.run = first, tuned


def _stop(number: int, frame: object) -> None:
    raise RecordingTimeUp
