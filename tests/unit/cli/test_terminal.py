"""The width that reports are laid out for."""

from __future__ import annotations

import os

from va100.cli import terminal


def test_the_terminals_own_width(monkeypatch):
    monkeypatch.setattr(os, "get_terminal_size", lambda fd: os.terminal_size((77, 20)))
    assert terminal.columns() == 77


def test_a_file_takes_wide_lines(monkeypatch):
    def none(fd):
        raise OSError

    monkeypatch.setattr(os, "get_terminal_size", none)
    assert terminal.columns() == 120
