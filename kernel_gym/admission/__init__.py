"""Admission: decides by five rules whether a problem joins the suite.

1. The start kernel and the PyTorch reference pass on every split. The reference is deterministic,
   and the oracle has no NaN.
2. Every negative control is refused.
3. Outputs change with inputs, each input matters, and the problem draws no random numbers.
4. There is head-room over the baseline. Otherwise the task is saturated.
5. The problem is cheap enough for the simulator.
"""

from kernel_gym.admission.admit import AdmissionError, admit, admit_all
from kernel_gym.admission.generated import generated_tasks
from kernel_gym.admission.values import SEED, ValueReport, check_values

__all__ = [
    "SEED",
    "AdmissionError",
    "ValueReport",
    "admit",
    "admit_all",
    "check_values",
    "generated_tasks",
]
