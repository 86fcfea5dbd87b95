"""FastKernels' tolerances and checks against tampering, beside our judge, on an imported module."""

from __future__ import annotations

from pathlib import Path

from kernel_gym.errors import InputError
from kernel_gym.imports.bench.own_tests import SuiteVerdict
from kernel_gym.imports.imported import changed_files, entry_of
from kernel_gym.imports.manifest import read_manifest
from kernel_gym.imports.readers.base import ConfinedRunner, UnsupportedTask, read_bytes
from kernel_gym.imports.readers.fastkernels import captured_texts
from kernel_gym.imports.readers.traced_reader import CLASS
from kernel_gym.imports.upstream.fastkernels_rule import CANDIDATE
from kernel_gym.inert import inert_line
from kernel_gym.tasks.names import split_imported

SUITE = "fastkernels"
RULE = "99 % of the elements within 1e-5 and 1e-3, of half types 1e-2"
"""The rule of the suite, in a few words."""
SECONDS = 100
"""Processor seconds of all calls."""
CASES = 3
"""Most captured calls: the smallest, the middle and the largest one."""
MAX_ELEMENTS = 1 << 20
"""Most elements of the inputs of a call, since PyTorch on the simulated GPU is slow."""


def module_verdict(name: str, source: str, bench: ConfinedRunner) -> SuiteVerdict:
    """Compares a candidate with the suite's module at captured calls, by the suite's rule.

    Args:
        name: The id of an imported task of FastKernels, in Triton.
        source: The candidate, with the class `ModelNew`.
        bench: Runs code of the suite.

    Raises:
        InputError: The files have changed, or all captured calls are too large.
        CheckoutError: A file cannot be read.
    """
    suite, _ = split_imported(name)
    entry, manifest = entry_of(name), read_manifest(suite)
    if changed := changed_files(manifest, entry):
        raise InputError(f"{name}: {changed[0]} has changed since it was imported: import it again")
    if not CLASS.search(source):
        return SuiteVerdict(False, False, "it defines no class ModelNew, which is called", RULE)
    checkout = Path(manifest.checkout)
    texts = _spread(captured_texts(checkout, entry.name.split("/")[-1], MAX_ELEMENTS))
    if not texts:
        raise InputError(
            f"{name}: each captured call has more than {MAX_ELEMENTS} elements, expected fewer"
        )
    files = {one: read_bytes(checkout, one) for one in entry.files if one.endswith(".py")}
    files |= {f"captured_{place}.py": text.encode() for place, text in enumerate(texts)}
    files[f"{CANDIDATE}.py"] = source.encode()
    cases = [f"captured_{place}" for place in range(len(texts))]
    try:
        answer = bench.run("fastkernels_rule", files, {"cases": cases, "seconds": SECONDS})
    except UnsupportedTask as error:
        return SuiteVerdict(False, False, str(error), RULE)
    called = answer.get("called") is True
    message = inert_line(str(answer.get("message")), 300)
    return SuiteVerdict(called, called and answer.get("right") is True, message, RULE)


def _spread(texts: list[str]) -> list[str]:
    """Returns the first, the middle and the last text, each once."""
    last = len(texts) - 1
    places = {last * step // (CASES - 1) for step in range(CASES)} if texts else ()
    return [texts[place] for place in sorted(places)]
