"""What the engine keeps between launches."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.engines import pack
from tests.helpers.kernels import kernel
from va100.gpu.arena import Arena
from va100.gpu.place import place_module, remove_module
from va100.jit.engine import JitEngine, optimisation_level
from va100.ptx.parser import parse
from va100.work import Dim3, LaunchConfig

COUNT_UP = kernel(
    "test",
    "u64",
    """
    ld.global.u32 %r5, [var];
    add.u32 %r6, %r5, 1;
    st.global.u32 [var], %r6;
    st.global.u32 [%d60], %r6;
    ret;
""",
    before=".global .u32 var = 7;",
)


def test_each_loading_of_a_module_has_its_own_variables(arena: Arena) -> None:
    ptx = parse(COUNT_UP, "test.ptx")
    engine = JitEngine(workers=1)
    first, second = place_module(ptx, arena), place_module(ptx, arena)
    place = arena.upload(np.zeros(1, np.uint32))
    try:
        found = []
        for module in (first, first, second):
            engine.launch(module, "test", LaunchConfig(grid=Dim3(1), block=Dim3(1)), pack(place))
            found.append(int(np.frombuffer(arena.download(place, 4), np.uint32)[0]))
    finally:
        arena.free(place)
        remove_module(first)
        remove_module(second)
    assert found == [8, 9, 8]


@pytest.mark.parametrize(
    ("registers", "blocks", "instructions", "level"),
    [(50, 100, 900, 1), (400, 1100, 900, 0), (50, 100, 5000, 0), (1, 200_000, 900, 0)],
)
def test_llvm_is_spared_what_takes_it_minutes(registers, blocks, instructions, level):
    text = "  %r = alloca <32 x i32>\n" * registers + "L:\n" * blocks
    assert optimisation_level(text, instructions) == level
