"""Errors that a user can act on: one line with what is wrong and the way out. The command line maps each class to an exit code."""

from __future__ import annotations


class TrnscopeError(Exception):
    """Base of all errors that are shown as one line, without a traceback."""


class ProfileError(TrnscopeError):
    """A profile or input file is missing, unreadable, cut or of the wrong kind (exit 3)."""


class UsageError(TrnscopeError):
    """The call itself is wrong: an unknown option value, an output that exists (exit 2)."""
