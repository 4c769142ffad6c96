"""Targets: complete, sourced, and consistent with what their documents say in other words."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import Any

import pytest

from emulator import targets
from emulator.opcodes import opcodes


def data(name: str) -> dict[str, Any]:
    return tomllib.loads(resources.files("emulator.targets").joinpath(f"{name}.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", targets.NAMES)
def test_every_figure_says_where_it_is_from(name: str) -> None:
    target = targets.load(name)
    assert len(target.figures) > 60
    for path, figure in target.figures.items():
        assert figure.unit and figure.kind in targets.KINDS, path
        assert all(source.startswith(("aws-neuron-sdk", "github.com/")) for source in figure.source), path
        # Whatever is not printed somewhere says what it was made of.
        assert figure.kind == "published" or figure.note or figure.kind == "derived", path


@pytest.mark.parametrize("name", targets.NAMES)
def test_documents_agree_with_each_other(name: str) -> None:
    target = targets.load(name)
    assert target.peak_flops / 1e12 == pytest.approx(target.tensor.peak_bf16, rel=0.01)
    assert target.peak_flops / target.tensor.fp32_passes / 1e12 == pytest.approx(target.tensor.peak_fp32, rel=0.02)
    assert target.sbuf.partitions * target.sbuf.partition_bytes == target.sbuf.bytes
    assert target.psum.partitions * target.psum.partition_bytes == target.psum.bytes
    assert target.psum.banks * target.psum.bank_bytes == target.psum.partition_bytes
    assert target.dma.read_rate <= target.dma.engine_peak


def test_what_a_capture_of_inf2_reports_follows_from_trn1() -> None:
    target = targets.load("trn1")
    assert target.hbm.stack_bandwidth == 410e9
    assert target.dma.core_bandwidth == pytest.approx(435e9, rel=0.001)
    assert target.clocks == (2.8, 1.12, 1.4, 1.4, 1.4)


def test_an_unknown_target_names_those_there_are() -> None:
    with pytest.raises(targets.UnknownTarget, match=r"unknown target 'trn9'; use one of trn1, trn2, trn3"):
        targets.load("trn9")


def test_what_is_not_published_is_absent() -> None:
    assert targets.load("trn1").dma.hardware_generation is None
    assert targets.load("trn2").tensor.peak_mxfp8 is None


def test_a_missing_or_unsourced_figure_is_an_error() -> None:
    incomplete = data("trn2")
    del incomplete["tensor"]["clock"]
    with pytest.raises(targets.TargetDataError, match=r"trn2.toml: tensor.clock is missing"):
        targets.parse(incomplete, "trn2")
    unsourced = data("trn2")
    unsourced["tensor"]["clock"]["source"] = []
    with pytest.raises(targets.TargetDataError, match=r"tensor.clock needs value, unit, kind"):
        targets.parse(unsourced, "trn2")
    unknown = data("trn2")
    unknown["tensor"]["colour"] = unknown["tensor"]["clock"]
    with pytest.raises(targets.TargetDataError, match=r"unknown figure tensor.colour"):
        targets.parse(unknown, "trn2")


def test_every_call_is_priced_on_the_engines_that_run_it() -> None:
    classes = targets.load("trn2").cost_classes
    for call, entry in opcodes().items():
        assert entry.cost_class in classes, call
        assert set(entry.engines) <= set(classes[entry.cost_class].engines), call
