# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Tables and a chart of the grid, and what became of the aims."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from benchmarks.fabric.contenders import BASELINE, CONTENDERS, SCHEDULED
from benchmarks.fabric.figures import grid_of, speed_ups
from benchmarks.fabric.link_use import PHASES
from benchmarks.fabric.tasks import FabricWorkload
from benchmarks.simulator.grid_plot import plain_number
from benchmarks.simulator.spread import Spread
from benchmarks.simulator.traces import ComputeSetting, LinkSetting

CONTENDED_AIM: Final = 1.2
WORST_AIM: Final = 2.0
BEST_AIM: Final = 3.0
CLEAN_AIM: Final = 0.95
COLOURS: Final = {
    "plain": "#7f7f7f",
    "chain": "#8c564b",
    "scheduled": "#9467bd",
    "groups": "#31a354",
    "switches": "#fdae6b",
    "switches-relays": "#e6550d",
    "plain-synchronous": "#bdbdbd",
    "synchronous": "#6baed6",
    "ring": "#ff7f0e",
    "allreduce": "#08519c",
}
TIMES_HEAD: Final = (
    "| contender | target, s | faster | at the best rate, s | faster | updates/s"
    " | iteration in step, s | of the link's limit | updates to the target"
    " | that many at the limit, s |\n"
    "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|"
)
NETWORK_HEAD: Final = (
    "| contender | delay: mean, p99 | added to a push, s: p50, p99 | get, s: p50, p99 "
    "| grant wait, ms: p50, p99 | drops | ms of processor per update: scheduler, server, switch"
    " | updates/s of a worker, by share of its link's rate |\n"
    "|---|---:|---:|---:|---:|---:|---:|---|"
)
LINK_HEAD: Final = (
    "| contender | server's link in, %: used, busy, idle | out, %: used, busy, idle"
    f" | workers, on average, each of which {', '.join(PHASES)} |\n"
    "|---|---:|---:|---:|"
)


def times_line(row: dict[str, Any], baseline: dict[str, Any]) -> str:
    """Return a contender's line of the table of times."""
    runs = row["runs"]

    def known(key: str) -> Spread:
        return Spread.of_known([run[key] for run in runs])

    cells = (
        CONTENDERS[row["contender"]].title,
        known("target_s").text(1),
        speed_ups(runs, baseline["runs"], "target_s").text(2),
        known("best_target_s").text(1),
        speed_ups(runs, baseline["runs"], "best_target_s").text(2),
        known("updates_per_s").text(2),
        iteration_text(runs),
        known("share_of_limit").text(2),
        known("reached_version").text(0),
        known("target_limit_s").text(1),
    )
    return f"| {' | '.join(cells)} |"


def iteration_text(runs: Sequence[dict[str, Any]]) -> str:
    """Return how long an iteration in step takes; earlier results do not say it."""
    found = [run["iteration_s"] for run in runs if run.get("iteration_s")]
    return Spread.of(found).text(3) if found else "-"


def network_line(row: dict[str, Any]) -> str:
    """Return a contender's line of the table of delays and costs: medians over seeds."""
    runs = row["runs"]

    def pair(key: str, scale: float, digits: int) -> str:
        found = [run[key] for run in runs if run[key]]
        if not found:
            return "-"
        parts = (scale * statistics.median(each[name] for each in found) for name in ("p50", "p99"))
        return ", ".join(f"{part:.{digits}f}" for part in parts)

    def middle(key: str) -> float:
        return statistics.median(run[key] for run in runs)

    costs = [
        statistics.median(run["processor_ms_per_update"][name] for run in runs)
        for name in ("controller", "server", "switch")
    ]
    shares = sorted({share for run in runs for share in run["by_link_share"]}, key=float)[::-1]
    by_share = [f"{share}: {messages_per_s(runs, share):.2f}" for share in shares]
    cells = (
        CONTENDERS[row["contender"]].title,
        f"{middle('mean_delay'):.1f}, {middle('p99_delay'):.0f}",
        pair("added_s", 1, 2),
        pair("get_s", 1, 2),
        pair("grant_wait_s", 1e3, 0),
        f"{sum(run['drops'] for run in runs)}",
        ", ".join(f"{cost:.1f}" for cost in costs),
        "; ".join(by_share),
    )
    return f"| {' | '.join(cells)} |"


def link_line(row: dict[str, Any]) -> str:
    """Return a contender's line of the table of the server's link: medians over seeds."""
    found = [run["link_use"] for run in row["runs"] if run.get("link_use")]
    if not found:
        return f"| {CONTENDERS[row['contender']].title} | - | - | - |"

    def shares(direction: str) -> str:
        names = ("used", "busy", "idle")
        parts = [statistics.median(each[direction][name] for each in found) for name in names]
        return ", ".join(f"{100 * part:.0f}" for part in parts)

    spent = [statistics.median(each["workers"].get(name, 0.0) for each in found) for name in PHASES]
    cells = (
        CONTENDERS[row["contender"]].title,
        shares("in"),
        shares("out"),
        ", ".join(f"{part:.1f}" for part in spent),
    )
    return f"| {' | '.join(cells)} |"


def ungranted_text(row: dict[str, Any]) -> str:
    """Return how many of a contender's updates had no grant; "": nobody grants any."""
    if not CONTENDERS[row["contender"]].is_scheduled:
        return ""
    updates = sum(run["updates"] for run in row["runs"])
    return f"{updates - sum(run['granted'] for run in row['runs'])} of {updates}"


def messages_per_s(runs: Sequence[dict[str, Any]], share: str) -> float:
    """Return the updates per second of a worker while its link had this share of its rate."""
    found = [run["by_link_share"][share] for run in runs if share in run["by_link_share"]]
    seconds = sum(each["worker_seconds"] for each in found)
    return sum(each["updates"] for each in found) / seconds if seconds else 0.0


def cell_text(rows: Sequence[dict[str, Any]], workload: FabricWorkload) -> str:
    """Return the tables of one cell."""
    baseline = next(row for row in rows if row["contender"] == BASELINE)
    lines = [
        f"\n{workload.title}, {rows[0]['cell']}\n",
        TIMES_HEAD,
        *(times_line(row, baseline) for row in rows),
        "",
        NETWORK_HEAD,
        *(network_line(row) for row in rows),
        "",
        LINK_HEAD,
        *(link_line(row) for row in rows),
    ]
    busy = [run["busy_share"] for row in rows for run in row["runs"]]
    late = [
        f"{CONTENDERS[row['contender']].title} {1e3 * max(r['overrun_s'] for r in row['runs']):.0f}"
        for row in rows
    ]
    ungranted = [
        f"{CONTENDERS[row['contender']].title}: {count}"
        for row in rows
        if (count := ungranted_text(row))
    ]
    if ungranted:
        lines.append(f"\nupdates without a grant, of all: {'; '.join(ungranted)}")
    lines.append(
        f"\nprocessor busy {100 * min(busy):.0f} to {100 * max(busy):.0f} %; by how many ms"
        f" computing took longer than the trace says, mean of the worst run: {', '.join(late)}"
    )
    return "\n".join(lines)


def grid_text(
    rows: Sequence[dict[str, Any]], contender: str, key: str, baseline: str = BASELINE
) -> str:
    """Return the grid of speed-ups over the baseline: computing by lines, links by columns."""
    grid = grid_of(rows, contender, key, baseline)
    links = [each.value for each in LinkSetting if any(row["links"] == each.value for row in rows)]
    lines = [f"| computing | {' | '.join(f'links {each}' for each in links)} |"]
    lines.append(f"|---|{'---:|' * len(links)}")
    for computing in ComputeSetting:
        names = [f"links {each}, computing {computing.value}" for each in links]
        if any(name in grid for name in names):
            cells = [grid[name].text(2) if name in grid else "-" for name in names]
            lines.append(f"| {computing.value} | {' | '.join(cells)} |")
    return "\n".join(lines)


def aims(rows: Sequence[dict[str, Any]], key: str) -> list[str]:
    """Return what became of the aims, by the medians of the cells that were run."""
    grid = {
        cell: spread.median
        for cell, spread in grid_of(rows, SCHEDULED, key).items()
        if spread.num_missing < spread.num_seeds
    }
    clean = f"links {LinkSetting.EVEN.value}, computing {ComputeSetting.EVEN.value}"
    worst = f"links {LinkSetting.REDRAWN.value}, computing {ComputeSetting.STRAGGLERS.value}"
    contended = {cell: gain for cell, gain in grid.items() if cell != clean}
    lines: list[str] = []
    if contended:
        least, most = min(contended.values()), max(contended.values())
        met = sum(gain >= CONTENDED_AIM for gain in contended.values())
        lines += [
            f"aim: at least {CONTENDED_AIM} times as fast in each contended cell: {met} of"
            f" {len(contended)}, {_verdict(least >= CONTENDED_AIM)} (least {least:.2f})",
            f"aim: {BEST_AIM:g} times somewhere: {most:.2f}, {_verdict(most >= BEST_AIM)}",
        ]
    if worst in grid:
        lines.append(
            f"aim: at least {WORST_AIM:g} times in the worst cell, {worst}: {grid[worst]:.2f},"
            f" {_verdict(grid[worst] >= WORST_AIM)}"
        )
    if clean in grid:
        lines.append(
            f"aim: at most 5 % slower without contention: {grid[clean]:.2f},"
            f" {_verdict(grid[clean] >= CLEAN_AIM)}"
        )
    return lines


def _verdict(is_met: bool) -> str:
    return "met" if is_met else "missed"


def draw(workloads: dict[str, list[dict[str, Any]]], titles: dict[str, str], path: Path) -> None:
    """Write bars of the speed to the target by cell, and delays, a line of panels each workload."""
    from benchmarks.support.plot import untyped  # noqa: PLC0415 - takes time to load

    figure, panels = untyped.subplots(
        len(workloads), 2, figsize=(13, 4.2 * len(workloads)), squeeze=False, layout="constrained"
    )
    for line, (name, rows) in zip(panels, workloads.items(), strict=True):
        _draw_speeds(line[0], rows, titles[name])
        _draw_delays(line[1], rows, titles[name])
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    untyped.close(figure)


def _draw_speeds(axes: Any, rows: Sequence[dict[str, Any]], title: str) -> None:
    cells = list(dict.fromkeys(row["cell"] for row in rows))
    names = list(dict.fromkeys(row["contender"] for row in rows))
    width = 0.8 / len(names)
    for order, name in enumerate(names):
        grid = grid_of(rows, name, "target_s")
        label = CONTENDERS[name].title
        for place, cell in enumerate(cells):
            gain = grid.get(cell)
            if gain is None or gain.num_missing == gain.num_seeds:
                continue
            axes.bar(
                place + (order - (len(names) - 1) / 2) * width,
                gain.median,
                0.95 * width,
                yerr=[[gain.median - gain.least], [gain.most - gain.median]],
                color=COLOURS[name],
                label=label,
                error_kw={"elinewidth": 0.8},
            )
            label = ""
    axes.axhline(1.0, color="black", linewidth=0.8)
    axes.set_yscale("log", base=2)
    axes.yaxis.set_major_formatter(plain_number)
    axes.grid(axis="y", alpha=0.3)
    labels = [cell.replace("links ", "").replace(", computing ", "\n") for cell in cells]
    axes.set_xticks(range(len(cells)), labels, fontsize=6)
    axes.set_ylabel("speed to the target, times asynchronous PS", fontsize=8)
    axes.set_title(f"{title}: links and computing, by cell", fontsize=9)


def _draw_delays(axes: Any, rows: Sequence[dict[str, Any]], title: str) -> None:
    for name in dict.fromkeys(row["contender"] for row in rows):
        if CONTENDERS[name].is_stepwise:
            continue
        counts: dict[int, int] = {}
        for run in (run for row in rows if row["contender"] == name for run in row["runs"]):
            for delay, count in run["delays"].items():
                counts[int(delay)] = counts.get(int(delay), 0) + count
        total = sum(counts.values())
        delays = sorted(counts)
        reached = [sum(counts[each] for each in delays if each <= one) / total for one in delays]
        axes.step(delays, reached, where="post", color=COLOURS[name], linewidth=1.5)
    axes.set_xlabel("delay of an update: updates between its version and itself", fontsize=8)
    axes.set_ylabel("share of updates, all cells", fontsize=8)
    axes.grid(alpha=0.3)
    axes.set_title(f"{title}: delays of served contenders", fontsize=9)
