"""Texts that several adapters need: a candidate as a module of another form."""

from __future__ import annotations

from kernel_gym.judges.corpus import Candidate

SHOWN = (64, 256)
"""The shape of a judge that has one."""
SHAPES = (SHOWN, (3, 7), (33, 100), (5, 400))
"""The shapes of a judge that has several, as those of the oracles."""

RUN_FORKED = """
import os, runpy, shlex, subprocess, sys, traceback, types

PATHS, OUTPUTS = sys.path[1:], [os.path.abspath("out.txt"), os.path.abspath("err.txt")]


def run_forked(words, cwd=".", env=None, **options):
    _, file, *rest = shlex.split(words) if isinstance(words, str) else words
    child = os.fork()
    if child == 0:
        status = 1
        try:
            for target, name in zip((1, 2), OUTPUTS):
                os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), target)
            os.chdir(cwd)
            os.environ.update(env or {})
            file = os.path.abspath(file)
            sys.argv, sys.path[:] = [file, *rest], [os.path.dirname(file), *PATHS]
            runpy.run_path(file, run_name="__main__")
            status = 0
        except SystemExit as end:
            status = end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status & 255)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    texts = (open(name, errors="replace").read() for name in OUTPUTS)
    return subprocess.CompletedProcess(words, status, *texts)


forked = types.SimpleNamespace(**vars(subprocess) | {"run": run_forked})
"""
"""The beginning of a script: `forked` stands in for `subprocess` where a judge runs Python files.

A file runs in a child of the script, which has loaded PyTorch; loading takes most of the time."""


def names_of(candidate: Candidate) -> str:
    """Returns the arguments, as they stand in a call."""
    return ", ".join(candidate.problem.arguments)


def reference_model(candidate: Candidate, name: str = "Model") -> str:
    """Returns the problem as a module with a PyTorch class and functions that make its inputs."""
    number = len(candidate.problem.arguments)
    return f"""{module_with_class(candidate.problem.source, "reference", candidate, name)}

def get_inputs():
    return [torch.randn{SHOWN} for _ in range({number})]


def get_init_inputs():
    return []
"""


def module_with_class(source: str, function: str, candidate: Candidate, name: str) -> str:
    """Returns a source and a class of PyTorch whose `forward` calls a function of it."""
    names = names_of(candidate)
    return f"""{source}

class {name}(torch.nn.Module):
    def forward(self, {names}):
        return {function}({names})
"""


def module_with_function(source: str, function: str, candidate: Candidate, name: str) -> str:
    """Returns a source and a function of another name that calls one of it."""
    names = names_of(candidate)
    return f"{source}\n\ndef {name}({names}):\n    return {function}({names})\n"


def with_test(source: str, test: str) -> str:
    """Returns a source and its test as the files of TritonBench's family have them."""
    return f"{source}\n\n{'#' * 146}\n\n{test}"
