"""Reports: what they say, that hostile names cannot change how they render, and that what is not captured is said."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

import explorer.report
from explorer.commands import main
from explorer.report import json_, markdown, output
from explorer.report.build import build
from explorer.report.escape import code, prose, wrap
from explorer.store import writer
from explorer.store.reader import Profile
from explorer.text import safe
from tests import synthetic
from tests.unit.rules_tables import instruction, profile, tables, transfer

SCHEMA = json.loads((Path(explorer.report.__path__[0]) / "schemas" / "report.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
GITHUB = MarkdownIt("commonmark").enable(["table", "strikethrough"])
#: Text of what means something to Markdown, HTML or a table.
NASTY = st.text(st.sampled_from("\\|`*_<>[]()#-+=~&!:;/\"'.1ab \n\t\x1b\u202e"), min_size=1, max_size=40)


def faulty() -> Profile:
    """Float32 matmuls, then small instructions on few partitions."""
    rows = [instruction(i * 100, 100, "tensor", "MATMUL", raw_flops=10, adjusted_flops=40) for i in range(10)]
    rows += [instruction(1000 + i * 100, 100, ts_partitions=32, ts_free_elements=4, layer="/net/tail") for i in range(10)]
    return profile(rows, [transfer(0, 500, ts_instruction_id=1)])


def as_json(of: Profile, **options: Any) -> dict[str, Any]:
    """The JSON report as a reader of the file gets it, valid by the shipped schema."""
    answer: dict[str, Any] = json.loads(output.json_text(json_.render(build(of, **options))))
    VALIDATOR.validate(answer)
    return answer


# Markdown that names cannot change


@given(NASTY)
def test_code_shows_a_name_as_it_is(name: str) -> None:
    (paragraph,) = [t for t in GITHUB.parse(f"x {code(name)} y") if t.type == "inline"]
    assert paragraph.children is not None
    kinds = [child.type for child in paragraph.children]
    if not safe(name).strip(" "):
        assert kinds == ["text"]
        return
    assert kinds == ["text", "code_inline", "text"]
    assert paragraph.children[1].content == safe(name)


@given(NASTY, NASTY)
def test_a_name_stays_in_its_cell(first: str, second: str) -> None:
    text = f"| a | b |\n|---|---|\n| {code(first, cell=True)} | {code(second, cell=True)} |\n"
    tokens = GITHUB.parse(text)
    assert [t.type for t in tokens].count("td_open") == 2
    inside = {child.type for t in tokens if t.type == "inline" for child in t.children or ()}
    assert inside <= {"text", "code_inline"}
    # GitHub takes a backslash before any character with it, not only one before a pipe.
    row = text.splitlines()[2]
    assert len(re.findall(r"\|", re.sub(r"\\.", "", row))) == 3


@given(NASTY)
def test_prose_renders_as_itself(text: str) -> None:
    words = prose(text).split()
    rendered = GITHUB.parse("\n".join(wrap(["said", *words], "", "")))
    inline = [t for t in rendered if t.type == "inline"]
    assert [t.type for t in rendered] == ["paragraph_open", "inline", "paragraph_close"]
    children = inline[0].children or []
    assert {child.type for child in children} <= {"text", "softbreak"}
    shown = "".join(" " if child.type == "softbreak" else child.content for child in children)
    assert shown.split() == ["said", *safe(text).split()]


@given(st.lists(st.sampled_from(["-", "+", "1.", "23)", "#", "###", "---", "===", "word", "i+1", "a-b"]), min_size=1, max_size=60))
def test_wrapped_lines_never_begin_a_block(words: list[str]) -> None:
    lines = wrap(["start", *words], "- ", "  ", width=30)
    assert [t.type for t in GITHUB.parse("\n".join(lines))].count("bullet_list_open") == 1
    kinds = {t.type.removesuffix("_open").removesuffix("_close") for t in GITHUB.parse("\n".join(lines))}
    assert kinds == {"bullet_list", "list_item", "paragraph", "inline"}


def test_hostile_profiles_render_nothing_of_theirs() -> None:
    of = synthetic.profile(3000, seed=5, hostile=True)
    text = markdown.render(build(of, top=0))
    assert "\x1b" not in text and "\u202e" not in text and "\x00" not in text
    tokens = GITHUB.parse(text)
    kinds = {t.type for t in tokens} | {c.type for t in tokens for c in t.children or ()}
    assert not {"html_block", "html_inline", "link_open", "image", "fence", "code_block", "blockquote_open"} & kinds
    for header, rows in _tables(tokens):
        assert all(cells == header for cells in rows)
    assert max(len(line) for line in text.splitlines() if line.startswith("|")) <= 90


def _tables(tokens: list[Any]) -> list[tuple[int, list[int]]]:
    found: list[tuple[int, list[int]]] = []
    cells = 0
    for token in tokens:
        if token.type == "tr_open":
            cells = 0
        elif token.type in ("th_open", "td_open"):
            cells += 1
        elif token.type == "tr_close" and (not found or (token.level == 2 and _in_head(tokens, token))):
            found.append((cells, []))
        elif token.type == "tr_close":
            found[-1][1].append(cells)
    return found


def _in_head(tokens: list[Any], row: Any) -> bool:
    last = [t.type for t in tokens[: tokens.index(row)] if t.type in ("thead_open", "tbody_open")]
    return bool(last) and last[-1] == "thead_open"


# What a report says


def test_markdown_says_what_was_profiled_and_what_was_found() -> None:
    report = build(faulty())
    text = markdown.render(report)
    assert "**Emulated** on `trn2`" in text
    assert "easured" not in text.split("## Engines")[0].replace("nothing was measured", "").replace("was\nmeasured", "")
    assert report.rules.findings
    for number, found in enumerate(report.rules.findings, 1):
        assert f"\n{number}. **{found.severity}** " in text
        assert found.rule in text
    assert "`kernel.py:7`" in text
    assert "`/net/tail`" in text


def test_measured_is_never_called_emulated() -> None:
    given = tables([instruction(0, 100)])
    given["Metadata"] = given["Metadata"].set_column(
        given["Metadata"].column_names.index("is_simulation"), "is_simulation", pa.array([False])
    )
    text = markdown.render(build(Profile.from_tables(given)))
    assert "**Measured**" in text
    assert "mulated" not in text


def test_lines_fit_a_terminal_of_80_columns() -> None:
    text = markdown.render(build(faulty()))
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("name", ["matmul_unblocked", "matmul_blocked", "attention"])
def test_samples_fit_a_terminal_too(name: str) -> None:
    of = explorer.open(Path(__file__).parents[2] / "sample_traces" / name)
    lines = markdown.render(build(of)).splitlines()
    assert [line for line in lines if len(line) > 80 and not line.startswith(("- `Emulator`", "- profile:"))] == []


def test_json_has_the_findings_of_the_rules() -> None:
    of = faulty()
    answer, report = as_json(of), build(of)
    assert (answer["kind"], answer["evidence"], answer["format"]) == ("report", "emulated", 1)
    assert [f["rule"] for f in answer["findings"]] == [f.rule for f in report.rules.findings]
    assert [f["gain_ns"] for f in answer["findings"]] == sorted((f["gain_ns"] for f in answer["findings"]), reverse=True)
    assert all(f["gain_ns"] <= answer["lower_bound"]["headroom_ns"] for f in answer["findings"])
    assert all(isinstance(i, str) for f in answer["findings"] for i in f["where"]["instructions"])


@pytest.mark.parametrize(
    "table", ["Instruction", "DmaPacketAggregated", "Metadata", "TensorInfo", "FrameworkNode", "Summary", None]
)
def test_missing_tables_are_said(table: str | None) -> None:
    given = synthetic.tables(300, seed=1)
    given = {} if table is None else {name: rows for name, rows in given.items() if name != table}
    of = Profile.from_tables(given)
    answer, text = as_json(of), markdown.render(build(of))
    assert (table or "Instruction") in answer["not_captured"]
    assert "ot captured" in text
    assert "nan" not in text.lower().replace("attention", "") and "None" not in text
    if table in ("Instruction", None):
        assert answer["layers"] is None and answer["lines"] is None
        assert "Not captured: no instruction names its layer." in text
    if table in ("Metadata", None):
        assert answer["evidence"] == "unknown"
        assert "does not say whether" in " ".join(text.split())


@pytest.mark.parametrize("column", ["layer", "nki_source_location", "raw_flops", "engine", "duration_ns"])
def test_missing_columns_are_said(column: str) -> None:
    given = synthetic.tables(300, seed=1)
    given["Instruction"] = given["Instruction"].drop_columns([column])
    of = Profile.from_tables(given)
    answer = as_json(of)
    markdown.render(build(of))
    if column == "layer":
        assert answer["layers"] is None
    if column == "nki_source_location":
        assert answer["lines"] is None


def test_data_quality_and_mismatches_are_shown() -> None:
    given = tables([instruction(0, 100), instruction(50, 100)])
    given["Warning"] = pa.table({"message": ["events were <b>dropped</b>"], "category": ["Lost | events"]})
    text = markdown.render(build(Profile.from_tables(given)))
    assert "- `Lost | events`: `events were <b>dropped</b>`" in text


def test_source_text_comes_from_below_the_root_only(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text("\n" * 6 + "    nisa.nc_matmul(dst=sums)  # `|` <b>\n", encoding="utf-8")
    text = markdown.render(build(faulty(), source_root=tmp_path))
    assert "nisa.nc_matmul(dst=sums)" in text
    assert GITHUB.render(text).count("<b>") == 0
    assert "nc_matmul" not in markdown.render(build(faulty()))


def test_ten_thousand_layers_stay_under_the_limit() -> None:
    rows = [instruction(i * 10, 10, layer=f"/net/{'deep' * 10}/block_{i}", nki_source_location=f"k.py:{i}") for i in range(10_000)]
    report = build(profile(rows), top=0)
    text = markdown.render(report)
    assert len(text.encode()) <= markdown.MAX_BYTES
    cut = markdown.render(report, max_bytes=50_000)
    assert len(cut.encode()) <= 50_000
    last = cut.splitlines()[-1]
    left, total = (int(n.replace(",", "")) for n in re.findall(r"([\d,]+) of ([\d,]+) lines", last)[0])
    assert last.startswith("**Truncated**")
    assert total == len(markdown.render(report, max_bytes=10_000_000).splitlines())
    assert total - left == len(cut.splitlines()) - 2
    assert len(json_.render(report)["layers"]) == report.layers_total > 10_000


def test_what_is_cut_from_lists_is_said() -> None:
    text = markdown.render(build(faulty(), top=1))
    assert "1 of 3 layers, longest first; --limit 0 for all." in text


def test_lines_that_are_left_out_are_summed() -> None:
    of = synthetic.profile(200)
    assert "| other " in markdown.render(build(of, top=1)) and "| other " not in markdown.render(build(of, top=0))
    whole, cut = as_json(of, top=0), as_json(of, top=1)
    assert whole["other_lines"] is None
    assert cut["other_lines"]["instructions"] == sum(line["instructions"] for line in whole["lines"][1:])


# The command


@pytest.fixture
def written(tmp_path: Path) -> Path:
    path = tmp_path / "profile"
    writer.write(path, tables([instruction(i * 100, 90, ts_partitions=32) for i in range(20)], [transfer(0, 500)]))
    return path


def test_markdown_is_printed(written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(written)]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("# trnscope report")
    assert not err


@pytest.mark.parametrize("options", [["--json"], ["--format", "json"]])
def test_json_is_printed(written: Path, capsys: pytest.CaptureFixture[str], options: list[str]) -> None:
    assert main(["report", str(written), *options]) == 0
    VALIDATOR.validate(json.loads(capsys.readouterr().out))


def test_a_file_is_written_whole_and_never_over_another(written: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "report.md"
    assert main(["report", str(written), "-o", str(target)]) == 0
    assert target.read_text(encoding="utf-8").startswith("# trnscope report")
    target.write_text("mine", encoding="utf-8")
    assert main(["report", str(written), "-o", str(target)]) == 2
    assert target.read_text(encoding="utf-8") == "mine"
    assert "--force" in capsys.readouterr().err
    assert main(["report", str(written), "-o", str(target), "--force", "--format", "json"]) == 0
    VALIDATOR.validate(json.loads(target.read_text(encoding="utf-8")))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["profile", "report.md"]


def test_no_profile_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "report.md"
    assert main(["report", str(tmp_path / "none"), "-o", str(target)]) == 3
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "no such profile" in err
    assert not target.exists()


def test_a_report_imports_no_terminal_interface_and_no_framework(written: Path) -> None:
    program = (
        "import sys; from explorer.commands import main; code = main(sys.argv[1:]);"
        "unwanted = {'textual', 'torch', 'jax', 'duckdb', 'numba', 'perfetto'} & set(sys.modules);"
        "print(*sorted(unwanted), file=sys.stderr); sys.exit(code)"
    )
    ran = subprocess.run([sys.executable, "-c", program, "report", str(written)], capture_output=True, text=True, check=False)
    assert ran.returncode == 0
    assert ran.stderr.strip() == ""
    assert ran.stdout.startswith("# trnscope report")
