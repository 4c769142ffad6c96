"""Accumulation in PSUM: the first matmul of a region overwrites, later ones add.

Whether a region was written is kept by region, not by looking for NaN: NaN inputs are legal. Exact repeats, the common
case, cost one dictionary look-up; a map of bytes is made only when regions differ and may overlap.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from emulator.nki.tensor import Storage, View

_maps: WeakKeyDictionary[Storage, NDArray[np.bool_]] = WeakKeyDictionary()


def _key(view: View) -> tuple[Any, ...]:
    return view.offset, view.shape, view.strides


def written_by_matmul(view: View) -> NDArray[np.bool_] | bool:
    """True or False where all or none of the region was written by matmuls, else which elements (partition dimension first)."""
    regions = view.storage.matmuls
    if not regions:
        return False
    if _key(view) in regions:
        return True
    written = _elements(_map(view.storage), view)
    if written.all():
        return True
    return written if written.any() else False


def mark(view: View) -> None:
    """A matmul wrote the region."""
    key = _key(view)
    if key not in view.storage.matmuls:
        view.storage.matmuls[key] = view
        if view.storage in _maps:
            _elements(_maps[view.storage], view)[...] = True


def _map(storage: Storage) -> NDArray[np.bool_]:
    if storage not in _maps:
        made = _maps[storage] = np.zeros(storage.nbytes, dtype=np.bool_)
        for view in storage.matmuls.values():
            _elements(made, view)[...] = True
    return _maps[storage]


def _elements(bits: NDArray[np.bool_], view: View) -> NDArray[np.bool_]:
    elements: NDArray[np.bool_] = np.ndarray(view.shape, np.bool_, bits, view.offset, view.strides)
    return np.moveaxis(elements, view.paxis, 0) if view.paxis else elements
