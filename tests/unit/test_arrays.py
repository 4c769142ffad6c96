"""Columns as arrays."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from explorer.store.arrays import integers, rows_equal, valid

WIDTHS = st.sampled_from([pa.int8(), pa.int32(), pa.int64()])


@given(st.lists(st.one_of(st.none(), st.integers(-100, 100))), WIDTHS, st.integers(0, 5), st.integers(1, 4))
def test_integers_and_nulls_of_any_slice(values: list[int | None], width: pa.DataType, skip: int, parts: int) -> None:
    array = pa.array(values, width).slice(skip)
    column = pa.chunked_array([array[i : i + parts] for i in range(0, len(array), parts)], width)
    wanted = values[skip:]
    for held in (array, column):
        assert integers(held, -999).tolist() == [-999 if v is None else v for v in wanted]
        assert valid(held).tolist() == [v is not None for v in wanted]


@given(st.lists(st.one_of(st.none(), st.text(max_size=4))), st.text(max_size=4), st.integers(0, 3))
def test_rows_that_hold_a_text(values: list[str | None], wanted: str, skip: int) -> None:
    array = pa.array(values, pa.string()).slice(skip)
    assert rows_equal(array, wanted).tolist() == np.flatnonzero([v == wanted for v in values[skip:]]).tolist()
