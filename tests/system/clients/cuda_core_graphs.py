"""cuda.core's graphs: captured, forked, defined node by node, conditional, updated."""

import tempfile
from pathlib import Path

import numpy as np
from cases import case, run_cases
from cuda.bindings import driver
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch
from cuda.core.graph import GraphCompleteOptions, GraphDefinition

SOURCE = """
typedef unsigned long long handle_t;
extern "C" __device__ __cudart_builtin__ void cudaGraphSetConditional(handle_t, unsigned);
extern "C" __global__ void append(int *p, int digit) { *p = *p * 10 + digit; }
extern "C" __global__ void below(handle_t condition, const int *p, int limit) {
  cudaGraphSetConditional(condition, *p < limit);
}
"""
ONE = LaunchConfig(grid=1, block=1)
device = Device()
device.set_current()
stream = device.create_stream()
module = Program(SOURCE, "c++", ProgramOptions(arch="sm_80")).compile("ptx")
append, below = module.get_kernel("append"), module.get_kernel("below")


def number():
    """Eight bytes of zeros."""
    buffer = device.memory_resource.allocate(8, stream=stream)
    stream.sync()
    driver.cuMemsetD8(int(buffer.handle), 0, 8)
    return buffer


def value_of(buffer):
    """The digits that were appended."""
    stream.sync()
    values = np.empty(1, np.int32)
    driver.cuMemcpyDtoH(values.ctypes.data, int(buffer.handle), 4)
    return int(values[0])


@case
def a_captured_chain():
    p = number()
    builder = device.create_graph_builder().begin_building()
    for digit in (1, 2, 3):
        launch(builder, ONE, append, p, np.int32(digit))
    graph = builder.end_building().complete()
    assert value_of(p) == 0
    graph.upload(stream)
    graph.launch(stream)
    assert value_of(p) == 123
    graph.launch(stream)
    assert value_of(p) == 123123


@case
def split_and_join():
    p, q = number(), number()
    builder = device.create_graph_builder().begin_building()
    launch(builder, ONE, append, p, np.int32(1))
    left, right = builder.split(2)
    launch(left, ONE, append, p, np.int32(2))
    launch(right, ONE, append, q, np.int32(7))
    joined = type(builder).join(left, right)
    launch(joined, ONE, append, q, np.int32(8))
    graph = joined.end_building().complete()
    graph.launch(stream)
    assert (value_of(p), value_of(q)) == (12, 78)


@case
def callbacks():
    seen = []
    builder = device.create_graph_builder().begin_building()
    builder.callback(lambda: seen.append(1))
    graph = builder.end_building().complete()
    graph.launch(stream)
    stream.sync()
    assert seen == [1]


@case
def embedded():
    p = number()
    child = device.create_graph_builder().begin_building()
    launch(child, ONE, append, p, np.int32(4))
    child.end_building()
    builder = device.create_graph_builder().begin_building()
    launch(builder, ONE, append, p, np.int32(3))
    builder.embed(child)
    launch(builder, ONE, append, p, np.int32(5))
    builder.end_building().complete().launch(stream)
    assert value_of(p) == 345


@case
def updates():
    p = number()
    builders = []
    for digit in (1, 2):
        builder = device.create_graph_builder().begin_building()
        launch(builder, ONE, append, p, np.int32(digit))
        builders.append(builder.end_building())
    graph = builders[0].complete()
    graph.launch(stream)
    graph.update(builders[1])
    graph.launch(stream)
    assert value_of(p) == 12


@case
def a_captured_loop():
    p = number()
    builder = device.create_graph_builder().begin_building()
    condition = builder.create_condition(default_value=1)
    body = builder.while_loop(condition)
    body.begin_building()
    launch(body, ONE, append, p, np.int32(9))
    launch(body, ONE, below, condition, p, np.int32(5000))
    body.end_building()
    builder.end_building().complete().launch(stream)
    assert value_of(p) == 9999


@case
def captured_branches():
    for value, expected in ((1, 6), (0, 7)):
        p = number()
        builder = device.create_graph_builder().begin_building()
        condition = builder.create_condition(default_value=value)
        for branch, digit in zip(builder.if_else(condition), (6, 7), strict=True):
            branch.begin_building()
            launch(branch, ONE, append, p, np.int32(digit))
            branch.end_building()
        builder.end_building().complete().launch(stream)
        assert value_of(p) == expected


@case
def a_definition():
    p, q = number(), number()
    definition = GraphDefinition()
    first = definition.launch(ONE, append, p, np.int32(1))
    second = first.launch(ONE, append, p, np.int32(2))
    copied = second.memcpy(q, p, 4)
    other = definition.memset(int(q.handle) + 4, 5, 4)
    definition.join(copied, other).launch(ONE, append, p, np.int32(3))
    assert len(definition.nodes()) == 6
    assert (first, second) in definition.edges()
    definition.instantiate().launch(stream)
    assert (value_of(p), value_of(q)) == (123, 12)


@case
def memory_of_a_definition():
    p = number()
    definition = GraphDefinition()
    made = definition.allocate(64)
    cleared = made.memset(made.dptr, 3, 4)
    definition_end = cleared.memcpy(p, made.dptr, 4).deallocate(made.dptr)
    assert definition_end in definition.nodes()
    graph = definition.instantiate(GraphCompleteOptions(auto_free_on_launch=True))
    graph.launch(stream)
    graph.launch(stream)
    assert value_of(p) == 0x03030303


@case
def a_defined_switch():
    p = number()
    definition = GraphDefinition()
    condition = definition.create_condition(default_value=2)
    node = definition.switch(condition, 3)
    for digit, branch in enumerate(node.branches, start=4):
        branch.launch(ONE, append, p, np.int32(digit))
    definition.instantiate().launch(stream)
    assert value_of(p) == 6


@case
def printed():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.dot"
        definition = GraphDefinition()
        definition.launch(ONE, append, number(), np.int32(1))
        definition.debug_dot_print(str(path))
        assert "append" in path.read_text()


run_cases()
