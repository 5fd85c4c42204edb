"""The lines for a shell to evaluate."""

from __future__ import annotations

import subprocess

from va100.cli.main import main


class TestRun:
    def test_a_shell_takes_it(self, capsys, monkeypatch):
        monkeypatch.setenv("VA100_CACHE_DIR", "/a folder/with 'quotes'")
        assert main(["env", "--gpus", "3", "--model", "sxm40"]) == 0
        script = capsys.readouterr().out
        shell = (
            f'{script}\necho "$VA100_GPUS"; echo "$VA100_MODEL"; echo "$VA100_CACHE_DIR"'
            '\necho "$LD_LIBRARY_PATH"'
        )
        for before in ({}, {"LD_LIBRARY_PATH": "/mine"}):
            said = subprocess.run(
                ["/bin/sh", "-c", shell], env=before, capture_output=True, text=True, check=True
            ).stdout.splitlines()
            assert said[:3] == ["3", "A100-SXM4-40GB", "/a folder/with 'quotes'"]
            folders = said[3].split(":")
            assert folders[0].endswith("_native")
            assert folders[1:] == list(before.values())
