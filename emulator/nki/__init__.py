"""The NKI kernel language on numpy: kernels written for AWS's packages run unmodified, without those packages.

Kernels see it through `installed()`, which provides `neuronxcc.nki` and `nki`.
"""

from emulator.nki.modules import installed

__all__ = ["installed"]
