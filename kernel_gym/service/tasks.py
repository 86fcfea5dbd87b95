"""Finds the tasks that requests name. Generated tasks are admitted beside the event loop.

The admission of a generated task computes for seconds. There is no end of such names, so that they
are admitted in one thread, few wait for it, and the answers are kept.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from concurrent.futures import ThreadPoolExecutor

from kernel_gym.errors import InputError
from kernel_gym.service.settings import Allowed, is_generated
from kernel_gym.tasks import Task, get_task
from kernel_gym.tasks.small_floats import require_runs_on

MAX_WAITING = 16
"""Most generated tasks that wait for their admission."""
MAX_WAITING_OF_TOKEN = 4
"""The same of one token."""
MAX_KEPT = 1024
"""Generated tasks, and refusals of such, that are kept."""


class AdmissionsBusy(Exception):
    """Too many generated tasks wait for their admission.

    Attributes:
        by_token: Whether they are all of the token that asks.
    """

    def __init__(self, by_token: bool) -> None:
        super().__init__("too many generated tasks wait for their admission")
        self.by_token = by_token


class FoundTasks:
    """Finds tasks by name. It must be used in one event loop.

    Args:
        allowed: The tasks that requests may name.
        arch: The architecture on which they run.
    """

    def __init__(self, allowed: Allowed, arch: str) -> None:
        self._allowed, self._arch = allowed, arch
        self._kept: OrderedDict[str, Task | InputError] = OrderedDict()
        self._waiting: dict[str, asyncio.Task[Task | InputError]] = {}
        self._waiting_of: Counter[str] = Counter()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="admission")

    async def requested(self, name: str, token: str) -> Task:
        """Returns a task that a request names.

        Args:
            name: Its id.
            token: The name of the token that asks.

        Raises:
            UnknownName: It does not exist, is refused, or is not allowed.
            AdmissionsBusy: Too many wait.
        """
        self._allowed.require(name)
        task = await self.stored(name, token)
        require_runs_on(task.problem, self._arch)
        return task

    async def stored(self, name: str, token: str) -> Task:
        """Returns the task of a stored submission or session, whatever is allowed now.

        Raises:
            UnknownName: It does not exist any more.
            AdmissionsBusy: Too many wait.
        """
        if not is_generated(name):
            return get_task(name)
        answer = self._kept.get(name) or await self._admitted(name, token)
        if isinstance(answer, InputError):
            raise answer
        return answer

    def close(self) -> None:
        """Ends the thread after the admission that runs."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _admitted(self, name: str, token: str) -> Task | InputError:
        if name not in self._waiting:
            if len(self._waiting) >= MAX_WAITING or self._waiting_of[token] >= MAX_WAITING_OF_TOKEN:
                raise AdmissionsBusy(self._waiting_of[token] >= MAX_WAITING_OF_TOKEN)
            self._waiting[name] = asyncio.create_task(self._admit(name, token))
        return await asyncio.shield(self._waiting[name])  # others may wait for the same task

    async def _admit(self, name: str, token: str) -> Task | InputError:
        self._waiting_of[token] += 1
        try:
            loop = asyncio.get_running_loop()
            answer = await loop.run_in_executor(self._thread, _task_or_error, name)
            self._kept[name] = answer
            while len(self._kept) > MAX_KEPT:
                self._kept.popitem(last=False)
            return answer
        finally:
            self._waiting_of[token] -= 1
            self._waiting_of += Counter()  # leaves out tokens of which none waits
            del self._waiting[name]


def _task_or_error(name: str) -> Task | InputError:
    try:
        return get_task(name)
    except InputError as error:
        return error
