"""trnscope: profiles of AWS Trainium and Inferentia, opened, analysed and shown."""

from explorer.store.reader import Profile, open

__all__ = ["Profile", "open"]
__version__ = "0.1.0"
