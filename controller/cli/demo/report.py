# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The demo's report: one HTML page with the proofs and the plots, and each plot as PNG."""

# pyright: reportUnknownMemberType=false
# matplotlib leaves its keyword arguments untyped.
from __future__ import annotations

import base64
import html
import json
from pathlib import Path

import matplotlib as mpl
import numpy as np

mpl.use("Agg")

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ....hostlib.slots.wire import VALUE_BYTES, frame_bytes
from .perceptron import NUM_PARAMETERS
from .proofs import Proof
from .record import RunRecord

_BLUE, _ORANGE, _GREY = "#2b6cb0", "#dd6b20", "#a0aec0"
_MEGABYTE = 1e6

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Switchfold demo</title>
<style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem;
       color: #1a202c; }}
h1 {{ margin-bottom: 0; }} img {{ max-width: 100%; }}
table {{ border-collapse: collapse; width: 100%; }}
td, th {{ border-bottom: 1px solid #cbd5e0; padding: .4rem .6rem; text-align: left;
         vertical-align: top; }}
.yes {{ color: #276749; font-weight: bold; }} .no {{ color: #c53030; font-weight: bold; }}
</style></head><body>
<h1>Switchfold demo</h1>
<p>{summary}</p>
<h2>Proofs</h2>
<table><tr><th></th><th>Claim</th><th>Measured</th></tr>{proofs}</table>
<h2>Loss</h2><img alt="Loss curves" src="data:image/png;base64,{loss}">
<p>Held-out accuracy per epoch: {accuracies}</p>
<h2>Bytes per link</h2><img alt="Bytes per link" src="data:image/png;base64,{links}">
<p>Left: the bytes that the switch counted on each worker's link. Right: the bytes that a parameter
server would have caused with the same gradients in the same packets. They are computed, not
measured. Each worker's link then carries as much as with aggregation. The server's link carries the
traffic of all workers, {num_workers} times as much.</p>
<h2>Allreduce</h2><img alt="Allreduce times" src="data:image/png;base64,{times}">
<p>{times_text}</p>
</body></html>
"""


def write_report(run: RunRecord, proofs: list[Proof], folder: Path) -> Path:
    """Write report.html, three PNG files and results.json into a folder; return the page's path."""
    folder.mkdir(parents=True, exist_ok=True)
    pictures = {
        "loss": _plot_loss(run),
        "links": _plot_links(run),
        "times": _plot_times(run),
    }
    encoded: dict[str, str] = {}
    for name, figure in pictures.items():
        path = folder / f"{name}.png"
        figure.savefig(path, dpi=110)
        encoded[name] = base64.b64encode(path.read_bytes()).decode("ascii")
    page = folder / "report.html"
    page.write_text(
        _PAGE.format(
            summary=html.escape(_summary(run)),
            proofs="".join(_proof_row(proof) for proof in proofs),
            accuracies=", ".join(f"{value:.3f}" for value in run.workers[0].accuracies),
            num_workers=len(run.workers),
            times_text=html.escape(_times_text(run)),
            **encoded,
        ),
        encoding="utf-8",
    )
    (folder / "results.json").write_text(
        json.dumps(_results(run, proofs), indent=2) + "\n", encoding="utf-8"
    )
    return page


def gradient_bytes(run: RunRecord) -> int:
    """Return the frame bytes of one worker's gradient, exponents included, one direction."""
    values = run.values_per_packet
    chunks = -(-NUM_PARAMETERS // values)
    return (chunks + -(-chunks // values)) * frame_bytes(values)


def limit_s(run: RunRecord) -> float | None:
    """Return the least time that one gradient needs on a worker's link, in seconds."""
    if run.rate_bits_per_s is None:
        return None
    return gradient_bytes(run) * 8 / run.rate_bits_per_s


def _summary(run: RunRecord) -> str:
    attachment = {"veth": "network namespaces joined by veth", "udp": "UDP ports on loopback"}
    rate = ""
    if run.rate_bits_per_s is not None:
        rate = f", {run.rate_bits_per_s / 1e6:g} Mbit/s per link and direction"
    return (
        f"{len(run.workers)} workers and one P4 switch ({attachment[run.mode]}{rate}) trained a "
        f"perceptron of {NUM_PARAMETERS:,} parameters on 4,000 handwritten digits: "
        f"{len(run.losses)} steps, {run.training_s:.1f} s. "
        f"Every gradient was summed inside the switch, {run.values_per_packet} values per packet."
    )


def _proof_row(proof: Proof) -> str:
    mark = '<td class="yes">proved</td>' if proof.is_proved else '<td class="no">failed</td>'
    claim, measured = html.escape(proof.claim), html.escape(proof.measured)
    return f"<tr>{mark}<td>{claim}</td><td>{measured}</td></tr>"


def _figure() -> tuple[Figure, Axes]:
    figure = Figure(figsize=(9, 4), layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _plot_loss(run: RunRecord) -> Figure:
    figure, axes = _figure()
    steps = np.arange(1, len(run.losses) + 1)
    axes.plot(steps, run.reference.losses, color=_GREY, linewidth=4, label="single process")
    axes.plot(steps, run.losses, color=_BLUE, linewidth=1, label="summed in the switch")
    axes.set_yscale("log")
    axes.set_xlabel("step")
    axes.set_ylabel("cross-entropy of the batch")
    axes.legend(frameon=False)
    return figure


def _plot_links(run: RunRecord) -> Figure:
    figure, axes = _figure()
    steps, num_workers = len(run.losses), len(run.workers)
    hosts = [link.host for link in run.switch.links]
    up = [link.to_switch / _MEGABYTE for link in run.switch.links]
    down = [link.from_switch / _MEGABYTE for link in run.switch.links]
    worker_server = steps * gradient_bytes(run) / _MEGABYTE
    names = [*hosts, "", *hosts, "server"]
    up += [0, *[worker_server] * num_workers, worker_server * num_workers]
    down += [0, *[worker_server] * num_workers, worker_server * num_workers]
    places = np.arange(len(names))
    axes.bar(places - 0.2, up, 0.4, color=_BLUE, label="to the switch / to the server")
    axes.bar(places + 0.2, down, 0.4, color=_ORANGE, label="from the switch / from the server")
    axes.set_xticks(places, names)
    axes.tick_params(axis="x", length=0)
    axes.set_ylabel("MB over the whole run")
    top = max(up + down)
    axes.set_ylim(0, top * 1.25)
    axes.text((num_workers - 1) / 2, top * 1.08, "aggregated (measured)", ha="center")
    axes.text(num_workers * 1.5 + 1, top * 1.08, "parameter server (computed)", ha="center")
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(0, 0.88))
    return figure


def _plot_times(run: RunRecord) -> Figure:
    figure, axes = _figure()
    for worker in run.workers:
        times_ms = np.sort(worker.allreduce_s) * 1e3
        shares = np.arange(1, len(times_ms) + 1) / len(times_ms)
        axes.plot(times_ms, shares, label=f"h{worker.worker_id + 1}")
    limit = limit_s(run)
    if limit is not None:
        axes.axvline(limit * 1e3, color=_GREY, linestyle="--", label="limit of the link")
    axes.set_xlim(left=0)
    axes.set_xlabel(f"time of one allreduce of {NUM_PARAMETERS * VALUE_BYTES / 1e3:.0f} kB, ms")
    axes.set_ylabel("share of the steps")
    axes.legend(frameon=False)
    return figure


def _times_text(run: RunRecord) -> str:
    times = np.concatenate([worker.allreduce_s for worker in run.workers])
    text = (
        f"Median {np.median(times) * 1e3:.1f} ms, 99th percentile "
        f"{np.percentile(times, 99) * 1e3:.1f} ms. These times include the wait for the slowest "
        "worker's backward pass."
    )
    limit = limit_s(run)
    if limit is not None:
        text += f" The link alone needs {limit * 1e3:.1f} ms for one gradient."
    return text


def _results(run: RunRecord, proofs: list[Proof]) -> dict[str, object]:
    times = np.concatenate([worker.allreduce_s for worker in run.workers])
    return {
        "mode": run.mode,
        "num_workers": len(run.workers),
        "values_per_packet": run.values_per_packet,
        "rate_bits_per_s": run.rate_bits_per_s,
        "training_s": run.training_s,
        "allreduce_median_s": float(np.median(times)),
        "allreduce_limit_s": limit_s(run),
        "accuracies": [float(value) for value in run.workers[0].accuracies],
        "losses": run.losses.tolist(),
        "reference_losses": run.reference.losses.tolist(),
        "outcomes": {outcome.name.lower(): count for outcome, count in run.switch.outcomes.items()},
        "links": [
            {"host": link.host, "to_switch": link.to_switch, "from_switch": link.from_switch}
            for link in run.switch.links
        ],
        "proofs": [
            {"claim": proof.claim, "is_proved": proof.is_proved, "measured": proof.measured}
            for proof in proofs
        ],
    }
