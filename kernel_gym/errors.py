"""The error model on one page, and the base classes of the package's exceptions.

Something that goes wrong belongs to one of four groups. The group decides what a caller sees.

1. **The submission fails.** It does not compile, crashes, hangs, is wrong or cheats. This is a
   value and never an exception: :class:`~kernel_gym.records.Evaluation` holds `outcome`, `stage`
   and `message`. A failure inside a request that the candidate serves belongs here too: a time-out
   of its budget, an answer of its worker that does not parse, a device that is lost in every try.
   Nothing is retried. The reward pays the outcome, and the policy reads feedback about it.
2. **The machine fails.** No worker starts, a device is lost for the first time, memory or disk is
   used up by others. The evaluator repeats the evaluation up to twice
   (`INFRA_RETRIES` in `kernel_gym/judge/protocol.py`), then records the outcome `infra`. Its reward
   is None, so that training masks the step. A user sees the count of masked steps and the first
   message. It is never a reward of 0, and a candidate cannot cause it at will.
3. **The input is bad.** A name is unknown, a file is malformed, a policy's server refuses the key.
   The exception derives from :class:`InputError`; the message says where, what was given, what was
   expected, and which known name is nearest. The command line prints it as one line,
   `error: ...`, and exits with code 2.
4. **The program is wrong.** Any other exception. Nothing catches it, so a user sees the traceback.

Exceptions inside the package, by group:

- Group 1, turned into an outcome of the record: `sandbox.channel.ChannelError` (a pipe to a worker
  closes or times out), `devices.answers.BadAnswerError` (a worker's answer does not parse),
  `sim.asm.errors.AsmError` (the simulator does not support an instruction).
- Group 2, retried, then `infra`: `devices.base.InfraError` with `DeviceLostError` and
  `MemoryUsedUpError`, and `sandbox.spawn.TemplateError` (no worker can be forked). A device that
  is lost in every try is the candidate's failure, `runtime_error`, unless it is unusable without
  the candidate too.
- Group 3: the subclasses of :class:`InputError`.

The exit status of the command line: 0 success; 1 the submission failed (`check`), the run is
unfinished (`compare`), or no device works (`doctor`); 2 bad input; 130 interrupted.
"""


class KernelGymError(Exception):
    """Base class of the exceptions that a user of the package may want to catch."""


class InputError(KernelGymError):
    """The input is unusable. The message fits on one line and says how to correct it."""
