"""The verdict on this machine."""

from __future__ import annotations

import json

import pytest

from va100.cli import doctor, environment
from va100.cli.doctor import Check
from va100.cli.main import main


def working(*, ok):
    return lambda settings: Check(
        name="running a kernel", ok=ok, needed=True, detail="said so", remedy="do this"
    )


class TestRun:
    @pytest.mark.parametrize(("ok", "status"), [(True, 0), (False, 1)])
    def test_status_is_the_main_job_s(self, ok, status, monkeypatch, capsys):
        monkeypatch.setattr(environment, "is_built", lambda: True)
        monkeypatch.setattr(doctor, "working", working(ok=ok))
        assert main(["doctor"]) == status
        out = capsys.readouterr().out
        assert ("to fix: do this" in out) is not ok
        assert "CUDA programs run here." in out or not ok

    def test_optional_parts_do_not_matter(self, monkeypatch, capsys):
        missing = Check(name="nvcc", ok=False, needed=False, detail="none", remedy="pip")
        monkeypatch.setattr(doctor, "installed", lambda settings: iter([missing]))
        monkeypatch.setattr(doctor, "working", working(ok=True))
        assert main(["doctor"]) == 0
        assert "  --  nvcc" in capsys.readouterr().out

    def test_json(self, monkeypatch, capsys):
        monkeypatch.setattr(doctor, "working", working(ok=False))
        assert main(["doctor", "--json"]) == 1
        verdict = json.loads(capsys.readouterr().out)
        assert verdict["works"] is False
        assert verdict["checks"][-1]["name"] == "running a kernel"
        assert {"Python", "native core", "llvmlite", "nvcc", "ptxas", "NVRTC"} <= {
            check["name"] for check in verdict["checks"]
        }


class TestWorking:
    def test_without_the_core_nothing_is_tried(self, monkeypatch):
        monkeypatch.setattr(environment, "is_built", lambda: False)
        check = doctor.working(None)
        assert (check.ok, check.needed) == (False, True)


def test_versions_are_read_without_importing():
    assert doctor.installed_version("numpy").startswith("2.")
    assert doctor.installed_version("no_such_package") is None
