"""The exit codes of `kernel-gym sim`: they distinguish how a program ended from its own status.

They follow `timeout`, `env` and the shells where these have a code. 120 and 121 are rare as a
status of a program.
"""

from __future__ import annotations

from kernel_gym.programs.results import ProgramResult, of_audits

FAULT = 120
"""A launch was stopped by a fault, whatever the program made of it."""
FINDINGS = 121
"""An audit has found something. Only with `--audit`."""
TIMED_OUT = 124
"""The time was over."""
OWN_FAILURE = 125
"""kernel-gym itself failed."""
NOT_RUNNABLE = 126
"""The file of the command cannot be run."""
NOT_FOUND = 127
"""There is no such command."""
SIGNALLED = 128
"""Together with the number of the signal that has ended the program."""
CRASHED = 1
"""A confined program has ended its process before it was done."""


def exit_code(result: ProgramResult, audit: bool) -> int:
    """Returns the exit code that tells how a program ended.

    Args:
        result: `timed_out`, `faults`, `findings` and `failures` of a summary, and `status`: its own
            one, or the negative number of a signal, or None after a crash.
        audit: Whether findings of audits count.
    """
    if result["timed_out"]:
        return TIMED_OUT
    if result["faults"]:
        return FAULT
    if result["failures"]:
        return OWN_FAILURE
    if audit and of_audits(result["findings"]):
        return FINDINGS
    status = result["status"]
    if status is None:
        return CRASHED
    return SIGNALLED - status if status < 0 else status
