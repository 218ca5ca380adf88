# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Rows of the training benchmark: measured and predicted times, and their comparison."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from benchmarks.support.limits import CPU_BOUND_SHARE
from benchmarks.training.training_models import (
    BUCKET_BYTES,
    CALIBRATION_VALUES,
    WARM_UP,
    WORKLOADS,
    Workload,
)
from switchfold.hostlib.schemes.cluster import Cluster
from switchfold.hostlib.schemes.layer import Layer
from switchfold.hostlib.schemes.prediction import (
    Computing,
    Prediction,
    Strategy,
    choose,
    predict,
    ring_time,
)
from switchfold.hostlib.schemes.wire_cost import ExchangeTime, exchange_time

NAMES: Final = {
    "alone": "no exchange",
    "switchfold": "Switchfold",
    "switchfold_sequential": "Switchfold, no overlap",
    "gloo_switch": "Gloo, same switch",
    "gloo_bridge": "Gloo, kernel bridge",
    "ps": "parameter server",
}
"""Contenders in the order of the rows."""
GLOO: Final = ("gloo_switch", "gloo_bridge")
STRATEGIES: Final = {
    "switchfold": Strategy.INA,
    "switchfold_sequential": Strategy.INA,
    "gloo_switch": Strategy.RING,
    "gloo_bridge": Strategy.RING,
    "ps": Strategy.PS,
}
CALIBRATED: Final = {"switchfold_sequential": "switchfold"}
"""Contenders that share another one's calibration."""
HEAD: Final = (
    "| link | workers | contender | iteration, ms | min to max | samples/s | efficiency |"
    " predicted, ms | error | cores busy |\n|---|---|---|---|---|---|---|---|---|---|"
)


def rows_of(workers: list[dict[str, Any]], carried: Mapping[int, float]) -> list[dict[str, Any]]:
    """Return one row per model, rate and contender, for one number of workers.

    Raises ValueError if replicas differ.
    """
    cells = [cell for worker in workers for cell in worker["cells"]]
    keys = dict.fromkeys((cell["model"], cell["rate"], cell["label"]) for cell in cells)
    rows: list[dict[str, Any]] = []
    for model, rate, label in keys:
        own = [
            cell
            for cell in cells
            if (cell["model"], cell["rate"], cell["label"]) == (model, rate, label)
        ]
        times_s = list(_iterations_s(own, label))
        batch = WORKLOADS[model].batch
        median_s = statistics.median(times_s)
        rows.append(
            {
                "model": model,
                "rate": rate,
                "num_workers": len(workers),
                "label": label,
                "times_s": times_s,
                "median_s": median_s,
                "min_s": min(times_s),
                "max_s": max(times_s),
                "samples_per_s": len(workers) * batch / median_s,
                "busy_share": statistics.median(cell["busy_share"] for cell in own),
                "worker_cpu_s": sum(cell["cpu_s"] for cell in own) / len(own) * len(workers),
            }
        )
    for row in rows:
        _compare(row, rows, workers, carried)
    return rows


def _iterations_s(cells: list[dict[str, Any]], label: str) -> Iterable[float]:
    """Yield the time of each iteration, from the last worker's previous end to the last end.

    Workers without an exchange are not synchronised, so each worker's iterations count.
    """
    if label == "alone":
        for cell in cells:
            yield from _differences(cell["ends"])
        return
    for turn in sorted({cell["turn"] for cell in cells}):
        same = [cell for cell in cells if cell["turn"] == turn]
        if len({cell["checksum"] for cell in same}) != 1:
            raise ValueError(f"{label}: workers hold different weights after training")
        yield from _differences(
            [max(each) for each in zip(*(cell["ends"] for cell in same), strict=True)]
        )


def _differences(ends: Sequence[float]) -> Iterable[float]:
    """Yield the times between the ends of iterations, without warm-up."""
    for step in range(WARM_UP, len(ends)):
        yield ends[step] - ends[step - 1]


def _compare(
    row: dict[str, Any],
    rows: list[dict[str, Any]],
    workers: list[dict[str, Any]],
    carried: Mapping[int, float],
) -> None:
    """Add efficiency, ratio to the faster Gloo, and the prediction."""
    same = {
        other["label"]: other
        for other in rows
        if (other["model"], other["rate"]) == (row["model"], row["rate"])
    }
    row["efficiency"] = same["alone"]["median_s"] / row["median_s"]
    row["predicted_s"] = row["error"] = None
    if row["label"] == "alone":
        return
    row["faster_gloo"] = min(GLOO, key=lambda label: same[label]["median_s"])
    row["times_gloo"] = same[row["faster_gloo"]]["median_s"] / row["median_s"]
    prediction = _predict(row, same["alone"]["median_s"], workers[0], carried)
    is_sequential = row["label"] == "switchfold_sequential"
    row["predicted_s"] = prediction.sequential_s if is_sequential else prediction.overlapped_s
    row["error"] = row["predicted_s"] / row["median_s"] - 1


def _predict(
    row: dict[str, Any], compute_s: float, worker: dict[str, Any], carried: Mapping[int, float]
) -> Prediction:
    """Predict an iteration from the time of computation and from one calibrating exchange."""
    workload: Workload = WORKLOADS[row["model"]]
    strategy = STRATEGIES[row["label"]]
    calibrations = worker["calibrations"]
    cluster = Cluster(
        num_workers=row["num_workers"],
        batch=workload.batch,
        link_bits_per_s=carried[row["rate"]],
        round_trip_s=calibrations["round_trip"],
        slots=worker["slots"],
    )
    fastest = cluster.replace(link_bits_per_s=carried[max(carried)])
    layer = Layer(name="calibration", kind="other", num_values=CALIBRATION_VALUES)
    ideal_s = _exchange(strategy, layer, fastest).transfer_s
    took_s = calibrations[CALIBRATED.get(row["label"], row["label"])]
    # The highest rate of the software on this machine, if it is less than the link's.
    most = fastest.link_bits_per_s * min(1.0, ideal_s / took_s)
    is_sequential = row["label"] == "switchfold_sequential"
    return predict(
        workload.described,
        cluster.replace(link_bits_per_s=min(cluster.link_bits_per_s, most)),
        strategy,
        Computing(iteration_s=compute_s),
        bucket_bytes=4 * workload.described.num_values if is_sequential else BUCKET_BYTES,
    )


def _exchange(strategy: Strategy, layer: Layer, cluster: Cluster) -> ExchangeTime:
    scheme = choose(strategy, layer, cluster)
    if scheme is None:
        return ring_time(layer.num_bytes, cluster)
    return exchange_time(scheme, layer, cluster)


def markdown(rows: Sequence[dict[str, Any]], carried: Mapping[int, float]) -> str:
    """Return all tables: measurements and ratios for each model."""
    lines: list[str] = []
    for model in dict.fromkeys(row["model"] for row in rows):
        workload = WORKLOADS[model]
        own = [row for row in rows if row["model"] == model]
        lines += [
            f"### {workload.described.name} model: {4e-6 * workload.described.num_values:.2f} MB,"
            f" batch {workload.batch}",
            "",
            HEAD,
            *(_line(row, carried) for row in own),
            "",
            *_ratio_lines(own),
            "",
        ]
    errors = [abs(row["error"]) for row in rows if row["error"] is not None]
    if errors:
        lines.append(
            f"The median error of predictions is {100 * statistics.median(errors):.0f} %, the"
            f" largest {100 * max(errors):.0f} %."
        )
    return "\n".join(lines)


def _line(row: dict[str, Any], carried: Mapping[int, float]) -> str:
    link = f"{row['rate'] / 1e6:g} Mbit/s" if row["rate"] else "-"
    if row["rate"] and abs(carried[row["rate"]] / row["rate"] - 1) > 0.02:
        link += f" ({carried[row['rate']] / 1e6:.0f} carried)"
    predicted, error = "", ""
    if row["predicted_s"] is not None:
        predicted, error = f"{1e3 * row['predicted_s']:.0f}", f"{100 * row['error']:+.0f} %"
    busy = f"{100 * row['busy_share']:.0f} %" + (
        " (bound)" if row["busy_share"] > CPU_BOUND_SHARE else ""
    )
    return (
        f"| {link} | {row['num_workers']} | {NAMES[row['label']]} | {1e3 * row['median_s']:.0f} |"
        f" {1e3 * row['min_s']:.0f} to {1e3 * row['max_s']:.0f} | {row['samples_per_s']:.0f} |"
        f" {100 * row['efficiency']:.0f} % | {predicted} | {error} | {busy} |"
    )


def _ratio_lines(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return the table of Switchfold's throughput divided by that of the others."""
    ours = [row for row in rows if row["label"] == "switchfold"]
    if not ours:
        return []
    lines = [
        "| link | workers | times the faster Gloo | times without overlap"
        " | times parameter server |",
        "|---|---|---|---|---|",
    ]
    for row in ours:
        same = {
            other["label"]: other["median_s"] / row["median_s"]
            for other in rows
            if (other["rate"], other["num_workers"]) == (row["rate"], row["num_workers"])
        }
        lines.append(
            f"| {row['rate'] / 1e6:g} Mbit/s | {row['num_workers']} | **{row['times_gloo']:.2f}**"
            f" ({NAMES[row['faster_gloo']][6:]}) | {same['switchfold_sequential']:.2f} |"
            f" {same['ps']:.2f} |"
        )
    return lines
