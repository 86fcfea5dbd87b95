"""Numbers of a graph as expressions of its sizes, found from their values at several sizes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction

Number = int | float
Sizes = Mapping[str, int]
_EXPONENTS = (Fraction(-2), Fraction(-1), Fraction(-1, 2), Fraction(1, 2), Fraction(1), Fraction(2))
_CLOSE = 1e-12
MAX_STEP = 32


def expression(values: Sequence[Number], sizes: Sequence[Sizes]) -> str | None:
    """Returns an expression that has the value of each point, or None.

    Tried are, in this order: a constant; a product of powers of sizes with a factor; a sum of
    multiples of sizes; a floor division `(size * p + q) // r`; and products of these, each of one
    size.

    Args:
        values: The number at each point.
        sizes: The points. Among them must be pairs that differ in one size only.
    """
    first = values[0]
    if all(type(v) is type(first) and v == first for v in values):
        return repr(first)
    moved = _moving(values, sizes)
    for find in (_monomial, _affine, _steps, _separated):
        text = find(values, sizes, moved)
        if text is not None and _holds(text, values, sizes):
            return text
    return None


def _holds(text: str, values: Sequence[Number], sizes: Sequence[Sizes]) -> bool:
    code = compile(text, "<size>", "eval")
    for value, point in zip(values, sizes, strict=True):
        result = eval(code, {"__builtins__": {}, "math": math}, dict(point))
        if isinstance(value, int) and (result != value or not isinstance(result, int)):
            return False
        if not math.isclose(result, value, rel_tol=_CLOSE):
            return False
    return True


def _moving(values: Sequence[Number], sizes: Sequence[Sizes]) -> list[str]:
    """Returns the sizes that change the value when they alone are changed."""
    names = list(sizes[0])
    moved = []
    for name in names:
        for (v, a), (w, b) in itertools.combinations(zip(values, sizes, strict=True), 2):
            if v != w and a[name] != b[name] and all(a[n] == b[n] for n in names if n != name):
                moved.append(name)
                break
    return moved


def _pairs(name: str, values: Sequence[Number], sizes: Sequence[Sizes]) -> list[tuple]:
    """Returns values and sizes of points that differ from the first one in one size only."""
    first = sizes[0]
    return [
        (v, point[name])
        for v, point in zip(values, sizes, strict=True)
        if all(point[n] == first[n] for n in first if n != name)
    ]


def _monomial(values: Sequence[Number], sizes: Sequence[Sizes], moved: Sequence[str]) -> str | None:
    powers: dict[str, Fraction] = {}
    if all(v < 0 for v in values):
        positive = _monomial([-v for v in values], sizes, moved)
        return positive and f"-({positive})"
    if any(v <= 0 for v in values):
        return None
    for name in moved:
        (v, a), *rest = _pairs(name, values, sizes)
        w, b = next((w, b) for w, b in rest if w != v)
        slope = math.log(w / v) / math.log(b / a)
        near = min(_EXPONENTS, key=lambda e: abs(float(e) - slope))
        if abs(float(near) - slope) > 1e-6:
            return None
        powers[name] = near
    scale = math.prod(sizes[0][name] ** float(power) for name, power in powers.items())
    return _product(values[0] / scale, powers, integer=isinstance(values[0], int))


def _product(factor: float, powers: Mapping[str, Fraction], integer: bool) -> str | None:
    """Returns the text of a factor times powers of sizes."""
    above = [_power(name, power) for name, power in powers.items() if power > 0]
    below = [_power(name, -power) for name, power in powers.items() if power < 0]
    ratio = Fraction(factor).limit_denominator(1 << 12)
    exact = math.isclose(float(ratio), factor, rel_tol=1e-9)
    if exact:
        above += [str(ratio.numerator)] if ratio.numerator != 1 else []
        below += [str(ratio.denominator)] if ratio.denominator != 1 else []
    elif integer:
        return None
    else:
        above.append(repr(factor))
    text = " * ".join(above) or "1"
    if not below:
        return text
    return f"{text} {'//' if integer else '/'} {_group(below)}"


def _group(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"({' * '.join(parts)})"


def _power(name: str, power: Fraction) -> str:
    if power == 2:
        return f"{name} * {name}"
    return name if power == 1 else f"{name}**{float(power)}"


def _affine(values: Sequence[Number], sizes: Sequence[Sizes], moved: Sequence[str]) -> str | None:
    rates: dict[str, Fraction] = {}
    for name in moved:
        (v, a), *rest = _pairs(name, values, sizes)
        w, b = next((w, b) for w, b in rest if w != v)
        rate = Fraction(w - v) / (b - a)
        rates[name] = rate.limit_denominator(1 << 12)
    offset = Fraction(values[0]) - sum(rate * sizes[0][name] for name, rate in rates.items())
    offset = offset.limit_denominator(1 << 20)
    if isinstance(values[0], int) and any(r.denominator != 1 for r in (*rates.values(), offset)):
        return None
    terms = [_term(rate, name) for name, rate in rates.items()]
    if offset:
        terms.append(str(offset) if offset.denominator == 1 else repr(float(offset)))
    return " + ".join(terms).replace("+ -", "- ")


def _term(rate: Fraction, name: str) -> str:
    if rate == 1:
        return name
    if rate == -1:
        return f"-{name}"
    return f"{name} * {rate}" if rate.denominator == 1 else f"{name} * {float(rate)!r}"


def _steps(values: Sequence[Number], sizes: Sequence[Sizes], moved: Sequence[str]) -> str | None:
    """Finds a floor division of one size, as in the output of a strided convolution."""
    if not all(isinstance(v, int) for v in values) or len(moved) != 1:
        return None
    (name,) = moved
    points = [(v, point[name]) for v, point in zip(values, sizes, strict=True)]
    for step in range(2, MAX_STEP):
        for rate in range(1, 5):
            least = max(v * step - rate * a for v, a in points)
            most = min(v * step + step - 1 - rate * a for v, a in points)
            if least <= most:
                offset = 0 if least <= 0 <= most else (least if least > 0 else most)
                front = name if rate == 1 else f"{name} * {rate}"
                if not offset:
                    return f"{front} // {step}"
                return f"({front} {'+' if offset > 0 else '-'} {abs(offset)}) // {step}"
    return None


def _separated(
    values: Sequence[Number], sizes: Sequence[Sizes], moved: Sequence[str]
) -> str | None:
    """Finds a product of functions of one size each, such as rows times strided columns."""
    if not all(isinstance(v, int) and v > 0 for v in values) or len(moved) < 2:
        return None
    parts, rest = [], Fraction(values[0])
    for name in moved:
        pairs = _pairs(name, values, sizes)
        common = math.gcd(*(v for v, _ in pairs))
        own = [v // common for v, _ in pairs]
        points = [{name: a} for _, a in pairs]
        for factor in range(1, 5):
            text = expression([v * factor for v in own], points)
            if text is not None:
                break
        else:
            return None
        parts.append(f"({text})" if " " in text else text)
        rest /= own[0] * factor
    return f"{' * '.join(parts)}{_times(rest)}"


def _times(rest: Fraction) -> str:
    above = f" * {rest.numerator}" if rest.numerator != 1 else ""
    return above + (f" // {rest.denominator}" if rest.denominator != 1 else "")
