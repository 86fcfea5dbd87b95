"""The executor that evaluates on a service: `make_executor("http://judge:8000")`.

The service has the device, the workers and the secret. A run that is evaluated there records the
hash of that secret, and a replay needs the same service.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import TypeVar

from kernel_gym.client import AsyncClient, Client, Refused
from kernel_gym.client.wire import Info
from kernel_gym.executors.base import EvaluationRequest, Executor, TaskDiffers
from kernel_gym.executors.cache import EvaluationCache
from kernel_gym.records import Evaluation
from kernel_gym.storage.secret import RemoteSecret

Returned = TypeVar("Returned")

TOKEN = "KERNEL_GYM_TOKEN"
"""The environment variable with the token."""


class HttpExecutor(Executor):
    """Evaluates on a service.

    Args:
        url: The address of the service.
        seed: The seed of submissions that have none; by default the service draws one for each.
        cache: A cache that the executors of a run share.
        token: The token; by default the environment variable `KERNEL_GYM_TOKEN`. It must be one
            that reads whole records.

    Raises:
        Refused: The service refuses the token.
        Unavailable: The service does not answer.
    """

    def __init__(
        self,
        url: str,
        seed: int | None = None,
        cache: EvaluationCache | None = None,
        token: str | None = None,
    ) -> None:
        token = token or os.environ.get(TOKEN)
        with Client(url, token, patience=30.0) as client:
            self.info: Info = client.info()
        if not self.info.full_records:
            raise Refused(
                403, f"{url}: the token reads shortened records: set its key 'full_records'"
            )
        secret = RemoteSecret(self.info.secret_sha256, url)
        super().__init__(self.info.device, seed, cache, secret)
        self.workers, self.room = self.info.workers, 5 * self.info.workers
        self._places = threading.BoundedSemaphore(self.room)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="http", daemon=True)
        self._thread.start()
        self._client = self._run(_open(url, token)).result()
        self._closing = False

    def close(self) -> None:
        """Stops to wait for results. The service continues with what it has."""
        self._closing = True
        self._run(self._stop()).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _start(self, request: EvaluationRequest) -> Future[Evaluation]:
        if self._closing:
            raise RuntimeError("the executor is closed")
        self._places.acquire()
        answer: Future[Evaluation] = Future()
        answer.add_done_callback(lambda _: self._places.release())
        running = self._run(self._evaluate(request))
        running.add_done_callback(lambda done: _copy(done, answer))
        return answer

    async def _evaluate(self, request: EvaluationRequest) -> Evaluation:
        told = await self._client.evaluate(request.task, request.source, seed=request.seed)
        assert told.evaluation is not None
        if told.evaluation.problem_sha256 != request.content:
            raise TaskDiffers(
                f"{request.task}: the service judged a problem with other texts; it needs the same "
                "version of kernel-gym and the same folders of tasks as this process"
            )
        return told.evaluation

    async def _stop(self) -> None:
        own = asyncio.current_task()
        others = [task for task in asyncio.all_tasks() if task is not own]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._client.close()

    def _run(self, work: Coroutine[object, object, Returned]) -> Future[Returned]:
        return asyncio.run_coroutine_threadsafe(work, self._loop)


async def _open(url: str, token: str | None) -> AsyncClient:
    return AsyncClient(url, token)


def _copy(done: Future[Evaluation], answer: Future[Evaluation]) -> None:
    if done.cancelled():
        answer.cancel()
        answer.set_running_or_notify_cancel()
        return
    if not answer.set_running_or_notify_cancel():
        return
    error = done.exception()
    if error is None:
        answer.set_result(done.result())
    else:
        answer.set_exception(error)
