"""Why a program of others did not pass: one class, and the line that says it."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping
from typing import Any

from kernel_gym.inert import inert_line

MAX_REASON_CHARACTERS = 240
_OUT_OF_PROCESSOR_SECONDS = (-signal.SIGXCPU, 128 + signal.SIGXCPU)
"""The statuses of a program, and of a shell, after the limit of `--cpu-seconds`."""
_COMPILING = "CompilationError"
_EXCEPTION = re.compile(
    r"^(?:E\s+)?(?:[\w.]+(?:Error|Exception|OutOfResources|Interrupt)\b)(?::.*)?$", re.MULTILINE
)
"""A line with an uncaught exception, as Python or pytest prints it."""
_REFUSED = re.compile(r"^kernel-gym: a module cannot be loaded: (.*)", re.MULTILINE)
"""A line for each code object that the simulated GPU refuses; what follows judges no kernel."""
_NOT_BUILT = re.compile(r"\[aiter\] build \[(\w+)\] under \S+ failed")
"""A line for an operator of aiter that its first use could not build."""
_FATAL = re.compile(r"fatal (?:\x1b\[\d+m)?error:(?:\x1b\[0m)? (.*)")
VERDICT = "its own verdict"
_FAILED_CASE = re.compile(r"^\s*FAIL(?:ED)?:\s*(.*)", re.MULTILINE)
"""A line for a case of a harness that did not pass."""
_RULES = (
    (r"^test cases: .* failed.*", "its own assertion"),
    (
        r"cannot find -l(\S+)|unable to find library -l(\S+)|cannot find HIP Standard Parallelism",
        "needs a library",
    ),
    (r"fatal error: '?(\S+?)'? (?:file not found|No such file)", "needs a header"),
    (
        r".*(?:command not found|: not found|: No such file or directory).*",
        "needs a tool or a file",
    ),
    (r"make.*: \*\*\* No rule to make target.*|CMake Error.*", "cannot be built here"),
    (
        r"(?i)could not open (?:input )?file|failed to open|file was not opened"
        r"|(?:file|labels) not found[.!]",
        "needs data that its checkout lacks",
    ),
    (r"No module named '?(?!triton)([\w.]+)'?", "needs a package"),
    (r"cannot import name .*", "needs another version of a package"),
    (r"libhip\w+\.so|librocblas|libhipblas\w*", "needs a library"),
    (r"out of device memory.*", "out of device memory"),
    (r"make_block_ptr.*|block pointer.*|has no attribute 'advance'.*", "Triton lacks it"),
    (r"module 'triton[\w.]*' has no attribute .*|No module named 'triton.*", "Triton lacks it"),
    (r"__nv_\w+.*", "calls a function of CUDA's library"),
    (r"PassManager::run failed.*|error: failed to legalize.*", "Triton does not compile it"),
    (r"error: (?!.*Error 1).*", "does not compile"),
    (r"NotImplementedError.*|.*not implemented for.*", "missing operator"),
    (r"UnsupportedCodeError.*|UnsupportedInstruction.*", "missing instruction"),
    (
        r"(?:Assertion)?Error: (?:Tensor-likes|Scalars) are not.*|Mismatched elements.*",
        "values differ",
    ),
    (r"^Error: .*exception: .*|^Error: Failed to load.*", "an exception"),
    (r"^(?:Correctness|correctness|Status):\s+(?:FAIL|fail).*", VERDICT),
    (r'^\{"correct": false.*', VERDICT),
    (r"AssertionError.*", "its own assertion"),
    (r"OutOfResources.*shared memory.*", "needs more LDS than there is"),
    (_EXCEPTION.pattern, "an exception"),
)
"""Patterns in what a program printed, and the class of each; the first one that matches counts."""

_CASE_RULES = (
    (r"^Failed: Timeout|Timeout \(>", "time limit"),
    (r"a kernel faulted|DeviceError", "kernel fault"),
    (r"the time of the file was over in it", "time limit"),
    (r"the process ended in it", "the process ended"),
)
"""The same for a case of pytest; they come before the others."""


def reason_of(result: Mapping[str, Any], printed: str) -> tuple[str, str]:
    """Returns the class and the line that explain a failure.

    Args:
        result: What `kernel-gym sim --json` says.
        printed: The end of what the program printed.
    """
    if result["faults"]:
        fault = result["faults"][0]
        kind = fault["kind"].replace("_", " ")
        then = ", then time limit" if result["timed_out"] else ""
        return f"kernel fault: {kind}{then}", fault["message"][:MAX_REASON_CHARACTERS]
    late = result["timed_out"] or result["status"] in _OUT_OF_PROCESSOR_SECONDS
    if failed := _NOT_BUILT.search(printed):
        cause = _FATAL.search(printed)
        detail = f"{failed[1]}: {cause[1]}" if cause else failed[1]
        reason = "needs an operator that is not built" + (", then time limit" if late else "")
        return reason, inert_line(detail, MAX_REASON_CHARACTERS)
    if late:
        return "time limit", ""
    if result["failures"]:
        return "kernel-gym", result["failures"][0]["message"][:MAX_REASON_CHARACTERS]
    if result["missing"]:
        lack = result["missing"][0]
        return f"missing {lack['what']}", f"{lack['name']}: {lack['message']}"[
            :MAX_REASON_CHARACTERS
        ]
    if refused := _REFUSED.search(printed):
        return "its code cannot be loaded", inert_line(refused[1], MAX_REASON_CHARACTERS)
    return of_text(printed) or _status(result["status"], printed)


def without_kernel(reason: str, detail: str, printed: str) -> tuple[str, str]:
    """Returns the class and the line of a failure, for a program that has launched no kernel.

    A verdict then judges no kernel: the harness has caught an exception before the first launch.

    Args:
        reason: From `reason_of`.
        detail: From `reason_of`.
        printed: The end of what the program printed.
    """
    if reason != VERDICT:
        return reason, detail
    first = _FAILED_CASE.search(printed)
    line = inert_line(first[1], MAX_REASON_CHARACTERS) if first else detail
    return "stopped before the first kernel", line


def case_reason(text: str) -> tuple[str, str]:
    """Returns the class and the first line of what a failed or skipped case of pytest says."""
    line = inert_line(text.strip().partition("\n")[0], MAX_REASON_CHARACTERS)
    for pattern, name in _CASE_RULES:
        if re.search(pattern, text):
            return name, line
    known = of_text(text)
    if known is not None:
        return known
    return ("its own assertion" if line.startswith("assert ") else "an exception"), line


def of_text(printed: str) -> tuple[str, str] | None:
    """Returns the class and the line of the first rule that matches, or None.

    The last exception counts alone, if there is one: warnings come before it.
    """
    errors = list(_EXCEPTION.finditer(printed))
    if errors and _COMPILING in errors[-1].group():
        return _of_compiler(printed[errors[-1].start() :])
    printed = errors[-1].group() if errors else printed
    for pattern, name in _RULES:
        match = re.search(pattern, printed, re.MULTILINE)
        if match:
            start = printed.rfind("\n", 0, match.start()) + 1
            line = printed[start:].split("\n", 1)[0]
            return name, inert_line(line.strip(), MAX_REASON_CHARACTERS)
    return None


def _of_compiler(message: str) -> tuple[str, str]:
    """Returns the class and the last line of an error of Triton, which shows the source first."""
    lines = [line.strip() for line in message.splitlines() if line.strip(" ^\t")]
    last = inert_line(lines[-1], MAX_REASON_CHARACTERS)
    return (of_text(last) if "__nv_" in last else None) or ("Triton does not compile it", last)


def _status(status: int, printed: str) -> tuple[str, str]:
    lines = [line for line in printed.splitlines() if line.strip()]
    last = inert_line(lines[-1].strip(), MAX_REASON_CHARACTERS) if lines else ""
    return (f"signal {-status}" if status < 0 else f"status {status}"), last
