"""The pytest plugin: `pytest --simulated-gpu` runs tests of GPU code without a GPU.

It does nothing unless the option is given, or the tests run in `kernel-gym sim -- COMMAND`. So this
module imports nothing of kernel-gym before. A test
in which a kernel faults has failed, whatever it made of the fault, and the next test finds a device
that works.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from kernel_gym.programs.simulation import Simulation

OPTION = "--simulated-gpu"
VARIABLE, RESULTS = "KERNEL_GYM_SIM_DEVICE", "KERNEL_GYM_SIM_RESULTS"
DEFAULT = "sim:gfx942"
MAX_KERNELS_SHOWN = 10
"""Most kernels in the lines at the end."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option."""
    parser.getgroup("kernel-gym").addoption(
        OPTION,
        action="store_true",
        help=f"run GPU code on a simulated GPU: {VARIABLE}, by default {DEFAULT}",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Brings the device up before the first conftest.py, which may import PyTorch."""
    asked = early_config.known_args_namespace.simulated_gpu and RESULTS not in os.environ
    if asked:
        _bring_up(os.environ.get(VARIABLE, DEFAULT))
    if os.environ.get(VARIABLE):
        early_config.pluginmanager.register(KernelWatch(own_summary=asked))


def _bring_up(device: str) -> None:
    from kernel_gym.errors import InputError
    from kernel_gym.programs.environment import environment
    from kernel_gym.programs.in_process import start
    from kernel_gym.simulated_rocm.settings import SimSettings

    folder = Path(tempfile.mkdtemp(prefix="kernel-gym-"))
    try:
        settings = SimSettings(device=device, results=folder)
        os.environ.update(environment(settings))  # for workers and children of the tests
        start()
    except (InputError, ImportError) as error:
        raise pytest.UsageError(f"{OPTION}: {error}") from None


class KernelWatch:
    """Fails tests in which a kernel faults, and sums up what ran.

    Args:
        own_summary: Whether it prints what ran. `kernel-gym sim` does so itself.
    """

    def __init__(self, own_summary: bool) -> None:
        self._own_summary = own_summary

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Iterator[None]:
        """Turns a fault of the device into a failure of the test, and records what is missing."""
        outcome: Any = yield
        if call.excinfo is not None:
            _record_missing(call.excinfo.value)
        report, fault = outcome.get_result(), _take_fault()
        if fault is not None and report.outcome != "failed":
            report.outcome = "failed"
            report.longrepr = f"a kernel faulted on the simulated GPU: {fault['message']}"

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Prints what ran, unless `kernel-gym sim` does."""
        from kernel_gym.programs.results import read_results
        from kernel_gym.simulated_rocm.settings import SimSettings
        from kernel_gym.symbols import plain_name

        settings = SimSettings.from_environment()
        if not self._own_summary or settings is None or settings.results is None:
            return
        summary = read_results(settings.results)
        shutil.rmtree(settings.results)
        terminalreporter.section(f"simulated GPU {settings.device}")
        line = terminalreporter.line
        line(f"{summary.launches} launches, {summary.seconds * 1e6:.1f} us modelled")
        kernels = sorted(summary.kernels.items(), key=lambda item: -item[1].seconds)
        for name, kernel in kernels[:MAX_KERNELS_SHOWN]:
            bound = kernel.profile.get("bound_by", "")
            times = f"{kernel.seconds * 1e6:.1f} us in {kernel.launches} launches"
            line(f"  {plain_name(name)}: {times}, bound by {bound}")
        for finding in summary.findings:
            line(f"finding: {finding['message']}")


def _record_missing(error: BaseException) -> None:
    from kernel_gym.programs.missing import lack_of

    recorder, lack = getattr(_simulation(), "observer", None), lack_of(error)
    if recorder is not None and lack is not None:
        recorder.missing(*lack)


def _take_fault() -> dict[str, object] | None:
    """Returns the fault of the device and forgets it; None without a fault or a device."""
    simulation = _simulation()
    return simulation.take_fault() if simulation else None


def _simulation() -> Simulation | None:
    """Returns the device of this process, or None."""
    enabled = sys.modules.get("kernel_gym.programs.simulation")
    return enabled.simulation() if enabled else None
