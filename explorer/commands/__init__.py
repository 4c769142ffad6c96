"""The command line: one module per verb, imported when that verb runs. Exit codes stand in `EXIT_CODES` and nowhere else."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence
from typing import NoReturn, Protocol, cast

import explorer
from explorer.store.errors import ProfileError, TrnscopeError, UsageError
from explorer.text import safe

#: Verb, module, and the line that `trnscope --help` shows.
VERBS: dict[str, tuple[str, str]] = {
    "demo": (
        "explorer.commands.demo",
        "capture the bundled kernel, print its report, write profile and .pftrace",
    ),
    "capture": ("explorer.commands.capture", "run an NKI kernel on the emulator and write its profile"),
    "import": ("explorer.commands.import_", "turn neuron-profile or neuron-explorer output into a profile"),
    "info": ("explorer.commands.info", "what a profile holds and how far to trust it"),
    "summary": ("explorer.commands.summary", "the summary metrics, computed from the rows"),
    "layers": ("explorer.commands.layers", "time, engines, FLOPs and bytes by layer"),
    "source": ("explorer.commands.source", "source listing annotated with time, instructions and engine"),
    "instructions": (
        "explorer.commands.instructions",
        "instructions, filtered by engine, opcode, layer, line, time",
    ),
    "explain": ("explorer.commands.explain", "what a metric means, with this profile's numbers"),
    "report": ("explorer.commands.report", "findings: where time goes and what mending each can gain"),
    "query": ("explorer.commands.query", "read-only SQL over the tables"),
    "schema": ("explorer.commands.schema", "the tables and their columns"),
    "export": ("explorer.commands.export", "write a Perfetto trace or CSV"),
    "tui": ("explorer.commands.tui", "browse in the terminal"),
}

EXIT_CODES: tuple[tuple[type[TrnscopeError], int], ...] = ((UsageError, 2), (ProfileError, 3))


class Command(Protocol):
    """What a verb's module offers at module level. The module's docstring is the verb's help."""

    def prepare_parser(self, parser: argparse.ArgumentParser) -> None:
        """Add the verb's arguments."""

    def run(self, args: argparse.Namespace) -> int:
        """Do it; returns the exit code."""


class _Parser(argparse.ArgumentParser):
    """Its errors are one line, as all errors are."""

    def error(self, message: str) -> NoReturn:
        """Raise UsageError."""
        verb = self.prog.removeprefix("trnscope").strip()
        raise UsageError(f"{verb}{': ' if verb else ''}{message}; `{self.prog} --help` explains")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    wanted = next((a for a in arguments if not a.startswith("-")), None)
    try:
        code = int(_parse(arguments, wanted))
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except TrnscopeError as error:
        return _failed(str(error), next((code for kind, code in EXIT_CODES if isinstance(error, kind)), 3), arguments, wanted)
    except BrokenPipeError:
        # Whoever read our output has seen enough; what is still buffered must not raise again at exit.
        _drop_output()
        return 0
    except OSError as error:
        _drop_output()
        return _failed(f"{error.filename or 'output'}: {error.strerror or error}; check space and permissions", 3, [], wanted)
    except KeyboardInterrupt:
        return 130


def _parse(arguments: list[str], wanted: str | None) -> int:
    parser = _Parser(prog="trnscope", description=explorer.__doc__)
    parser.add_argument("--version", action="version", version=f"trnscope {explorer.__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    for verb, (module, line) in VERBS.items():
        sub = verbs.add_parser(verb, help=line)
        if verb == wanted:
            command = cast(Command, importlib.import_module(module))
            sub.description = command.__doc__
            command.prepare_parser(sub)
            sub.set_defaults(run=command.run)
    args, extra = parser.parse_known_args(arguments)
    if extra:
        raise UsageError(f"{wanted}: unrecognized arguments: {' '.join(extra)}; `trnscope {wanted} --help` explains")
    return int(args.run(args))


def _failed(message: str, code: int, arguments: Sequence[str], verb: str | None) -> int:
    """Say on stderr what went wrong, and where JSON was asked for, on stdout too; returns the exit code."""
    print(f"trnscope: {safe(message)}", file=sys.stderr)
    if "--json" in arguments:
        from explorer.report import output

        output.print_json(output.error(verb, message, code))
    return code


def _drop_output() -> None:
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
