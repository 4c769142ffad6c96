"""The command line as a shell sees it: what goes where, exit codes, pipes, faulty calls."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from importlib import resources
from pathlib import Path

import jsonschema
import pytest

from explorer.commands import VERBS
from explorer.store import writer
from tests import synthetic

LISTINGS = ("info", "summary", "layers", "source", "instructions")


@pytest.fixture(scope="module")
def profile(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("cli") / "p"
    writer.write(path, synthetic.tables(300))
    return str(path)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("cli") / "hostile"
    writer.write(path, synthetic.tables(300, hostile=True))
    return str(path)


def trnscope(*arguments: str, text: bool = True) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", "import sys; from explorer.commands import main; sys.exit(main())", *arguments],
        capture_output=True,
        text=text,
        timeout=120,
    )


def test_help_names_every_verb_and_its_own() -> None:
    done = trnscope("--help")
    assert done.returncode == 0 and done.stderr == ""
    for verb in VERBS:
        assert re.search(rf"^    {verb}\b", done.stdout, re.M)


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_every_verb_explains_itself(verb: str) -> None:
    done = trnscope(verb, "--help")
    assert done.returncode == 0, done.stderr
    assert f"trnscope {verb}" in done.stdout


@pytest.mark.parametrize("verb", LISTINGS)
def test_listings_print_text_and_one_json_object(verb: str, profile: str) -> None:
    shown = trnscope(verb, profile)
    assert shown.returncode == 0, shown.stderr
    assert "emulated" in shown.stdout and "\x1b" not in shown.stdout and shown.stderr == ""
    answered = trnscope(verb, profile, "--json")
    answer = json.loads(answered.stdout)
    assert (answer["tool"], answer["kind"], answer["format"], answer["profile"], answer["evidence"]) == (
        "trnscope",
        verb,
        1,
        profile,
        "emulated",
    )
    assert isinstance(answer["warnings"], list) and "CcOp" in answer["not_captured"]


@pytest.mark.parametrize(
    ("verb", "rest"), [*((v, ()) for v in LISTINGS), ("query", ("SELECT id, layer FROM Instruction",)), ("explain", ())]
)
def test_json_answers_follow_their_schemas(verb: str, rest: tuple[str, ...], profile: str, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    writer.write(bare, {"Metadata": synthetic.tables(5)["Metadata"]})
    schema = json.loads(resources.files("explorer.report").joinpath("schemas", f"{verb}.json").read_text())
    checker = jsonschema.Draft202012Validator(schema)
    for path in (profile, str(bare)):
        if verb == "query" and path != profile:
            continue
        arguments = (verb, "hfu_estimated_percent", path) if verb == "explain" else (verb, path, *rest)
        done = trnscope(*arguments, "--json")
        assert done.returncode == 0, done.stderr
        assert [e.message for e in checker.iter_errors(json.loads(done.stdout))] == []


def test_the_schema_verb_follows_its_schema() -> None:
    schema = json.loads(resources.files("explorer.report").joinpath("schemas", "schema.json").read_text())
    for rest in ((), ("Instruction",)):
        jsonschema.validate(json.loads(trnscope("schema", *rest, "--json").stdout), schema)


@pytest.mark.parametrize("verb", LISTINGS)
def test_names_are_data(verb: str, hostile: str) -> None:
    done = trnscope(verb, hostile)
    assert done.returncode == 0, done.stderr
    assert not {c for c in done.stdout if c in "\x1b\x07\x00\r\t\u202e"}


def test_cut_rows_say_so(profile: str) -> None:
    assert "3 of 300; --limit 0 for all" in trnscope("instructions", profile, "--limit", "3").stdout
    assert "--limit" not in trnscope("instructions", profile, "--limit", "0").stdout
    answer = json.loads(trnscope("query", profile, "SELECT id FROM Instruction", "--limit", "2", "--json").stdout)
    assert (answer["rows_total"], answer["rows_shown"], len(answer["rows"])) == (300, 2, 2)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((), 2),
        (("frobnicate",), 2),
        (("info",), 2),
        (("info", "{profile}", "--nope"), 2),
        (("info", "{missing}"), 3),
        (("layers", "{file}"), 3),
        (("layers", "{empty}"), 3),
        (("instructions", "{profile}", "--at", "5..1"), 2),
        (("instructions", "{profile}", "--at", "soon"), 2),
        (("instructions", "{profile}", "--limit", "-1"), 2),
        (("layers", "{profile}", "--depth", "-1"), 2),
        (("info", "{profile}", "{profile}"), 2),
        (("instructions", "{profile}", "--engine", "warp"), 2),
        (("query", "{profile}", "DROP TABLE Instruction"), 2),
        (("schema", "Instruktion"), 2),
        (("source", "{profile}", "--source-root", "{missing}"), 2),
        (("report", "{profile}", "--source-root", "{file}"), 2),
        (("tui", "{profile}", "--source-root", "{missing}"), 2),
        (("source", "{profile}", "--file", "none.py"), 2),
        (("explain", "mfu", "{profile}"), 2),
        (("summary", "{cut}"), 3),
    ],
)
def test_faulty_calls_get_one_line_and_their_code(arguments: tuple[str, ...], code: int, profile: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty").mkdir()
    writer.write(tmp_path / "cut", synthetic.tables(50))
    table = tmp_path / "cut" / "Instruction.parquet"
    table.write_bytes(table.read_bytes()[:1000])
    places = {"profile": profile, "missing": "none", **{n: str(tmp_path / n) for n in ("file", "empty", "cut")}}
    done = trnscope(*(a.format(**places) for a in arguments))
    assert done.returncode == code, done.stderr
    assert done.stdout == "" and "Traceback" not in done.stderr
    assert done.stderr.startswith("trnscope: ") and done.stderr.count("\n") == 1
    if "{file}" not in arguments:
        answered = trnscope(*(a.format(**places) for a in arguments), "--json")
        schema = json.loads(resources.files("explorer.report").joinpath("schemas", "error.json").read_text())
        answer = json.loads(answered.stdout)
        jsonschema.validate(answer, schema)
        assert (answer["exit_code"], answered.returncode) == (code, code) and answered.stderr.count("\n") == 1


def test_suggestions_for_what_is_nearly_right(profile: str) -> None:
    assert "Instruction" in trnscope("schema", "Instruktion").stderr
    assert "MATMUL" in trnscope("instructions", profile, "--opcode", "MATMULT").stderr


def test_a_reader_that_has_seen_enough_is_no_error(profile: str) -> None:
    run = "import sys; from explorer.commands import main; sys.exit(main())"
    with subprocess.Popen(
        [sys.executable, "-c", run, "instructions", profile, "--limit", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as child:
        assert child.stdout is not None and child.stderr is not None
        child.stdout.readline()
        child.stdout.close()
        assert child.stderr.read() == b""
        assert child.wait(60) == 0


def test_an_interrupted_query_ends_at_once_and_quietly(profile: str) -> None:
    sql = "SELECT count(*) FROM Instruction a, Instruction b, Instruction c, Instruction d, Instruction e WHERE a.id + e.id > 3"
    run = "import sys; from explorer.commands import main; print('ready', flush=True); sys.exit(main())"
    with subprocess.Popen(
        [sys.executable, "-c", run, "query", profile, sql], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None and child.stdout.readline() == "ready\n"
        time.sleep(2)
        assert child.poll() is None, "the query was to outlast the wait"
        child.send_signal(signal.SIGINT)
        assert (*child.communicate(timeout=60), child.returncode) == ("", "", 130)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_gets_one_line(profile: str) -> None:
    run = "import sys; from explorer.commands import main; sys.exit(main())"
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-c", run, "info", profile], stdout=full, stderr=subprocess.PIPE, text=True, timeout=120
        )
    assert done.returncode == 3 and done.stderr.count("\n") == 1 and "space" in done.stderr


def test_reading_verbs_import_no_terminal_interface_and_no_framework(profile: str) -> None:
    script = (
        "import sys\nfrom explorer.commands import main\n"
        f"for verb in {LISTINGS!r}: main([verb, {profile!r}])\n"
        "heavy = {'textual', 'torch', 'jax', 'duckdb', 'numba'}\n"
        "print(sorted({m.split('.')[0] for m in sys.modules} & heavy), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert done.stderr.strip() == "[]"


def test_interrupted_while_it_loads_it_says_nothing() -> None:
    script = "import os, signal\nimport explorer.__main__\nos.kill(os.getpid(), signal.SIGINT)\nimport time; time.sleep(5)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert done.returncode == -signal.SIGINT and done.stderr == "", "shells call this 130"


def test_what_matches_nothing_is_said(profile: str) -> None:
    done = trnscope("instructions", profile, "--line", "nowhere.py:1")
    assert done.returncode == 0 and "no instruction matches" in done.stdout


def test_the_package_loads_arrow_only_when_asked() -> None:
    script = "import sys, explorer\nassert 'pyarrow' not in sys.modules\nexplorer.open\nassert 'pyarrow' in sys.modules"
    assert subprocess.run([sys.executable, "-c", script], timeout=60).returncode == 0


@pytest.mark.parametrize("verb", ["layers", "source", "instructions"])
def test_a_missing_table_is_not_taken_for_instructions_without_names(verb: str, tmp_path: Path) -> None:
    writer.write(tmp_path / "bare", {"Metadata": synthetic.tables(5)["Metadata"]})
    done = trnscope(verb, str(tmp_path / "bare"))
    assert done.returncode == 0 and "not captured" in done.stdout
    assert "no instruction names" not in done.stdout
