"""The page on CI works as pasted: its files are written to a project, its jobs' commands are run.

Commands that install packages are left out: what they name has to be here already.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from va100.cli import environment, toolchain
from va100.config import Settings
from va100.errors import SetupError

BLOCK = re.compile(r"^```\w+\n(?:#|//) (\S+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
LIMIT_S = 600
GITHUB, GITLAB = ".github/workflows/cuda.yml", ".gitlab-ci.yml"

pytestmark = pytest.mark.skipif(not environment.is_built(), reason="the native core is not built")


@pytest.fixture(scope="module")
def files(root):
    page = (root / "docs" / "ci.md").read_text(encoding="utf-8")
    return dict(BLOCK.findall(page))


@pytest.fixture
def project(files, tmp_path):
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path


@pytest.fixture(scope="module")
def commands(files):
    """Find the commands of a job in a file."""
    yaml = pytest.importorskip("yaml", reason="needs PyYAML")

    def find(name, job):
        content = yaml.safe_load(files[name])
        if name == GITLAB:
            return content[job]["script"]
        return [step["run"] for step in content["jobs"][job]["steps"] if "run" in step]

    return find


def installs(command):
    return command.startswith("pip install ")


def paste(command, project):
    """Run a command as a runner does; the plugin is named in case va100 was not installed anew."""
    here = Path(sys.executable).parent
    (project / "bin").mkdir(exist_ok=True)
    for name, module in (("va100", "va100.cli"), ("pytest", "pytest")):
        script = project / "bin" / name
        script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {module} "$@"\n')
        script.chmod(0o755)
    hidden = ("VA100_", "PYTEST_", "LD_LIBRARY_PATH")
    inherited = {k: v for k, v in os.environ.items() if not k.startswith(hidden)}
    variables = {
        "PATH": f"{project / 'bin'}:{inherited['PATH']}:{here}",
        "PYTEST_PLUGINS": "va100.testing.plugin",
        "PYTEST_ADDOPTS": "-p no:cacheprovider -p no:randomly",
        "VA100_CACHE_DIR": str(project / "cache"),
    }
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", command],
        cwd=project,
        env=inherited | variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )


def run_all(found, project):
    """Run a job; give what each of its commands printed."""
    printed = {}
    for command in found:
        if installs(command):
            continue
        done = paste(command, project)
        printed[command] = done.stdout + done.stderr
        assert done.returncode == 0, f"{command}\n{printed[command]}"
    return printed


def test_what_is_installed_is_what_there_is(files, commands, root):
    extras = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"][
        "optional-dependencies"
    ]
    found = [c for f in (GITHUB, GITLAB) for job in ("python", "cpp") for c in commands(f, job)]
    named = [re.search(r'"va100(?:\[(\w+)\])? @ \$VA100"', c) for c in found if installs(c)]
    assert len(named) == 4
    assert {match[1] for match in named} == {None, "nvcc"} <= {None, *extras}


def test_python_jobs(project, commands):
    for needed in ("xdist", "numba.cuda", "cuda.core"):
        pytest.importorskip(needed, reason=f"needs {needed}")
    for name in (GITHUB, GITLAB):
        (printed,) = run_all(commands(name, "python"), project).values()
        assert "2 passed" in printed
    assert '"test_twice.py::test_twice"' in (project / "kernels.json").read_text()


def test_cpp_jobs(project, commands):
    try:
        toolchain.find_compiler(Settings.from_environment())
    except SetupError as error:
        pytest.skip(str(error))
    if shutil.which("cmake") is None:
        pytest.skip("needs CMake")
    github = run_all(commands(GITHUB, "cpp"), project)
    assert len(github) == 4
    assert "100% tests passed" in github["ctest --test-dir build --output-on-failure"]
    assert "ERROR SUMMARY: 0 errors" in list(github.values())[-1]
    assert commands(GITLAB, "cpp")[1:] == list(github)[:3]
