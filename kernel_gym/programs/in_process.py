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


def load_library() -> None:
    """Loads the device's library, for a `start` that follows when PyTorch is imported already.

    Raises:
        ImportError: The device cannot be brought up here.
    """
    if SimSettings.from_environment() is None:
        return
    try:
        library.load()
    except Exception as error:
        raise _reported(error, ResultRecorder.from_environment("python", sys.orig_argv)) from error


def start() -> Simulation | None:
    """Brings the device up, and records what happens on it.

    Call it before PyTorch is imported, or after `load_library`.

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
        raise _reported(error, recorder) from error
    if recorder is not None:
        gpu = simulation.runtime.gpu
        recorder.others = library.seconds
        report_at_end(recorder.missing, sys)
        atexit.register(lambda: recorder.end(gpu.before + gpu.seconds))
    return simulation


def _enable(settings: SimSettings, recorder: ResultRecorder | None) -> Simulation:
    library.load()  # before PyTorch, which the next line imports if nobody has
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


def _reported(error: Exception, recorder: ResultRecorder | None) -> ImportError:
    """Records why there is no device, and returns the exception that says so."""
    text = f"the simulated GPU could not be brought up: {type(error).__name__}: {error}"
    if recorder is not None:
        recorder.failure(text)
    return ImportError(f"kernel-gym sim: {text}")
