"""Where the command `trnscope` begins: while modules are still being loaded, Ctrl-C ends it without a traceback."""

from __future__ import annotations

import signal

_found = signal.getsignal(signal.SIGINT)
if _found is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def main() -> int:
    """Run the command line; returns the exit code."""
    from explorer.commands import main as command_line

    signal.signal(signal.SIGINT, _found)
    return command_line()


if __name__ == "__main__":
    raise SystemExit(main())
