"""Rows of neuron-profile's JSON become tables of schema 7.4.0."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from collectors.neuron_profile import mapping
from collectors.neuron_profile.columns import INT64, Losses, column, inferred, storable
from collectors.neuron_profile.read import Document
from explorer.store import schema

Rows = Sequence[Mapping[str, Any]]


def target_column(table: str, field: str) -> str:
    """The column that a JSON field has in `table`: published, renamed, or `ts_<field>`; its own name in tables of ours."""
    renamed = mapping.RENAMED.get(table, {}).get(field)
    if renamed:
        return renamed
    field = storable(field)
    spec = schema.tables().get(table)
    return field if spec is None or spec.column(field) else f"{schema.COLUMN_PREFIX}{field}"


def own_table(json_table: str) -> str:
    """The table for a JSON table that the mapping does not know: the published one of that name (`cc_op`: CcOp), else `Ts...`."""
    words = re.findall(r"[A-Za-z0-9]+", json_table)
    plain = "".join(words).lower()
    published = next((name for name in schema.tables() if name.lower() == plain), None)
    return published or schema.TABLE_PREFIX + "".join(w[0].upper() + w[1:] for w in words)


def destinations(json_table: str) -> tuple[str, ...]:
    """The tables that rows of a JSON table with one or several destinations can go to; the combined ones are not here."""
    if json_table in mapping.SPLIT:
        return (*mapping.SPLIT[json_table][1].values(), own_table(json_table))
    return (mapping.TABLES.get(json_table, own_table(json_table)),)


def convert(source: Document, losses: Losses) -> dict[str, pa.Table]:
    """All tables of a document, those without rows included; what did not fit its type is counted in `losses`."""
    tables: dict[str, pa.Table] = {}
    for json_table, rows in source.items():
        if json_table in mapping.DROPPED or json_table in mapping.COMBINED:
            continue
        for name, part in _shares(json_table, rows).items():
            built = build(json_table, name, part, losses, mapping.TO_FLOW if name == "Instruction" else ())
            # Two names of a future version may differ in punctuation only.
            tables[name] = pa.concat_tables([tables[name], built], promote_options="permissive") if name in tables else built
    tables.update(_usage(source.get("dma_throughput", []), losses))
    tables.update(_head(source, losses))
    for name in ("Instruction", "DmaPacket", "DmaPacketAggregated"):
        if name in tables:
            tables[name] = _with_end(name, tables[name], losses)
    if "Instruction" in tables:
        tables["Instruction"] = _with_flops(_with_framework_id(tables["Instruction"]))
        tables["Flow"] = _flows(source.get("instruction", []), tables, losses)
    if "Throttle" in tables:
        tables["Throttle"] = _with_throttle_type(tables["Throttle"])
    return tables


def build(json_table: str, table: str, rows: Rows, losses: Losses, leave_out: Iterable[str] = ()) -> pa.Table:
    """One table from the rows: every field of any row becomes a column, except those in `mapping.DROPPED` or `leave_out`."""
    spec = schema.tables().get(table)
    columns: dict[str, pa.Array] = {}
    for field in dict.fromkeys(f for row in rows for f in row):
        where = f"{json_table}.{field}"
        # A row that went to a table of ours because of this field's value keeps the value.
        if field in leave_out or (where in mapping.DROPPED and not table.startswith(schema.TABLE_PREFIX)):
            continue
        name = target_column(table, field)
        if name in columns:
            name = f"{schema.COLUMN_PREFIX}{storable(field)}"
        values = [row.get(field) for row in rows]
        known = spec.column(name) if spec else None
        declared = mapping.TYPES.get(f"{table}.{name}")
        kind = known.arrow if known else _DECLARED[declared] if declared else inferred(values)
        if known and known.enum:
            values = _in_enum(values, schema.enums()[known.enum], name, columns)
        if field == "raw_framework_id" and table == "Instruction":
            name, kind = "ts_raw_framework_ids", pa.list_(pa.int64())
        columns[name] = column(where, values, kind, losses, mapping.SENTINELS.get(where))
    return pa.table(columns)


_DECLARED = {"boolean": pa.bool_(), "integer (int64)": pa.int64()}


def _shares(json_table: str, rows: Rows) -> dict[str, Rows]:
    if json_table not in mapping.SPLIT:
        return {mapping.TABLES.get(json_table, own_table(json_table)): rows}
    field, by_value = mapping.SPLIT[json_table]
    rest = own_table(json_table)
    shares: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        shares.setdefault(by_value.get(str(row.get(field)), rest), []).append(row)
    return dict(shares)


def _in_enum(values: Sequence[Any], allowed: Sequence[str], name: str, columns: dict[str, pa.Array]) -> list[Any]:
    """The values, those outside the enum as "unknown"; what they were is kept in a `ts_` column."""
    strange = [v if v not in (None, "", *allowed) else None for v in values]
    if not any(v is not None for v in strange):
        return list(values)
    columns[f"{schema.COLUMN_PREFIX}{name}"] = pa.array([None if v is None else str(v) for v in strange], pa.string())
    return ["unknown" if s is not None else v for v, s in zip(values, strange, strict=True)]


def _with_end(name: str, table: pa.Table, losses: Losses) -> pa.Table:
    """With `end_ts`. A negative duration is a run that never ended: its start stays, its duration and end are null."""
    if "end_ts" in table.column_names or not {"start_ts", "duration_ns"} <= set(table.column_names):
        return table
    duration = table["duration_ns"]
    ended = pc.fill_null(pc.greater_equal(duration, 0), True)
    for value in duration.filter(pc.invert(ended)).to_pylist():
        losses.add(f"{name}.duration_ns", value)
    duration = pc.if_else(ended, duration, None)
    table = table.set_column(table.column_names.index("duration_ns"), "duration_ns", duration)
    return table.append_column("end_ts", pc.add(table["start_ts"], duration))


def _with_framework_id(table: pa.Table) -> pa.Table:
    """Lists of one id, which is all that has been seen, become the schema's column; longer ones stay a list of ours."""
    name = "ts_raw_framework_ids"
    if name not in table.column_names:
        return table
    ids = table[name]
    single = pc.equal(pc.list_value_length(ids), 1)
    first = pa.array([v[0] if v and len(v) == 1 else None for v in ids.to_pylist()], pa.int64())
    table = table.append_column("raw_framework_id", first)
    return table.drop_columns([name]) if pc.all(single).as_py() is not False else table


def _with_flops(table: pa.Table) -> pa.Table:
    """`raw_flops`: two for each multiply-add of a MATMUL (AWS's definition of hardware_flops); transposes also on their own."""
    if "tensor_elements" not in table.column_names or "raw_flops" in table.column_names:
        return table
    elements = table["tensor_elements"]
    flops = pc.multiply(elements, 2)
    kind = (
        table["tensor_instruction_type"] if "tensor_instruction_type" in table.column_names else pa.nulls(len(table), pa.string())
    )
    transpose = pc.fill_null(pc.equal(kind, "TRANSPOSE"), False)
    for name, values in (("raw_flops", flops), ("tensor_elements_transpose", elements), ("flops_transpose", flops)):
        only = values if name == "raw_flops" else pc.if_else(transpose, values, pc.multiply(values, 0))
        table = table.append_column(name, only)
    return table


def _with_throttle_type(table: pa.Table) -> pa.Table:
    codes = table["ts_type_code"].to_pylist() if "ts_type_code" in table.column_names else [None] * len(table)
    names = [None if c is None else mapping.THROTTLE_TYPES.get(c, f"code {c}") for c in codes]
    return table.append_column("type", pa.array(names, pa.string()))


def _usage(rows: Rows, losses: Losses) -> dict[str, pa.Table]:
    """DmaUsage with every field; HbmUsage from the rows that say they know the HBM's share."""
    hbm = [r for r in rows if str(r.get("uses_hbm")).lower() in ("true", "yes")]
    tables = {"DmaUsage": build("dma_throughput", "DmaUsage", rows, losses)}
    fields = ("timestamp", *mapping.RENAMED["HbmUsage"])
    tables["HbmUsage"] = build("dma_throughput", "HbmUsage", [{f: r.get(f) for f in fields} for r in hbm], Losses())
    return tables


def _head(source: Document, losses: Losses) -> dict[str, pa.Table]:
    """Metadata, ExecutionInfo and the source's own Summary."""
    summaries = source.get("summary", [])
    first: dict[str, dict[str, Any]] = {t: dict(source.get(t, [{}])[0] if source.get(t) else {}) for t in mapping.COMBINED}
    of_capture = {f: first["summary"][f] for f in mapping.SUMMARY_TO_METADATA if f in first["summary"]}
    neff = first["profile_info"].pop("neff_name", None)
    subgraphs = first["metadata"].pop("num_subgraphs", None)
    parts = [
        build(t, "Metadata", [fields], losses)
        for t, fields in (("metadata", first["metadata"]), ("profile_info", first["profile_info"]), ("summary", of_capture))
    ]
    merged: dict[str, Any] = {"profile_schema_version": pa.array([schema.VERSION])}
    for part in parts:
        merged.update({n: part[n] for n in part.column_names if n not in merged})
    if "neuroncore_clock_freq" in merged:
        # The field is called pe_clock_others: the clock of everything but the Tensor Engine.
        for engine in ("vector", "scalar", "gpsimd"):
            merged[f"{engine}_engine_clock_freq"] = merged["neuroncore_clock_freq"]
    execution = {
        "execution_index": pa.array([0], pa.int32()),
        "neff_name": column("profile_info.neff_name", [neff], pa.string(), losses),
        "num_subgraphs": column("metadata.num_subgraphs", [subgraphs], pa.int32(), losses),
    }
    summary = build("summary", "Summary", summaries, losses, leave_out=mapping.SUMMARY_TO_METADATA)
    return {"Metadata": pa.table(merged), "ExecutionInfo": pa.table(execution), "Summary": summary}


def _flows(instructions: Rows, tables: Mapping[str, pa.Table], losses: Losses) -> pa.Table:
    """One row per predecessor; `gap_time` is the consumer's start minus the producer's end."""
    ends: dict[int, tuple[str, int | None]] = {}
    for name in ("DmaPacket", "DmaPacketAggregated", "Instruction"):
        if name in tables and {"id", "end_ts"} <= set(tables[name].column_names):
            rows = zip(tables[name]["id"].to_pylist(), tables[name]["end_ts"].to_pylist(), strict=True)
            ends.update((i, (name, end)) for i, end in rows if i is not None)
    flows: list[tuple[Any, ...]] = []
    # Read once more and not taken from the table, which may have rows of another JSON table too; losses are counted there.
    consumers, starts = (
        column(f"instruction.{f}", [row.get(f) for row in instructions], pa.int64(), Losses()).to_pylist()
        for f in ("id", "timestamp")
    )
    for row, consumer, start in zip(instructions, consumers, starts, strict=True):
        edges = row.get("predecessors") or []
        for edge in edges if isinstance(edges, list) else (edges,):
            if not _is_edge(edge):
                losses.add("instruction.predecessors", edge)
                continue
            table, end = ends.get(edge["id"], (None, None))
            gap = start - end if start is not None and end is not None else None
            flows.append((edge["id"], consumer, table, "Instruction", edge.get("type"), gap))
    spec = schema.tables()["Flow"]
    return pa.table({c.name: pa.array([flow[i] for flow in flows], c.arrow) for i, c in enumerate(spec.columns)})


def _is_edge(edge: object) -> bool:
    """Whether this is a predecessor as neuron-profile writes it: an id of 64 bits, and perhaps a type."""
    if not isinstance(edge, dict) or set(edge) - {"id", "type"}:
        return False
    ident, kind = edge.get("id"), edge.get("type")
    return isinstance(ident, int) and not isinstance(ident, bool) and ident in INT64 and (kind is None or isinstance(kind, str))
