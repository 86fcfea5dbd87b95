"""Reads bodies of requests: bounded in bytes and structure first, validated off the event loop.

A parser or a validator that holds the interpreter for seconds stops all clients. So a body passes
cheap checks before anything is built from it. What is outside of its texts has to be short, which
bounds how many values, keys and brackets it can have, whatever its texts contain.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from fastapi import Depends, Request
from pydantic import BaseModel, ValidationError

from kernel_gym.client.wire import MAX_BATCH, Batch, Submission
from kernel_gym.errors import InputError
from kernel_gym.service.limits import TooLarge
from kernel_gym.service.settings import Token

MAX_STRUCTURE_BYTES = 64 << 10
"""Most bytes of a body outside of its texts. A batch of 256 submissions takes 30 KiB."""
MAX_DEPTH = 8
"""Most brackets of a body that are open at the same time."""
MAX_ERRORS = 4
"""Most errors of a body that an answer names."""
MAX_KEY_CHARS = 64
"""Most characters of an unknown key that an answer names."""
THREADS = 2
"""Bodies that are parsed at the same time."""
# A text ends at its quote or with the body, so that each byte is looked at once.
_TEXT_OR_SPACE = re.compile(rb'"(?:[^"\\]++|\\(?:.|\Z))*+(?:"|\Z)|[ \t\r\n]++', re.DOTALL)
_NO_BRACKETS = re.compile(rb"[^\[\]{}]++")
_QUOTE = ord('"')


class BadBody(InputError, ValueError):
    """A body is not what its route takes."""


class BodyReader:
    """Makes dependencies that read the body of a request."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="bodies")

    def of(
        self,
        token: Token,
        *models: type[BaseModel],
        max_bytes: int,
        structure: int = MAX_STRUCTURE_BYTES,
    ) -> Any:
        """Returns a dependency that gives the body as one of some models.

        Args:
            token: The dependency that gives the token of a request. Without one nothing is read.
            models: One model, or `Batch` and `Submission`.
            max_bytes: Most bytes of the body.
            structure: Most bytes of it outside of its texts.
        """

        async def read(request: Request, token: Token = token) -> BaseModel:
            data = await _received(request, max_bytes)
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._pool, parse_body, data, models, structure)

        return Depends(read)

    def close(self) -> None:
        """Ends the threads."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def described(*models: type[BaseModel]) -> dict[str, object]:
    """Returns the description of a body for `openapi_extra`."""
    schemas = [_inlined(model.model_json_schema()) for model in models]
    schema = schemas[0] if len(schemas) == 1 else {"anyOf": schemas}
    content = {"application/json": {"schema": schema}}
    return {"requestBody": {"required": True, "content": content}}


async def _received(request: Request, max_bytes: int) -> bytes:
    """Returns the bytes of a body.

    Raises:
        TooLarge: There are too many.
    """
    parts, size = [], 0
    async for part in request.stream():
        size += len(part)
        if size > max_bytes:
            raise TooLarge(max_bytes)
        parts.append(part)
    return b"".join(parts)


def parse_body(
    data: bytes, models: Sequence[type[BaseModel]], structure: int = MAX_STRUCTURE_BYTES
) -> BaseModel:
    """Parses a body.

    Args:
        data: The body.
        models: One model, or `Batch` and `Submission`, of which a key of the body chooses.
        structure: Most bytes outside of its texts.

    Raises:
        BadBody: It has another form, or too much of it.
    """
    _require_small_structure(data, structure)
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadBody(f"body: found no JSON ({type(error).__name__}: {str(error)[:80]})") from None
    if not isinstance(value, dict):
        raise BadBody("body: expected an object")
    model = models[0] if len(models) == 1 or "evaluations" in value else models[-1]
    _require_known_keys(value, model, "")
    if model is Batch and isinstance(value["evaluations"], list):
        for number, evaluation in enumerate(value["evaluations"]):
            if isinstance(evaluation, dict):
                _require_known_keys(evaluation, Submission, f"evaluations.{number}.")
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise BadBody(_errors_line(error)) from None


def _require_small_structure(data: bytes, structure: int) -> None:
    """Checks what is outside of the texts of a body.

    It takes time linear in the bytes of the body, and memory linear in `structure`.
    """
    depth = 0
    for bracket in _NO_BRACKETS.sub(b"", b"".join(_skeleton(data, structure))):
        depth += 1 if bracket in b"[{" else -1
        if depth > MAX_DEPTH:
            raise BadBody(f"body: found more than {MAX_DEPTH} brackets in each other")


def _skeleton(data: bytes, structure: int) -> Iterator[bytes]:
    """Yields what is outside of texts and space. The quotes of a text count as well.

    Raises:
        BadBody: It is longer than `structure`.
    """
    size = end = 0
    for match in _TEXT_OR_SPACE.finditer(data):
        size += match.start() - end + 2 * (data[match.start()] == _QUOTE)
        _require_at_most(size, structure)
        yield data[end : match.start()]
        end = match.end()
    _require_at_most(size + len(data) - end, structure)
    yield data[end:]


def _require_at_most(size: int, structure: int) -> None:
    if size > structure:
        raise BadBody(f"body: found more than {structure} bytes outside of its texts")


def _require_known_keys(value: dict[str, object], model: type[BaseModel], where: str) -> None:
    """Refuses an unknown key, and a list of a known key that is too long, without more errors."""
    strict = model.model_config.get("extra") == "forbid"
    for key, inner in value.items():
        known = key in model.model_fields
        if strict and not known:
            raise BadBody(f"{where}{key[:MAX_KEY_CHARS]!r}: found an unknown key")
        if known and isinstance(inner, list) and len(inner) > MAX_BATCH:
            raise BadBody(f"{where}{key}: found {len(inner)} items, expected at most {MAX_BATCH}")


def _errors_line(error: ValidationError) -> str:
    """The first errors of a body in one line, without the values that were given."""
    errors = error.errors(include_url=False, include_context=False, include_input=False)
    told = [
        f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}" for detail in errors[:MAX_ERRORS]
    ]
    return "; ".join(dict.fromkeys(told))


def _inlined(schema: dict[str, object]) -> dict[str, object]:
    """Returns a JSON schema without references. None of our messages refers to itself."""
    definitions = schema.pop("$defs", {})
    assert isinstance(definitions, dict)

    def without_references(value: object) -> object:
        if isinstance(value, dict) and "$ref" in value:
            return without_references(definitions[value["$ref"].rpartition("/")[2]])
        if isinstance(value, dict):
            return {key: without_references(inner) for key, inner in value.items()}
        return [without_references(item) for item in value] if isinstance(value, list) else value

    return {key: without_references(value) for key, value in schema.items()}
