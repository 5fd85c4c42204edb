"""The command as a whole: verbs, statuses, start-up."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

import pytest

from va100 import __version__
from va100.cli import main as command
from va100.cli import version
from va100.errors import SetupError


class TestVerbs:
    @pytest.mark.parametrize("verb", command.VERBS)
    def test_module_gives_the_line_that_the_table_shows(self, verb):
        subparsers = argparse.ArgumentParser().add_subparsers()
        command.verb_module(verb).add_parser(subparsers)
        (choice,) = subparsers._choices_actions
        assert (choice.dest, choice.help) == (verb, command.VERBS[verb])

    @pytest.mark.parametrize("verb", command.VERBS)
    def test_explains_itself(self, verb, capsys):
        if verb == "smi":
            pytest.skip("its words, --help too, are nvidia-smi's: tests/system/test_smi*.py")
        with pytest.raises(SystemExit) as ended:
            command.main([verb, "--help"])
        assert ended.value.code == 0
        assert f"va100 {verb}" in capsys.readouterr().out


class TestMain:
    def test_no_verb_shows_help(self, capsys):
        assert command.main([]) == 2
        assert "doctor" in capsys.readouterr().err

    def test_unknown_verb(self, capsys):
        with pytest.raises(SystemExit) as ended:
            command.main(["fly"])
        assert ended.value.code == 2
        assert "fly" in capsys.readouterr().err

    @pytest.mark.parametrize("words", [["--version"], ["version"]])
    def test_version(self, words, capsys):
        try:
            assert command.main(words) == 0
        except SystemExit as ended:
            assert ended.code == 0
        assert f"va100 {__version__}" in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("raised", "status"),
        [
            (SetupError("no wings", remedy="grow some"), 1),
            (KeyboardInterrupt(), 130),
        ],
    )
    def test_errors_become_statuses(self, raised, status, monkeypatch, capsys):
        def fail(args):
            raise raised

        monkeypatch.setattr(version, "run", fail)
        assert command.main(["version"]) == status
        told = capsys.readouterr().err
        assert told == ("va100 version: no wings\n  to fix: grow some\n" if status == 1 else "")

    def test_closed_pipe_is_quiet(self):
        reader, writer = os.pipe()
        os.close(reader)
        outcome = subprocess.run(
            [sys.executable, "-m", "va100.cli", "version"],
            stdout=writer,
            stderr=subprocess.PIPE,
            check=False,
        )
        os.close(writer)
        assert (outcome.returncode, outcome.stderr) == (141, b"")


class TestStart:
    def test_help_imports_no_engine(self):
        script = (
            "import sys; from va100.cli.main import main; main([]);"
            "print([m for m in ('numpy', 'llvmlite', 'va100.spec', 'va100.ptx') "
            "if m in sys.modules])"
        )
        outcome = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True
        )
        assert outcome.stdout == "[]\n"
