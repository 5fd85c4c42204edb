"""What the debugger's commands are for, as `help` tells it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

HELP: Final[Mapping[str, tuple[str, str]]] = {
    "run": (
        "run",
        "Let the program go on to the first breakpoint.",
    ),
    "continue": (
        "continue (c)",
        "Go on to the next breakpoint.",
    ),
    "step": (
        "step (s)",
        "Go on to another line of the source, into calls too.",
    ),
    "next": (
        "next (n)",
        "Go on to another line of the source, calls in one go.",
    ),
    "stepi": (
        "stepi (si)",
        "Execute one PTX instruction of the focused thread's lanes.",
    ),
    "nexti": (
        "nexti (ni)",
        "Execute one PTX instruction, a call in one go.",
    ),
    "finish": (
        "finish",
        "Go on until the function has returned.",
    ),
    "quit": (
        "quit (q)",
        "End the program and the debugger.",
    ),
    "break": (
        "break (b) WHERE [if CONDITION]",
        "Stop at a kernel or function, FILE:LINE, LINE or ptx:LINE, where the condition "
        "holds, such as threadIdx.x == 3 && blockIdx.x == 1.",
    ),
    "tbreak": (
        "tbreak WHERE [if CONDITION]",
        "As break, for one stop.",
    ),
    "delete": (
        "delete (d) [NUMBER ...]",
        "Forget breakpoints, all when none is named.",
    ),
    "disable": (
        "disable [NUMBER ...]",
        "Keep breakpoints but do not stop at them.",
    ),
    "enable": (
        "enable [NUMBER ...]",
        "Stop at breakpoints again.",
    ),
    "catch": (
        "catch [off]",
        "Watch every launch, so as to stop where a kernel faults.",
    ),
    "print": (
        "print (p) [/x|d|u|f|t|c] EXPRESSION",
        "A value, in C's notation: variables of the source where it was compiled with -G, %r1"
        " or $r1, threadIdx.x, *(float *)$rd1, param_0.",
    ),
    "lanes": (
        "lanes [/x|d|u|f|t|c] EXPRESSION",
        "A value in every lane that stands here.",
    ),
    "x": (
        "x [/COUNT FORMAT SIZE] ADDRESS",
        "Memory; formats x d u f c s, sizes b h w g, as in x/8f y and x/4xg shared+16. shared"
        " and local are where these memories begin.",
    ),
    "list": (
        "list (l) [LINE]",
        "The source around here, or around a line.",
    ),
    "disassemble": (
        "disassemble (dis)",
        "The PTX around here.",
    ),
    "backtrace": (
        "backtrace (bt, where)",
        "The calls that led here.",
    ),
    "thread": (
        "thread (X,Y,Z) [block (X,Y,Z)]",
        "Look at another thread; alone, say which is looked at. A plain number counts threads"
        " of the block, x fastest.",
    ),
    "block": (
        "block (X,Y,Z) [thread (X,Y,Z)]",
        "Look at another block's thread.",
    ),
    "lane": (
        "lane N",
        "Look at another lane of this warp.",
    ),
    "warp": (
        "warp N",
        "Look at another warp of this block.",
    ),
    "info": (
        "info (i) kernels|threads|warps|registers [NAME ...]|locals|args|shared|breakpoints",
        "Tell of the launch, where threads and warps are, values, breakpoints.",
    ),
    "help": (
        "help (h) [COMMAND]",
        "List the commands, or explain one.",
    ),
}
"""Command to how it is written and what it does."""
