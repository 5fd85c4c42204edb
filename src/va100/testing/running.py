"""Around each test: what its kernels did wrong, and how long an A100 would take for them.

Kernels of this process and of those that tests start are told in the same two files, of launches
and of findings; what is new in them after a phase of a test is that phase's.  Under pytest-xdist
each worker has files of its own, and the process that shows the results gets them with the
tests' reports.
"""

from __future__ import annotations

import argparse
import atexit
import shutil
import tempfile
from collections.abc import Generator, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from va100 import assembly, config
from va100.check.findings import Finding
from va100.cli import environment
from va100.config import MOST_GPUS, Settings, model_name, require_checkable
from va100.driver.report import append_launches
from va100.errors import SetupError
from va100.profile.report_schema import KernelGroup, parse_report
from va100.testing.findings import Judge, has_error, joined
from va100.testing.options import ALL_TOOLS, TERMINAL, TOOLS
from va100.testing.tally import Tally

_LAUNCHES: Final = "va100_launches"
"""Attribute of a test's report: its launches, as lines of a launch report."""
_STRAY: Final = "va100_stray"
"""What a worker sends at its end: findings that belong to no test."""
_SECTION: Final = "va100 check"


def begin(options: argparse.Namespace) -> Running:
    """Put this process on virtual GPUs.

    Raises
    ------
    SetupError
        An option asks for what there is not, or something is not installed.
    """
    settings = _settings(options)
    tools = _tools(options.va100_check)
    report = _report_file(options.va100_report)
    judge = Judge(tools, options.va100_suppressions) if tools else None
    if not environment.is_built():
        raise SetupError("the native core is not built", remedy="make setup")
    folder = Path(tempfile.mkdtemp(prefix="va100-pytest-"))
    # Before the GPUs are turned on, so that what they write at the exit still has a place.
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    launches, found = folder / "launches", folder / "findings"
    if tools:
        settings = replace(settings, check=tools, check_report=found)
    counted = options.va100_report is not None
    if counted:  # here, so this process writes no report of its own
        config.adopt({"VA100_REPORT": ""})
        settings = replace(settings, report=None)
    environment.enable(settings)
    if counted:
        config.adopt({"VA100_REPORT": str(launches)})
    tally = Tally(model=settings.model, gpu_count=settings.gpu_count) if counted else None
    return Running(folder, judge, tally, report)


class Running:
    """The hooks of a run on virtual GPUs."""

    def __init__(
        self, folder: Path, judge: Judge | None, tally: Tally | None, report: Path | None
    ) -> None:
        self._judge = judge
        self._tally = tally
        self._report = report
        self._launches = _Tail(folder / "launches")
        self._found = _Tail(folder / "findings")
        self._next_launch = 0
        self._stray: list[Finding] = []

    # ---------------------------------------------------------- each test

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, None, None]:
        """Judge fixtures; what was found before belongs to no test."""
        if self._judge is not None:
            self._stray += self._judge.counted(self._found.lines())
        return (yield from self._judged(item, "setup"))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, None, None]:
        """Judge the test."""
        return (yield from self._judged(item, "call"))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, None, None]:
        """Judge how its fixtures end."""
        return (yield from self._judged(item, "teardown"))

    def _judged(self, item: pytest.Item, phase: str) -> Generator[None, None, None]:
        try:
            yield
        except BaseException:
            self._note(item, phase, self._take())
            raise
        findings = self._take()
        if self._judge is not None and has_error(findings):
            pytest.fail(self._judge.verdict(findings), pytrace=False)
        self._note(item, phase, findings)

    def _take(self) -> list[Finding]:
        return [] if self._judge is None else self._judge.counted(self._found.lines())

    def _note(self, item: pytest.Item, phase: str, findings: Sequence[Finding]) -> None:
        if self._judge is not None and findings:
            item.add_report_section(phase, _SECTION, self._judge.text(findings))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Send the launches of a phase along with its report."""
        report = yield
        if self._tally is not None:
            self._next_launch = append_launches(
                self._launches.path, assembly.connect(), self._next_launch
            )
            setattr(report, _LAUNCHES, self._launches.lines())
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count what a report brings, from this process or from a worker."""
        if self._tally is None:
            return
        groups = _kernels(getattr(report, _LAUNCHES, ()))
        if groups:
            self._tally.add(report.nodeid, groups)
        if report.when == "call" or report.outcome != "passed":
            self._tally.end(report.nodeid, report.outcome)

    # ---------------------------------------------------------- the end

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take what a worker found outside its tests."""
        sent = getattr(node, "workeroutput", {}).get(_STRAY, ())
        self._stray += [Finding.from_json(entry) for entry in sent]

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the file; a finding that belongs to no test fails the whole."""
        self._stray += self._take()
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[_STRAY] = [finding.as_json() for finding in self._stray]
            return
        if self._tally is not None and self._report is not None:
            self._report.write_text(self._tally.json() + "\n", encoding="utf-8")
        if has_error(self._stray) and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_report_header(self) -> str:
        """Say on what the tests run."""
        settings = Settings.from_environment()
        checked = f", checked: {', '.join(self._judge.tools)}" if self._judge else ""
        return f"va100: {settings.gpu_count} x {settings.model}, virtual{checked}"

    def pytest_terminal_summary(
        self, terminalreporter: pytest.TerminalReporter, config: pytest.Config
    ) -> None:
        """Tell what belongs to no single test."""
        if self._judge is not None and self._stray:
            terminalreporter.section("va100 check: outside of tests", sep="=")
            terminalreporter.write_line(self._judge.text(joined(self._stray)))
        if self._tally is not None:
            terminalreporter.section("va100: kernels, and the time an A100 would take", sep="=")
            width = config.get_terminal_writer().fullwidth
            terminalreporter.write_line(self._tally.text(width=width))
            if self._report is not None:
                terminalreporter.write_line(f"\nwritten to {self._report}")


class _Tail:
    """The lines of a growing file that were not read yet."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._read_bytes = 0

    def lines(self) -> list[str]:
        """Whole lines since the last call."""
        try:
            if self.path.stat().st_size == self._read_bytes:
                return []
            with self.path.open("rb") as file:
                file.seek(self._read_bytes)
                new = file.read()
        except FileNotFoundError:
            return []
        new = new[: new.rfind(b"\n") + 1]
        self._read_bytes += len(new)
        return new.decode("utf-8", errors="replace").splitlines(keepends=True)


def _kernels(lines: Iterable[str]) -> tuple[KernelGroup, ...]:
    return parse_report(line for line in lines if '"type": "kernel"' in line).kernels


# ------------------------------------------------------------------ options


def _settings(options: argparse.Namespace) -> Settings:
    settings = Settings.from_environment()
    if options.va100_model is not None:
        name = model_name(options.va100_model, origin="--va100-model")
        settings = replace(settings, model=name)
    if options.va100_gpus is not None:
        text = options.va100_gpus
        if not text.isdecimal() or not 1 <= int(text) <= MOST_GPUS:
            raise SetupError(
                f"--va100-gpus={text} is no count from 1 to {MOST_GPUS}",
                remedy="pytest --va100-gpus=1",
            )
        settings = replace(settings, gpu_count=int(text))
    if options.va100_check is not None:
        require_checkable(settings.engine)
    return settings


def _tools(text: str | None) -> tuple[str, ...]:
    """Tools that an option names."""
    if text is None:
        return ()
    names = tuple(word.strip() for word in text.split(","))
    if names == (ALL_TOOLS,):
        return TOOLS
    for name in names:
        if name not in TOOLS:
            raise SetupError(
                f"--va100-check={text}: {name or 'nothing'} is none of {', '.join(TOOLS)}, "
                f"{ALL_TOOLS}",
                remedy="pytest --va100-check",
            )
    return names


def _report_file(text: str | None) -> Path | None:
    """File that the report goes to; never one that could be a test."""
    if text is None or text == TERMINAL:
        return None
    path = Path(text)
    if path.suffix != ".json" or not path.parent.is_dir():
        raise SetupError(
            f"--va100-report={text} is no .json file in a folder that exists",
            remedy="pytest --va100-report=kernels.json",
        )
    return path.absolute()
