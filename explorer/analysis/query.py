"""Read-only SQL over a profile's tables."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from explorer.store import schema
from explorer.store.errors import UsageError
from explorer.store.reader import Profile


def query(profile: Profile, sql: str) -> pa.Table:
    """What one SELECT gives, as Arrow. Tables have their published names; those not captured do not exist.

    Only tables of the profile can be read: no files, no network, no extensions, no settings, one statement that selects.
    Raises UsageError on anything else and on faulty SQL.
    """
    import duckdb

    with duckdb.connect(":memory:") as connection:
        for name in profile.tables:
            connection.register(name, _lazy(profile, name))
        # Locked after registering: from here on no statement reaches files, the network, extensions or these settings.
        for setting in ("enable_external_access = false", "python_enable_replacements = false", "lock_configuration = true"):
            connection.execute(f"SET {setting}")
        try:
            statements = connection.extract_statements(sql)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                raise UsageError("query: give one SELECT statement; profiles are read-only")
            return connection.sql(statements[0].query).to_arrow_table()
        except duckdb.Error as error:
            raise UsageError(f"query: {_explain(profile, str(error))}") from error


def _lazy(profile: Profile, name: str) -> Any:
    files = profile.files(name)
    if not files:
        return profile.table(name)
    import pyarrow.dataset as ds

    # Only what a statement asks for is read; published columns keep their published type.
    whole = ds.dataset([str(f) for f in files], format="parquet")
    return whole if all(_as_published(name, field) for field in whole.schema) else profile.table(name)


def _as_published(name: str, field: pa.Field) -> bool:
    spec = schema.tables().get(name)
    column = spec.column(field.name) if spec else None
    return column is None or column.arrow == field.type


def _explain(profile: Profile, message: str) -> str:
    line = " ".join(message.split("LINE ")[0].split())
    missing = next((n for n in profile.not_captured if f"Table with name {n} " in line), None)
    return f"table {missing} is not captured in this profile; there are: {', '.join(profile.tables)}" if missing else line
