"""CUDA graphs after they were made: edges, nodes, parameters, and updates of executable ones."""

from __future__ import annotations

from ctypes import byref, c_uint32, c_void_p

from tests.helpers import graphs as g
from tests.helpers.graphs import graphs, handles

INVALID_VALUE = 1
UPDATE_FAILURE = 910
TOPOLOGY_CHANGED, TYPE_CHANGED, PARAMETERS_CHANGED = 2, 3, 5


class TestChanges:
    def test_edges_can_be_taken_away(self):
        with graphs() as cuda:
            graph = cuda.graph()
            first = cuda.add_kernel(graph, 1)
            second = cuda.add_kernel(graph, 2)
            cuda.GraphAddDependencies(graph, handles([second]), handles([first]), 1)
            assert cuda.run(graph) == 21
            cuda.GraphRemoveDependencies(graph, handles([second]), handles([first]), 1)
            assert cuda.run(graph) == 12
            edge = (graph, handles([second]), handles([first]), 1)
            assert cuda.code("GraphRemoveDependencies", *edge) == INVALID_VALUE

    def test_nodes_can_be_destroyed(self):
        with graphs() as cuda:
            graph = cuda.graph()
            first = cuda.add_kernel(graph, 1)
            second = cuda.add_kernel(graph, 2, [first])
            third = cuda.add_kernel(graph, 3, [second])
            cuda.GraphDestroyNode(second)
            assert cuda.listed("GraphNodeGetDependencies", third) == []
            assert cuda.run(graph) == 13
            assert cuda.code("GraphDestroyNode", second) == INVALID_VALUE

    def test_parameters_of_an_executable_graph(self):
        with graphs() as cuda:
            graph, exe = cuda.graph(), c_void_p()
            fill = cuda.add("Memset", graph, [], byref(g.Fill(cuda.word, 0, 1, 4, 1, 1)), None)
            kernel = cuda.add_kernel(graph, 2, [fill])
            exe = cuda.instantiate(graph)
            cuda.GraphExecKernelNodeSetParams_v2(exe, kernel, byref(cuda.kernel_params(7)))
            changed = g.Fill(cuda.word, 0, 5, 4, 1, 1)
            cuda.GraphExecMemsetNodeSetParams(exe, fill, byref(changed), None)
            cuda.GraphLaunch(exe, None)
            assert cuda.digits == 57
            assert cuda.run(graph) == 12
            params = byref(cuda.kernel_params(1))
            assert cuda.code("GraphExecKernelNodeSetParams_v2", exe, fill, params) == INVALID_VALUE

    def test_nodes_can_be_disabled(self):
        with graphs() as cuda:
            graph, enabled = cuda.graph(), c_uint32(9)
            node = cuda.add_kernel(graph, 1)
            cuda.add_kernel(graph, 2, [node])
            exe = cuda.instantiate(graph)
            cuda.GraphNodeSetEnabled(exe, node, 0)
            cuda.GraphNodeGetEnabled(exe, node, byref(enabled))
            cuda.GraphLaunch(exe, None)
            assert (cuda.digits, enabled.value) == (2, 0)
            empty = cuda.add("Empty", graph)
            assert cuda.code("GraphNodeSetEnabled", exe, empty, 0) == INVALID_VALUE

    def test_child_graphs_of_an_executable_graph(self):
        with graphs() as cuda:
            graph, child, other = cuda.graph(), cuda.graph(), cuda.graph()
            cuda.add_kernel(child, 1)
            cuda.add_kernel(other, 2)
            node = cuda.add("ChildGraph", graph, [], child)
            exe = cuda.instantiate(graph)
            cuda.GraphExecChildGraphNodeSetParams(exe, node, other)
            cuda.GraphLaunch(exe, None)
            assert cuda.digits == 2
            cuda.add_kernel(other, 3)
            code = cuda.code("GraphExecChildGraphNodeSetParams", exe, node, other)
            assert code == INVALID_VALUE


class TestUpdate:
    @staticmethod
    def update(cuda, exe, graph):
        told = g.UpdateResult()
        code = cuda.code("GraphExecUpdate_v2", exe, graph, byref(told))
        assert code == (UPDATE_FAILURE if told.result else 0)
        return told

    def test_parameters_are_taken_over(self):
        with graphs() as cuda:
            first, second = cuda.graph(), cuda.graph()
            for graph, digits in ((first, (1, 2)), (second, (3, 4))):
                node = cuda.add_kernel(graph, digits[0])
                cuda.add_kernel(graph, digits[1], [node])
            exe = cuda.instantiate(first)
            assert self.update(cuda, exe, second).result == 0
            cuda.GraphLaunch(exe, None)
            assert cuda.digits == 34

    def test_another_kind_of_node(self):
        with graphs() as cuda:
            first, second = cuda.graph(), cuda.graph()
            cuda.add_kernel(first, 1)
            node = cuda.add("Empty", second)
            exe = cuda.instantiate(first)
            told = self.update(cuda, exe, second)
            assert (told.result, told.error_node) == (TYPE_CHANGED, node.value)

    def test_more_nodes_or_other_edges(self):
        with graphs() as cuda:
            first, more, other = cuda.graph(), cuda.graph(), cuda.graph()
            for graph in (first, more, other):
                a, b = cuda.add_kernel(graph, 1), cuda.add_kernel(graph, 2)
            cuda.GraphAddDependencies(other, handles([a]), handles([b]), 1)
            cuda.add_kernel(more, 3)
            exe = cuda.instantiate(first)
            told = self.update(cuda, exe, more)
            assert (told.result, told.error_node) == (TOPOLOGY_CHANGED, None)
            told = self.update(cuda, exe, other)
            assert (told.result, told.error_node) == (TOPOLOGY_CHANGED, b.value)
            cuda.GraphLaunch(exe, None)
            assert cuda.digits == 12

    def test_an_edge_from_somewhere_else(self):
        with graphs() as cuda:
            first, second = cuda.graph(), cuda.graph()
            for graph in (first, second):
                nodes = [cuda.add_kernel(graph, digit) for digit in (1, 2, 3)]
                source = nodes[0] if graph is first else nodes[1]
                cuda.GraphAddDependencies(graph, handles([source]), handles(nodes[2:]), 1)
            told = self.update(cuda, cuda.instantiate(first), second)
            assert (told.result, told.error_node, told.error_from) == (
                TOPOLOGY_CHANGED, nodes[2].value, nodes[1].value,
            )  # fmt: skip

    def test_a_fill_that_becomes_a_box(self):
        with graphs() as cuda:
            first, second, place = cuda.graph(), cuda.graph(), cuda.allocate(64)
            cuda.add("Memset", first, [], byref(g.Fill(place, 0, 1, 1, 8, 1)), None)
            node = cuda.add("Memset", second, [], byref(g.Fill(place, 16, 1, 1, 8, 2)), None)
            told = self.update(cuda, cuda.instantiate(first), second)
            assert (told.result, told.error_node) == (PARAMETERS_CHANGED, node.value)
