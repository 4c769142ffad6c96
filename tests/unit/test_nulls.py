"""Required columns without values are exactly those on the list of their collector."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from collectors import neuron_profile
from explorer.store import nulls, schema
from explorer.store.writer import conform
from tests.unit import collect_program

DATA = Path(__file__).parents[2].parent / "shared" / "data" / "neuron_profile"


def hold(tables: Mapping[str, pa.Table], collector: str) -> None:
    """Fail on a null without a listed reason, and on a listed column that has values."""
    listed = {(n.table, n.column): n for n in nulls.NULLS[collector]}
    for name, found in tables.items():
        if name not in schema.tables():
            continue
        conformed = conform(name, found)
        for column in schema.tables()[name].required:
            missing, entry = conformed[column].null_count, listed.get((name, column))
            assert missing == 0 or entry is not None, f"{name}.{column} has nulls and no reason"
            if entry is not None and entry.always:
                assert missing == conformed.num_rows, f"{name}.{column} is listed as null and has values"


@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
def test_captures_have_the_listed_nulls(target: str) -> None:
    hold(collect_program.captured(target).tables, "nki")


def test_imported_profiles_have_the_listed_nulls() -> None:
    files = sorted(DATA.glob("*.json"))
    if not files:
        pytest.skip(f"no profiles of real hardware in {DATA}")
    for file in files:
        hold(neuron_profile.load([file]).tables, "neuron_profile")


def test_every_entry_is_a_required_column_with_a_reason() -> None:
    for collector, listed in nulls.NULLS.items():
        assert len({(n.table, n.column) for n in listed}) == len(listed)
        for entry in listed:
            column = schema.tables()[entry.table].column(entry.column)
            assert column is not None and column.required, f"{collector}: {entry.table}.{entry.column}"
            assert len(entry.reason) > 10
