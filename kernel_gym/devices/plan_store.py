"""Keeps the launch plans of evaluations in a folder, so that they can be judged again from them.

The folder has three kinds of files, each compressed: `codes` by the digest of a code object,
`plans` by the digest of a plan, and `evaluations`, which names the plan of each call of an
evaluation. Records share codes and plans.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import threading
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from pydantic import TypeAdapter, ValidationError

from kernel_gym.devices.base import InfraError
from kernel_gym.devices.placement import storage_bytes
from kernel_gym.devices.plan_recordings import PlannedCall
from kernel_gym.plans.identity import plan_hash
from kernel_gym.plans.limits import MAX_CODES_BYTES
from kernel_gym.plans.parse import parse_plan
from kernel_gym.plans.reading import BadPlanError
from kernel_gym.plans.types import LaunchPlan
from kernel_gym.plans.write import write_plan
from kernel_gym.records import Record
from kernel_gym.storage.json_lines import first_line
from kernel_gym.tasks.problem import Value

MAX_FILE_BYTES = 64 << 20
"""Bytes of one file of the folder, when it is no longer compressed."""


class NoPlanError(InfraError):
    """A call has no stored plan: it cannot be judged again without its source."""


class PlanStore:
    """Plans and code objects by digest.

    Args:
        folder: A folder, which is made when the first plan is stored.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def put(self, plan: LaunchPlan) -> str:
        """Stores a plan and its code, each once, and returns the digest of the plan."""
        name = plan_hash(plan)
        if self._path("plans", name).exists():
            return name
        header, _, constants = write_plan(plan)
        codes = [hashlib.sha256(code.content).hexdigest() for code in plan.codes]
        for digest, code in zip(codes, plan.codes, strict=True):
            self._write("codes", digest, code.content)
        text = base64.b64encode(constants).decode()
        stored = {"plan": header, "codes": codes, "constants": text}
        self._write("plans", name, json.dumps(stored).encode())
        return name

    def get(self, name: str) -> LaunchPlan:
        """Reads a plan.

        Args:
            name: Its digest.

        Raises:
            NoPlanError: It is not there, or not what its digest says.
        """
        try:
            stored = json.loads(self.read("plans", name))
            constants = base64.b64decode(stored["constants"])
            plan = parse_plan(stored["plan"], self._codes(stored["codes"]), constants)
        except (ValueError, KeyError, TypeError, RecursionError, BadPlanError) as error:
            raise NoPlanError(f"the stored plan {name} is malformed: {error}") from None
        if plan_hash(plan) != name:
            raise NoPlanError(f"the stored plan {name} has another digest")
        return plan

    def read(self, kind: str, name: str) -> bytes:
        """Reads a file.

        Raises:
            NoPlanError: It is not there, damaged or too large.
        """
        if not isinstance(name, str) or not name.isalnum():
            raise NoPlanError("a stored plan names no digest")
        try:
            unpacked = zlib.decompressobj()
            data = unpacked.decompress(self._path(kind, name).read_bytes(), MAX_FILE_BYTES)
        except (OSError, zlib.error) as error:
            raise NoPlanError(f"{kind}/{name}: no stored plan: {error}") from None
        if not unpacked.eof:
            raise NoPlanError(f"{kind}/{name}: the stored plan is damaged or too large")
        return data

    def write_index(self, name: str, calls: Mapping[str, StoredCall]) -> None:
        """Writes which plan each call of an evaluation has."""
        self._path("evaluations", name).unlink(missing_ok=True)
        stored = {key: call.model_dump(mode="json") for key, call in calls.items()}
        self._write("evaluations", name, json.dumps(stored, sort_keys=True).encode())

    def _codes(self, digests: Sequence[str]) -> bytes:
        """Returns code objects, one behind the other."""
        codes = bytearray()
        for digest in digests:
            codes += self.read("codes", digest)
            if len(codes) > MAX_CODES_BYTES:
                raise BadPlanError(f"more than {MAX_CODES_BYTES} bytes of code")
        return bytes(codes)

    def _path(self, kind: str, name: str) -> Path:
        return self._folder / kind / f"{name}.z"

    def _write(self, kind: str, name: str, data: bytes) -> None:
        path = self._path(kind, name)
        if path.exists():
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{name}.{os.getpid()}.{threading.get_ident()}.part")
        part.write_bytes(zlib.compress(data))
        part.replace(path)


class StoredCall(Record):
    """The plan of a call, by its digest, and the operators that were refused."""

    plan: str
    refused: tuple[str, ...]


_CALLS = TypeAdapter(dict[str, StoredCall])


@dataclass
class EvaluationPlans:
    """The plans of one evaluation: those that it stores, or those that it is judged again from.

    Args:
        store: Where plans lie.
        name: Names the evaluation, see `evaluation_name`.
        again: Whether it is judged again.
    """

    store: PlanStore
    name: str
    again: bool = False

    def __post_init__(self) -> None:
        """Reads which plan each call has, if it is judged again.

        Raises:
            NoPlanError: No plans of this evaluation were stored, or their list is malformed.
        """
        self._calls: dict[str, StoredCall] = {}
        if self.again:
            try:
                self._calls = _CALLS.validate_json(self.store.read("evaluations", self.name))
            except ValidationError as error:
                text = f"evaluations/{self.name}: the list of plans is malformed: "
                raise NoPlanError(text + first_line(error)) from None

    def keep(self, form: str, inputs: Mapping[str, Value], call: PlannedCall) -> None:
        """Stores the plan of a call."""
        key = _call_key(form, inputs if call.plan.depends_on_values else {})
        if key not in self._calls:
            plan = self.store.put(call.plan)
            self._calls[key] = StoredCall(plan=plan, refused=call.refused)

    def find(self, form: str, inputs: Mapping[str, Value]) -> PlannedCall:
        """Returns the stored plan of a call.

        Raises:
            NoPlanError: There is none.
        """
        shape_key = _call_key(form, {})
        stored = self._calls.get(shape_key) or self._calls.get(_call_key(form, inputs))
        if stored is None:
            raise NoPlanError("a call of this evaluation has no stored plan")
        return PlannedCall(self.store.get(stored.plan), stored.plan, stored.refused)

    def write(self) -> None:
        """Writes which plan each call has, unless the evaluation is judged again."""
        if not self.again:
            self.store.write_index(self.name, self._calls)


def evaluation_name(*parts: object) -> str:
    """Names an evaluation by all that decides it: task, content, source, device, seed, secret."""
    return hashlib.sha256(json.dumps([str(part) for part in parts]).encode()).hexdigest()


def _call_key(form: str, inputs: Mapping[str, Value]) -> str:
    digest = hashlib.sha256(form.encode())
    for piece in _tensors(inputs.values()):
        digest.update(storage_bytes(piece).numpy().tobytes())
    return digest.hexdigest()


def _tensors(values: Iterable[Value]) -> list[torch.Tensor]:
    return [value for value in values if isinstance(value, torch.Tensor)]
