# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Figures that others published, with where each one is from. Nothing here is computed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, kw_only=True)
class PublishedFigure:
    """One number of another work."""

    work: str
    what: str
    value: float
    source: str


POSEIDON_10G = PublishedFigure(
    work="Poseidon",
    what="VGG19-22K, 16 nodes, 10 GbE: speed-up",
    value=15.5,
    source="abstract of arXiv 1706.03292",
)
POSEIDON_INCEPTION = PublishedFigure(
    work="Poseidon",
    what="Inception-V3, 32 nodes: speed-up",
    value=31.5,
    source="abstract of arXiv 1706.03292",
)
TENSORFLOW_INCEPTION = PublishedFigure(
    work="Poseidon",
    what="Inception-V3, 32 nodes: speed-up of stock TensorFlow",
    value=20.0,
    source="abstract of arXiv 1706.03292",
)
POSEIDON_NODES: Final = (2, 4, 8, 16, 32)
POSEIDON_CURVES: Final[Mapping[str, tuple[float, ...]]] = {
    "Poseidon": (1.96, 3.83, 7.63, 15.03, 29.45),
    "overlap only": (1.78, 3.28, 6.12, 11.56, 21.37),
    "Caffe with PS": (1.01, 1.47, 2.16, 2.82, 4.42),
}
"""Speed-ups of VGG19-22K in Caffe at 40 GbE, from a plotting script that its authors published."""
CAFFE_IMAGES_PER_S: Final = 34.6
"""One node without exchange, VGG19-22K, from the same script."""
CAFFE_PS_IMAGES_PER_S: Final = 18.5
"""One node of Caffe with PS: its copies between RAM and GPU do not overlap with computing."""

SWITCHML_WORKERS: Final = (4, 8, 16)
SWITCHML_ELEMENTS_PER_S: Final = (2830e6, 2820e6, 2810e6)
NCCL_ELEMENTS_PER_S: Final = (1380e6, 1260e6, 970e6)
"""Read off a plot in the public repository of SwitchML (RDMA against NCCL over RDMA). The set-up is
not documented there; the plot's ceiling is that of 100 Gbit/s."""
SWITCHML_TRAINING = PublishedFigure(
    work="SwitchML",
    what="training, the most over eight models",
    value=5.5,
    source="abstract of its NSDI'21 paper",
)

HOT_KEYS: Final = 20_000
HOT_SHARES: Final[Mapping[str, tuple[int, float, float]]] = {
    "recommendation": (900_000, 0.5, 0.845),
    "search": (150_000_000, 0.7, 1.070),
}
"""Parameters, share of updates of the 20,000 hottest (Pan et al., IMC'20), and our Zipf exponent
that gives this share."""
LIBRA_RANGE: Final = (1.5, 4.0)
"""Gradient aggregation faster by, from the abstract of arXiv 2205.05243."""

MLFABRIC_GRID: Final = ((1.74, 1.23, 1.42), (2.96, 2.0, 2.32), (1.90, 1.33, 1.42))
"""A 3 x 3 grid beside figure 7 of arXiv 1907.00434, computing settings by network settings, taken
as speed-ups. What its settings are is not public, so its cells match none of ours."""
