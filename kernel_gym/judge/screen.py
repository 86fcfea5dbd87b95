"""The static screen: rejects forbidden constructs and adds labels. It is never the only barrier.

Rule 4 of the protocol forbids frame walking, ctypes, process and thread creation, assignments into
torch or triton, files and network.
"""

from __future__ import annotations

import ast
import re
import warnings
from dataclasses import dataclass

from kernel_gym.judge.comments import without_comments
from kernel_gym.judge.protocol import MAX_SOURCE_BYTES
from kernel_gym.tasks.extension import is_extension

FORBIDDEN_MODULES = frozenset(
    "ctypes cffi subprocess multiprocessing threading concurrent socket http urllib requests "
    "signal gc inspect sys os pathlib shutil io tempfile pickle marshal importlib builtins "
    "asyncio atexit mmap resource code codeop faulthandler traceback kernel_gym".split()
)
FORBIDDEN_CALLS = frozenset("open exec eval compile __import__ input breakpoint".split())
FORBIDDEN_ATTRIBUTES = frozenset(
    "_getframe f_back f_globals f_locals tb_frame __globals__ __closure__ __subclasses__ "
    "__builtins__ __code__ gi_frame cr_frame".split()
)
_GUARDED_ROOTS = frozenset("torch triton tl gluon gl flydsl flyc fx tilelang tvm".split())
_LABELS = ("try_except", "autotune")
_FORBIDDEN_IN_HIP = {
    r"\b(system|popen|fork|vfork|execv\w*|execl\w*|posix_spawn\w*)\s*\(": "starts a process",
    r"\b(dlopen|dlsym|ptrace|mprotect|process_vm_\w+)\s*\(": "reaches into the process",
    r"\b(fopen|freopen|ifstream|ofstream|fstream)\b": "reads or writes files",
    r"\b(socket|connect)\s*\(": "uses the network",
    r"\b(pthread_create|std::thread|std::async)\b": "creates threads",
    r"__attribute__\s*\(\(\s*constructor": "runs code when it is loaded",
    r"#\s*include\s*[<\"]\s*/": "includes a file by absolute path",
}


@dataclass(frozen=True)
class Screened:
    """Why a source is rejected (empty if it is not), and its labels."""

    rejection: str = ""
    labels: tuple[str, ...] = ()


def screen(source: str, language: str) -> Screened:
    """Screens a source. Text that does not parse passes, as the build reports the reason."""
    size = len(source.encode("utf-8", errors="surrogatepass"))
    if size > MAX_SOURCE_BYTES:
        return Screened(f"the source has {size} bytes, at most {MAX_SOURCE_BYTES} are taken")
    if not source.strip():
        return Screened("the source is empty")
    if "\0" in source or any("\ud800" <= c <= "\udfff" for c in source):
        return Screened("the source is not plain UTF-8 text")
    if is_extension(source, language):
        return _screen_extension(source)
    return _screen_hip(source) if language == "hip" else _screen_python(source)


def parse(source: str) -> ast.Module:
    """Parses Python without running it, and without its warnings.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: It does not parse.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(source)


def _screen_hip(source: str) -> Screened:
    code = without_comments(source)
    for pattern, what in _FORBIDDEN_IN_HIP.items():
        match = re.search(pattern, code)
        if match:
            line = code[: match.start()].count("\n") + 1
            return Screened(f"line {line}: {match.group(0).strip()[:80]!r} {what}")
    return Screened()


def _screen_extension(source: str) -> Screened:
    """Screens a module, and its texts as sources in HIP."""
    screened = _screen_python(source)
    try:
        nodes = list(ast.walk(parse(source)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return screened
    texts = [n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    rejected = [found for found in map(_screen_hip, texts) if found.rejection]
    if screened.rejection or not rejected:
        return screened
    return Screened(f"in a text of the extension, {rejected[0].rejection}")


def _screen_python(source: str) -> Screened:
    try:
        tree = parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Screened()
    labels = set()
    try:
        for node in ast.walk(tree):
            objection = _objection(node)
            if objection:
                return Screened(f"line {getattr(node, 'lineno', '?')}: {objection}")
            labels.add(_label(node))
    except RecursionError:
        return Screened("the source is nested too deeply")
    return Screened(labels=tuple(label for label in _LABELS if label in labels))


def _objection(node: ast.AST) -> str | None:
    if isinstance(node, ast.Import):
        return _import_objection([alias.name for alias in node.names])
    if isinstance(node, ast.ImportFrom):
        return _import_objection([node.module or ""])
    if isinstance(node, ast.Attribute) and node.attr in FORBIDDEN_ATTRIBUTES:
        return f"attribute {node.attr!r} walks frames or closures"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return f"call of {node.func.id}()" if node.func.id in FORBIDDEN_CALLS else None
    targets = _assigned(node)
    for target in targets:
        if isinstance(target, ast.Attribute) and _root(target) in _GUARDED_ROOTS:
            return f"assignment into {_written(target)}"
    return None


def _import_objection(names: list[str]) -> str | None:
    for name in names:
        if name.split(".")[0] in FORBIDDEN_MODULES:
            return f"import of {name!r}"
    return None


def _assigned(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Assign):
        return node.targets
    if isinstance(node, ast.AugAssign | ast.AnnAssign):
        return [node.target]
    return node.targets if isinstance(node, ast.Delete) else []


def _root(node: ast.expr) -> str | None:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else None


def _written(node: ast.expr) -> str:
    """Returns a chain of attributes as source text, of limited length."""
    names: list[str] = []
    while isinstance(node, ast.Attribute) and len(names) < 8:
        names.insert(0, node.attr)
        node = node.value
    return ".".join([_root(node) or "", *names])


def _label(node: ast.AST) -> str:
    if isinstance(node, ast.Try):
        return "try_except"
    return "autotune" if isinstance(node, ast.Attribute) and node.attr == "autotune" else ""
