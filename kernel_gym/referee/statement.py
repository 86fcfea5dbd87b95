"""The statement of a claim: what the kernel computes, on which inputs. It is a TOML file.

entry = "scale"                        # the function that kernel and baseline define
reference = "reference.py"             # PyTorch; not needed if the baseline is PyTorch
claimed_speedup = 2.0                  # optional
shapes = [{rows = 4096, cols = 1024}]  # what the claim was timed on
distributions = ["normal", "large"]    # optional: the legal distributions of the data

[axes]
rows = [1, 65536]                      # legal sizes, from and to
cols = [8, 16384, 8]                   # and a multiple

[[input]]
name = "x"
dtype = "float16"
shape = "rows, cols"

[[input]]
name = "factor"
value = 2.0                            # a scalar

[[input]]
name = "index"
dtype = "int64"
shape = "rows"
below = "cols"                         # integers from 0 to below - 1

[[output]]
name = "out"
dtype = "float16"
shape = "rows, cols"
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from kernel_gym.errors import InputError
from kernel_gym.tasks.distributions import DISTRIBUTIONS
from kernel_gym.tasks.inside import read_inside
from kernel_gym.tasks.problem import Problem
from kernel_gym.tasks.shapes import shape_of
from kernel_gym.tasks.signature import C_TYPES

NAME = r"^[A-Za-z_][A-Za-z0-9_]{0,63}$"
MAX_BYTES = 256 * 1024
"""Longest file of a claim."""
DTYPES = {str(dtype).removeprefix("torch."): dtype for dtype in C_TYPES}
"""The dtypes that a statement may name."""


class ClaimError(InputError, ValueError):
    """A claim cannot be judged as it is stated. The message says what to change."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


Name = Annotated[str, Field(pattern=NAME)]
ShapeText = Annotated[str, Field(max_length=200)]


class InputPart(_Part):
    """A tensor (`dtype`, `shape`) or a scalar (`value`)."""

    name: Name
    dtype: str = ""
    shape: ShapeText = ""
    below: ShapeText = ""
    value: int | float | None = None

    @model_validator(mode="after")
    def _is_one_of_both(self) -> InputPart:
        if (self.value is None) == (self.dtype == ""):
            raise ValueError(f"input {self.name!r}: expected either 'value' or 'dtype' and 'shape'")
        if self.dtype and self.dtype not in DTYPES:
            raise ValueError(f"input {self.name!r}: found dtype {self.dtype!r}, expected "
                             f"one of {', '.join(DTYPES)}")  # fmt: skip
        return self

    @property
    def torch_dtype(self) -> torch.dtype:
        """The dtype of a tensor."""
        return DTYPES[self.dtype]


class OutputPart(_Part):
    """A tensor that kernel and reference return."""

    name: Name
    dtype: str
    shape: ShapeText

    @property
    def torch_dtype(self) -> torch.dtype:
        """The dtype.

        Raises:
            ClaimError: It is unknown.
        """
        if self.dtype not in DTYPES:
            raise ClaimError(f"output {self.name!r}: found dtype {self.dtype!r}, expected one of "
                             f"{', '.join(DTYPES)}")  # fmt: skip
        return DTYPES[self.dtype]


class Statement(_Part):
    """The subject of a claim, checked."""

    entry: Name
    reference: str = ""
    claimed_speedup: float | None = Field(default=None, gt=0)
    distributions: Annotated[tuple[str, ...], Field(min_length=1)] = Problem.distributions
    shapes: Annotated[tuple[dict[Name, int], ...], Field(min_length=1, max_length=8)]
    axes: Annotated[dict[Name, tuple[int, ...]], Field(min_length=1, max_length=8)]
    input: Annotated[tuple[InputPart, ...], Field(min_length=1, max_length=16)]
    output: Annotated[tuple[OutputPart, ...], Field(min_length=1, max_length=8)]

    @model_validator(mode="after")
    def _agrees(self) -> Statement:
        for name, span in self.axes.items():
            if not 2 <= len(span) <= 3 or not 1 <= span[0] <= span[1]:
                raise ValueError(f"axis {name!r}: found {list(span)}, expected [low, high] or "
                                 "[low, high, multiple]")  # fmt: skip
        unknown = sorted(set(self.distributions) - set(DISTRIBUTIONS))
        if unknown:
            raise ValueError(f"distributions: found {unknown[0]!r}, expected some of "
                             f"{', '.join(DISTRIBUTIONS)}")  # fmt: skip
        for dims in self.shapes:
            if dims.keys() != self.axes.keys():
                raise ValueError(f"shapes: found {dict(dims)}, expected a size for each of "
                                 f"{', '.join(self.axes)}")  # fmt: skip
            for shape in (*(p.shape for p in self.input), *(p.shape for p in self.output)):
                if shape:
                    shape_of(shape, dims)
        if not any(part.dtype for part in self.input):
            raise ValueError("input: found no tensor")
        return self


def read_statement(path: Path) -> Statement:
    """Reads a statement.

    Raises:
        ClaimError: The file is malformed; the message names the key.
        OSError: It cannot be read.
    """
    try:
        return Statement.model_validate(tomllib.loads(read_text(path)))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ClaimError(f"{path}: {where + ': ' if where else ''}{first['msg']}") from None
    except ValueError as error:
        raise ClaimError(f"{path}: found invalid TOML ({error})") from None


def read_text(path: Path) -> str:
    """Reads a file of a claim.

    Raises:
        ClaimError: It is too long, is no UTF-8 text, or is a link that leads out of its folder.
        OSError: It cannot be read.
    """
    try:
        data = read_inside(path.parent, path, MAX_BYTES)
    except (FileNotFoundError, PermissionError):
        raise
    except OSError as error:
        raise ClaimError(f"{path}: {error.strerror}") from None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ClaimError(f"{path}: found no UTF-8 text ({error.reason})") from None
