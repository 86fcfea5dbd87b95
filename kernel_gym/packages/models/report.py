"""The report of a deployment, as data."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from kernel_gym.records import Record

Number = Annotated[float, Field(allow_inf_nan=False)]


class Site(Record):
    """Places of a model that compute the package's operation.

    Attributes:
        kind: The class of the modules, or the name of the function.
        modules: Their paths in the model.
        operators: Operators of PyTorch that were traced there and belong to the operation.
        replaced_by: The layer of the package; empty if it was not replaced.
        mechanism: What replaced it, such as `kernels.kernelize`.
        reason: Why it was not replaced; empty if it was.
    """

    kind: str
    modules: tuple[str, ...]
    operators: tuple[str, ...]
    replaced_by: str = ""
    mechanism: str = ""
    reason: str = ""


class Closeness(Record):
    """Errors of one output against the same model in a wider type.

    Attributes:
        output: Which output: `logits`, `loss` or `gradients`.
        original: The root mean square of the errors of the original, over that of the values.
        replaced: The same with the package.
        original_largest: The largest error of the original, over the largest value.
        replaced_largest: The same with the package.
        right: Whether the package's errors are within the limits of the yardstick.
    """

    output: str
    original: Number
    replaced: Number
    original_largest: Number
    replaced_largest: Number
    right: bool


class Tokens(Record):
    """Greedy tokens with and without the package.

    Attributes:
        steps: Steps that were made.
        requests: Sequences of the batch.
        equal: Steps until the first difference in any sequence.
        margin: How much larger the fp64 model's best logit is than the token of the replaced model
            there; None without a difference.
        error: The largest error of the original's logits at the same place; None likewise.
    """

    steps: int
    requests: int
    equal: int
    margin: Number | None = None
    error: Number | None = None

    @property
    def right(self) -> bool:
        """Whether all tokens are equal."""
        return self.equal == self.steps


class Phase(Record):
    """Times of one phase of the model, in pairs of blocks with and without the package.

    Attributes:
        name: `prefill`, `decode`, `captured decode` or `loss`.
        tokens: Tokens of one block.
        seconds: Seconds of the original, the median of all blocks.
        replaced_seconds: Seconds with the package.
        gain: Original over replaced, the median of all pairs.
        gain_low: The least of all pairs.
        gain_high: The largest of all pairs.
        pairs: How many pairs.
        calls: Calls of the package's operator in one block.
        kernel_calls: How many of them ran the kernel; the others ran plain PyTorch.
        fallback_reason: Why the first of the others ran plain PyTorch.
        operator_gain: The operator alone at the shapes of these calls: seconds of PyTorch as models
            write it over seconds of the package, summed over all calls; None without calls.
        share: The part of the original's seconds that the operation takes, computed alone; 0 if
            the original has the operation inside a larger fused operator.
        predicted_gain: What operator_gain and share predict: 1 / (1 - share + share / gain). None
            without calls, or if the share is unknown.
        note: A remark, such as that the package is faster alone and slower in the model.
    """

    name: str
    tokens: int
    seconds: Number
    replaced_seconds: Number
    gain: Number
    gain_low: Number
    gain_high: Number
    pairs: int
    calls: int
    kernel_calls: int
    fallback_reason: str = ""
    operator_gain: Number | None = None
    share: Number = 0.0
    predicted_gain: Number | None = None
    note: str = ""


class RefusedCalls(Record):
    """Calls of replaced places that ran the model's own code, since the package refuses inputs.

    Attributes:
        phase: `gradients`, or the name of a phase.
        reason: What the package refused.
        calls: How many calls of one pass.
    """

    phase: str
    reason: str
    calls: int


class Deployment(Record):
    """The results of a package in a model.

    Attributes:
        task: The task of the package.
        stated_gain: The speed-up on unseen workloads that the package's evidence states.
        source_sha256: The digest of the kernel.
        model: The type of the model.
        parameters: Its parameters.
        device: The device.
        clock: Whether times were modelled or measured.
        dtype: The type of its parameters.
        omitted_quantization: The quantization that the configuration asks for and the model does
            not have; empty without one.
        sites: What computes the operation, replaced or not.
        yardstick: The type of the model that errors are taken against: `float64`, or `float32` for
            models with an operator that has no fp64.
        closeness: Errors of outputs; empty if nothing was replaced.
        tokens: Greedy tokens; None if the model generates none, or nothing was replaced.
        phases: Times; empty if nothing was replaced.
        refusals: Calls of replaced places that ran the model's own code.
        uncaptured: Why the launches of a decoded token could not be captured; empty if they were,
            or if nothing was to be captured.
        failure: Why the model could not be compared; empty if it could.
    """

    task: str
    stated_gain: Number
    source_sha256: str
    model: str
    parameters: int
    device: str
    clock: Literal["modelled", "measured"]
    dtype: str
    omitted_quantization: str = ""
    sites: tuple[Site, ...]
    yardstick: Literal["float64", "float32"] = "float64"
    closeness: tuple[Closeness, ...] = ()
    tokens: Tokens | None = None
    phases: tuple[Phase, ...] = ()
    refusals: tuple[RefusedCalls, ...] = ()
    uncaptured: str = ""
    failure: str = ""

    @property
    def replaced(self) -> int:
        """How many places run the package's operator."""
        return sum(len(site.modules) for site in self.sites if site.replaced_by)

    @property
    def parity(self) -> bool:
        """Whether all outputs are within the yardstick and all tokens are equal."""
        close = bool(self.closeness) and all(part.right for part in self.closeness)
        return close and not self.failure and (self.tokens is None or self.tokens.right)
