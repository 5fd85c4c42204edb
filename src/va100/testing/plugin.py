"""The pytest plugin: turns the virtual GPUs on before anything of the tests is imported.

pytest loads this module in every run of everybody who has va100 installed, so the rest of va100
is imported only where an option asks for it; what happens around tests is in
:mod:`va100.testing.running`.
"""

from __future__ import annotations

import argparse
import copy
from typing import Final

import pytest

from va100.testing.options import add_options, asks_for_gpus, untangle

_RUNNING: Final = "va100-running"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    add_options(parser)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> None:
    """Turn the GPUs on before the first conftest can import a CUDA library."""
    if untangle(args):
        early_config.known_args_namespace = parser.parse_known_args(
            args, namespace=copy.copy(early_config.option)
        )
    _turn_on(early_config, early_config.known_args_namespace)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Turn the GPUs on where the plugin itself came too late for that, as with ``-p``."""
    _turn_on(config, config.option)


def _turn_on(config: pytest.Config, options: argparse.Namespace) -> None:
    if not asks_for_gpus(options) or config.pluginmanager.has_plugin(_RUNNING):
        return
    # Only imported when asked for: see the module's docstring.
    from va100.errors import Va100Error  # noqa: PLC0415
    from va100.testing.running import begin  # noqa: PLC0415

    try:
        config.pluginmanager.register(begin(options), _RUNNING)
    except Va100Error as error:
        raise pytest.UsageError(str(error)) from error
