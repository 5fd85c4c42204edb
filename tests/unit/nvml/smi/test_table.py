"""The default tables, whatever there is to print."""

from __future__ import annotations

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from va100.errors import NvmlError
from va100.nvml.smi import table
from va100.nvml.structs import NONE

MIB = 1 << 20
WIDTH = 91


class FakeGpu:
    """A GPU that answers what it is told, or refuses."""

    def __init__(self, numbers, code=0, **given):
        self.numbers_given = numbers
        self.code = code
        vars(self).update(given)

    def number(self, name, *arguments):
        if self.code:
            raise NvmlError(code=self.code, function=name, text="")
        return self.numbers_given[name]


def fake(*, number=0, watts=50.0, celsius=33, used=0, code=0, name="NVIDIA A100", errors=0):
    modes = "GetPersistenceMode GetDisplayActive GetFanSpeed GetComputeMode".split()
    return FakeGpu(
        dict.fromkeys(modes, number),
        code,
        index=number,
        name=name,
        bus_id="00000000:07:00.0",
        has_ecc=True,
        is_mig_enabled=False,
        mig_mode=(0, number % 2),
        temperature_c=celsius,
        power_w=watts,
        enforced_limit_w=watts,
        performance_state=f"P{number}",
        memory=SimpleNamespace(used=used * MIB, total=81920 * MIB),
        utilization=SimpleNamespace(gpu=number * 33),
        total_errors=lambda _kind, _counter: errors,
    )


@given(
    number=st.integers(0, 3),
    watts=st.floats(0, 999),
    celsius=st.integers(0, 120),
    used=st.integers(0, 81920),
    code=st.sampled_from([0, 3, 15]),
    name=st.text("ABC 123-", min_size=1, max_size=60),
    errors=st.integers(0, 10**9),
)
def test_a_row_keeps_its_width(**given_values):
    assert {len(line) for line in table.gpu_rows(fake(**given_values))} == {WIDTH}


@given(
    gpu=st.integers(0, 15),
    pid=st.integers(1, 2**31),
    mebibytes=st.integers(0, 81920),
    name=st.text("abc/.", max_size=80),
    instance=st.sampled_from([NONE, 0, 13]),
)
def test_a_process_keeps_its_width(gpu, pid, mebibytes, name, instance):
    process = SimpleNamespace(
        pid=pid, used_bytes=mebibytes * MIB, gpu_instance=instance, compute_instance=instance
    )
    card = SimpleNamespace(index=gpu, processes=[process], process_name=lambda _pid: name)
    lines = list(table.process_box([card]))
    assert {len(line) for line in lines} == {WIDTH}
    assert lines[5].endswith(f" {mebibytes}MiB |")


def test_a_process_that_is_gone():
    def process_name(_pid):
        raise NvmlError(code=6, function="nvmlSystemGetProcessName", text="Not Found")

    process = SimpleNamespace(pid=7, used_bytes=MIB, gpu_instance=NONE, compute_instance=NONE)
    card = SimpleNamespace(index=0, processes=[process], process_name=process_name)
    assert "   [Not Found]   " in list(table.process_box([card]))[5]


def test_a_pending_mode_has_a_star():
    assert list(table.gpu_rows(fake(number=1)))[2].endswith("            Disabled* |")
    assert list(table.gpu_rows(fake(number=0)))[2].endswith("             Disabled |")
