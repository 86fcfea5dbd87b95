"""Modes that see every operator start fast."""

import subprocess
import sys

PROGRAM = """
import sys
import torch
from kernel_gym.tasks.operator_mode import OperatorMode

class Names(OperatorMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))

with Names() as seen:
    torch.ones(3) + 1
print(*seen.names, "torch._dynamo" in sys.modules)
"""


def test_the_first_operator_does_not_import_the_compiler():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True)
    assert done.stdout.split() == ["ones", "add", "False"], done.stderr
