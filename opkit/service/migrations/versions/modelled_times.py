"""Modelled times are kept: a start no longer asks the timing model for all of them again."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.create_table(
        "modelled",
        sa.Column("digest", sa.String, primary_key=True),
        sa.Column("op", sa.String, primary_key=True),
        sa.Column("signature", sa.String, primary_key=True),
        sa.Column("task_us", sa.Float, nullable=False),
        sa.Column("band_percent", sa.Float),
        sa.Column("energy_uj", sa.Float, nullable=False),
    )
