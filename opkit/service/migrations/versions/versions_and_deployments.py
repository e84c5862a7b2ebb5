"""Versions and deployments: the first store."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "versions",
        sa.Column("operator", sa.String, primary_key=True),
        sa.Column("digest", sa.String, primary_key=True),
        sa.Column("label", sa.String, nullable=False),
        sa.Column("kind", sa.String, nullable=False),
        sa.Column("interface", sa.JSON, nullable=False),
        sa.Column("has_reference", sa.Integer, nullable=False),
        sa.Column("source", sa.String, nullable=False),
        sa.Column("added_at", sa.Float, nullable=False),
        sa.UniqueConstraint("operator", "label", name="one_version_a_label"),
    )
    op.create_table(
        "deployments",
        sa.Column("operator", sa.String, primary_key=True),
        sa.Column("revision", sa.Integer, primary_key=True),
        sa.Column("state", sa.JSON, nullable=False),
        sa.Column("reason", sa.String, nullable=False),
        sa.Column("changed_at", sa.Float, nullable=False),
        sa.Column("copied_from", sa.Integer),
    )
