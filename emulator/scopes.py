"""Named scopes: a name for a part of a kernel, which becomes a level of the layer path of all instructions issued inside."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from emulator.nki.session import running


@contextmanager
def scope(name: str) -> Iterator[None]:
    """Instructions issued inside belong to the layer `name`, below the scopes around; outside a kernel it does nothing.

    Raises ValueError on an empty name or one with a slash, which parts the levels of a path.
    """
    if not name or "/" in name:
        raise ValueError(f"{name!r} is no name of a scope: it is empty or holds a slash")
    session = running()
    if session is None:
        yield
        return
    session.recorder.push_scope(name)
    try:
        yield
    finally:
        session.recorder.pop_scope()
