"""Profiles measured on hardware: neuron-profile's and neuron-explorer's JSON as tables of schema 7.4.0.

`load(paths)` takes what a user has: a JSON export, or NEFF and NTFF, or a capture folder, the last two through AWS's own tool.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from collectors.neuron_profile import capture, mapping, read, tables
from collectors.neuron_profile.columns import Losses
from explorer.analysis.summary import opcode_summary, throttle_summary
from explorer.store import schema
from explorer.store.errors import UsageError
from explorer.store.reader import Profile


@dataclass(frozen=True, slots=True)
class Imported:
    """What `explorer.store.writer.write` takes, and what a user should hear about it.

    `descriptions` says what our own tables and columns hold, by "Table" or "Table.column"; `notes` are sentences, one a line.
    """

    tables: Mapping[str, pa.Table]
    descriptions: Mapping[str, str]
    notes: tuple[str, ...]


def load(paths: Sequence[Path]) -> Imported:
    """The tables of one device profile.

    Raises ProfileError if the input is missing, damaged or of another kind, or needs AWS's tool and that is not there; UsageError
    for more than one profile at a time.
    """
    if capture.needs_tool(paths):
        with capture.exported(paths) as path:
            return load_json(path)
    if len(paths) != 1:
        raise UsageError(f"{len(paths)} files: a profile holds one device's run; import them one by one, each with its own -o")
    return load_json(paths[0])


def load_json(path: Path) -> Imported:
    """The tables of one JSON export. Raises ProfileError if it is not one."""
    losses = Losses()
    source, mended = read.document(path)
    made = tables.convert(source, losses)
    notes = (*mended, *losses.notes())
    if notes:
        warnings = pa.table({"message": pa.array(notes), "category": pa.array(["trnscope import"] * len(notes))})
        known = [made["Warning"]] if "Warning" in made else []
        made["Warning"] = pa.concat_tables([*known, warnings], promote_options="permissive")
    profile = Profile.from_tables(made)
    for name, table in (("OpcodeSummary", opcode_summary(profile)), ("ThrottleSummary", throttle_summary(profile))):
        if table is not None and name not in made:
            made[name] = table
    made = {name: table for name, table in made.items() if table.num_rows}
    return Imported(made, _descriptions(made), notes)


def _descriptions(made: Mapping[str, pa.Table]) -> dict[str, str]:
    found = {}
    published = schema.tables()
    for name, table in made.items():
        if name not in published:
            found[name] = "a table of neuron-profile's JSON that the schema has no place for"
        for column in table.column_names:
            if name not in published or published[name].column(column) is None:
                found[f"{name}.{column}"] = f"{_field(name, column)} of neuron-profile's JSON, which the schema has no column for"
    return found


def _field(table: str, column: str) -> str:
    renamed = {to: field for field, to in mapping.RENAMED.get(table, {}).items()}
    return renamed.get(column, column.removeprefix(schema.COLUMN_PREFIX))
