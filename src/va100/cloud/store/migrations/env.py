"""Alembic's entry: migrates over the connection that it is given."""

from __future__ import annotations

from alembic import context

from va100.cloud.store.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    render_as_batch=True,
)
with context.begin_transaction():
    context.run_migrations()
