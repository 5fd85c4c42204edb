"""What the plugin does where nobody asked for it."""

import sys


def test_nothing_was_imported():
    loaded = {name for name in sys.modules if name.split(".")[0] == "va100"}
    assert loaded <= {"va100", "va100.testing", "va100.testing.options", "va100.testing.plugin"}
    assert "llvmlite" not in sys.modules
