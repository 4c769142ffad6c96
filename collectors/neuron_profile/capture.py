"""Raw captures (NEFF with NTFF, or a folder of them): exported to JSON by AWS's tool, which alone can read them."""

from __future__ import annotations

import contextlib
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from explorer.store.errors import ProfileError, UsageError

#: Newest first; both take the same `view` options (aws-neuron-sdk tools/neuron-explorer/migration-faq.rst).
TOOLS = ("neuron-explorer", "neuron-profile")
_RAW = (".neff", ".ntff", ".pb")


def needs_tool(paths: Sequence[Path]) -> bool:
    """Whether these are files that only AWS's tool reads: a folder, or a NEFF, NTFF or .pb file."""
    return any(p.is_dir() or p.suffix.lower() in _RAW for p in paths)


@contextlib.contextmanager
def exported(paths: Sequence[Path]) -> Iterator[Path]:
    """The JSON that AWS's tool makes of a NEFF and an NTFF, given as two files or as a folder; gone when the context ends.

    Raises ProfileError if a file is missing or of the wrong kind, if the tool is not on PATH (with the command to run where it is),
    or if it fails (with its last line); UsageError if it is not clear which NEFF and NTFF are meant.
    """
    neff, ntff = _pair(paths)
    version = ntff_version(ntff)
    tool = next((t for t in TOOLS if shutil.which(t)), None)
    if tool is None:
        raise ProfileError(
            f"{ntff}: NTFF version {version} with {neff.name}: only AWS's tool reads these, and {TOOLS[0]} is not on PATH;"
            f" where it is, run `{shlex.join(_command(TOOLS[0], neff, ntff, Path('profile.json')))}`"
            " and then `trnscope import profile.json -o PROFILE`"
        )
    with tempfile.TemporaryDirectory(prefix="trnscope-") as scratch:
        target = Path(scratch) / "profile.json"
        command = _command(tool, neff, ntff, target)
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False)
        except OSError as error:
            raise ProfileError(f"{ntff}: {tool} cannot be run: {error.strerror}") from error
        if done.returncode != 0 or not target.is_file():
            said = [line.strip() for line in (done.stderr + "\n" + done.stdout).splitlines() if line.strip()]
            last = said[-1] if said else "it said nothing"
            raise ProfileError(f"{ntff}: {tool} could not export it (NTFF version {version}, exit {done.returncode}): {last}")
        yield target


def ntff_version(path: Path) -> int:
    """The format version of an NTFF: its first byte. Raises ProfileError if the file cannot be one."""
    try:
        with path.open("rb") as file:
            head = file.read(128)
    except OSError as error:
        raise ProfileError(f"{path}: cannot be read: {error.strerror}") from error
    if len(head) < 128:
        raise ProfileError(f"{path}: {'empty' if not head else 'cut off'}: an NTFF starts with 128 bytes; capture or copy it again")
    # The length of the message after the head, in the versions whose layout is known (4 and 5).
    length = int.from_bytes(head[1:9], "little") if head[0] in (4, 5) else 0
    if head[0] == 0 or 128 + length > path.stat().st_size:
        raise ProfileError(f"{path}: not a whole NTFF; capture or copy it again")
    return head[0]


def _command(tool: str, neff: Path, ntff: Path, target: Path) -> list[str]:
    return [tool, "view", "-n", str(neff), "-s", str(ntff), "--output-format", "json", "--output-file", str(target)]


def _pair(paths: Sequence[Path]) -> tuple[Path, Path]:
    files: list[Path] = []
    for path in paths:
        if not path.exists():
            raise ProfileError(f"{path}: no such file or folder")
        files.extend(sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path])
    where = paths[0] if len(paths) == 1 else f"{len(paths)} files"
    found = {suffix: [f for f in files if f.suffix.lower() == suffix] for suffix in (*_RAW, ".json", ".parquet")}
    if found[".parquet"] and not found[".ntff"]:
        folder = found[".parquet"][0].parent
        raise ProfileError(f"{where}: holds Parquet tables, which open as they are: `trnscope info {shlex.quote(str(folder))}`")
    if not found[".ntff"] or not found[".neff"]:
        raise ProfileError(f"{where}: a device profile needs a NEFF and an NTFF; found {_kinds(found, files)}{_half(found)}")
    if len(found[".neff"]) > 1 or len(found[".ntff"]) > 1:
        raise UsageError(f"{where}: {_kinds(found, files)}; give one NEFF and one NTFF: `trnscope import A.neff A.ntff -o PROFILE`")
    return found[".neff"][0], found[".ntff"][0]


def _half(found: dict[str, list[Path]]) -> str:
    """What is there of the pair, and the command that the whole pair would need."""
    neff, ntff = (next(iter(found[suffix]), None) for suffix in (".neff", ".ntff"))
    if neff is None and ntff is None:
        return ""
    version = f" (NTFF version {ntff_version(ntff)})" if ntff else ""
    command = shlex.join(_command(TOOLS[0], neff or Path("FILE.neff"), ntff or Path("FILE.ntff"), Path("profile.json")))
    return f"{version}; with both, run `{command}` and then `trnscope import profile.json -o PROFILE`"


def _kinds(found: dict[str, list[Path]], files: Sequence[Path]) -> str:
    parts = [f"{len(f)} {suffix}" for suffix, f in found.items() if f]
    others = len(files) - sum(len(f) for f in found.values())
    return ", ".join(parts + ([f"{others} other"] if others else [])) or "no file"
