"""Requests as frozen dataclasses, their form on the pipe, and the table that answers them.

On the pipe a request is a JSON object with raw buffers behind it. The key `do` holds the verb, and
every other key is a field. The receiver decodes a request before anything else sees it: an unknown
verb, an unknown field or a value of the wrong type is a `BadRequestError`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from functools import cache
from typing import TYPE_CHECKING, ClassVar, TypeVar, cast, dataclass_transform

from kernel_gym.inert import inert_line

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Value = TypeVar("Value")
Parser = Callable[[object, str], Value]
"""Turns a JSON value into the type of a field; the second argument names the field in errors."""
Handler = Callable[..., "Answer | Mapping[str, object]"]
"""Answers one kind of request. Takes its owner and the request's fields as keyword arguments."""


class BadRequestError(Exception):
    """A request does not have the form of the protocol. The message is inert."""


@dataclass_transform(frozen_default=True)
class Request:
    """A request of one kind. Each subclass is a frozen dataclass and states its verb.

    Example:
        >>> class Greet(Request, verb="greet"):
        ...     name: str = parsed(lambda value, what: str(value))
        >>> encode(Greet("world"))
        ({'do': 'greet', 'name': 'world'}, ())
    """

    verb: ClassVar[str]

    def __init_subclass__(cls, verb: str) -> None:
        """Makes the subclass a dataclass.

        Args:
            verb: The value of the key `do`.
        """
        cls.verb = verb
        dataclass(frozen=True)(cls)


@dataclass_transform(frozen_default=True)
class Answer:
    """An answer of one kind: each subclass is a frozen dataclass. Its fields are the JSON keys."""

    def __init_subclass__(cls) -> None:
        """Makes the subclass a dataclass."""
        dataclass(frozen=True)(cls)


Kind = TypeVar("Kind", bound=Request)
AnswerKind = TypeVar("AnswerKind", bound=Answer)


def parsed(parser: Parser[Value], default: object = MISSING) -> Value:
    """A field of a request.

    Args:
        parser: Checks the JSON value and converts it.
        default: The value when the field is absent; without one the parser sees `None`.
    """
    described: object = field(default=default, metadata={"parser": parser})
    return cast("Value", described)


def raw() -> bytes:
    """A field that travels as a raw buffer; empty bytes when there is no such buffer."""
    return field(default=b"", metadata={"raw": True})


def encode(request: Request) -> tuple[dict[str, object], tuple[bytes, ...]]:
    """Returns the JSON object and the raw buffers of a request; empty last buffers are left out."""
    plain, buffers = _fields_of(_dataclass(type(request)))
    header: dict[str, object] = {"do": request.verb}
    header |= {name: to_json(getattr(request, name)) for name in plain}
    behind = [getattr(request, name) for name in buffers]
    while behind and not behind[-1]:
        behind.pop()
    return header, tuple(behind)


def encode_answer(answer: Answer | Mapping[str, object]) -> dict[str, object]:
    """Returns the JSON object of an answer."""
    if not isinstance(answer, Answer):
        return dict(answer)
    return {name: to_json(value) for name, value in vars(answer).items()}


def to_json(value: object) -> object:
    """Converts the value of a field to what `json.dumps` takes."""
    if hasattr(value, "to_json"):
        return value.to_json()
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    return value


def decode_answer(kind: type[AnswerKind], header: Mapping[str, object]) -> AnswerKind:
    """Reads an answer whose kind is known, from a process that runs no code of others.

    Raises:
        TypeError: A field is missing or unknown.
    """
    return kind(**header)


class RequestDispatcher:
    """Decodes requests and calls the handler of each kind.

    Args:
        receiver: The name of the process in errors, such as "device".
        handlers: The handler of each kind of request. Nothing else is answered.
    """

    def __init__(self, receiver: str, handlers: Mapping[type[Request], Handler]) -> None:
        self.receiver = receiver
        self.handlers = dict(handlers)
        self._known = {kind.verb: kind for kind in handlers}

    def decode(self, header: Mapping[str, object], buffers: Sequence[bytes] = ()) -> Request:
        """Reads a request.

        Raises:
            BadRequestError: The verb is unknown, or a field is missing, unknown or malformed.
        """
        verb = header.get("do")
        if not isinstance(verb, str) or verb not in self._known:
            raise BadRequestError(
                f"the {self.receiver} does not know the request {inert_line(verb, 40)!r}"
            )
        return decode(self._known[verb], header, buffers)

    def handle(self, owner: object, request: Request) -> dict[str, object]:
        """Calls the handler of a decoded request and returns its answer as a JSON object."""
        return encode_answer(self.handlers[type(request)](owner, **vars(request)))

    def answer(
        self, owner: object, header: Mapping[str, object], buffers: Sequence[bytes] = ()
    ) -> dict[str, object]:
        """Decodes a request and answers it.

        Raises:
            BadRequestError: The request is malformed.
        """
        return self.handle(owner, self.decode(header, buffers))


def decode(kind: type[Kind], header: Mapping[str, object], buffers: Sequence[bytes] = ()) -> Kind:
    """Reads a request whose kind is known.

    Raises:
        BadRequestError: A field is missing, unknown or malformed.
    """
    plain, behind = _fields_of(_dataclass(kind))
    if unknown := _unknown(header, plain):
        raise BadRequestError(f"{kind.verb}: unknown fields {unknown}, expected {list(plain)}")
    values: dict[str, object] = {}
    for name, (parser, optional) in plain.items():
        if name in header or not optional:
            values[name] = parser(header.get(name), name)
    values.update(zip(behind, buffers, strict=False))
    return kind(**values)


def _unknown(header: Mapping[str, object], known: Iterable[str]) -> list[str]:
    expected = {"do", *known}
    return [inert_line(key, 40) for key in header if key not in expected][:4]


def _dataclass(kind: type[Request]) -> type[DataclassInstance]:
    """The same type: `Request.__init_subclass__` makes each subclass a dataclass."""
    return cast("type[DataclassInstance]", kind)


@cache
def _fields_of(
    kind: type[DataclassInstance],
) -> tuple[dict[str, tuple[Parser[object], bool]], tuple[str, ...]]:
    """The JSON fields of a request, each with its parser and whether it may be absent; the raw."""
    plain = {
        spec.name: (spec.metadata["parser"], spec.default is not MISSING)
        for spec in fields(kind)
        if "parser" in spec.metadata
    }
    return plain, tuple(spec.name for spec in fields(kind) if "raw" in spec.metadata)
