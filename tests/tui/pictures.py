"""Makes the pictures in `docs/images` from the sample traces: `python -m tests.tui.pictures`. They need DejaVu Sans Mono."""

from __future__ import annotations

import asyncio
import io
import re
from pathlib import Path

import cairosvg
from PIL import Image
from textual.pilot import Pilot

from explorer.store import reader
from explorer.tui.app import Explorer
from explorer.tui.model import Model
from explorer.tui.screen import Start
from tests.tui.opened import LARGE, SMALL, settled

_ROOT = Path(__file__).parents[2]
_IMAGES = _ROOT / "docs" / "images"
#: Name, terminal size, instruction selected, keys pressed, width of the PNG.
_PICTURES = (
    ("tui-160x48", LARGE, 32, (), 1600),
    ("tui-80x24", SMALL, 32, ("w", "w"), 1000),
    ("tui-layers-80x24", SMALL, 32, ("2", "enter"), 1000),
)


async def _take(size: tuple[int, int], select: int, keys: tuple[str, ...]) -> str:
    profile = _ROOT / "sample_traces" / "attention"
    model = Model(reader.open(profile))
    root = _ROOT / "emulator" / "kernels"
    start = Start("sample_traces/attention", None, model.find("Instruction", select), root, "emulator/kernels")
    app = Explorer(model, start)
    pilot: Pilot[None]
    async with app.run_test(size=size) as pilot:
        await settled(pilot)
        for key in keys:
            await pilot.press(key)
        await settled(pilot)
        return app.export_screenshot()


def main() -> None:
    """Write each picture as SVG and PNG."""
    _IMAGES.mkdir(parents=True, exist_ok=True)
    for name, size, select, keys, width in _PICTURES:
        svg = asyncio.run(_take(size, select, keys))
        # The font that Textual asks for comes from the network; without it columns would not line up.
        svg = re.sub(r"@font-face\s*\{.*?\}\s*", "", svg, flags=re.DOTALL).replace("Fira Code", "DejaVu Sans Mono")
        svg = re.sub(r"[ \t]+$", "", svg, flags=re.MULTILINE)
        (_IMAGES / f"{name}.svg").write_text(svg, encoding="utf-8")
        drawn = Image.open(io.BytesIO(cairosvg.svg2png(svg.encode(), output_width=width))).convert("RGB")
        drawn.quantize(256).save(_IMAGES / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
