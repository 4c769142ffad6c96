"""What a profile is, what it holds and how far to trust it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from explorer.store import schema
from explorer.store.arrays import rows_equal
from explorer.store.reader import Evidence, Profile


@dataclass(frozen=True, slots=True)
class Coverage:
    """Of `rows` instructions, how many name their source line and their layer, and how many share their id with an earlier one."""

    rows: int
    with_source: int
    with_layer: int
    duplicate_ids: int


@dataclass(frozen=True, slots=True)
class Info:
    """A profile at a glance. Texts are as the profile has them, None where it does not say; `duration_ns` is from the first to the
    last hardware timestamp. `tables` holds rows by table, `unknown` those that the published schema does not know.
    """

    evidence: Evidence
    schema_version: str | None
    name: str | None
    target: str | None
    made_by: str | None
    duration_ns: int | None
    physical_cores: int | None
    tables: Mapping[str, int]
    unknown: tuple[str, ...]
    not_captured: tuple[str, ...]
    coverage: Coverage | None
    #: Category and message, as the profile has them.
    warnings: tuple[tuple[str, str], ...]


def cores(physical: int | None) -> str | None:
    """The cores that a device profile covers, in words; None if it does not say.

    It is always of one logical core (aws-neuron-sdk tools/neuron-explorer/profile-schema-reference.rst, num_physical_cores).
    """
    return None if physical is None else f"{physical} physical in 1 logical on 1 chip"


def info(profile: Profile) -> Info:
    """What the profile is and holds."""
    row = _metadata(profile)
    first, last = row.get("first_hw_timestamp"), row.get("last_hw_timestamp")
    return Info(
        evidence=profile.evidence,
        schema_version=row.get("profile_schema_version") or None,
        name=row.get("ts_kernel") or row.get("profile_name") or None,
        target=row.get("ts_target") or row.get("instance_type") or None,
        made_by=row.get("ts_made_by") or row.get("explorer_version") or None,
        duration_ns=last - first if first is not None and last is not None else None,
        physical_cores=row.get("num_physical_cores"),
        tables={name: profile.rows(name) for name in profile.tables},
        unknown=tuple(name for name in profile.tables if name not in schema.tables()),
        not_captured=profile.not_captured,
        coverage=_coverage(profile),
        warnings=_warnings(profile),
    )


def _metadata(profile: Profile) -> dict[str, Any]:
    table = profile.table("Metadata")
    row: dict[str, Any] = table.slice(0, 1).to_pylist()[0] if table is not None else {}
    return row


def _coverage(profile: Profile) -> Coverage | None:
    table = profile.table("Instruction", ["nki_source_location", "layer", "id"])
    if table is None:
        return None
    ids = table["id"].drop_null()
    return Coverage(
        table.num_rows,
        _named(table["nki_source_location"]),
        _named(table["layer"]),
        len(ids) - len(pc.unique(ids)),
    )


def _named(column: pa.ChunkedArray) -> int:
    return int(column.length() - column.null_count) - len(rows_equal(column, ""))


def _warnings(profile: Profile) -> tuple[tuple[str, str], ...]:
    table = profile.table("Warning", ["category", "message"])
    return () if table is None else tuple((r["category"] or "", r["message"] or "") for r in table.to_pylist())
