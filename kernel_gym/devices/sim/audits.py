"""Which machine codes a call launched on a simulated GPU, and which launches are audited."""

from __future__ import annotations

import hashlib
import random
from typing import TypedDict

from kernel_gym.devices.audit import Audit
from kernel_gym.sim.engine.engine import Kernel

AUDITED_SHARE = 0.2
"""The share of launches in paid calls that is audited."""


def digest_of(code: bytes, name: str, lds: int) -> str:
    """Returns a digest that identifies the machine code of a kernel."""
    return hashlib.sha256(f"{name} {lds} ".encode() + code).hexdigest()[:16]


class AuditRecord(TypedDict):
    """The fields of `CallRecord` that audits decide, see `Audits.record`."""

    tuned: bool
    codes: list[str]
    audited: list[str]


class Audits:
    """Chooses the audited launches of one session, and records its machine codes.

    Args:
        seed: The seed of the random choices. The worker must not learn it.
        trusted: Whether the kernels are the project's own, which are never audited.
    """

    def __init__(self, seed: int, trusted: bool) -> None:
        self._draws = random.Random(f"audits {seed}")
        self._trusted = trusted
        self._known: list[str] = []  # by number of the kernel
        self.begin(Audit.OFF)

    def begin(self, audit: Audit) -> None:
        """Starts a new call with a kind of audit."""
        self._audit = audit
        self._new: set[str] = set()
        self._launched: dict[str, str] = {}  # names by machine code
        self._audited: set[str] = set()

    def load(self, code: bytes, kernel: Kernel) -> None:
        """Records that the next kernel was loaded."""
        digest = digest_of(code, kernel.name, kernel.lds_bytes)
        if digest not in self._known:
            self._new.add(digest)
        self._known.append(digest)

    def draw(self, kernel: Kernel) -> bool:
        """Decides whether a launch is audited, independently of all earlier launches.

        A kernel that may use loads before they have arrived is audited in every launch.
        """
        if self._trusted or self._audit is Audit.OFF:
            return False
        if self._audit in (Audit.ON, Audit.REVERSED):
            return True
        drawn = self._draws.random() < AUDITED_SHARE
        return drawn or not kernel.program.waits_everywhere

    @property
    def pays(self) -> bool:
        """Whether the call is paid: what is not audited then runs in a second order."""
        return not self._trusted and self._audit is Audit.DRAWN

    def launch(self, number: int, kernel: Kernel, audited: bool) -> None:
        """Records a launch without a fault."""
        code = self._known[number]
        self._launched[code] = kernel.name
        if audited:
            self._audited.add(code)

    def record(self) -> AuditRecord:
        """Returns what the judge learns about the call.

        Returns:
            ``tuned``: whether several new machine codes of one kernel were launched. ``codes``: the
            machine codes that were launched. ``audited``: those with an audited launch.
        """
        names = [name for code, name in self._launched.items() if code in self._new]
        return {
            "tuned": len(set(names)) < len(names),
            "codes": sorted(self._launched),
            "audited": sorted(self._audited),
        }
