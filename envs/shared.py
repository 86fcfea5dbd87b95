"""One evaluator per process and device, shared by the environments that live there.

Starting a device costs seconds; environments come and go. The evaluators are closed when the
process exits, or by :func:`close_evaluators`.
"""

from __future__ import annotations

import atexit
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernel_gym.evaluator import Evaluator

_EVALUATORS: dict[tuple[int, str], Evaluator] = {}


def shared_evaluator(device: str) -> Evaluator:
    """The evaluator of this process for a device, started on first use.

    Args:
        device: A device name, or `auto`.

    Returns:
        An evaluator that other environments of this process may be using too.
    """
    from kernel_gym.evaluator import Evaluator

    key = (os.getpid(), device)
    if key not in _EVALUATORS:
        _EVALUATORS[key] = Evaluator(device=device)
    return _EVALUATORS[key]


@atexit.register
def close_evaluators() -> None:
    """Closes every evaluator this process started; those of a parent process are not ours."""
    for key in [key for key in _EVALUATORS if key[0] == os.getpid()]:
        _EVALUATORS.pop(key).close()
