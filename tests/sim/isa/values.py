"""Values of AMD's pseudo-code: integers of any size as bit patterns, NumPy scalars as floats."""

from __future__ import annotations

import math
import struct
from fractions import Fraction
from typing import Any

import numpy as np

f16, f32, f64 = np.float16, np.float32, np.float64
FLOATS = {16: np.float16, 32: np.float32, 64: np.float64}
INF, NAN, PI = np.float64(math.inf), np.float64(math.nan), np.float64(math.pi)
_BITS = {16: np.uint16, 32: np.uint32, 64: np.uint64}
MANTISSA = {16: 10, 32: 23, 64: 52}
BIAS = {16: 15, 32: 127, 64: 1023}


def is_float(x: Any) -> bool:
    return isinstance(x, np.floating)


def width(x: np.floating) -> int:
    return 8 * x.dtype.itemsize


def bits_of(x: Any) -> int:
    return int(x.view(_BITS[width(x)])) if is_float(x) else int(x)


def from_bits(bits: int, size: int) -> np.floating:
    return _BITS[size](bits & ((1 << size) - 1)).view(FLOATS[size])


def wrap(x: int, size: int, signed: bool = False) -> int:
    x &= (1 << size) - 1
    return x - (1 << size) if signed and x >> (size - 1) else x


def _split(kind: str) -> tuple[str, int]:
    letters = kind.rstrip("0123456789")
    return letters, int(kind[len(letters) :])


def read(x: Any, kind: str) -> Any:
    """``x.kind``: the low bits of a value as a type."""
    letters, size = _split(kind)
    if letters == "f":
        return x if is_float(x) and width(x) == size else _as_float(x, size)
    if letters == "bf":
        return from_bits((bits_of(x) & 0xFFFF) << 16, 32)
    return wrap(bits_of(x), size, letters == "i")


def _as_float(x: Any, size: int) -> np.floating:
    """Bits as a float; constants such as INF.f32 are converted."""
    if is_float(x):
        return FLOATS[size](x) if width(x) == 64 and size != 64 else from_bits(bits_of(x), size)
    return from_bits(x, size)


def part(x: Any, high: int, low: int) -> int:
    """``x[high : low]``; bounds in the other order reverse the bits."""
    bits, high, low = bits_of(x), int(high), int(low)
    if high >= low:
        return bits >> low & ((1 << (high - low + 1)) - 1)
    count = low - high + 1
    return sum((bits >> (low - i) & 1) << i for i in range(count))


def store(kind: str, x: Any) -> int:
    """The register after ``D.kind = x`` if it held nothing before."""
    letters, size = _split(kind)
    if letters == "f" and is_float(x) and width(x) != size:
        with np.errstate(all="ignore"):
            x = FLOATS[size](x)
    if letters == "bf":
        return round_bf16(x)
    return bits_of(x) & ((1 << size) - 1)


def store_part(old: Any, high: int, low: int, kind: str, x: Any) -> int:
    bits = store(kind, x) if kind else bits_of(x)
    mask = ((1 << (int(high) - int(low) + 1)) - 1) << int(low)
    return (bits_of(old) & ~mask) | (bits << int(low) & mask)


def cast(size: int, kind: str, x: Any) -> Any:
    """``size'kind(x)``."""
    if kind == "F":
        if is_float(x) and np.isnan(x) and size > width(x):
            return _widened_nan(x, size)
        if is_float(x):
            with np.errstate(all="ignore"):
                return FLOATS[size](x)
        return from_bits(int(x), size) if abs(int(x)) > 1 << 20 else FLOATS[size](int(x))
    if kind == "I":
        return wrap(int(x), size, signed=True)
    return wrap(bits_of(x), size)


def _widened_nan(x: np.floating, size: int) -> np.floating:
    """NaN with its payload, which conversions of the host make quiet."""
    old = width(x)
    payload = (bits_of(x) & ((1 << MANTISSA[old]) - 1)) << (MANTISSA[size] - MANTISSA[old])
    top = ((1 << (size - MANTISSA[size])) - 1) >> 1 << MANTISSA[size]
    return from_bits(sign(x) << (size - 1) | top | payload, size)


def literal(size: int, x: float) -> np.floating:
    return FLOATS[size](x)


def join(*parts: tuple[int, Any]) -> int:
    """``{ high, ..., low }`` of ``(size, value)``."""
    result = 0
    for size, x in parts:
        result = result << size | (bits_of(x) & ((1 << size) - 1))
    return result


def divide(a: Any, b: Any) -> Any:
    with np.errstate(all="ignore"):
        return a / b


def power(a: Any, b: Any) -> Any:
    with np.errstate(all="ignore"):
        return a ** (b if is_float(b) else type(a)(b))


def pow(a: Any, b: Any) -> Any:
    return power(a, b)


# ---- exact rounding
def round_fraction(x: Fraction, size: int, negative_zero: bool = False) -> np.floating:
    """A fraction as a float, rounded once to nearest even."""
    kind = FLOATS[size]
    if x == 0:
        return kind(-0.0 if negative_zero else 0.0)
    mantissa, bias = MANTISSA[size], BIAS[size]
    magnitude = abs(x)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if Fraction(2) ** exponent > magnitude:
        exponent -= 1
    exponent = max(exponent, 1 - bias)
    scaled = magnitude / Fraction(2) ** (exponent - mantissa)
    whole = round(scaled)
    if whole >= 1 << (mantissa + 1):
        whole, exponent = whole >> 1, exponent + 1
    if exponent > bias:
        return kind(-math.inf if x < 0 else math.inf)
    bits = (
        whole
        if whole < 1 << mantissa
        else ((exponent + bias) << mantissa) + whole - (1 << mantissa)
    )
    return from_bits(bits | (int(x < 0) << (size - 1)), size)


def round_bf16(x: np.floating) -> int:
    bits = bits_of(f32(x))
    if bits & 0x7FFFFFFF > 0x7F800000:
        return bits >> 16 | 0x40
    return bits + 0x7FFF + (bits >> 16 & 1) >> 16 & 0xFFFF


def fma(a: Any, b: Any, c: Any) -> np.floating:
    kind = type(a)
    if not all(map(np.isfinite, (a, b, c))):
        with np.errstate(all="ignore"):
            return kind(f64(a) * f64(b) + f64(c)) if width(a) < 64 else a * b + c
    exact = Fraction(float(a)) * Fraction(float(b)) + Fraction(float(c))
    product_negative = np.signbit(a) != np.signbit(b)
    zero_sign = bool(product_negative and np.signbit(c))
    return round_fraction(exact, width(a), zero_sign)


# ---- functions of the manual
def convert(source: str, target: str, x: Any) -> Any:
    """``source_to_target(x)``; out-of-range floats saturate to integers, NaN is 0."""
    if target in ("snorm", "unorm"):
        low, scale = (-1.0, 32767.0) if target == "snorm" else (0.0, 65535.0)
        clean = 0.0 if np.isnan(x) else min(1.0, max(low, float(x)))
        return int(np.rint(np.float32(clean) * np.float32(scale)))
    letters, size = _split(target)
    with np.errstate(all="ignore"):
        if letters == "f":
            if is_float(x) and size == 16 and width(x) == 64:
                return round_fraction(Fraction(float(x)), 16)
            return FLOATS[size](x) if size != 16 or is_float(x) else _small_int(x)
        if letters == "bf":
            return from_bits(round_bf16(x) << 16, 32)
    signed = letters == "i"
    low, high = (-(1 << (size - 1)), (1 << (size - 1)) - 1) if signed else (0, (1 << size) - 1)
    if not is_float(x):
        return min(max(int(x), low), high)
    if np.isnan(x):
        return 0
    number = float(np.rint(x)) if target == "u8" else float(x)
    return high if number > high else low if number < low else int(number)


def less_or_greater(a: Any, b: Any) -> bool:
    """``a <> b``: false if one is NaN."""
    return bool(a < b or a > b)


def _small_int(x: int) -> np.floating:
    return round_fraction(Fraction(int(x)), 16)


def isNAN(x: Any) -> bool:
    return bool(np.isnan(x))


def isSignalNAN(x: Any) -> bool:
    return isNAN(x) and not bits_of(x) >> (MANTISSA[width(x)] - 1) & 1


def cvtToQuietNAN(x: Any) -> Any:
    return from_bits(bits_of(x) | 1 << (MANTISSA[width(x)] - 1), width(x))


def isEven(x: Any) -> bool:
    return bool(np.isfinite(x)) and int(x) % 2 == 0


def abs(x: Any) -> Any:
    return (
        from_bits(bits_of(x) & ~(1 << (width(x) - 1)), width(x))
        if is_float(x)
        else x
        if x >= 0
        else -x
    )


def sign(x: Any) -> int:
    return bits_of(x) >> (width(x) - 1) & 1


def exponent(x: Any) -> int:
    """Biased exponent, as if denormals had more of them."""
    if x == 0:
        return BIAS[width(x)] - 1  # frexp's exponent of zero is 0
    return math.frexp(float(x))[1] - 1 + BIAS[width(x)]


def mantissa(x: Any) -> Any:
    return type(x)(math.frexp(float(x))[0])


def signext(x: int) -> int:
    return x


def signext_from_bit(x: int, count: int) -> int:
    if count == 0:
        return 0
    return wrap(x, count, signed=True)


def _lanewise(function: Any) -> Any:
    def run(x: Any) -> Any:
        with np.errstate(all="ignore"):
            return type(x)(function(f64(x))) if width(x) < 64 else type(x)(function(x))

    return run


floor, trunc = _lanewise(np.floor), _lanewise(np.trunc)
sqrt, log2 = _lanewise(np.sqrt), _lanewise(np.log2)
sin, cos = _lanewise(np.sin), _lanewise(np.cos)


def fract(x: Any) -> Any:
    with np.errstate(all="ignore"):
        return x - floor(x)


def ldexp(x: Any, power_of_two: int) -> Any:
    if not np.isfinite(x) or x == 0:
        return x
    power_of_two = min(max(power_of_two, -3000), 3000)
    return round_fraction(Fraction(float(x)) * Fraction(2) ** power_of_two, width(x))


def extremum(name: str, *sources: Any) -> Any:
    """v_minimum_f32 and relatives: NaN wins, -0 is less than +0."""
    result = sources[0]
    for other in sources[1:]:
        if np.isnan(result) or np.isnan(other):
            result = cvtToQuietNAN(result if np.isnan(result) else other)
            continue
        pair = sorted((result, other), key=lambda x: (float(x), -sign(x)))
        result = pair[0] if "minimum" in name else pair[1]
    return result


def single(x: float) -> int:
    return struct.unpack("<I", struct.pack("<f", x))[0]
