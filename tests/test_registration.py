"""The environments are known to Gymnasium, whichever of the two packages is imported first."""

import subprocess
import sys

import pytest

KNOWN = "print(sorted(name for name in gymnasium.registry if name.startswith('Kernel')))"


@pytest.mark.parametrize(
    "imports",
    [
        "import kernel_gym, gymnasium",
        "import gymnasium, kernel_gym",
        "import kernel_gym, gymnasium.envs.registration",
        "import kernel_gym.envs, gymnasium",
    ],
)
def test_the_order_of_imports_does_not_matter(imports):
    command = [sys.executable, "-c", f"{imports}\n{KNOWN}"]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.stdout == "['KernelOpt-v0', 'KernelTune-v0']\n", result.stderr
