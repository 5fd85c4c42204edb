"""A node's kind, and what is broken of it, decide what copies and collectives take."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from va100.node.fabric import Damage, surviving
from va100.perf.collectives import estimate
from va100.perf.links import host_copy, peer_copy
from va100.spec.nodes import find_node

ROOT = Path(__file__).parents[2]
CLIENT = Path(__file__).parent / "clients" / "node_links.py"
SIZE = 1 << 24
CALLS = 5
"""All-reduces that the client makes: four that are timed, and one before."""


@pytest.fixture
def on_node(tmp_path):
    """Run a program on a node of its own home."""

    def run(name, *words):
        environment = os.environ | {
            "VA100_HOME": str(tmp_path),
            "VA100_NODE": name,
            "VA100_WORKERS": "1",
            "PYTHONPATH": str(ROOT),
        }
        for hidden in ("CUDA_VISIBLE_DEVICES", "VA100_GPUS", "VA100_MODEL"):
            environment.pop(hidden, None)
        done = subprocess.run(
            [sys.executable, *map(str, words)],
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def require(printed, kind, damage):
    node = find_node(kind)
    ranks, copy_us, reduce_us, sent_kib = (float(word) for word in printed.split())
    assert ranks == node.gpu_count
    fabric = surviving(node, damage)
    copied = peer_copy(SIZE, 0, 1, node=node, fabric=fabric)
    reduced = estimate("all_reduce", 1 << 16, int(ranks), node, dtype="float32", fabric=fabric)
    assert copy_us == pytest.approx(copied.time_s * 1e6, rel=1e-3)
    assert reduce_us == pytest.approx(reduced.time_s * 1e6, rel=1e-3)
    links = fabric.pair_links[0][1]
    sent = (SIZE + CALLS * reduced.sent_bytes) if links else 0
    assert sent_kib == pytest.approx(sent / 1024, rel=0.01)


@pytest.mark.parametrize("kind", ["hgx-a100-8x80gb", "hgx-a100-4x40gb", "pcie-a100-80gb-x4"])
def test_kinds(on_node, kind):
    require(on_node(kind, CLIENT), kind, Damage())


@pytest.mark.parametrize(
    ("kind", "gpu", "link"),
    [("hgx-a100-8x80gb", 0, 3), ("hgx-a100-4x80gb", 0, 1), ("pcie-a100-80gb-x2", 1, 5)],
)
def test_broken_links(on_node, kind, gpu, link):
    on_node(kind, "-m", "va100.cli", "node", "create", kind, "--kind", kind)
    on_node(kind, "-m", "va100.cli", "node", "inject", "link", link, "--gpu", gpu)
    require(on_node(kind, CLIENT), kind, Damage(frozenset({(gpu, link)})))


def test_a_broken_switch(on_node):
    kind = "hgx-a100-8x80gb"
    on_node(kind, "-m", "va100.cli", "node", "create", kind, "--kind", kind)
    on_node(kind, "-m", "va100.cli", "node", "inject", "switch", 4)
    require(on_node(kind, CLIENT), kind, Damage(switches=frozenset({4})))
    listed = on_node(kind, "-m", "va100.cli", "smi", "nvlink", "-s", "-i", "7").splitlines()
    down = [line.split()[1] for line in listed if line.endswith("<inactive>")]
    assert down == ["8:", "9:"]
    matrix = on_node(kind, "-m", "va100.cli", "smi", "topo", "-m").splitlines()
    assert matrix[1].split()[1:9] == ["X", *["NV10"] * 7]
    on_node(kind, "-m", "va100.cli", "node", "clear", kind)
    assert "<inactive>" not in on_node(kind, "-m", "va100.cli", "smi", "nvlink", "-s")


@pytest.mark.parametrize(
    "kind",
    ["hgx-a100-8x80gb", "hgx-a100-4x40gb", "pcie-a100-80gb-x2", "pcie-a100-80gb-x8-unbridged"],
)
def test_kernels_that_read_a_peer_s_memory_wait_for_the_link(on_node, kind):
    client = CLIENT.with_name("peer_reads.py")
    near_us, far_us, received_kib = (float(word) for word in on_node(kind, client).split())
    size = 1 << 26
    link = peer_copy(size, 0, 1, node=find_node(kind))
    assert near_us < far_us
    assert far_us == pytest.approx(size / link.rate_bytes_per_s * 1e6, rel=0.15)
    linked = surviving(find_node(kind), Damage()).pair_links[0][1] > 0
    assert (received_kib > 0) is linked


@pytest.mark.parametrize(
    ("kind", "generation"), [("aws-p4d.24xlarge", 3), ("azure-nd96asr-v4", 4), ("sxm-a100-40gb", 4)]
)
def test_hosts_of_an_older_pcie_are_slower(on_node, kind, generation):
    took_us = float(on_node(kind, CLIENT.with_name("host_copies.py")))
    assert took_us == pytest.approx(host_copy(1 << 26, node=find_node(kind)).time_s * 1e6, rel=0.02)
    fields = "pcie.link.gen.current,pcie.link.gen.max,pcie.link.gen.gpumax"
    query = (f"--query-gpu={fields}", "--format=csv,noheader", "-i", "0")
    assert on_node(kind, "-m", "va100.cli", "smi", *query) == f"{generation}, {generation}, 4\n"
