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

from ....hostlib.hosts import Algorithm
from ....hostlib.slots.wire import VALUE_BYTES, frame_bytes
from .machine_facts import machine_facts
from .perceptron import NUM_PARAMETERS
from .proofs import Proof
from .record import HostComparison, RunRecord, WorkerLinkBytes

_BLUE, _ORANGE, _GREY = "#2b6cb0", "#dd6b20", "#a0aec0"
_MEGABYTE = 1e6
_ALGORITHMS = {
    Algorithm.RING: "a ring",
    Algorithm.HALVING: "recursive halving and doubling",
    Algorithm.DOUBLING: "recursive doubling",
}

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
<h2>Against the hosts alone</h2>{comparison}
<h2>Allreduce during training</h2><img alt="Allreduce times" src="data:image/png;base64,{times}">
<p>{times_text}</p>
<h2>Where it ran</h2><table>{facts}</table>
<h2>What next</h2><ul>{steps}</ul>
</body></html>
"""


NEXT_STEPS = (
    "switchfold demo hot (a text model on parameter servers, hot parameters in the switch)",
    "switchfold testbed up (a network for programs of your own)",
    "docs/pytorch.md (train your own model with PyTorch)",
)


def write_report(run: RunRecord, proofs: list[Proof], folder: Path) -> Path:
    """Write report.html, its pictures as PNG, and results.json into a folder; return the page."""
    folder.mkdir(parents=True, exist_ok=True)
    pictures = {
        "loss": _plot_loss(run),
        "times": _plot_times(run),
    }
    if run.comparison is not None:
        pictures["links"] = _plot_comparison(run, run.comparison)
    facts = _facts(run)
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
            comparison=_comparison_part(run, encoded.get("links", "")),
            times=encoded["times"],
            times_text=html.escape(_times_text(run)),
            loss=encoded["loss"],
            facts="".join(_row(name, value) for name, value in facts.items()),
            steps="".join(f"<li>{html.escape(step)}</li>" for step in NEXT_STEPS),
        ),
        encoding="utf-8",
    )
    (folder / "results.json").write_text(
        json.dumps(_results(run, proofs, facts), indent=2) + "\n", encoding="utf-8"
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


def _plot_comparison(run: RunRecord, comparison: HostComparison) -> Figure:
    """How long sums take; left of it, bytes of a sum on the fullest link if both are counted."""
    figure, time_axes = _figure()
    both = (("switch", comparison.switch, _BLUE), ("hosts", comparison.hosts, _ORANGE))
    if comparison.hosts.links:
        figure.clear()
        bytes_axes, time_axes = figure.subplots(1, 2)
        for place, (_, alone, colour) in enumerate(both):
            up = max(link.to_switch for link in alone.links) / _MEGABYTE
            down = max(link.from_switch for link in alone.links) / _MEGABYTE
            bars = bytes_axes.bar([place - 0.2, place + 0.2], [up, down], 0.38, color=colour)
            bytes_axes.bar_label(bars, labels=["up", "down"])
        bytes_axes.set_xticks([0, 1], [name for name, _, _ in both])
        bytes_axes.set_ylabel("MB of one sum on the fullest link")
    for name, alone, colour in both:
        times_ms = np.sort(alone.times_s.ravel()) * 1e3
        shares = np.arange(1, len(times_ms) + 1) / len(times_ms)
        time_axes.plot(times_ms, shares, color=colour, label=name)
    limit = limit_s(run)
    if limit is not None:
        time_axes.axvline(limit * 1e3, color=_GREY, linestyle="--", label="limit of the link")
    time_axes.set_xlim(left=0)
    time_axes.set_xlabel("time of one sum alone, ms")
    time_axes.set_ylabel("share of the sums")
    time_axes.legend(frameon=False)
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def _comparison_part(run: RunRecord, picture: str) -> str:
    if run.comparison is None:
        return "<p>Not measured: one worker has no others to sum with.</p>"
    switch, hosts = run.comparison.switch, run.comparison.hosts
    switch_ms, hosts_ms = (float(np.median(alone.times_s)) * 1e3 for alone in (switch, hosts))
    text = (
        f"The same workers summed {switch.times_s.shape[1]} gradients alone, in the switch and "
        f"then among themselves over TCP ({_ALGORITHMS[run.comparison.algorithm]}). All sums were "
        f"verified. Median: {switch_ms:.1f} ms in the switch, {hosts_ms:.1f} ms among the hosts "
        f"(ratio {hosts_ms / switch_ms:.2f})."
    )
    if hosts.links:
        switch_up, hosts_up = (max(link.to_switch for link in one.links) for one in (switch, hosts))
        text += (
            f" By the counters of the switch's ports, {switch_up / _MEGABYTE:.3f} and "
            f"{hosts_up / _MEGABYTE:.3f} MB leave each host (ratio {hosts_up / switch_up:.2f})."
        )
    else:
        text += (
            " Both go over loopback, which has no rate: these are times of this machine's cores, "
            "which the workers share with the switch, and not of a network. For links with a rate, "
            "and the bytes of both on them, run the demo as root (mode veth)."
        )
    limit = limit_s(run)
    if limit is not None:
        text += f" The link's rate alone allows {limit * 1e3:.1f} ms through the switch."
    image = f'<img alt="Switch and hosts" src="data:image/png;base64,{picture}">'
    return f"{image}<p>{html.escape(text)}</p>"


def _facts(run: RunRecord) -> dict[str, str]:
    """Return the topology, and what the figures depend on."""
    hosts = ", ".join(link.host for link in run.switch.links)
    rate = "not shaped"
    if run.rate_bits_per_s is not None:
        rate = f"{run.rate_bits_per_s / 1e6:g} Mbit/s in each direction"
    return {
        "topology": f"one switch ({run.target}), a link to each of {hosts}",
        "links": f"{rate}, mode {run.mode}",
        **{name: str(value) for name, value in machine_facts().items()},
    }


def _row(name: str, value: str) -> str:
    return f"<tr><td>{html.escape(name)}</td><td>{html.escape(value)}</td></tr>"


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


def _results(run: RunRecord, proofs: list[Proof], facts: dict[str, str]) -> dict[str, object]:
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
        "links": _links(run.switch.links),
        "comparison": _compared(run.comparison),
        "facts": facts,
        "proofs": [
            {"claim": proof.claim, "is_proved": proof.is_proved, "measured": proof.measured}
            for proof in proofs
        ],
    }


def _links(links: list[WorkerLinkBytes]) -> list[dict[str, object]]:
    return [
        {"host": link.host, "to_switch": link.to_switch, "from_switch": link.from_switch}
        for link in links
    ]


def _compared(comparison: HostComparison | None) -> dict[str, object] | None:
    if comparison is None:
        return None
    measured = {
        name: {"median_s": float(np.median(alone.times_s)), "links": _links(alone.links)}
        for name, alone in (("switch", comparison.switch), ("hosts", comparison.hosts))
    }
    return {**measured, "algorithm": comparison.algorithm.value}
