"""``va100.time_kernel`` as a harness calls it, beside what the profiler says of a whole program."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import va100
from va100.cli import toolchain
from va100.config import Settings
from va100.errors import OutOfResources, SetupError

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SOURCE = """
template <int STEP> __global__ void stride(float *out, const float *in, float by, int n) {
  const int i = (blockIdx.x * blockDim.x + threadIdx.x) * STEP;
  if (i < n) out[i] = by * in[i];
}
template __global__ void stride<1>(float *, const float *, float, int);
template __global__ void stride<8>(float *, const float *, float, int);
extern "C" __global__ void __launch_bounds__(1024) hungry(float *out) {
  extern __shared__ float box[];
  box[threadIdx.x] = out[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = box[blockDim.x - 1 - threadIdx.x];
}
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("VA100_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "time_kernel"))


@pytest.fixture(autouse=True)
def _compiler():
    try:
        toolchain.find_compiler(Settings.from_environment())
    except SetupError as error:
        pytest.skip(str(error))


def test_it_agrees_with_the_profiler_of_the_whole_program(tmp_path):
    path = tmp_path / "saxpy.json"
    command = [sys.executable, "-m", "va100.cli", "profile", "--quiet", f"--json={path}"]
    subprocess.run([*command, str(EXAMPLES / "saxpy.cu")], check=True, env=os.environ)
    (record,) = json.loads(path.read_text())
    n = 1 << 20
    x, y = np.ones(n, np.float32), np.ones(n, np.float32)
    launch = va100.time_kernel(
        EXAMPLES / "saxpy.cu", "saxpy", 864, 256, [n, 2.5, x, y], copy_back=True
    )
    assert launch.record() == record
    assert (y == 3.5).all()


def test_text_templates_and_sweeps():
    n = 1 << 16
    times = {}
    for step in (1, 8):
        launch = va100.time_kernel(
            SOURCE, f"stride<{step}>", n // 256 // step, 256,
            [va100.Buffer(4 * n), np.zeros(n, np.float32), 2.0, n], chip="pcie40",
        )  # fmt: skip
        counters = launch.counters
        times[step] = counters["global_sectors"] / counters["global_requests"]
    assert times == {1: 4, 8: 32}


def test_clocks_and_chips():
    args = [va100.Buffer(1 << 20), va100.Buffer(1 << 20), 1.0, 1 << 18]
    shape = ("stride<1>", 1024, 256, args)
    fast = va100.time_kernel(SOURCE, *shape, chip="sxm80").time_s
    assert va100.time_kernel(SOURCE, *shape, chip="sxm80", clocks=705e6).time_s > fast
    assert va100.time_kernel(SOURCE, *shape, chip="sxm80", warm=True).time_s < fast
    with pytest.raises(ValueError, match="clocks are given in Hz"):
        va100.time_kernel(SOURCE, *shape, clocks=1410)
    with pytest.raises(SetupError, match="is no A100 model"):
        va100.time_kernel(SOURCE, *shape, chip="h100")


def test_a_configuration_that_does_not_fit_names_the_resource():
    with pytest.raises(OutOfResources) as caught:
        va100.time_kernel(
            SOURCE, "hungry", 1, 256, [va100.Buffer(1024)], dynamic_shared_bytes=200_064
        )
    assert caught.value.resource == "bytes of shared memory"
    assert (caught.value.required, caught.value.limit) == (200_064, 166_912)


def test_sources_that_are_none(tmp_path, capfd):
    with pytest.raises(SetupError, match=r"none\.cu: No such file"):
        va100.time_kernel(tmp_path / "none.cu", "k", 1, 1)
    with pytest.raises(SetupError, match="nvcc could not compile"):
        va100.time_kernel("__global__ void k() { nonsense }\n", "k", 1, 1)
    assert "nonsense" in capfd.readouterr().err


def test_names_are_there_without_being_imported():
    code = "import va100, sys; print(va100.Buffer(4), 'va100.profile' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "Buffer(size_bytes=4) True\n"
    with pytest.raises(AttributeError, match="no attribute 'Bufer'"):
        _ = va100.Bufer
