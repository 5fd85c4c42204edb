"""The tables of exported functions, what is generated from them, and what the libraries export."""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from pathlib import Path

import pytest

from va100.driver.api import driver
from va100.driver.signatures import SIGNATURES
from va100.gpu.native import NATIVE_DIR, library
from va100.perf import timeline
from va100.spec.a100 import MODELS
from va100.spec.attributes import attribute_values

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "tools"))

from driver_tables import generate, native_source  # noqa: E402
from driver_tables.table import HERE, Status, read_rows  # noqa: E402

DRIVER = generate.driver_rows()
RUNTIME = generate.runtime_rows()


def names(rows):
    return {name for row in rows for name in (row.name, row.twin) if name}


def exported(file: str) -> set[str]:
    """Dynamic symbols a library defines, versions cut off."""
    path = NATIVE_DIR / file
    listing = subprocess.run(
        ["readelf", "--dyn-syms", "-W", str(path)], capture_output=True, text=True, check=True
    )
    fields = [line.split() for line in listing.stdout.splitlines()]
    return {f[7].split("@")[0] for f in fields if len(f) > 7 and f[6].isdigit() and f[3] == "FUNC"}


def sources(folder: str) -> str:
    return "\n".join(p.read_text() for p in (ROOT / "native" / folder).glob("*.cpp"))


class TestGenerated:
    def test_files_are_what_the_tables_give(self):
        assert generate.stale() == [], "run: python tools/driver_tables/generate.py"

    def test_a_signature_for_every_call_with_a_body(self):
        assert set(SIGNATURES) == names(row for row in DRIVER if row.has_body)

    def test_signatures_have_the_prototypes_arity(self):
        for row in DRIVER:
            if row.has_body:
                assert len(SIGNATURES[row.name]) == len(row.parameters), row.name


class TestTable:
    def test_every_symbol_of_the_driver_is_listed(self):
        assert len(names(DRIVER)) == 688

    @pytest.mark.parametrize(("major", "count"), [(12, 435), (13, 458)])
    def test_every_symbol_of_the_runtime_is_listed(self, major, count):
        rows = [row for row in RUNTIME if row.version in (0, major)]
        assert len(names(rows)) == count

    def test_a_line_that_is_no_row_is_refused(self, tmp_path):
        table = tmp_path / "bad.table"
        table.write_text("[x]\n2000 - implemented cuInit unsigned\n")
        with pytest.raises(ValueError, match=r"bad\.table:2"):
            read_rows(table, returns="CUresult")

    def test_a_name_listed_twice_is_refused(self, tmp_path):
        table = tmp_path / "bad.table"
        table.write_text("2000 - refused cuX()\n2000 - refused cuX()\n")
        with pytest.raises(ValueError, match="cuX"):
            read_rows(table, returns="CUresult")

    def test_an_optional_pointer_is_not_checked(self, tmp_path):
        table = tmp_path / "one.table"
        table.write_text(
            "2000 - implemented cuX(int *a, int *?b, const void *c, void **d, int e)\n"
        )
        (row,) = read_rows(table, returns="CUresult")
        assert [p.name for p in row.parameters if p.is_checked] == ["a", "d"]
        assert row.prototype == "int *a, int *b, const void *c, void **d, int e"


class TestBodies:
    @pytest.mark.parametrize(
        ("rows", "folder"), [(DRIVER, "driver"), (RUNTIME, "runtime")], ids=["driver", "runtime"]
    )
    def test_every_implemented_row_has_one(self, rows, folder):
        text = sources(folder)
        without = [
            row.name
            for row in rows
            if row.has_body and not re.search(rf"^[\w *]+[ *]{row.name}\([^;]*\{{", text, re.M)
        ]
        assert without == []

    def test_no_refused_row_has_one(self):
        text = sources("driver")
        refused = [row.name for row in DRIVER if row.status is Status.REFUSED]
        assert [n for n in refused if re.search(rf"^CUresult {n}\(", text, re.M)] == []


class TestExports:
    def test_the_driver_exports_its_table(self):
        assert {n for n in exported("libcuda.so.1") if n.startswith("cu")} == names(DRIVER)

    def test_the_driver_exports_nothing_but_cuda_and_its_own(self):
        assert all(n.startswith(("cu", "va_")) for n in exported("libcuda.so.1"))

    @pytest.mark.parametrize("major", [12, 13])
    def test_the_runtime_exports_its_table(self, major):
        rows = [row for row in RUNTIME if row.version in (0, major)]
        assert exported(f"libcudart.so.{major}") == names(rows)

    @pytest.mark.parametrize("file", ["libcuda.so.1", "libcudart.so.12", "libcudart.so.13"])
    def test_the_file_is_found_by_its_soname(self, file):
        listing = subprocess.run(
            ["readelf", "-d", str(NATIVE_DIR / file)], capture_output=True, text=True, check=True
        ).stdout
        assert f"soname: [{file}]" in listing
        assert "python" not in listing


def find(name: str, version: int, flags: int = 0) -> tuple[int, int | None, int]:
    """Ask ``cuGetProcAddress_v2``: result, address, status."""
    address, status = ctypes.c_void_p(), ctypes.c_int(-1)
    code = driver().cuGetProcAddress_v2(
        ctypes.c_char_p(name.encode()),
        ctypes.addressof(address),
        version,
        flags,
        ctypes.addressof(status),
    )
    return code, address.value, status.value


class TestEntryPoints:
    def test_every_version_of_every_call_is_found(self):
        lib = library()
        for row in DRIVER:
            later = [r.version for r in DRIVER if r.base_name == row.base_name]
            newer = [v for v in later if v > row.version]
            asked = min(newer) - 1 if newer else 13050
            own = ctypes.cast(getattr(lib, row.name), ctypes.c_void_p).value
            assert find(row.base_name, max(asked, row.version)) == (0, own, 0), row.name

    def test_the_twin_is_found_by_flag(self):
        lib = library()
        own = ctypes.cast(lib.cuLaunchKernel_ptsz, ctypes.c_void_p).value
        assert find("cuLaunchKernel", 13000, 2) == (0, own, 0)

    def test_a_call_without_twin_serves_for_it(self):
        assert find("cuMemAlloc", 13000, 2) == find("cuMemAlloc", 13000, 1)

    def test_an_unknown_name_is_no_error(self):
        assert find("cuNoSuchCall", 13000) == (0, None, 1)

    def test_a_version_before_the_first_is_told(self):
        assert find("cuLibraryLoadData", 11000) == (0, None, 2)

    def test_a_version_beyond_the_driver_is_refused(self):
        assert find("cuInit", 99000)[0] == 1


class TestDeviceModels:
    def test_attributes_that_promise_a_refused_call_are_zero(self):
        rows = {row.name: row for row in DRIVER}
        text = native_source.device_models(DRIVER)
        for number, function in native_source.PROMISES.items():
            assert function in rows, function
            if rows[function].status is Status.REFUSED:
                assert f"{{{number}, 0}}," in text

    def test_the_others_are_the_specs(self):
        text = native_source.device_models(DRIVER)
        for chip in MODELS:
            for number, value in attribute_values(chip).items():
                if number not in native_source.PROMISES:
                    assert f"{{{number}, {value}}}," in text

    @pytest.mark.parametrize("chip", MODELS, ids=lambda chip: chip.name)
    def test_rates_of_virtual_time_are_the_specs(self, root, chip):
        text = (root / "native/generated/driver_models.cpp").read_text()
        row = text.split(f'{{"{chip.name}", ')[1].split("kAttributes")[0].split(",")
        gap_s, copy, fill, pcie = (float(part) for part in row[2:6])
        assert gap_s == pytest.approx(timeline.launch_gap_ns(chip) * 1e-9)
        assert copy == pytest.approx(chip.measured.dram_scale_bytes_per_s)
        assert fill == pytest.approx(chip.measured.dram_write_bytes_per_s)
        assert pcie == pytest.approx(chip.measured.pcie_copy_bytes_per_s)

    def test_error_codes_are_in_order(self):
        numbers = [e.number for e in native_source.read_errors(HERE / "errors.table")]
        assert numbers == sorted(set(numbers))
