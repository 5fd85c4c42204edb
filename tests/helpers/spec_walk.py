"""Finds every spec class and every spec instance in the package."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator

import va100.spec
from va100.spec import a100, attributes
from va100.spec.model import Spec, nested_specs


def spec_modules() -> list[object]:
    """Every module of the facts."""
    names = [info.name for info in pkgutil.walk_packages(va100.spec.__path__, "va100.spec.")]
    return [importlib.import_module(name) for name in names]


def spec_classes() -> list[type[Spec]]:
    """Every kind of fact, without the base."""
    found = {
        cls
        for module in spec_modules()
        for _, cls in inspect.getmembers(module, inspect.isclass)
        if issubclass(cls, Spec) and cls is not Spec
    }
    return sorted(found, key=lambda cls: cls.__name__)


def spec_instances() -> Iterator[tuple[str, Spec]]:
    """Every fact reachable from a module's names, with the path to it, and the attributes."""
    for module in spec_modules():
        for name, value in vars(module).items():
            parts = value if isinstance(value, tuple) else (value,)
            for part in parts:
                if isinstance(part, Spec):
                    yield from _within(f"{module.__name__}.{name}", part)
    for row in attributes.attributes(a100.A100_SXM4_80GB):
        yield from _within(f"attribute {row.attribute_id}", row)


def _within(path: str, spec: Spec) -> Iterator[tuple[str, Spec]]:
    yield path, spec
    for name, part in nested_specs(spec):
        yield from _within(f"{path}.{name}", part)
