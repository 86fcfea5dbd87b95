"""The code index of KernelBenchX: complexity, lines and comments of a source, by radon."""

from __future__ import annotations


def code_quality(source: str) -> dict[str, object]:
    """Returns the suite's figures on a source; {} without radon or if the source does not parse.

    Args:
        source: Untrusted text. It is parsed and not run.
    """
    try:
        from radon.complexity import cc_visit
        from radon.metrics import mi_visit
    except ImportError:
        return {}
    try:
        blocks = [block.complexity for block in cc_visit(source)]
        index = mi_visit(source, multi=True)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    lines = source.split("\n")
    texts = [line.strip() for line in lines]
    comments = sum(text.startswith("#") for text in texts)
    return {
        "avg_complexity": round(sum(blocks) / len(blocks), 2) if blocks else 0,
        "max_complexity": max(blocks, default=0),
        "maintainability_index": round(index, 2),
        "total_lines": len(lines),
        "code_lines": sum(bool(text) and not text.startswith("#") for text in texts),
        "comment_lines": comments,
        "comment_ratio": round(comments / len(lines), 3),
    }
