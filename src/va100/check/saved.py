"""A run's findings as a file: kept, read back, and written as XML.

What the file holds is what was found, before anything was left out of a report.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

from va100.check.findings import Access, Finding, Tool
from va100.check.report import Outcome
from va100.errors import SetupError

VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedRun:
    """All that a report is made of."""

    program: str
    tools: tuple[str, ...]
    complete: bool
    findings: Sequence[Finding]

    def write(self, path: Path) -> None:
        """Keep it.

        Raises
        ------
        SetupError
            The file can't be written.
        """
        data = {
            "va100-check": VERSION,
            "program": self.program,
            "tools": list(self.tools),
            "complete": self.complete,
            "findings": [f.as_json() for f in self.findings],
        }
        try:
            path.write_text(json.dumps(data) + "\n", encoding="utf-8")
        except OSError as error:
            raise SetupError(
                f"{path}: {error.strerror}", remedy="name a file that can be written"
            ) from error

    @classmethod
    def read(cls, path: Path) -> SavedRun:
        """Read what :meth:`write` wrote.

        Raises
        ------
        SetupError
            The file can't be read, or is another's.
        """
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise SetupError(f"{path}: {error.strerror}", remedy="see --save") from error
        except ValueError as error:
            raise SetupError(f"{path} holds no saved findings", remedy="see --save") from error
        if not isinstance(data, dict) or data.get("va100-check") != VERSION:
            raise SetupError(f"{path} holds no saved findings", remedy="see --save")
        return cls(
            program=str(data["program"]),
            tools=tuple(Tool(name).value for name in data["tools"]),
            complete=bool(data["complete"]),
            findings=[Finding.from_json(f) for f in data["findings"]],
        )


def report_xml(outcome: Outcome, *, program: str) -> str:
    """The report as one XML document; elements have the names that JSON's keys have."""
    root = ElementTree.Element("va100-check", version=str(VERSION), program=program)
    for name in ("errors", "warnings", "hidden", "suppressed", "complete"):
        root.set(name, _text(getattr(outcome, name)))
    for tool in outcome.tools:
        ElementTree.SubElement(root, "tool").text = tool
    for finding in outcome.findings:
        _add_finding(root, finding)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True)


def _add_finding(root: ElementTree.Element, finding: Finding) -> None:
    facts = finding.as_json()
    element = ElementTree.SubElement(root, "finding")
    for name, value in facts.items():
        if name in ("first", "second"):
            _add_access(element, name, getattr(finding, name))
        elif name == "details":
            for detail in value:
                ElementTree.SubElement(element, "detail").text = detail
        else:
            ElementTree.SubElement(element, name).text = _text(value)


def _add_access(parent: ElementTree.Element, name: str, access: Access | None) -> None:
    if access is None:
        return
    element = ElementTree.SubElement(parent, name)
    for field in ("what", "function", "file", "line", "instruction"):
        ElementTree.SubElement(element, field).text = _text(getattr(access, field))
    for field in ("cta", "thread"):
        x, y, z = getattr(access, field)
        ElementTree.SubElement(element, field, x=str(x), y=str(y), z=str(z))


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
