"""Read-only SQL over a profile's tables."""

from __future__ import annotations

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from explorer.store import schema
from explorer.store.errors import UsageError
from explorer.store.reader import Profile

_LOCK = (
    # Nothing is spilled into the folder that trnscope happens to run in: what does not fit into memory is an error.
    "temp_directory = ''",
    "enable_external_access = false",
    "python_enable_replacements = false",
    "lock_configuration = true",
)
#: Rows that DuckDB hands over at a time.
_BATCH_ROWS = 1 << 16


@dataclass(frozen=True, slots=True)
class Answer:
    """The rows that a statement gives, cut to the limit, and how many it gives in all."""

    rows: pa.Table
    total: int


def query(profile: Profile, sql: str, *, limit: int = 0) -> Answer:
    """What one SELECT gives, at most `limit` rows of it (0: all); the rest is counted and never held.

    Tables have their published names; those not captured do not exist. Only tables of the profile can be read: no files, no
    network, no extensions, no settings, one statement that selects. Raises UsageError on anything else and on faulty SQL,
    KeyboardInterrupt where it is interrupted.
    """
    import duckdb

    with duckdb.connect(":memory:") as connection:
        for name in profile.tables:
            connection.register(name, _lazy(profile, name))
        # Locked after registering: from here on no statement reaches files, the network, extensions or these settings.
        for setting in _LOCK:
            connection.execute(f"SET {setting}")
        try:
            statements = connection.extract_statements(sql)
            if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
                raise UsageError("query: give one SELECT statement; profiles are read-only")
            return _interruptibly(connection, functools.partial(_run, connection, statements[0].query, limit))
        except (duckdb.Error, pa.ArrowException) as error:
            raise UsageError(f"query: {_explain(profile, str(error))}") from error


def _interruptibly(connection: Any, work: Callable[[], Answer]) -> Answer:
    """What `work` gives. Beside the main thread, because DuckDB lets no Ctrl-C through while it makes rows."""
    with ThreadPoolExecutor(1) as beside:
        running = beside.submit(work)
        try:
            return running.result()
        except KeyboardInterrupt:
            connection.interrupt()
            raise


def _run(connection: Any, sql: str, limit: int) -> Answer:
    return _first(connection.sql(sql).to_arrow_reader(_BATCH_ROWS), limit)


def _first(reader: pa.RecordBatchReader, limit: int) -> Answer:
    kept: list[pa.RecordBatch] = []
    total = 0
    for batch in reader:
        kept += [batch.slice(0, limit - total)] if limit and total < limit else [] if limit else [batch]
        total += batch.num_rows
    return Answer(pa.Table.from_batches(kept, reader.schema), total)


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
    if line.startswith("Out of Memory Error"):
        return "the answer does not fit into memory; select fewer rows or columns, or aggregate"
    missing = next((n for n in profile.not_captured if f"table with name {n} ".lower() in line.lower()), None)
    return f"table {missing} is not captured in this profile; there are: {', '.join(profile.tables)}" if missing else line
