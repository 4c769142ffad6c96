"""trnscope: profiles of AWS Trainium and Inferentia, opened, analysed and shown."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from explorer.store.reader import Profile, open

__all__ = ["Profile", "open"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`Profile` and `open`, read only when asked for: the command line starts before Arrow is loaded."""
    if name in __all__:
        from explorer.store import reader

        return getattr(reader, name)
    raise AttributeError(f"module 'explorer' has no attribute {name!r}")
