"""Templates: those that come along, a site's own, and files that are none."""

from __future__ import annotations

import pytest

from va100.cloud.templates import SHIPPED, read_templates
from va100.errors import SetupError


def test_what_people_look_for_comes_along():
    found = read_templates([SHIPPED])
    assert {"cuda", "pytorch", "tensorflow", "inference", "jupyterlab"} <= set(found)
    assert found["jupyterlab"].ports == (8888,)
    assert "saxpy.cu" in found["cuda"].files
    compile(found["inference"].files["server.py"], "server.py", "exec")


def test_a_sites_own_replace_and_add(tmp_path):
    (tmp_path / "cuda.toml").write_text('title = "Ours"\n[environment]\nA = "1"\n')
    (tmp_path / "lab.toml").write_text('title = "Lab"\ncommand = ["x", "y z"]\nports = [80]\n')
    found = read_templates([SHIPPED, tmp_path])
    assert found["cuda"].title == "Ours"
    assert found["cuda"].environment == {"A": "1"}
    assert found["lab"].command == ("x", "y z")


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.toml", "title = ", "a.toml"),
        ("a.toml", 'titel = "x"', "unknown 'titel'"),
        ("a.toml", 'summary = "x"', "title is missing"),
        ("a.toml", "title = 1", "title should be a str"),
        ("a.toml", 'title = "x"\ncommand = "sh"', "command should be a list"),
        ("a.toml", 'title = "x"\ncommand = [1]', "hold strings"),
        ("a.toml", 'title = "x"\nports = [99999]', "1 to 65535"),
        ("a.toml", 'title = "x"\n[files]\n"../../etc/x" = "y"', "inside the home folder"),
        ("a.toml", 'title = "x"\n[files]\n"/etc/x" = "y"', "inside the home folder"),
        ("A B.toml", 'title = "x"', "small letters"),
    ],
)
def test_what_is_no_template_is_refused_by_name(tmp_path, name, text, problem):
    (tmp_path / name).write_text(text)
    with pytest.raises(SetupError, match=problem):
        read_templates([tmp_path])


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(SetupError, match="no folder of templates"):
        read_templates([tmp_path / "none"])
