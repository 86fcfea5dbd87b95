"""`hipconfig` where ROCm is not installed: answers the questions that build systems ask."""

from __future__ import annotations

import sys

from kernel_gym.devices.sim.toolchain import HipToolchain, hip_toolchain
from kernel_gym.simulated_rocm.hipcc import HEADERS


def main() -> int:
    """Prints the answer to the first option; returns the exit status."""
    chain = hip_toolchain()
    if not isinstance(chain, HipToolchain):
        print(f"hipconfig of kernel-gym: {chain.problem}: {chain.fix}", file=sys.stderr)
        return 1
    defines = "-D__HIP_PLATFORM_HCC__= -D__HIP_PLATFORM_AMD__="
    answers = {
        "version": version(chain),
        "path": str(chain.headers.parent),
        "rocmpath": str(chain.headers.parent),
        "platform": "amd",
        "compiler": "clang",
        "runtime": "rocclr",
        "cpp_config": f" {defines} -I{chain.headers} -idirafter {HEADERS}",
        "hipclangpath": chain.clang.rpartition("/")[0],
    }
    short = {"v": "version", "p": "path", "R": "rocmpath", "P": "platform", "c": "compiler"}
    short |= {"r": "runtime", "C": "cpp_config", "l": "hipclangpath"}
    for word in sys.argv[1:]:
        name = word.lstrip("-")
        if (name := short.get(name, name)) in answers:
            print(answers[name], end="")
            return 0
    print("\n".join(f"{name}: {value}" for name, value in answers.items()))
    return 0


def version(chain: HipToolchain) -> str:
    """The version of HIP's headers, such as `5.2.0`."""
    values = {}
    for line in (chain.headers / "hip" / "hip_version.h").read_text(encoding="utf-8").splitlines():
        words = line.split()
        if len(words) == 3 and words[1].startswith("HIP_VERSION_"):
            values[words[1].removeprefix("HIP_VERSION_")] = words[2]
    return ".".join(values.get(part, "0") for part in ("MAJOR", "MINOR", "PATCH"))
