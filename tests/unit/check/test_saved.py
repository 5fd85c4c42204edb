"""Runs kept in a file, and reports as XML."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from va100.check.report import Outcome
from va100.check.saved import SavedRun, report_xml
from va100.errors import SetupError


def test_what_is_kept_is_read_back(tmp_path, stray, race):
    run = SavedRun(
        program="a.cu", tools=("memcheck", "racecheck"), complete=False, findings=[stray, race]
    )
    run.write(tmp_path / "run")
    assert SavedRun.read(tmp_path / "run") == run


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 1}'])
def test_other_files_are_refused(tmp_path, text):
    path = tmp_path / "run"
    path.write_text(text)
    with pytest.raises(SetupError, match="no saved findings"):
        SavedRun.read(path)


def test_files_that_cannot_be_used(tmp_path):
    with pytest.raises(SetupError):
        SavedRun.read(tmp_path / "none")
    with pytest.raises(SetupError):
        SavedRun(program="", tools=(), complete=True, findings=[]).write(tmp_path / "no" / "file")


def test_xml(stray, race):
    text = report_xml(Outcome(tools=("memcheck",), findings=[stray, race]), program="a<b>.cu")
    root = ElementTree.fromstring(text)
    assert root.get("program") == "a<b>.cu"
    assert (root.get("errors"), root.get("warnings"), root.get("complete")) == ("1", "1", "true")
    kinds = [f.findtext("kind") for f in root.iter("finding")]
    assert kinds == ["out-of-bounds", "race"]
    first = root.find("finding/first")
    assert first.findtext("line") == "14"
    assert first.find("thread").attrib == {"x": "5", "y": "0", "z": "0"}
