"""The tables of a service's store; `migrations` makes and changes them."""

from __future__ import annotations

from sqlalchemy import JSON, Column, Float, Integer, MetaData, String, Table, UniqueConstraint

__all__ = ["DEPLOYMENTS", "METADATA", "MODELLED", "VERSIONS"]

METADATA = MetaData()

VERSIONS = Table(
    "versions",
    METADATA,
    Column("operator", String, primary_key=True),
    Column("digest", String, primary_key=True, doc="SHA-256 of its folder, in hex"),
    Column("label", String, nullable=False),
    Column("kind", String, nullable=False),
    Column("interface", JSON, nullable=False),
    Column("has_reference", Integer, nullable=False),
    Column("source", String, nullable=False, doc="what it was added from, for people"),
    Column("added_at", Float, nullable=False, doc="seconds since 1970"),
    UniqueConstraint("operator", "label", name="one_version_a_label"),
)
"""Only ever added to."""

DEPLOYMENTS = Table(
    "deployments",
    METADATA,
    Column("operator", String, primary_key=True),
    Column("revision", Integer, primary_key=True),
    Column("state", JSON, nullable=False),
    Column("reason", String, nullable=False),
    Column("changed_at", Float, nullable=False, doc="seconds since 1970"),
    Column("copied_from", Integer, doc="the revision that it rolled back to"),
)
"""Only ever added to: the highest revision counts."""

MODELLED = Table(
    "modelled",
    METADATA,
    Column("digest", String, primary_key=True),
    Column("op", String, primary_key=True),
    Column("signature", String, primary_key=True),
    Column("task_us", Float, nullable=False),
    Column("band_percent", Float),
    Column("energy_uj", Float, nullable=False),
)
"""What the timing model said, so that it is asked once for each version and signature."""
