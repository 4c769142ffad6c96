"""Every action of the terminal interface and its keys: bindings, help, footer and command palette are made from this one table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Key:
    """An action (Textual's spelling, also its id in a keymap), the keys that start it, and what help and footer say of it."""

    action: str
    keys: tuple[str, ...]
    help: str
    group: str
    #: Word in the footer; None: only in the help. Those that are `wide` give way to the others where the line is short.
    footer: str | None = None
    wide: bool = False
    #: How the keys are shown; by default as they are.
    shown: str | None = None


KEYS: tuple[Key, ...] = (
    Key("zoom(2)", ("w", "plus", "equals_sign"), "zoom in about the cursor", "Time", "zoom, pan", shown="wasd"),
    Key("zoom(0.5)", ("s", "minus"), "zoom out", "Time"),
    Key("zoom(8)", ("W",), "zoom in faster", "Time"),
    Key("zoom(0.125)", ("S",), "zoom out faster", "Time"),
    Key("pan(-0.25)", ("a",), "pan to earlier times", "Time"),
    Key("pan(0.25)", ("d",), "pan to later times", "Time"),
    Key("pan(-1)", ("A",), "pan back by a whole screen", "Time"),
    Key("pan(1)", ("D",), "pan on by a whole screen", "Time"),
    Key("fit", ("f",), "fit the selection; again: the whole profile", "Time", "fit", wide=True),
    Key("down(1)", ("j", "down"), "next row or line", "Move", "row", shown="j/k"),
    Key("down(-1)", ("k", "up"), "previous row or line", "Move"),
    Key("down(10)", ("J", "pagedown"), "ten rows on", "Move"),
    Key("down(-10)", ("K", "pageup"), "ten rows back", "Move"),
    Key("side(1)", ("l", "right", "full_stop"), "next event on the row; open a layer", "Move", "event", shown="h/l"),
    Key("side(-1)", ("h", "left", "comma"), "previous event on the row; close a layer", "Move"),
    Key("end(-1)", ("g", "home"), "first event or line", "Move"),
    Key("end(1)", ("G", "end"), "last event or line", "Move"),
    Key("enter", ("enter",), "go into: zoom to the event, light the layer, follow the dependency", "Go", "into", wide=True),
    Key(
        "back",
        ("escape", "backspace"),
        "back to the view before; then unlight, unselect",
        "Go",
        "back",
        wide=True,
        shown="esc",
    ),
    Key("follow(-1)", ("left_square_bracket",), "to the predecessor that was done last", "Go", "dep", shown="[ ]"),
    Key("follow(1)", ("right_square_bracket",), "to the successor that began first", "Go"),
    Key("search", ("slash",), "search name, layer, source line, track or id", "Go", "find", shown="/"),
    Key("hit(1)", ("n",), "next hit", "Go"),
    Key("hit(-1)", ("N",), "previous hit", "Go"),
    Key("colour", ("c",), "colour by opcode, layer or track", "Show", "colour", wide=True),
    Key("pane(1)", ("tab",), "next pane", "Show", "pane"),
    Key("pane(-1)", ("shift+tab",), "previous pane", "Show"),
    Key("show('timeline')", ("1",), "timeline", "Show"),
    Key("show('layers')", ("2",), "layers", "Show"),
    Key("show('details')", ("3",), "details and dependencies", "Show"),
    Key("show('source')", ("4",), "source", "Show"),
    Key("maximise", ("z",), "give the pane the whole screen, and back", "Show"),
    Key("help", ("question_mark", "f1"), "this help", "Show", "help", shown="?"),
    Key("app.suspend_process", ("ctrl+z",), "suspend", "Show"),
    Key("app.quit", ("q", "ctrl+q"), "quit", "Show", "quit"),
)

_SHOWN = {
    "plus": "+",
    "equals_sign": "=",
    "minus": "-",
    "full_stop": ".",
    "comma": ",",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "slash": "/",
    "question_mark": "?",
    "escape": "esc",
}


def spelled(key: str) -> str:
    """A key as it is printed on the keyboard, in ASCII."""
    return _SHOWN.get(key, key)
