"""One door for model files: tells what a file is, reads it, and says what is wrong with it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Final

from va100.errors import PlanError
from va100.plan.models.huggingface import read_config
from va100.plan.models.yaml import parse_yaml
from va100.plan.workload import Experts, Latent, Transformer
from va100.units import MIB

LARGEST_FILE_BYTES: Final = 4 * MIB
_NEEDED: Final = ("layers", "hidden", "heads", "vocab")


def read_model(path: Path) -> Transformer:
    """Transformer that a ``config.json``, a YAML file, or the folder of one describes.

    Raises
    ------
    PlanError
        There is no such file, or it describes no transformer.
    """
    document = read_document(path)
    if not isinstance(document, Mapping):
        raise PlanError(f"{path}: holds no map of values", hint="see docs/planning.md for the form")
    if "model_type" in document or "architectures" in document or "text_config" in document:
        return read_config(document, str(path))
    return _plain(document, str(path))


def read_document(path: Path) -> Any:
    """Parsed content of a JSON or YAML file; of a folder, its ``config.json``.

    Raises
    ------
    PlanError
        It cannot be read, or is neither.
    """
    if path.is_dir():
        path = path / "config.json"
    try:
        if path.stat().st_size > LARGEST_FILE_BYTES:
            raise PlanError(
                f"{path}: larger than {LARGEST_FILE_BYTES // MIB} MiB",
                hint="give the config.json, not the weights",
            )
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PlanError(
            f"{path}: cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8 text'}",
            hint="give a config.json or a YAML file",
        ) from error
    if path.suffix in (".yaml", ".yml"):
        return parse_yaml(text, str(path))
    try:
        return json.loads(text)
    except ValueError as error:
        if path.suffix != ".json":
            return parse_yaml(text, str(path))
        raise PlanError(f"{path}: no JSON: {error}", hint="correct the file") from error


def _plain(document: Mapping[str, Any], where: str) -> Transformer:
    """Transformer whose fields a file names as :class:`Transformer` does."""
    known = {entry.name for entry in fields(Transformer)}
    strangers = sorted(str(key) for key in document if key not in known and key != "kind")
    if strangers:
        raise PlanError(
            f"{where}: unknown: {', '.join(strangers)}", hint=f"known: {', '.join(sorted(known))}"
        )
    missing = [name for name in _NEEDED if name not in document]
    if missing:
        raise PlanError(
            f"{where}: no {', '.join(missing)}", hint="a model needs layers, hidden, heads, vocab"
        )
    values = {str(key): value for key, value in document.items() if key != "kind"}
    values.setdefault("name", Path(where).stem)
    for name in _NEEDED:
        if isinstance(values[name], bool) or not isinstance(values[name], int) or values[name] < 1:
            raise PlanError(
                f"{where}: {name} is {values[name]!r}, expected a whole number above 0",
                hint="correct the file",
            )
    values.setdefault("kv_heads", values["heads"])
    values.setdefault("head_dim", values["hidden"] // values["heads"])
    values.setdefault("ffn", 4 * values["hidden"])
    _check_types(values, where)
    try:
        for name, kind in (("experts", Experts), ("latent", Latent)):
            if isinstance(values.get(name), Mapping):
                _check_types(values[name], f"{where}: {name}")
                values[name] = kind(**values[name])
        return Transformer(**values)
    except (TypeError, ValueError) as error:
        raise PlanError(f"{where}: {error}", hint="see docs/planning.md for the form") from error


_WORDS: Final = frozenset(("name",))
_MAPS: Final = frozenset(("experts", "latent"))
_FLAGS: Final = frozenset(
    entry.name for kind in (Transformer, Experts) for entry in fields(kind) if entry.type == "bool"
)


def _check_types(values: Mapping[str, Any], where: str) -> None:
    """Refuse a value that is not of its field's kind: a truth value, a map, or a whole number."""
    for name, value in values.items():
        if name in _WORDS:
            continue
        if name in _MAPS:
            good, wanted = value is None or isinstance(value, Mapping), "a map"
        elif name in _FLAGS:
            good, wanted = isinstance(value, bool), "true or false"
        else:
            good = isinstance(value, int) and not isinstance(value, bool) and value >= 0
            wanted = "a whole number"
        if not good:
            raise PlanError(
                f"{where}: {name} is {value!r}, expected {wanted}", hint="correct the file"
            )
