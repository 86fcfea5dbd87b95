"""Asks the judge about the plan of a call so far, over the recorder's pipe."""

from __future__ import annotations

from typing import TypeVar

from kernel_gym.plans.types import LaunchPlan
from kernel_gym.plans.write import write_plan
from kernel_gym.protocol import worker as messages
from kernel_gym.protocol.request import decode
from kernel_gym.sandbox.channel import Channel
from kernel_gym.worker.sim.runtime import DeviceError

Told = TypeVar("Told", messages.TellSeconds, messages.TellValues, messages.TellForms)


class JudgeQuestions:
    """Sends plans to the judge, which lets a launcher execute them.

    Args:
        judge: The pipe, on which the judge waits for the plan of a call.
    """

    def __init__(self, judge: Channel) -> None:
        self._judge = judge

    def seconds(self, plan: LaunchPlan, first: int) -> float:
        """Returns the seconds of the steps of a plan from a number on.

        Raises:
            DeviceError: The plan cannot be executed.
        """
        return self._ask(messages.TellSeconds, plan, {"ask": "seconds", "first": first}).seconds

    def values(self, plan: LaunchPlan) -> bytes:
        """Returns the elements of the only output of a plan.

        Raises:
            DeviceError: The plan cannot be executed, or the task does not permit it.
        """
        return self._ask(messages.TellValues, plan, {"ask": "values"}).data

    def forms(self, plan: LaunchPlan) -> object:
        """Returns the form of the result of the operator that is the last step.

        Raises:
            DeviceError: The plan cannot be executed, or the task does not permit it.
        """
        return self._ask(messages.TellForms, plan, {"ask": "forms"}).form

    def _ask(self, kind: type[Told], plan: LaunchPlan, question: dict[str, object]) -> Told:
        header, *pieces = write_plan(plan)
        self._judge.send(question | {"plan": header}, *pieces)
        message = self._judge.recv()
        told = decode(kind, message.header, message.buffers)
        if told.error:
            raise DeviceError(told.error)
        return told
