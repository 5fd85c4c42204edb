"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make all tables."""
    _make_attempts()
    _make_audit()
    _make_claims()
    _make_events()
    _make_guarantees()
    _make_homes()
    _make_instances()
    _make_keys()
    _make_ledger()
    _make_locks()
    _make_members()
    _make_meters()
    _make_nodes()
    _make_people()
    _make_prices()
    _make_replies()
    _make_samples()
    _make_sessions()
    _make_tenants()


def downgrade() -> None:
    """Drop all tables."""
    for name in _TABLES:
        op.drop_table(name)


_TABLES = (
    "attempts",
    "audit",
    "claims",
    "events",
    "guarantees",
    "homes",
    "instances",
    "keys",
    "ledger",
    "locks",
    "members",
    "meters",
    "nodes",
    "people",
    "prices",
    "replies",
    "samples",
    "sessions",
    "tenants",
)
_BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _make_attempts() -> None:
    op.create_table(
        "attempts",
        sa.Column("id", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("count", sa.Float(), autoincrement=False, nullable=False),
        sa.Column("since_s", sa.Float(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )


def _make_audit() -> None:
    op.create_table(
        "audit",
        sa.Column("id", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("at_s", _BIG, autoincrement=False, nullable=False),
        sa.Column("tenant", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("person", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("action", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("subject", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("detail", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("address", sa.Text(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_audit_tenant_at_s", "audit", ["tenant", "at_s"], unique=False)


def _make_claims() -> None:
    op.create_table(
        "claims",
        sa.Column("request", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("tenant", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("model", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("profile", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("cards", _BIG, autoincrement=False, nullable=False),
        sa.Column("places", sa.JSON(), autoincrement=False, nullable=False),
        sa.Column("firm", sa.Boolean(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("request"),
    )


def _make_events() -> None:
    op.create_table(
        "events",
        sa.Column("id", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("at_s", _BIG, autoincrement=False, nullable=False),
        sa.Column("tenant", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("instance", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("text", sa.Text(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_events_instance_at_s", "events", ["instance", "at_s"], unique=False)


def _make_guarantees() -> None:
    op.create_table(
        "guarantees",
        sa.Column("tenant", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("model", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("profile", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("cards", _BIG, autoincrement=False, nullable=False),
        sa.Column("count", _BIG, autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "model", "profile", "cards"),
    )


def _make_homes() -> None:
    op.create_table(
        "homes",
        sa.Column("id", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("tenant", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("model", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("profile", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("cards", _BIG, autoincrement=False, nullable=False),
        sa.Column("node", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("gpus", sa.JSON(), autoincrement=False, nullable=False),
        sa.Column("start", _BIG, autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_homes_tenant", "homes", ["tenant"], unique=False)


def _make_instances() -> None:
    op.create_table(
        "instances",
        sa.Column("id", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("tenant", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("person", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("name", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("template", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("model", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("profile", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("cards", _BIG, autoincrement=False, nullable=False),
        sa.Column("market", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("disk_gib", _BIG, autoincrement=False, nullable=False),
        sa.Column("environment", sa.JSON(), autoincrement=False, nullable=False),
        sa.Column("ports", sa.JSON(), autoincrement=False, nullable=False),
        sa.Column("ssh_key", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("command", sa.JSON(), autoincrement=False, nullable=False),
        sa.Column("created_s", _BIG, autoincrement=False, nullable=False),
        sa.Column("state", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("then", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("since_s", _BIG, autoincrement=False, nullable=False),
        sa.Column("gang", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("gang_count", _BIG, autoincrement=False, nullable=False),
        sa.Column("nvlink", sa.Boolean(), autoincrement=False, nullable=False),
        sa.Column("reason", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("reason_code", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("node", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("gpus", sa.JSON(), autoincrement=False, nullable=False),
        sa.Column("start", _BIG, autoincrement=False, nullable=False),
        sa.Column("tier", _BIG, autoincrement=False, nullable=False),
        sa.Column("placed_s", _BIG, autoincrement=False, nullable=False),
        sa.Column("started_s", _BIG, autoincrement=False, nullable=True),
        sa.Column("stopped_s", _BIG, autoincrement=False, nullable=True),
        sa.Column("lease_s", _BIG, autoincrement=False, nullable=False),
        sa.Column("ends_s", _BIG, autoincrement=False, nullable=True),
        sa.Column("idle_stop_s", _BIG, autoincrement=False, nullable=True),
        sa.Column("busy_s", _BIG, autoincrement=False, nullable=True),
        sa.Column("warned_s", _BIG, autoincrement=False, nullable=True),
        sa.Column("notice_s", _BIG, autoincrement=False, nullable=True),
        sa.Column("claimed_by", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("lendable", sa.Boolean(), autoincrement=False, nullable=False),
        sa.Column("lent", sa.Boolean(), autoincrement=False, nullable=False),
        sa.Column("recalled", sa.Boolean(), autoincrement=False, nullable=False),
        sa.Column("recover", sa.Boolean(), autoincrement=False, nullable=False),
        sa.Column("exit_code", _BIG, autoincrement=False, nullable=True),
        sa.Column("generation", _BIG, autoincrement=False, nullable=False),
        sa.Column("tries", _BIG, autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_instances_gang", "instances", ["gang"], unique=False)
    op.create_index("ix_instances_state", "instances", ["state"], unique=False)
    op.create_index(
        "ix_instances_tenant_created_s", "instances", ["tenant", "created_s"], unique=False
    )


def _make_keys() -> None:
    op.create_table(
        "keys",
        sa.Column("id", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("tenant", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("person", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("name", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("digest", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("scopes", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("created_s", _BIG, autoincrement=False, nullable=False),
        sa.Column("expires_s", _BIG, autoincrement=False, nullable=True),
        sa.Column("used_s", _BIG, autoincrement=False, nullable=True),
        sa.Column("revoked_s", _BIG, autoincrement=False, nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("digest", name="uq_keys_digest"),
    )
    op.create_index("ix_keys_tenant", "keys", ["tenant"], unique=False)


def _make_ledger() -> None:
    op.create_table(
        "ledger",
        sa.Column("number", _BIG, autoincrement=False, nullable=False),
        sa.Column("tenant", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("amount_micro", _BIG, autoincrement=False, nullable=False),
        sa.Column("at_s", _BIG, autoincrement=False, nullable=False),
        sa.Column("meter", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("instance", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("item", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("eighths", _BIG, autoincrement=False, nullable=False),
        sa.Column("from_s", _BIG, autoincrement=False, nullable=False),
        sa.Column("to_s", _BIG, autoincrement=False, nullable=False),
        sa.Column("text", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("seal", sa.Text(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("number"),
        sa.UniqueConstraint("meter", "kind", "from_s", name="uq_ledger_meter_kind_from_s"),
    )
    op.create_index("ix_ledger_instance", "ledger", ["instance"], unique=False)
    op.create_index("ix_ledger_tenant_at_s", "ledger", ["tenant", "at_s"], unique=False)


def _make_locks() -> None:
    op.create_table(
        "locks",
        sa.Column("name", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("owner", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("until_s", sa.Float(), autoincrement=False, nullable=False),
        sa.Column("term", _BIG, autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )


def _make_members() -> None:
    op.create_table(
        "members",
        sa.Column("tenant", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("person", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("role", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("since_s", _BIG, autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "person"),
    )
    op.create_index("ix_members_person", "members", ["person"], unique=False)


def _make_meters() -> None:
    op.create_table(
        "meters",
        sa.Column("id", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("tenant", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("instance", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("item", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("eighths", _BIG, autoincrement=False, nullable=False),
        sa.Column("kind", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("from_s", _BIG, autoincrement=False, nullable=False),
        sa.Column("to_s", _BIG, autoincrement=False, nullable=True),
        sa.Column("discount_per_mille", _BIG, autoincrement=False, nullable=False),
        sa.Column("through_s", _BIG, autoincrement=False, nullable=False),
        sa.Column("node", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("gpus", sa.JSON(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_meters_instance", "meters", ["instance"], unique=False)
    op.create_index("ix_meters_tenant", "meters", ["tenant"], unique=False)
    op.create_index("ix_meters_to_s", "meters", ["to_s"], unique=False)


def _make_nodes() -> None:
    op.create_table(
        "nodes",
        sa.Column("name", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("model", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("gpu_count", _BIG, autoincrement=False, nullable=False),
        sa.Column("islands", sa.JSON(), autoincrement=False, nullable=False),
        sa.Column("driver", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("state", sa.Text(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )


def _make_people() -> None:
    op.create_table(
        "people",
        sa.Column("id", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("email", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("name", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("password", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("created_s", _BIG, autoincrement=False, nullable=False),
        sa.Column("operator", sa.Boolean(), autoincrement=False, nullable=False),
        sa.Column("totp", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("totp_pending", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("totp_step", _BIG, autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("email", name="uq_people_email"),
    )


def _make_prices() -> None:
    op.create_table(
        "prices",
        sa.Column("item", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("from_s", _BIG, autoincrement=False, nullable=False),
        sa.Column("micro_per_h", _BIG, autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("item", "from_s"),
    )


def _make_replies() -> None:
    op.create_table(
        "replies",
        sa.Column("id", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("digest", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("status", _BIG, autoincrement=False, nullable=False),
        sa.Column("body", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("created_s", _BIG, autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_replies_created_s", "replies", ["created_s"], unique=False)


def _make_samples() -> None:
    op.create_table(
        "samples",
        sa.Column("id", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("instance", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("at_s", _BIG, autoincrement=False, nullable=False),
        sa.Column("busy_ratio", sa.Float(), autoincrement=False, nullable=False),
        sa.Column("memory_bytes", _BIG, autoincrement=False, nullable=False),
        sa.Column("cpu_s", sa.Float(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_samples_instance_at_s", "samples", ["instance", "at_s"], unique=False)


def _make_sessions() -> None:
    op.create_table(
        "sessions",
        sa.Column("digest", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("person", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("csrf", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("created_s", _BIG, autoincrement=False, nullable=False),
        sa.Column("expires_s", _BIG, autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("digest"),
    )
    op.create_index("ix_sessions_person", "sessions", ["person"], unique=False)


def _make_tenants() -> None:
    op.create_table(
        "tenants",
        sa.Column("id", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("name", sa.Text(), autoincrement=False, nullable=False),
        sa.Column("created_s", _BIG, autoincrement=False, nullable=False),
        sa.Column("limit_eighths", _BIG, autoincrement=False, nullable=False),
        sa.Column("most_instances", _BIG, autoincrement=False, nullable=False),
        sa.Column("most_disk_gib", _BIG, autoincrement=False, nullable=False),
        sa.Column("weight", _BIG, autoincrement=False, nullable=False),
        sa.Column("credit_limit_micro", _BIG, autoincrement=False, nullable=False),
        sa.Column("trusted", sa.Boolean(), autoincrement=False, nullable=False),
        sa.Column("suspended", sa.Boolean(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("name", name="uq_tenants_name"),
    )
