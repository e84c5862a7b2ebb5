"""How alembic reaches the store: through the connection that the store hands over."""

from __future__ import annotations

from alembic import context

from opkit.service.tables import METADATA

context.configure(connection=context.config.attributes["connection"], target_metadata=METADATA)
with context.begin_transaction():
    context.run_migrations()
