"""Puts each package into each architecture: what was found and replaced, and whether it is right.

    python -m benchmarks.deployment [--work FOLDER] [--only ARCHITECTURE ...]

One process with a simulated GPU runs a few architectures. What FOLDER holds already is not run
again. The whole table takes about 40 minutes of one core.
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
    from benchmarks.deployment import fastkernels_page
    from benchmarks.deployment.architectures import ARCHITECTURES, GATED_GELU, OTHERS
    from benchmarks.deployment.packages import write_packages
    from benchmarks.deployment.page import PAGE, deploy_page

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, default=ROOT / "runs/deployment")
    parser.add_argument("--only", nargs="*", default=[*ARCHITECTURES, GATED_GELU, *OTHERS])
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        return run(options.work, options.only)
    write_packages(options.work / "packages")
    missing = [name for name in options.only if not _path(options.work, name).exists()]
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
    print(f"{RESULT}: {len(table)} architectures, and {len(others)} of FastKernels")


def _rows(work: Path, names: list[str]) -> list[dict[str, Any]]:
    paths = [_path(work, name) for name in names]
    return [json.loads(path.read_text(encoding="utf-8")) for path in paths if path.exists()]


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
    packages = {name: child.load(work / "packages" / name, "cuda") for name in SOURCES}
    for name in names:
        row = {"architecture": name, "packages": _row(name, packages)}
        _path(work, name).write_text(json.dumps(row, indent=1), encoding="utf-8")


def _row(name: str, packages: dict[str, Any]) -> dict[str, Any]:
    """Returns what each package did in an architecture."""
    from benchmarks.deployment.architectures import DECODED, config_of
    from kernel_gym.errors import InputError
    from kernel_gym.packages.models import child

    row: dict[str, Any] = {}
    decode = name in DECODED
    for package, loaded in packages.items():
        try:
            config = config_of(name, package)
            deployment = child.compare(loaded, config, "cuda", "sim:gfx942", decode=decode)
        except InputError as error:
            row[package] = {"error": str(error)}
            continue
        except Exception as error:
            row[package] = {"error": f"{type(error).__name__}: {error}"[:300]}
            continue
        decode = decode and not deployment.phases
        data = deployment.model_dump(mode="json", exclude={"source_sha256", "stated_gain"})
        row[package] = data | {"parity": deployment.parity, "replaced": deployment.replaced}
    return row


def _path(work: Path, name: str) -> Path:
    return work / f"{name.replace(' ', '_')}.json"


if __name__ == "__main__":
    main()
