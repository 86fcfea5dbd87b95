"""Brings a simulated GPU up in a process of the user, with the settings of its environment."""

from __future__ import annotations

import atexit
import sys
from typing import TYPE_CHECKING

from kernel_gym.programs.missing import report_at_end
from kernel_gym.simulated_rocm.result_recorder import ResultRecorder
from kernel_gym.simulated_rocm.settings import SimSettings
from kernel_gym.torch_device import library

if TYPE_CHECKING:
    from kernel_gym.programs.simulation import Simulation


def start() -> Simulation | None:
    """Brings the device up, before PyTorch is imported, and records what happens on it.

    Returns:
        The `Simulation`; None if the environment wants no simulated GPU.

    Raises:
        ImportError: The device cannot be brought up here.
    """
    settings = SimSettings.from_environment()
    if settings is None:
        return None
    recorder = ResultRecorder.from_environment("python", sys.orig_argv)
    try:
        simulation = _enable(settings, recorder)
    except Exception as error:  # the program runs without a GPU and prints why
        text = f"the simulated GPU could not be brought up: {type(error).__name__}: {error}"
        if recorder is not None:
            recorder.failure(text)
        raise ImportError(f"kernel-gym sim: {text}") from error
    if recorder is not None:
        gpu = simulation.runtime.gpu
        recorder.others = library.seconds
        report_at_end(recorder.missing, sys)
        atexit.register(lambda: recorder.end(gpu.before + gpu.seconds))
    return simulation


def _enable(settings: SimSettings, recorder: ResultRecorder | None) -> Simulation:
    library.load()  # before PyTorch, which the next line imports
    from kernel_gym.programs.simulation import enable

    return enable(
        settings.arch,
        settings.threads,
        settings.memory,
        settings.launch_limit,
        settings.audit,
        settings.bounds,
        recorder,
    )
