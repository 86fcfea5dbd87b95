"""A plan on a driver: code with variables is as new at each call, and is loaded no more often."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from kernel_gym.launcher import execution as module
from kernel_gym.launcher.execution import PlanExecution
from kernel_gym.launcher.timing import MemoryPlace
from kernel_gym.plans.types import (
    BufferRole,
    CodeForm,
    LaunchPlan,
    LaunchStep,
    PlanBuffer,
    PlanCode,
    PlanKernel,
)

FORM = CodeForm.HSACO
CODE = PlanCode(FORM, b"code")
STEP = LaunchStep(0, (1, 1, 1), (64, 1, 1), 0, ())
PLAN = LaunchPlan(
    "gfx942",
    (CODE,),
    (PlanKernel(0, "kernel", None),),
    (PlanBuffer(BufferRole.SCRATCH, 256),),
    (STEP,),
    (),
)
NOWHERE = MemoryPlace(0, on_device=False)


class Driver:
    """Counts the modules that are loaded, and notes from which of them a kernel is launched."""

    vendor = SimpleNamespace(form=FORM)

    def __init__(self):
        self.loaded, self.launched = 0, []

    def load_module(self, content):
        self.loaded += 1
        return self.loaded

    def find_function(self, module, name):
        return module

    def launch(self, function, *_):
        self.launched.append(function)

    def launch_graph(self, graph):
        self.launched.append(graph)

    def end_capture(self):
        return self.launched.pop()

    def static_shared(self, function):
        return 0

    def local_bytes(self, function):
        return 0

    def __getattr__(self, name):
        return lambda *_: None


@pytest.fixture(params=[True, False], ids=["variables", "no variables"])
def opened(request, monkeypatch):
    monkeypatch.setattr(module, "_has_variables", lambda code: request.param)
    driver = Driver()
    memory = SimpleNamespace(take=lambda size: 4096)
    return PlanExecution(driver, PLAN, memory), driver, request.param


@pytest.mark.parametrize("graph", [True, False])
def test_code_with_variables_is_loaded_again_only_after_it_has_run(opened, graph):
    execution, driver, variables = opened
    loaded = driver.loaded
    for _ in range(3):
        execution.prepare(NOWHERE, graph)
        execution.begin(NOWHERE)
        execution.start(graph)
    assert driver.loaded - loaded == (2 if variables else 0)
    assert len(set(driver.launched)) == (3 if variables else 1)
