"""Prints shell commands that put `hipcc` and the HIP libraries on the search paths."""

from __future__ import annotations

import shlex
import sys

from kernel_gym.simulated_rocm.folders import NO_RUNTIME, compiler_folder, library_folder


def main() -> int:
    """Prints the commands; returns the exit status."""
    libraries, compiler = library_folder(), compiler_folder()
    if libraries is None or compiler is None:
        print(NO_RUNTIME, file=sys.stderr)
        return 1
    print(f"export PATH={shlex.quote(str(compiler))}:$PATH")
    others = "${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
    print(f"export LD_LIBRARY_PATH={shlex.quote(str(libraries))}{others}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
