"""Puts each package into each architecture: what was found and replaced, and whether it is right.

    python -m benchmarks.deployment [--work FOLDER] [--only ARCHITECTURE ...]
        [--renew PACKAGE ...]

One process with a simulated GPU runs a few architectures. What FOLDER holds already is not run
again. Stored results of other architectures are kept. With --renew, those of all packages but the
named ones are kept too. The whole table takes about ten minutes of one core.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
RESULT = ROOT / "benchmarks/results/deployment/architectures.json"
TOGETHER = 6
"""Architectures of one process."""


def main() -> None:
    """Runs what is missing, and writes the results."""
    from benchmarks.deployment import fastkernels_page, reasons_page
    from benchmarks.deployment.architectures import ARCHITECTURES, GATED_GELU, OTHERS
    from benchmarks.deployment.packages import SOURCES, write_packages
    from benchmarks.deployment.page import PAGE, deploy_page

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, default=ROOT / "runs/deployment")
    parser.add_argument("--only", nargs="*", default=[*ARCHITECTURES, GATED_GELU, *OTHERS])
    parser.add_argument("--renew", nargs="*", default=[], choices=[*SOURCES])
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return run(options.work, options.only)
    if options.renew:
        _take_stored(options.work, options.only, options.renew)
    missing = [name for name in options.only if _missing(options.work, name)]
    needed = {package for name in missing for package in _missing(options.work, name)}
    write_packages(options.work / "packages", tuple(name for name in SOURCES if name in needed))
    for at in range(0, len(missing), TOGETHER):
        command = [sys.executable, "-m", "kernel_gym", "sim", "--", sys.executable, "-m"]
        command += ["benchmarks.deployment", "--work", str(options.work), "--child", "--only"]
        subprocess.run(
            [*command, *missing[at : at + TOGETHER]],
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            check=True,
        )
    table = _rows(options.work, [*ARCHITECTURES, GATED_GELU])
    RESULT.write_text(_text(_result(table)), encoding="utf-8")
    PAGE.write_text(deploy_page(PAGE.read_text(encoding="utf-8"), table), encoding="utf-8")
    others = _rows(options.work, [*OTHERS])
    fastkernels_page.RESULT.write_text(_text(_result(others)), encoding="utf-8")
    fastkernels_page.PAGE.write_text(fastkernels_page.written(), encoding="utf-8")
    reasons_page.PAGE.write_text(reasons_page.written(), encoding="utf-8")
    print(f"{RESULT}: {len(table)} architectures, and {len(others)} of FastKernels")


def _take_stored(work: Path, names: list[str], renewed: list[str]) -> None:
    """Puts stored rows into a folder that has none of them, without the packages to renew."""
    work.mkdir(parents=True, exist_ok=True)
    for name, row in _stored().items():
        path = _path(work, name)
        if name in names and not path.exists():
            kept = {one: cell for one, cell in row["packages"].items() if one not in renewed}
            path.write_text(json.dumps(row | {"packages": kept}, indent=1), encoding="utf-8")


def _known(work: Path, name: str) -> dict[str, Any]:
    """Returns the results of packages in an architecture that a folder has."""
    path = _path(work, name)
    known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return dict(known.get("packages", {}))


def _missing(work: Path, name: str) -> list[str]:
    """Returns the packages that a folder has no result of in an architecture."""
    from benchmarks.deployment.packages import SOURCES

    known = _known(work, name)
    return [package for package in SOURCES if package not in known]


def _rows(work: Path, names: list[str]) -> list[dict[str, Any]]:
    """Returns the rows that a folder has, and stored ones of the other architectures."""
    paths = {name: _path(work, name) for name in names}
    rows = _stored() | {
        name: json.loads(path.read_text(encoding="utf-8"))
        for name, path in paths.items()
        if path.exists()
    }
    return [rows[name] for name in names if name in rows]


def _stored() -> dict[str, dict[str, Any]]:
    """Returns all stored rows by architecture."""
    from benchmarks.deployment.fastkernels_page import stored_others
    from benchmarks.deployment.page import stored_table

    return {row["architecture"]: row for row in [*stored_table(), *stored_others()]}


def _result(table: list[dict[str, Any]]) -> dict[str, Any]:
    from importlib.metadata import version

    libraries = ("torch", "transformers", "kernels", "triton")
    return {
        "command": "python -m benchmarks.deployment",
        "device": "sim:gfx942",
        "clock": "modelled",
        "versions": {name: version(name) for name in libraries},
        "architectures": table,
    }


def _text(result: dict[str, Any]) -> str:
    """Returns the results as JSON with one architecture a line."""
    rows = ",\n".join(json.dumps(row) for row in result["architectures"])
    head = json.dumps(result | {"architectures": []}, indent=1)
    return head.replace('"architectures": []', f'"architectures": [\n{rows}\n]') + "\n"


def run(work: Path, names: list[str]) -> None:
    """Runs some architectures in this process, which has a simulated GPU."""
    import transformers

    from benchmarks.deployment.packages import SOURCES
    from kernel_gym.packages.models import child

    transformers.logging.set_verbosity_error()
    loaded: dict[str, Any] = {}
    for name in names:
        known = _known(work, name)
        for package in _missing(work, name):
            if package not in loaded:
                loaded[package] = child.load(work / "packages" / package, "cuda")
            decode = not any(cell.get("tokens") for cell in known.values())
            known[package] = _cell(name, package, loaded[package], decode)
        row = {"architecture": name, "packages": {one: known[one] for one in SOURCES}}
        _path(work, name).write_text(json.dumps(row, indent=1), encoding="utf-8")


def _cell(name: str, package: str, loaded: Any, decode: bool) -> dict[str, Any]:
    """Returns what a package did in an architecture; tokens if no package before made some."""
    from benchmarks.deployment.architectures import DECODED, config_of
    from kernel_gym.errors import InputError
    from kernel_gym.packages.models import child

    try:
        config = config_of(name, package)
        decode = decode and name in DECODED
        deployment = child.compare(loaded, config, "cuda", "sim:gfx942", decode=decode)
    except InputError as error:
        return {"error": str(error)}
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:300]}
    data = deployment.model_dump(mode="json", exclude={"source_sha256", "stated_gain"})
    return data | {"parity": deployment.parity, "replaced": deployment.replaced}


def _path(work: Path, name: str) -> Path:
    return work / f"{name.replace(' ', '_')}.json"


if __name__ == "__main__":
    main()
