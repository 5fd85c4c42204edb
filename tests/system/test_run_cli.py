"""The command line from outside: a real program compiled, run, reported, and run again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from va100.cli import environment, target, toolchain
from va100.config import Settings, find_program
from va100.errors import SetupError
from va100.gpu.native import NATIVE_DIR
from va100.profile.report_schema import read_report

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
LIMIT_S = 300


def va100(*words, **kwargs):
    return subprocess.run(
        [sys.executable, "-m", "va100.cli", *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
        **kwargs,
    )


def _stamps(folder):
    return {f: f.stat().st_mtime_ns for f in folder.rglob("*") if f.is_file()}


@pytest.fixture(scope="module")
def compiler():
    try:
        return toolchain.find_compiler(Settings.from_environment())
    except SetupError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def runtime(compiler):
    if not (NATIVE_DIR / compiler.runtime_name).exists():
        pytest.skip(f"the native core has no {compiler.runtime_name} yet")


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("VA100_CACHE_DIR", str(tmp_path / "cache"))


@pytest.mark.usefixtures("runtime")
class TestRun:
    def test_table_json_and_timeline(self, tmp_path):
        report, trace = tmp_path / "report.json", tmp_path / "trace.json"
        outcome = va100(
            "run", f"--json={report}", "--timeline", trace, EXAMPLES / "vector_add.cu", "--n", 4096
        )
        assert outcome.returncode == 0, outcome.stderr
        assert outcome.stdout == "vector_add: max error 0, allowed 0: PASSED\n"
        (row,) = [line for line in outcome.stderr.splitlines() if line.startswith("vector_add ")]
        assert row.split()[1:4] == ["16", "256", "1"]

        (kernel,) = json.loads(report.read_text())["kernels"]
        assert (kernel["name"], kernel["grid"]) == ("vector_add", [16, 1, 1])
        assert 1e-6 < kernel["total_s"] < 1e-4
        assert kernel["bound_by"]
        slices = [e for e in json.loads(trace.read_text())["traceEvents"] if e["ph"] == "X"]
        assert [e["cat"] for e in slices] == ["HtoD", "HtoD", "kernel", "DtoH"]
        launch = slices[2]
        assert launch["dur"] == pytest.approx(kernel["total_s"] * 1e6, abs=1e-3)

    def test_second_run_starts_from_caches(self, tmp_path):
        """Nothing is compiled again: neither the program nor its kernels."""
        words = ("run", EXAMPLES / "vector_add.cu", "--n", 1000)
        caches = os.environ | {"VA100_CACHE_DIR": str(tmp_path)}
        assert va100(*words, env=caches).returncode == 0
        kept = _stamps(tmp_path)
        assert kept
        assert va100(*words, env=caches).returncode == 0
        assert _stamps(tmp_path) == kept

    def test_models_differ(self, tmp_path):
        times = {}
        for model in ("A100-SXM4-40GB", "A100-SXM4-80GB"):
            report = tmp_path / model
            words = ("--model", model, "--quiet", f"--json={report}")
            assert va100("run", *words, EXAMPLES / "saxpy.cu", "--n", 1 << 20).returncode == 0
            times[model] = json.loads(report.read_text())["kernels"][0]["total_s"]
        assert times["A100-SXM4-40GB"] > times["A100-SXM4-80GB"]

    def test_executable(self, compiler, tmp_path):
        binary = tmp_path / "program"
        command = toolchain.compile_command(EXAMPLES / "saxpy.cu", [], compiler, binary)
        subprocess.run(command, check=True)
        outcome = va100("run", binary, "--n", 100)
        assert outcome.returncode == 0
        assert "saxpy" in outcome.stderr

    def test_shell_of_virtual_gpus(self, compiler, tmp_path):
        binary = tmp_path / "program"
        subprocess.run(
            toolchain.compile_command(EXAMPLES / "saxpy.cu", [], compiler, binary), check=True
        )
        script = f'eval "$({sys.executable} -m va100.cli env)"; exec {binary} --n 100'
        report = tmp_path / "report"
        outcome = subprocess.run(
            ["/bin/sh", "-c", script],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ | {"VA100_REPORT": str(report)},
        )
        assert outcome.returncode == 0, outcome.stderr
        assert "PASSED" in outcome.stdout
        assert read_report(report).program == str(binary)

    def test_doctor_is_content(self):
        outcome = va100("doctor")
        assert outcome.returncode == 0, outcome.stdout
        assert "a kernel of 64 threads wrote what it should" in outcome.stdout


class TestRefusals:
    def test_source_that_does_not_compile(self, compiler, tmp_path, runtime):
        source = tmp_path / "wrong.cu"
        source.write_text("int main() { return not_declared; }\n")
        outcome = va100("run", source)
        assert outcome.returncode == 1
        assert "not_declared" in outcome.stderr
        assert "nvcc could not compile" in outcome.stderr

    def test_static_runtime_is_told(self, compiler, tmp_path):
        source, binary = tmp_path / "empty.cu", tmp_path / "empty"
        source.write_text(
            "__global__ void nothing() {}\nint main() { nothing<<<1, 1>>>(); return 0; }\n"
        )
        subprocess.run([compiler.path, "-arch=compute_80", "-o", binary, source], check=True)
        assert target.links_static_runtime(binary)
        if environment.is_built():
            assert "-cudart shared" in va100("run", binary).stderr


KERNEL_THEN = """
#include <cstdio>
#include <cstdlib>
#include <unistd.h>
__global__ void one(int *p) { *p = 1; }
int main() {
  int *p = nullptr;
  cudaMalloc(&p, sizeof *p);
  one<<<1, 1>>>(p);
  const cudaError_t error = cudaDeviceSynchronize();
  std::printf("program: %s\\n", cudaGetErrorString(error ? error : cudaGetLastError()));
  ENDING;
}
"""


@pytest.mark.usefixtures("runtime")
class TestEnds:
    """However a program ends: its status, its output, and an honest table."""

    @pytest.fixture
    def ending(self, tmp_path):
        def write(words):
            source = tmp_path / "ends.cu"
            source.write_text(KERNEL_THEN.replace("ENDING", words))
            return source

        return write

    def test_its_status_is_ours(self, ending):
        outcome = va100("run", ending("return 3"))
        assert outcome.returncode == 3
        assert outcome.stdout == "program: no error\n"
        assert "1 launch" in outcome.stderr

    @pytest.mark.parametrize(
        ("words", "status", "told"),
        [
            ("std::abort()", 134, "the program was ended by SIGABRT"),
            ("std::fflush(stdout); _exit(4)", 4, "before it could report its launches"),
        ],
    )
    def test_a_program_that_dies_is_not_one_that_launched_nothing(
        self, ending, words, status, told
    ):
        outcome = va100("run", ending(words))
        assert outcome.returncode == status
        assert told in outcome.stderr
        assert "no kernel was launched" not in outcome.stderr

    @pytest.mark.parametrize("words", ["return 3", "std::abort()"])
    def test_json_has_standard_output_for_itself(self, ending, words):
        outcome = va100("run", "--json", ending(words))
        report = json.loads(outcome.stdout)
        assert report["model"] == "A100-SXM4-80GB"
        assert report["program"].endswith("ends.cu")

    def test_json_of_a_fault(self):
        outcome = va100("run", "--json", EXAMPLES / "out_of_bounds.cu")
        (fault,) = json.loads(outcome.stdout)["faults"]
        assert (fault["kernel"], fault["name"]) == ("_Z4fillPfi", "fill")
        assert "CUDA error 700" in outcome.stderr


@pytest.mark.usefixtures("runtime")
def test_a_missing_call_is_named_once(tmp_path):
    source = tmp_path / "missing.cu"
    source.write_text(
        "#include <cstdio>\n"
        "int main() {\n"
        "  cudaExternalMemoryHandleDesc wanted{};\n"
        "  cudaExternalMemory_t memory;\n"
        "  for (int i = 0; i < 3; ++i)\n"
        "    std::puts(cudaGetErrorName(cudaImportExternalMemory(&memory, &wanted)));\n"
        "}\n"
    )
    outcome = va100("run", source)
    assert outcome.stdout.splitlines() == ["cudaErrorNotSupported"] * 3
    assert outcome.stderr.count("va100: cudaImportExternalMemory is not supported yet") == 1


@pytest.mark.usefixtures("runtime")
class TestImages:
    """Code that an A100's PTX does not come out of is refused with what to do."""

    @pytest.mark.parametrize(
        ("target_words", "told"),
        [
            ("arch=compute_80,code=sm_80", "machine code only (SASS)"),
            ("arch=compute_90,code=compute_90", "compute_90 and newer"),
        ],
    )
    def test_refused(self, compiler, tmp_path, target_words, told):
        source, binary = tmp_path / "image.cu", tmp_path / "image"
        source.write_text(KERNEL_THEN.replace("ENDING", "return 1"))
        command = toolchain.compile_command(source, ["-gencode", target_words], compiler, binary)
        command.remove("-arch=compute_80")
        subprocess.run(command, check=True)
        outcome = va100("run", binary)
        assert outcome.returncode == 1
        assert told in outcome.stderr
        assert "compute_80" in outcome.stderr
        assert "no kernel image is available" in outcome.stdout


class TestTargets:
    """What cannot be run at all."""

    @pytest.fixture(autouse=True)
    def built(self):
        if not environment.is_built():
            pytest.skip("the native core is not built")

    @pytest.mark.parametrize(
        ("content", "told"),
        [
            (b"", "could not be started: Exec format error"),
            (b"neither script nor binary", "could not be started: Exec format error"),
            (
                Path(sys.executable).resolve().read_bytes()[:18] + b"\xb7\0" + bytes(64),
                "Exec format",
            ),
        ],
        ids=["empty", "text", "another processor"],
    )
    def test_executable_that_is_none(self, tmp_path, content, told):
        program = tmp_path / "program"
        program.write_bytes(content)
        program.chmod(0o755)
        outcome = va100("run", program)
        assert (outcome.returncode, outcome.stdout) == (1, "")
        assert told in outcome.stderr
        assert "Traceback" not in outcome.stderr

    def test_a_script_without_cuda(self, tmp_path):
        script = tmp_path / "plain.py"
        script.write_text("print('hi')\n")
        outcome = va100("run", script)
        assert (outcome.returncode, outcome.stdout) == (0, "hi\n")
        assert outcome.stderr.strip() == "no kernel was launched"


def test_without_nvcc_the_one_command_is_named(tmp_path, monkeypatch):
    if not environment.is_built():
        pytest.skip("the native core is not built")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CUDA_HOME", raising=False)
    monkeypatch.delenv("CUDA_PATH", raising=False)
    if find_program("nvcc", Settings.from_environment()) is not None:
        pytest.skip("nvcc is installed as a wheel")
    outcome = va100("run", EXAMPLES / "saxpy.cu")
    assert outcome.returncode == 1
    assert "pip install 'va100[nvcc]'" in outcome.stderr
