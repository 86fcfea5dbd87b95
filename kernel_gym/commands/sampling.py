"""Options for sampling a policy's replies."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from kernel_gym.policies import Options

_PANEL = "Replies of a model"


def _option(text: str, *names: str, **limits: Any) -> Any:
    return typer.Option(*names, help=text, rich_help_panel=_PANEL, **limits)


MaxTokens = Annotated[int | None, _option("Length of a reply, at most.", min=1)]
Temperature = Annotated[float | None, _option("0 takes the likeliest token.", min=0.0)]
TopP = Annotated[
    float | None,
    _option("Draw from the likeliest tokens whose chances add up to this.", min=0.0, max=1.0),
]
ExtraBody = Annotated[
    str | None, _option('Further keys of a request, as JSON: \'{"reasoning_effort": "low"}\'.')
]
Parallel = Annotated[int | None, _option("Requests at a time.", min=1)]
Rate = Annotated[float | None, _option("Requests a minute, at most.", min=0.01)]
RequestTimeout = Annotated[
    float | None, _option("Seconds for a request; then it is sent once more.", min=1.0)
]
PriceIn = Annotated[float | None, _option("US dollars a million tokens read.", min=0.0)]
PriceOut = Annotated[float | None, _option("US dollars a million tokens written.", min=0.0)]


def policy_options(
    max_tokens: int | None,
    temperature: float | None,
    top_p: float | None,
    extra_body: str | None,
    parallel: int | None,
    rate: float | None,
    request_timeout: float | None,
    price_in: float | None,
    price_out: float | None,
) -> Options:
    """Returns the options in the form that a policy takes.

    Raises:
        PolicyError: The extra keys are no JSON object.
    """
    from kernel_gym.policies import Options

    return Options(
        max_tokens=max_tokens,
        temperature=temperature,
        top_p=top_p,
        extra=_object(extra_body),
        parallel=parallel,
        per_minute=rate,
        request_timeout=request_timeout,
        prompt_price=price_in,
        completion_price=price_out,
    )


def _object(text: str | None) -> dict[str, object] | None:
    from kernel_gym.policies import PolicyError

    if text is None:
        return None
    try:
        value = json.loads(text)
    except ValueError as error:
        raise PolicyError(
            f"--extra-body: found invalid JSON ({error}), expected an object"
        ) from None
    if not isinstance(value, dict):
        raise PolicyError(f"--extra-body: found {text[:60]}, expected a JSON object")
    return value
