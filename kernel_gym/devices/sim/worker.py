"""The pipe to a worker of a simulated GPU: requests with limits, charged to the budget."""

from __future__ import annotations

import copy
import signal

from kernel_gym.devices.answers import parse_failure
from kernel_gym.devices.base import DeviceLostError, Failed, FailureKind
from kernel_gym.devices.budget import HostBudget, inner_pid
from kernel_gym.devices.compiling import CompilerNote
from kernel_gym.devices.failures import describe_exit, exit_status
from kernel_gym.devices.meter import Meter
from kernel_gym.protocol.request import Request, encode
from kernel_gym.sandbox.channel import (
    ChannelClosed,
    ChannelError,
    ChannelMessage,
    ChannelTimeout,
)
from kernel_gym.sandbox.spawn import Child

_ENDED = "the evaluation has ended"


class SimWorkerHandle:
    """A worker, and its failure once there is one.

    Args:
        child: The worker's process.
        device: The process of its simulated GPU; None before it has started.
        budget: The candidate's remaining seconds; None for a worker that runs trusted sources.
        note: Where the worker notes what it compiles, if it does.
    """

    def __init__(
        self,
        child: Child,
        device: Child | None,
        budget: HostBudget | None,
        note: CompilerNote | None = None,
    ) -> None:
        self.dead: Failed | None = None
        self.host_seconds = 0.0
        """Host time of all requests so far."""
        self._child, self._budget, self._note = child, budget, note
        self._pid, self.device = inner_pid(child.pid), device
        self._abandoned = False
        self._ahead: SimWorkerHandle | None = None

    def exchange(self, request: Request, limit: float) -> ChannelMessage | Failed:
        """Sends a request and returns the answer, within the limit and the budget.

        Args:
            request: The request.
            limit: Host seconds, see :class:`~kernel_gym.devices.meter.Meter`.

        Raises:
            InfraError: The worker was killed, and perhaps not because of the candidate, or the
                machine is overloaded.
        """
        header, buffers = encode(request)
        meter = self.meter(limit)
        try:
            answer = self._child.channel.request(header, *buffers, timeout=meter.patience)
        except ChannelTimeout:
            answer = None
        except ChannelClosed:
            text = _ENDED if self._abandoned else describe_exit(self._child)
            return self.fail(Failed(FailureKind.RUNTIME, text))
        except ChannelError as error:
            text = f"the worker broke the protocol: {error}"
            return self.fail(Failed(FailureKind.RUNTIME, text))
        finally:
            self.charge(meter)
        if answer is None or (self._budget is not None and self._budget.used_up):
            return self.too_slow(request.verb, limit)
        return parse_failure(answer.header["error"]) if "error" in answer.header else answer

    def meter(self, limit: float, short: bool = False) -> Meter:
        """Starts to measure a request to the worker or to its GPU, see `Meter`."""
        device = None if self.device is None else self.device.pid
        host = self._pid if self._ahead is None else None
        return Meter(host, device, limit, self._budget, short)

    def ahead(self) -> SimWorkerHandle:
        """Returns a second handle, for another thread that asks the worker from now on.

        This one measures the simulated GPU only. Each has as many seconds as the candidate has
        left, and a failure of its own: what the worker does ahead is not due yet.
        """
        self._ahead = SimWorkerHandle(self._child, None, copy.copy(self._budget), self._note)
        return self._ahead

    def abandon(self) -> None:
        """Ends the pipe to a worker that is asked ahead: the thread that waits for it returns."""
        if self._ahead is not None:
            self._ahead._abandoned = True
            self._child.channel.end()

    def take_failure(self, result: object) -> None:
        """Takes over a result of the handle that asks ahead, if the worker has failed with it."""
        if self._ahead is not None and result is self._ahead.dead:
            self.dead = self._ahead.dead

    def charge(self, meter: Meter) -> None:
        """Charges a request that has ended."""
        spent = meter.end()
        self.host_seconds += spent.host
        if self._budget is not None:
            self._budget.draw(spent)

    def fail(self, failed: Failed) -> Failed:
        """Records a failure after which the worker cannot be used, nor be asked ahead."""
        self.dead = failed
        if self._ahead is not None and self._ahead.dead is None:
            self._ahead.dead = failed
        return failed

    def lost_device(self, error: DeviceLostError) -> Failed:
        """Returns the failure of a candidate whose simulated GPU was lost during a call.

        Nobody else uses that GPU, so the candidate has lost it, unless the process was killed.

        Raises:
            DeviceLostError: The source is trusted, or the GPU's process was killed by SIGKILL, as a
                machine does that is out of memory. If it happens again, the candidate is blamed.
            InfraError: The template has died, and its children with it.
        """
        if self._budget is None or self.device is None:
            raise error
        if self.dead:
            return self.dead
        self.abandon()
        self._child.close()
        if why := self._child.ended_for:
            return self.fail(Failed(FailureKind.RUNTIME, f"the candidate {why}"))
        if exit_status(self.device) == -signal.SIGKILL:
            raise error
        text = f"{error}, while it worked for the candidate"
        return self.fail(Failed(FailureKind.RUNTIME, text))

    def too_slow(self, verb: str, limit: float) -> Failed:
        """Records that a request has reached a limit, after which the worker cannot be used."""
        return self.fail(self._too_slow(verb, limit))

    def _too_slow(self, verb: str, limit: float) -> Failed:
        text = f"no answer within {limit:.0f} s of host time"
        if self._budget is not None and self._budget.used_up:
            text = self._budget.overrun
        reason = "" if self._note is None else self._note.reason()
        return Failed(FailureKind.TIMEOUT, f"{verb}: {text}{reason}")
