"""Pictures must not depend on how the tests' own terminal is set up."""

from __future__ import annotations

import os

for _name in ("NO_COLOR", "COLORTERM", "FORCE_COLOR"):
    os.environ.pop(_name, None)
