"""Family to the function that evaluates it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from va100.ptx.isa.form import Family
from va100.reference.asynchronous import evaluate_async
from va100.reference.atomic import evaluate_atomic
from va100.reference.barrier import evaluate_barrier
from va100.reference.compare import evaluate_compare
from va100.reference.control import evaluate_control
from va100.reference.convert import evaluate_convert
from va100.reference.exchange import evaluate_exchange
from va100.reference.floating import evaluate_floating
from va100.reference.half import evaluate_half
from va100.reference.integer import evaluate_integer
from va100.reference.issue import Issue
from va100.reference.logic import evaluate_logic
from va100.reference.matrix import evaluate_matrix
from va100.reference.memory import evaluate_memory
from va100.reference.move import evaluate_move
from va100.reference.stack import evaluate_stack
from va100.reference.surface import evaluate_texture
from va100.reference.video import evaluate_video

EVALUATE: Final[Mapping[Family, Callable[[Issue], None]]] = {
    Family.INTEGER: evaluate_integer,
    Family.FLOATING: evaluate_floating,
    Family.HALF: evaluate_half,
    Family.COMPARE: evaluate_compare,
    Family.LOGIC: evaluate_logic,
    Family.MOVE: evaluate_move,
    Family.CONVERT: evaluate_convert,
    Family.MEMORY: evaluate_memory,
    Family.ATOMIC: evaluate_atomic,
    Family.ASYNC: evaluate_async,
    Family.CONTROL: evaluate_control,
    Family.BARRIER: evaluate_barrier,
    Family.WARP: evaluate_exchange,
    Family.VIDEO: evaluate_video,
    Family.MATRIX: evaluate_matrix,
    Family.TEXTURE: evaluate_texture,
    Family.STACK: evaluate_stack,
}
"""Family to its evaluator."""
