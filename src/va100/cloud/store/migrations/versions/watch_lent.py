"""Lent instances that run on: GPU time at which they were lent."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    kind = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.add_column("instances", sa.Column("watched_ns", kind, nullable=True))


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("instances", "watched_ns")
