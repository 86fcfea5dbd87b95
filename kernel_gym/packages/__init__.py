"""Packages: a kernel that passed, as an operator of PyTorch that installs without kernel-gym.

`write` makes a package of a record and its source, `verify` judges a package again. The layout is
that of Hugging Face's `kernels` library, with a wheel beside it. See docs/packages.md.
"""

from kernel_gym.packages.evidence import Evidence, PackageError, read_evidence
from kernel_gym.packages.verify import Verification, verify
from kernel_gym.packages.write import write_package

__all__ = [
    "Evidence",
    "PackageError",
    "Verification",
    "read_evidence",
    "verify",
    "write_package",
]
