# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Predictions beside the measurements of advice.py, and its table."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping
from typing import Any, Final

from switchfold.hostlib.schemes.calibration_file import Calibration
from switchfold.hostlib.schemes.cluster import Cluster
from switchfold.hostlib.schemes.hardware import capacity_of
from switchfold.hostlib.schemes.models import Model, ModelLayer
from switchfold.hostlib.schemes.prediction import Computing, Strategy, predict

UNSHAPED_BITS_PER_S: Final = 1e12
"""Rate that stands for links without one in predictions."""
AIM: Final = 0.9
"""Least share of the conditions whose faster contender is named rightly."""
SWITCH, RING = "switch", "ring"
GLOO: Final = ("gloo_switch", "gloo_bridge")
LABELS: Final = ("switchfold", *GLOO)
"""Contenders in the order of their turns."""
_COLUMNS: Final = (
    *("links, Mbit/s", "workers", "MB", "switch, s", "predicted", "faster Gloo, s", "predicted"),
    *("Gloo / switch", "predicted", "faster", "named", "cores busy"),
)
HEADING: Final = f"| {' | '.join(_COLUMNS)} |\n{'|---' * len(_COLUMNS)}|"


def predicted_s(
    row: Mapping[str, Any], calibration: Calibration, shared_cores: int
) -> dict[str, float]:
    """Return the predicted seconds of a measured sum by `SWITCH` and by `RING`.

    The testbed's links have no delay; its hosts and switch share the cores of one machine.
    Raises ValueError for a calibration without a switch.
    """
    if calibration.switch is None:
        raise ValueError("the calibration has no switch; calibrate without --no-switch")
    capacity = capacity_of(calibration.hosts, calibration.switch, shared_cores)
    layer = ModelLayer(name="tensor", kind="other", num_values=row["bytes"] // 4, backward_s=1e-9)
    tensor = Model(name="tensor", source="", layers=(layer,))
    cluster = Cluster(
        num_workers=row["workers"],
        link_bits_per_s=row["rate_bits_per_s"] or UNSHAPED_BITS_PER_S,
        round_trip_s=0.0,
        slots=row["slots"],
    )
    strategies = {SWITCH: Strategy.INA, RING: Strategy.RING}
    return {
        name: predict(tensor, cluster, strategy, Computing(), capacity=capacity).exchange_s
        for name, strategy in strategies.items()
    }


def compare(row: Mapping[str, Any], calibration: Calibration, shared_cores: int) -> dict[str, Any]:
    """Return the row with medians, predictions, and the faster contender by each."""
    medians = {label: statistics.median(times) for label, times in row["times_s"].items()}
    measured = {SWITCH: medians["switchfold"], RING: min(medians[label] for label in GLOO)}
    predicted = predicted_s(row, calibration, shared_cores)
    return {
        **row,
        "measured_s": measured,
        "predicted_s": predicted,
        "measured": _faster(measured),
        "predicted": _faster(predicted),
    }


def share_named_rightly(rows: Iterable[Mapping[str, Any]]) -> float:
    """Return the share of conditions whose faster contender the prediction names."""
    named = [row["measured"] == row["predicted"] for row in rows]
    return sum(named) / len(named)


def describe_row(row: Mapping[str, Any]) -> str:
    """Return a condition's line under HEADING."""
    rate = row["rate_bits_per_s"]
    measured, predicted = row["measured_s"], row["predicted_s"]
    cells = [
        "no limit" if rate is None else f"{rate / 1e6:g}",
        row["workers"],
        f"{row['bytes'] / 1e6:g}",
        *(f"{each[SWITCH]:.3f}" for each in (measured, predicted)),
        *(f"{each[RING]:.3f}" for each in (measured, predicted)),
        *(f"{each[RING] / each[SWITCH]:.2f}" for each in (measured, predicted)),
        row["measured"],
        "rightly" if row["measured"] == row["predicted"] else f"{row['predicted']}, wrongly",
        f"{100 * row['busy_share']:.0f} %",
    ]
    return f"| {' | '.join(map(str, cells))} |"


def summary(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return how many conditions were named rightly, beside the aim."""
    found = list(rows)
    rightly = sum(row["measured"] == row["predicted"] for row in found)
    return f"{rightly} of {len(found)} named rightly (aim: {AIM:.0%})"


def _faster(seconds: Mapping[str, float]) -> str:
    return min(seconds, key=lambda each: seconds[each])
