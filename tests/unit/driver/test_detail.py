"""What one launch did, described once a kind."""

from __future__ import annotations

import ctypes
import json
from dataclasses import fields
from types import SimpleNamespace

import pytest

from va100.driver.compile import LaunchRecord
from va100.driver.detail import Details, counters_entry, line_entry
from va100.perf.kernel import estimate
from va100.profile.report_schema import parse_report
from va100.spec.a100 import A100_SXM4_80GB
from va100.work import Counters, Dim3, KernelResources, LaunchConfig, Pipe, SourceLine

COUNTED = Counters(
    cta_count=8,
    warp_count=16,
    warp_instructions={Pipe.FMA: 3.0},
    opcode_instructions={"fma.rn.f32": 3.0},
    branches=2.0,
    sampled_fraction=1.0,
)
RESOURCES = KernelResources(registers_per_thread=40, static_shared_bytes=64, local_bytes=8)
CONFIG = LaunchConfig(grid=Dim3(8), block=Dim3(64))


@pytest.fixture
def backend():
    lines = {SourceLine("b.cu", 9): COUNTED, SourceLine("a.cu", 4): Counters(branches=1.0)}
    variant = SimpleNamespace(resources=RESOURCES, lines=lambda counts, config: lines)
    return SimpleNamespace(
        variants={5: variant},
        kernels={3: SimpleNamespace(name="_Z1kv")},
        estimate=lambda record: estimate(COUNTED, CONFIG, RESOURCES, A100_SXM4_80GB),
        counters=lambda record: COUNTED,
    )


def record(counts=(1, 2), **changes):
    array = (ctypes.c_uint64 * len(counts))(*counts)
    facts = {
        "compiler_id": 3, "variant_id": 5, "grid": (8, 1, 1), "block": (64, 1, 1),
        "counter_count": len(counts), "counters": array,
    } | changes  # fmt: skip
    return LaunchRecord(**facts)


def test_launches_alike_share_a_description(backend):
    details = Details(backend, "77-")
    numbers = [
        details.number(launch)
        for launch in (record(), record(), record((1, 3)), record(footprint_bytes=9), record())
    ]
    assert numbers == ["77-0", "77-0", "77-1", "77-2", "77-0"]
    assert [line["id"] for line in details.lines] == ["77-0", "77-1", "77-2"]


def test_streams_and_times_do_not_tell_launches_apart(backend):
    details = Details(backend, "")
    assert details.number(record(stream=4)) == details.number(record(stream=5, duration_s=1.0))


def test_a_description_is_what_the_reader_expects(backend):
    details = Details(backend, "")
    number = details.number(record(dynamic_shared_bytes=16))
    done = parse_report([json.dumps(line) + "\n" for line in details.lines]).works[number]
    assert (done.kernel, done.registers, done.local_bytes) == ("_Z1kv", 40, 8)
    assert (done.static_shared_bytes, done.dynamic_shared_bytes) == (64, 16)
    assert done.occupancy["limits"]["registers"] > 0
    assert done.duration_s > 1e-6
    assert [(line.file, line.line) for line in done.lines] == [("a.cu", 4), ("b.cu", 9)]


def test_every_counter_is_told_by_its_name():
    entry = counters_entry(COUNTED)
    assert set(entry) == {field.name for field in fields(Counters)}
    assert entry["warp_instructions"] == {"fma": 3.0}
    assert json.loads(json.dumps(entry)) == entry


def test_a_line_tells_what_it_counted_only():
    entry = line_entry(SourceLine("", 7, "ret;"), COUNTED)
    assert entry == {
        "file": "", "line": 7, "text": "ret;",
        "counters": {"warp_instructions": {"fma": 3.0}, "branches": 2.0},
    }  # fmt: skip
