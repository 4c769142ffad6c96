"""Output files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import glob
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from explorer.store.errors import ProfileError, UsageError


@contextlib.contextmanager
def whole_file(path: Path, *, force: bool) -> Iterator[IO[bytes]]:
    """A file to write to, which gets the name `path` when the block ends without an exception, complete and on disk.

    Raises UsageError if `path` exists and `force` is not set, is no regular file, or has a name that a profile would take for a
    table; ProfileError if it cannot be written. Whatever happens, no part of the file is left, and an older one of that name stays
    until the new one is complete.
    """
    if path.is_dir() or (path.exists() and not path.is_file()):
        raise UsageError(f"{path}: is not a file; give another -o")
    if path.suffix == ".parquet":
        # --force would put text or a trace in the place of a profile's table, and the profile would be lost.
        raise UsageError(f"{path}: has the name of a profile's table, and nothing written here is one; give another -o")
    if path.exists() and not force:
        raise UsageError(f"{path}: exists already; give another -o, or --force to replace it")
    beside = path.with_name(f".{path.name}.{os.getpid()}.partial")
    _sweep(path)
    try:
        with beside.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        _sync(path.parent)
    except OSError as error:
        raise ProfileError(f"{path}: cannot be written: {error.strerror or error}; nothing was written") from error
    finally:
        beside.unlink(missing_ok=True)


def _sweep(path: Path) -> None:
    """Remove what writers of that file left that were killed."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.partial"):
        owner = re.fullmatch(r".*\.(\d+)\.partial", left.name)
        if owner and not Path(f"/proc/{owner[1]}").exists():
            left.unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
