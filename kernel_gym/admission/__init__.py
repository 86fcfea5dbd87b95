"""Deciding whether a problem earns its place: rules 1-5 of admission.

1. The start kernel and the PyTorch reference pass on every split, the reference reproduces itself,
   and the oracle has no NaN.
2. Every negative control fails.
3. Outputs vary with inputs, each input matters, and nothing inside draws random numbers.
4. There is head-room over the baseline; otherwise a task is saturated.
5. It is affordable on the simulator.
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
