"""A flow graph as text for people and as Graphviz ``dot``."""

from __future__ import annotations

from collections.abc import Iterator

from va100.ptx.cfg import EXIT, BasicBlock, FlowGraph
from va100.ptx.printer import print_instruction


def flow_text(flow: FlowGraph) -> str:
    """List blocks with their neighbours and instructions."""
    kind = "kernel" if flow.function.is_kernel else "function"
    lines = [f"{kind} {flow.function.name}: {len(flow.blocks)} blocks"]
    for block in flow.blocks:
        lines.append("  " + _heading(flow, block))
        lines += [f"    {line:5d}  {text}" for line, text in _body(flow, block)]
    return "\n".join(lines) + "\n"


def flow_dot(flow: FlowGraph) -> str:
    """Draw the blocks for Graphviz; a dashed edge leads to the immediate post-dominator."""
    lines = [f'digraph "{_escaped(flow.function.name)}" {{', "  node [shape=box fontname=mono];"]
    for block in flow.blocks:
        label = "\\l".join(_escaped(text) for _, text in _body(flow, block)) + "\\l"
        lines.append(f'  b{block.index} [label="block {block.index}\\l{label}"];')
        lines += [f"  b{block.index} -> b{successor};" for successor in block.successors]
        if block.immediate_postdominator != EXIT:
            target = block.immediate_postdominator
            lines.append(
                f"  b{block.index} -> b{target} [style=dashed color=gray constraint=false];"
            )
    return "\n".join([*lines, "}"]) + "\n"


def _heading(flow: FlowGraph, block: BasicBlock) -> str:
    names = [name for name, index in flow.labels.items() if index == block.index]
    to = ", ".join(str(s) for s in block.successors) or "leaves"
    after = block.immediate_postdominator
    return (
        f"block {block.index}{' (' + ', '.join(names) + ')' if names else ''}"
        f" -> {to}; dominated by {_index(block.immediate_dominator)}, "
        f"meets again at {_index(after)}"
    )


def _index(index: int) -> str:
    return "none" if index == EXIT else str(index)


def _body(flow: FlowGraph, block: BasicBlock) -> Iterator[tuple[int, str]]:
    for index in range(block.start, block.end):
        yield flow.lines[index], print_instruction(flow.instructions[index])


def _escaped(text: str) -> str:
    for char in '\\"{}|<>':
        text = text.replace(char, "\\" + char)
    return text
