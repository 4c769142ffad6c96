"""The application on a profile, for tests."""

from __future__ import annotations

from pathlib import Path

from textual.pilot import Pilot

from explorer.store.reader import Profile
from explorer.tui.app import Explorer
from explorer.tui.model import Model
from explorer.tui.screen import Start
from tests.tui import small

#: Where the kernels that the small profile names lie.
ROOT = Path(__file__).parent
SMALL, LARGE = (80, 24), (160, 48)


def explorer(
    profile: Profile | None = None,
    *,
    at: tuple[int | None, int | None] | None = None,
    select: int | None = None,
    root: Path = ROOT,
    ascii_only: bool = False,
) -> Explorer:
    """The application; its profile is called `small` wherever its path would stand."""
    model = Model(profile if profile is not None else small.profile())
    chosen = None if select is None else model.find("Instruction", select)
    app = Explorer(model, Start("small", at, chosen, root, None, ascii_only))
    app.theme = "textual-dark"
    return app


async def settled(pilot: Pilot[None]) -> None:
    """Wait until what runs beside the screen is done."""
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


def text(app: Explorer) -> str:
    """What stands on the screen, line by line."""
    return "\n".join(strip.text.rstrip() for strip in app.screen._compositor.render_strips())
