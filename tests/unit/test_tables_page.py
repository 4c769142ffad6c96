"""docs/tables.md says of every table who writes it, and says it rightly of captures."""

from __future__ import annotations

from pathlib import Path

from explorer.store import schema
from tests.unit import collect_program

PAGE = Path(__file__).parents[2] / "docs" / "tables.md"


def _listed() -> dict[str, list[str]]:
    cells = [
        [c.strip() for c in line.split("|")[1:-1]]
        for line in PAGE.read_text(encoding="utf-8").splitlines()
        if line.startswith("| ")
    ]
    return {row[0]: row[1:] for row in cells if row[0] in schema.tables()}


def test_every_published_table_is_listed_with_a_reason_where_it_is_not_written() -> None:
    listed = _listed()
    assert sorted(listed) == sorted(schema.tables())
    for name, (capture, imported, why) in listed.items():
        assert capture in ("yes", "no", "not yet") and imported in ("yes", "no"), name
        assert capture == "yes" or len(why) > 10, name


def test_what_a_capture_writes_is_what_the_page_says() -> None:
    written = {*collect_program.captured().tables, "SchemaFields"}
    assert {name for name, (capture, *_) in _listed().items() if capture == "yes"} == written
