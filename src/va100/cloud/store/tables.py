"""Tables: one a record, with keys and indexes.

Columns follow the records' fields, so that a field without a column, or the other way round,
fails when this module is imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, Final, get_args, get_type_hints

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Float,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)

from va100.cloud import records

METADATA: Final = MetaData()
_BIG: Final = BigInteger().with_variant(Integer, "sqlite")
_COLUMN_TYPES: Final[Mapping[type, Any]] = MappingProxyType(
    {int: _BIG, float: Float, str: Text, bool: Boolean, list: JSON, dict: JSON}
)


@dataclass(frozen=True, slots=True)
class Keys:
    """How a table is found: its primary key, what is unique, what is indexed."""

    primary: tuple[str, ...]
    unique: tuple[tuple[str, ...], ...] = ()
    indexed: tuple[tuple[str, ...], ...] = ()


_TABLES: Final[Mapping[str, tuple[type, Keys]]] = MappingProxyType(
    {
        "tenants": (records.TenantRecord, Keys(("id",), (("name",),))),
        "people": (records.PersonRecord, Keys(("id",), (("email",),))),
        "members": (records.MemberRecord, Keys(("tenant", "person"), (), (("person",),))),
        "keys": (records.KeyRecord, Keys(("id",), (("digest",),), (("tenant",),))),
        "sessions": (records.SessionRecord, Keys(("digest",), (), (("person",),))),
        "attempts": (records.AttemptRecord, Keys(("id",))),
        "nodes": (records.NodeRecord, Keys(("name",))),
        "instances": (
            records.InstanceRecord,
            Keys(("id",), (), (("tenant", "created_s"), ("state",), ("gang",))),
        ),
        "claims": (records.ClaimRecord, Keys(("request",))),
        "guarantees": (
            records.GuaranteeRecord,
            Keys(("tenant", "model", "profile", "cards")),
        ),
        "homes": (records.HomeRecord, Keys(("id",), (), (("tenant",),))),
        "meters": (
            records.MeterRecord,
            Keys(("id",), (), (("instance",), ("tenant",), ("to_s",))),
        ),
        "ledger": (
            records.EntryRecord,
            Keys(
                ("number",),
                (("meter", "kind", "from_s"),),
                (("tenant", "at_s"), ("instance",)),
            ),
        ),
        "prices": (records.PriceRecord, Keys(("item", "from_s"))),
        "replies": (records.ReplyRecord, Keys(("id",), (), (("created_s",),))),
        "audit": (records.AuditRecord, Keys(("id",), (), (("tenant", "at_s"),))),
        "events": (records.EventRecord, Keys(("id",), (), (("instance", "at_s"),))),
        "samples": (records.SampleRecord, Keys(("id",), (), (("instance", "at_s"),))),
        "locks": (records.LockRecord, Keys(("name",))),
    }
)


def _column(name: str, hint: Any, keys: Keys) -> Column[Any]:
    kinds = [kind for kind in get_args(hint) if kind is not type(None)]
    optional = type(None) in get_args(hint)
    kind = kinds[0] if optional else hint
    plain = getattr(kind, "__origin__", kind)
    primary = name in keys.primary
    return Column(
        name,
        _COLUMN_TYPES[plain],
        primary_key=primary,
        nullable=optional,
        autoincrement=False,
    )


def _table(name: str, record: type, keys: Keys) -> Table:
    hints = get_type_hints(record)
    columns = [_column(field.name, hints[field.name], keys) for field in fields(record)]
    return Table(
        name,
        METADATA,
        *columns,
        *(UniqueConstraint(*names, name=f"uq_{name}_{'_'.join(names)}") for names in keys.unique),
        *(Index(f"ix_{name}_{'_'.join(names)}", *names) for names in keys.indexed),
    )


TABLES: Final[Mapping[type, Table]] = MappingProxyType(
    {record: _table(name, record, keys) for name, (record, keys) in _TABLES.items()}
)
"""The table of each record."""
