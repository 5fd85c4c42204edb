"""Settings from an environment."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from va100 import config
from va100.config import Settings
from va100.errors import SetupError

HOME = {"HOME": "/home/ada"}


class TestFromEnvironment:
    def test_defaults(self):
        settings = Settings.from_environment(HOME)
        assert (settings.model, settings.gpu_count, settings.workers) == ("A100-SXM4-80GB", 1, 0)
        assert (settings.engine, settings.report, settings.log) == ("jit", None, False)
        assert settings.cache_dir == Path("/home/ada/.cache/va100")
        assert settings.chip.sm_count == 108

    def test_cache_folders(self):
        common = {**HOME, "XDG_CACHE_HOME": "/cache"}
        assert Settings.from_environment(common).cache_dir == Path("/cache/va100")
        own = {**common, "VA100_CACHE_DIR": "/own"}
        assert Settings.from_environment(own).cache_dir == Path("/own")

    def test_everything_set(self):
        settings = Settings.from_environment(
            {
                **HOME,
                "VA100_MODEL": "pcie80",
                "VA100_GPUS": "16",
                "VA100_WORKERS": "8",
                "VA100_ENGINE": "reference",
                "VA100_REPORT": "/tmp/r",
                "VA100_LOG": "1",
                "CUDA_HOME": "/cuda",
            }
        )
        assert settings.model == "A100-PCIE-80GB"
        assert (settings.gpu_count, settings.workers) == (16, 8)
        assert (settings.engine, settings.report) == ("reference", Path("/tmp/r"))
        assert settings.log
        assert settings.cuda_home == Path("/cuda")

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("VA100_GPUS", "0"),
            ("VA100_GPUS", "17"),
            ("VA100_GPUS", "-1"),
            ("VA100_GPUS", "two"),
            ("VA100_WORKERS", "5000"),
            ("VA100_ENGINE", "magic"),
            ("VA100_MODEL", "h100"),
            ("VA100_MODEL", "a100"),
            ("VA100_MODEL", "toaster"),
        ],
    )
    def test_nonsense_is_refused_by_name(self, name, value):
        with pytest.raises(SetupError, match=f"{name}={value}"):
            Settings.from_environment({**HOME, name: value})

    def test_empty_means_unset(self):
        names = dict.fromkeys(config.VARIABLES, "")
        assert Settings.from_environment({**HOME, **names}) == Settings.from_environment(HOME)


class TestVariables:
    def test_they_read_back(self):
        settings = Settings.from_environment({**HOME, "VA100_GPUS": "2", "VA100_REPORT": "/r"})
        assert Settings.from_environment({**HOME, **settings.variables()}) == settings

    def test_each_is_explained(self):
        optional = {"VA100_REPORT": "/r", "VA100_CHECK": "memcheck", "VA100_CHECK_REPORT": "/c"}
        optional |= {"VA100_TRACE": "all", "VA100_DUMP": "/d", "VA100_DEBUG": "terminal"}
        optional |= {"VA100_SHUFFLE": "3", "VA100_PROFILE": "1", "VA100_CALIBRATION": "/k"}
        settings = Settings.from_environment({**HOME, **optional})
        assert set(settings.variables()) == set(config.VARIABLES)


def test_python_library_can_be_loaded():
    library = config.python_library()
    assert library is None or (library.exists() and ".so" in library.name)


class TestProgramName:
    def test_a_script_is_its_path(self):
        assert config.program_name(["run.py", "--n"]) == "run.py"

    @pytest.mark.parametrize("arguments", [[], [""], ["-c"]])
    def test_without_a_script_it_is_the_executable(self, arguments):
        found = config.program_name(arguments)
        assert Path(found).samefile(sys.executable)


class TestPythonLibrary:
    def test_a_static_interpreter_may_have_one_beside_it(self, tmp_path, monkeypatch):
        told = {"LIBDIR": "/nowhere", "INSTSONAME": "libpython3.11.a", "LDLIBRARY": None}
        monkeypatch.setattr(config.sysconfig, "get_config_var", told.get)
        monkeypatch.setattr(config.sysconfig, "get_python_version", lambda: "3.11")
        monkeypatch.setattr(config.sys, "base_prefix", str(tmp_path))
        assert config.python_library() is None
        library = tmp_path / "lib" / "libpython3.11.so.1.0"
        library.parent.mkdir()
        library.touch()
        assert config.python_library() == library

    def test_the_one_its_configuration_names(self, tmp_path, monkeypatch):
        told = {"LIBDIR": str(tmp_path), "INSTSONAME": "libpython9.9.so.1.0"}
        monkeypatch.setattr(config.sysconfig, "get_config_var", told.get)
        (tmp_path / "libpython9.9.so.1.0").touch()
        assert config.python_library() == tmp_path / "libpython9.9.so.1.0"
