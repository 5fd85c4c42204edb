"""Compiling and keeping programs, with a shell script for nvcc."""

from __future__ import annotations

import os
import subprocess

import pytest

from va100.cli import toolchain
from va100.config import Settings, find_program
from va100.errors import SetupError

NVCC = """#!/bin/sh
# --version, or a "compiler" whose program prints the source and which logs that it ran
if [ "$1" = --version ]; then echo "Cuda compilation tools, release 13.0, V13.0.88"; exit 0; fi
echo "$@" >> "{log}"
while [ $# -gt 0 ]; do
  case "$1" in
    *.cu) source="$1" ;;
    -o) out="$2"; shift ;;
    -MF) listing="$2"; shift ;;
  esac
  shift
done
grep -q WRONG "$source" && {{ echo "error: wrong" >&2; exit 2; }}
printf '#!/bin/sh\\ncat "%s"\\n' "$source" > "$out"; chmod +x "$out"
echo "$out : $source \\\\" > "$listing"
echo "    {header}" >> "$listing"
"""


@pytest.fixture
def bench(tmp_path, monkeypatch):
    """A project with a source and a header, a compiler, and an empty cache."""
    tools, native = tmp_path / "tools", tmp_path / "native"
    header, source = tmp_path / "with space.h", tmp_path / "main.cu"
    tools.mkdir()
    native.mkdir()
    (native / "libcudart.so.13").write_text("")
    header.write_text("one")
    source.write_text("source")
    nvcc = tools / "nvcc"
    nvcc.write_text(NVCC.format(log=tmp_path / "log", header=str(header).replace(" ", "\\\\ ")))
    nvcc.chmod(0o755)
    monkeypatch.setattr(toolchain, "NATIVE_DIR", native)
    settings = Settings.from_environment(
        {
            "PATH": f"{tools}:{os.defpath}:/usr/bin",
            "VA100_CACHE_DIR": str(tmp_path / "cache"),
        }
    )
    return Bench(tmp_path, source, header, nvcc, settings)


class Bench:
    def __init__(self, folder, source, header, nvcc, settings):
        self.folder, self.source, self.header = folder, source, header
        self.nvcc, self.settings = nvcc, settings

    def compiled(self, *flags):
        return toolchain.compiled(self.source, flags, self.settings)

    @property
    def runs(self):
        log = self.folder / "log"
        return log.read_text().splitlines() if log.exists() else []


class TestCompiled:
    def test_program_runs_and_is_kept(self, bench):
        binary = bench.compiled()
        assert subprocess.check_output([binary], text=True) == "source"
        assert bench.compiled() == binary
        assert len(bench.runs) == 1

    @pytest.mark.parametrize(
        "flags", [("-rdc=true",), ("-O3", "-rdc", "true"), ("--relocatable-device-code=true",)]
    )
    def test_device_code_of_several_files_is_linked(self, bench, flags):
        other = bench.folder / "other.cu"
        other.write_text("one")
        bench.compiled(*flags, str(other))
        words = bench.runs[0].split()
        assert words[:3] == ["-arch=compute_80", "-cudart", "shared"]
        folder = os.path.dirname(words[words.index("-o") + 1])
        assert f"-L{folder}" in words

    def test_command_aims_at_a_virtual_gpu(self, bench):
        bench.compiled("-O3")
        words = bench.runs[0].split()
        assert words[:5] == ["-arch=compute_80", "-cudart", "none", "-lineinfo", "-O3"]
        assert "-l:libcudart.so.13" in words
        assert f"-rpath={bench.folder / 'native'}" in words

    def test_edits_are_noticed_and_touches_are_not(self, bench):
        first = bench.compiled()
        os.utime(bench.source, (1, 1))
        os.utime(bench.header, (1, 1))
        assert bench.compiled() == first
        bench.header.write_text("two")
        assert bench.compiled() != first
        bench.source.write_text("other!")
        assert subprocess.check_output([bench.compiled()], text=True) == "other!"
        assert len(bench.runs) == 3

    def test_flags_and_compiler_are_part_of_it(self, bench):
        bench.compiled()
        bench.compiled("-DX")
        bench.nvcc.write_text(bench.nvcc.read_text() + "# newer\n")
        bench.compiled()
        assert len(bench.runs) == 3

    def test_lost_binary_is_made_again(self, bench):
        bench.compiled().unlink()
        assert bench.compiled().exists()

    def test_damaged_record_is_made_again(self, bench):
        bench.compiled()
        for record in (bench.settings.cache_dir / "programs").glob("*.json"):
            record.write_text("{")
        assert bench.compiled().exists()
        assert len(bench.runs) == 2

    def test_refused_program(self, bench, capfd):
        bench.source.write_text("WRONG")
        with pytest.raises(SetupError, match="could not compile"):
            bench.compiled()
        assert "error: wrong" in capfd.readouterr().err
        assert not list((bench.settings.cache_dir / "programs").glob("*.json"))

    def test_runtime_missing(self, bench):
        (bench.folder / "native" / "libcudart.so.13").unlink()
        with pytest.raises(SetupError, match=r"libcudart\.so\.13"):
            bench.compiled()


class TestFindCompiler:
    def test_no_nvcc_names_the_one_command(self, tmp_path, monkeypatch):
        monkeypatch.setattr(toolchain.sys, "path", [])
        settings = Settings.from_environment({"PATH": str(tmp_path), "HOME": "/nowhere"})
        with pytest.raises(SetupError) as caught:
            toolchain.find_compiler(settings)
        assert caught.value.remedy == "pip install 'va100[nvcc]'"

    def test_no_host_compiler(self, bench):
        settings = Settings.from_environment({"PATH": str(bench.nvcc.parent), "HOME": "/nowhere"})
        with pytest.raises(SetupError, match=r"g\+\+"):
            toolchain.find_compiler(settings)

    def test_places(self, tmp_path, monkeypatch):
        def place(*parts):
            path = tmp_path.joinpath(*parts, "nvcc")
            path.parent.mkdir(parents=True)
            path.write_text("#!/bin/sh\n")
            path.chmod(0o755)
            return path

        wheel = place("site", "nvidia", "cu13", "bin")
        monkeypatch.setattr(toolchain.sys, "path", [str(tmp_path / "site")])
        bare = {"PATH": "/nowhere", "HOME": "/nowhere"}
        assert find_program("nvcc", Settings.from_environment(bare)) == wheel
        home = place("home", "bin")
        with_home = {**bare, "CUDA_HOME": str(tmp_path / "home")}
        assert find_program("nvcc", Settings.from_environment(with_home)) == home
        on_path = place("tools")
        with_path = {**with_home, "PATH": str(tmp_path / "tools")}
        assert find_program("nvcc", Settings.from_environment(with_path)) == on_path

    def test_something_else_called_nvcc(self, bench):
        bench.nvcc.write_text("#!/bin/sh\necho hello\n")
        with pytest.raises(SetupError, match="is no nvcc"):
            toolchain.find_compiler(bench.settings)


def test_depended_on_reads_make_s_spelling():
    text = "out : /a/b.cu \\\n    /c/d\\ e.h \\\n    /a/../f.h\n"
    assert toolchain.depended_on(text) == ["/a/b.cu", "/c/d e.h", "/f.h"]
