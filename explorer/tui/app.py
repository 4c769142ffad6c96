"""The terminal interface."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterable
from typing import ClassVar

from textual.app import App, SystemCommand
from textual.binding import BindingType
from textual.screen import Screen

from explorer.tui.keys import KEYS, spelled
from explorer.tui.model import Model
from explorer.tui.screen import Main, Start


class Explorer(App[None]):
    """Browses one profile. `run(mouse=False)` leaves the mouse to the terminal."""

    TITLE = "trnscope"
    CSS = """
    Timeline, Lines { border: round $foreground 35%; }
    Timeline:focus, Lines:focus { border: round $accent; border-title-style: bold; }
    .ascii Timeline, .ascii Lines { border: ascii $foreground 35%; }
    .ascii Timeline:focus, .ascii Lines:focus { border: ascii $accent; }
    #lower { height: 1fr; }
    Layers { width: 1fr; }
    Details { width: 1.3fr; }
    Source { width: 1.3fr; }
    Bar { height: 1; }
    #header { background: $panel; }
    #status { background: $surface; }
    #footer { background: $panel; }
    #find { height: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = []

    def __init__(self, model: Model, start: Start) -> None:
        super().__init__()
        # The palette draws with characters beyond ASCII.
        self.use_command_palette = not start.ascii_only
        self.main = Main(model, start)

    def on_mount(self) -> None:
        # Killed otherwise, it would leave the terminal on the alternate screen with the mouse on.
        told = signal.SIGTERM
        asyncio.get_running_loop().add_signal_handler(told, lambda: self.exit(return_code=128 + told))
        # What other programs wrote meanwhile is on the terminal; only a whole repaint covers it.
        self.app_resume_signal.subscribe(self, lambda _: self.screen.refresh(layout=True))

    def get_default_screen(self) -> Screen[None]:
        return self.main

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        for key in KEYS:
            yield SystemCommand(key.help, f"key {spelled(key.keys[0])}", lambda action=key.action: self._act(action))

    async def _act(self, action: str) -> None:
        await self.run_action(action, default_namespace=self.main)
