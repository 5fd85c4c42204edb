"""The timeline as a database, asked what people's scripts ask."""

from __future__ import annotations

import sqlite3

import pytest

from tests.helpers.launches import CHIP, report, work
from va100.profile.nsys_sqlite import database, plain_name
from va100.profile.nsys_tables import ENUMERATIONS, TABLES

FULL = report(work(), work(kernel="_ZN3lib4copyILi4EEEvPf", duration_s=2e-6), work())

KERNEL_SUMMARY = """
    SELECT sum(k.end - k.start) AS total, count(*) AS instances, avg(k.end - k.start), name.value
    FROM CUPTI_ACTIVITY_KIND_KERNEL AS k JOIN StringIds AS name ON name.id = k.{column}
    GROUP BY name.value ORDER BY total DESC
"""
COPY_SUMMARY = """
    SELECT oper.label, count(*), sum(m.bytes), sum(m.end - m.start)
    FROM CUPTI_ACTIVITY_KIND_MEMCPY AS m JOIN ENUM_CUDA_MEMCPY_OPER AS oper ON oper.id = m.copyKind
    GROUP BY oper.label ORDER BY oper.label
"""
TRACE = """
    SELECT start, end - start AS duration, 'kernel' AS what, streamId, correlationId
    FROM CUPTI_ACTIVITY_KIND_KERNEL
    UNION ALL SELECT start, end - start, 'memcpy', streamId, correlationId
    FROM CUPTI_ACTIVITY_KIND_MEMCPY
    UNION ALL SELECT start, end - start, 'memset', streamId, correlationId
    FROM CUPTI_ACTIVITY_KIND_MEMSET
    ORDER BY start
"""
LAUNCH_LATENCY = """
    SELECT k.start - r.start, s.value FROM CUPTI_ACTIVITY_KIND_KERNEL k
    JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON r.correlationId = k.correlationId
    JOIN StringIds s ON s.id = r.nameId
"""
RANGES = """
    SELECT coalesce(text, s.value), end - start
    FROM NVTX_EVENTS LEFT JOIN StringIds s ON id = textId
"""


@pytest.fixture
def db(tmp_path):
    path = tmp_path / "report.sqlite"
    path.write_bytes(database(FULL, CHIP))
    connection = sqlite3.connect(path)
    yield connection
    connection.close()


def test_kernel_summary(db):
    rows = db.execute(KERNEL_SUMMARY.format(column="demangledName")).fetchall()
    assert rows == [(16000, 2, 8000.0, "saxpy"), (2000, 1, 2000.0, "lib::copy<4>")]


def test_short_names(db):
    rows = db.execute(KERNEL_SUMMARY.format(column="shortName")).fetchall()
    assert [row[-1] for row in rows] == ["saxpy", "copy"]


def test_copies(db):
    assert db.execute(COPY_SUMMARY).fetchall() == [
        ("Device-to-Host", 1, 2048, 500),
        ("Host-to-Device", 1, 4096, 1000),
    ]


def test_trace_of_everything_in_order(db):
    rows = db.execute(TRACE).fetchall()
    assert [row[2] for row in rows] == ["memcpy", "kernel", "kernel", "kernel", "memcpy", "memset"]
    assert len({row[4] for row in rows}) == len(rows)


def test_what_a_launch_needs(db):
    row = db.execute(
        "SELECT gridX, gridY, blockX, registersPerThread, staticSharedMemory, dynamicSharedMemory "
        "FROM CUPTI_ACTIVITY_KIND_KERNEL ORDER BY start LIMIT 1"
    ).fetchone()
    assert row == (864, 1, 256, 32, 1024, 512)


def test_process_of_a_row(db):
    rows = db.execute(
        "SELECT DISTINCT k.globalPid / 0x1000000 % 0x1000000, p.name "
        "FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN PROCESSES p ON p.globalPid = k.globalPid"
    ).fetchall()
    assert rows == [(4242, "saxpy.cu")]


def test_the_gpu(db):
    row = db.execute("SELECT name, smCount, memoryBandwidth FROM TARGET_INFO_GPU").fetchone()
    assert row == (CHIP.product_name, 108, 2039040000000)
    joined = db.execute(
        "SELECT g.name FROM CUPTI_ACTIVITY_KIND_KERNEL k "
        "JOIN TARGET_INFO_CUDA_DEVICE d ON d.cudaId = k.deviceId "
        "JOIN TARGET_INFO_GPU g ON g.id = d.gpuId"
    ).fetchall()
    assert len(joined) == 3


@pytest.mark.parametrize("query", [LAUNCH_LATENCY, RANGES])
def test_what_was_not_recorded_is_empty_and_not_missing(query, db):
    assert db.execute(query).fetchall() == []


def test_every_table_is_there_even_of_nothing():
    connection = sqlite3.connect(":memory:")
    connection.deserialize(database(report(copies=False), CHIP))
    names = {row[0] for row in connection.execute("SELECT name FROM sqlite_master")}
    assert set(TABLES) <= names
    for table in TABLES:
        count = connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        if table in ENUMERATIONS:
            assert count == len(ENUMERATIONS[table])
    connection.close()


@pytest.mark.parametrize(
    ("name", "plain"), [("a", "a"), ("n::b<x::y, 4>", "b"), ("<lambda>", "<lambda>")]
)
def test_plain_name(name, plain):
    assert plain_name(name) == plain
