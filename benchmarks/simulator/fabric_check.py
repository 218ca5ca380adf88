# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Checks the simulator against trainings on a testbed: files that `switchfold bench fabric` wrote.

Each run is simulated with its links, computing times, seed, sizes and waits, for as long as it
lasted. Links carry what TCP's headers and acknowledgements leave. The scheduler knows links by
estimates, as the controller did. Without one, a request waits in queues as long as those of the run
did, and the answer to an update as long again. Streams to a server have drawn weights, so several
simulations count, each with other ones. Times are medians. The exit status is 1 if a figure differs
by more than the tolerance.
Run: python benchmarks/simulator/fabric_check.py part1/fabric.json part2/fabric.json
"""

from __future__ import annotations

import argparse
import ast
import json
import statistics
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.fabric import contenders as fabric
from benchmarks.fabric.link_use import PHASES
from benchmarks.fabric.settings import Cell, ClusterSize, RateOverTime
from benchmarks.fabric.tasks import WORKLOADS
from benchmarks.simulator.asynchronous import ComputeTimes
from benchmarks.simulator.contenders import (
    CONTENDERS,
    ContenderRun,
    SimulatedContender,
    simulate,
    tau_max_of,
)
from benchmarks.simulator.estimated import EstimatedRun
from benchmarks.simulator.outcome import commit_times, get_times
from benchmarks.simulator.replay import Comparison
from benchmarks.simulator.scenario import Scenario
from benchmarks.simulator.scheduled import GroupPlaces
from benchmarks.simulator.traces import ComputeSetting, LinkSetting
from benchmarks.support.results import parameters_of, write_json
from switchfold.controller.transfers.transfer_config import TransferConfig
from switchfold.hostlib.schemes.tcp import (
    TCP_ACK_BYTES,
    TCP_FRAME_BYTES,
    TCP_PAYLOAD_BYTES,
    ring_bytes,
)

RESULTS = Path(__file__).parents[1] / "results"
LINK_SHARE: Final = TCP_PAYLOAD_BYTES / (TCP_FRAME_BYTES + TCP_ACK_BYTES / 2)
"""Payload of a link that is full in both directions: every second segment of one is acknowledged in
the other."""
_PLAIN: Final = {
    fabric.BASELINE: "async-ps",
    fabric.CHAIN: "chain",
    fabric.SYNCHRONOUS_PS: "sync-ps",
    fabric.RING: "ring",
}
"""Contenders without a scheduler, and the simulator's."""
_PLACES: Final = {
    fabric.SCHEDULED: GroupPlaces.NOWHERE,
    "switches": GroupPlaces.SWITCHES,
    "switches-relays": GroupPlaces.SWITCHES,
}
"""Scheduled ones, and where updates are added."""


class FabricPartError(Exception):
    """A file that has no runs to compare: the message says which, and why."""


@dataclass(frozen=True, kw_only=True)
class FabricPart:
    """One run of a file."""

    workload: str
    contender: str
    cell: Cell
    size: ClusterSize
    transfers: Mapping[str, str]
    """TOML values of the controller's table [transfers]."""
    figures: Mapping[str, Any]
    """As `benchmarks.fabric.figures` has them."""

    @property
    def message_wait_s(self) -> float:
        """How long a request for a model waited until its server read it, on average."""
        waiting = self.figures.get("link_use", {}).get("workers", {}).get(PHASES[0], 0.0)
        return waiting / self.figures["updates_per_s"]

    @property
    def recorded(self) -> dict[str, float]:
        """Figures to compare, by name; those that the run does not have are left out."""
        found = {
            "updates/s": self.figures["updates_per_s"],
            "mean delay": self.figures["mean_delay"],
            "push, s": self.figures["push_s"].get("p50"),
            "get, s": self.figures["get_s"].get("p50"),
        }
        if fabric.CONTENDERS[self.contender].is_served:
            use = self.figures.get("link_use", {})
            found |= {f"link {name}": use.get(name, {}).get("used") for name in ("in", "out")}
        return {name: value for name, value in found.items() if value is not None}


def read_parts(path: Path) -> Iterator[FabricPart]:
    """Yield the runs of a file; FabricPartError if it is none of `switchfold bench fabric`."""
    try:
        content: Any = json.loads(path.read_text("utf-8"))
        parameters = content["parameters"]
        transfers = ast.literal_eval(parameters["transfers"])
        workers, rate = int(parameters["workers"]), int(parameters["rate"])
        for workload, rows in content["rows"].items():
            size = ClusterSize(
                num_workers=workers,
                num_values=WORKLOADS[workload].num_values,
                rate_bits_per_s=rate,
            )
            for row in rows:
                for run in row["runs"]:
                    yield FabricPart(
                        workload=workload,
                        contender=row["contender"],
                        cell=Cell(
                            links=LinkSetting(row["links"]),
                            computing=ComputeSetting(row["computing"]),
                            seed=run["seed"],
                        ),
                        size=size,
                        transfers=transfers,
                        figures=run,
                    )
    except (ValueError, KeyError, TypeError, SyntaxError) as exc:
        raise FabricPartError(
            f"{path} is no part of an evaluation ({exc!r}): give a fabric.json that"
            " `switchfold bench fabric` wrote, not one of --join"
        ) from exc


def matching_contender(name: str, transfers: Mapping[str, str]) -> SimulatedContender | None:
    """Return the simulator's contender for one of the testbed, None if it has none."""
    if name in _PLAIN:
        return CONTENDERS[_PLAIN[name]]
    if name not in _PLACES:
        return None
    config = TransferConfig(**tomllib.loads("\n".join(f"{k} = {v}" for k, v in transfers.items())))
    if not fabric.CONTENDERS[name].is_relaying:
        config = replace(config, relay_max=1)
    planned_share = config.payload_share / LINK_SHARE

    def make(scenario: Scenario, computing: ComputeTimes | None) -> EstimatedRun:
        options = config.scheduler_options(None, tau_max_of(scenario.num_workers))
        return EstimatedRun(
            scenario,
            computing,
            places=_PLACES[name],
            options=options,
            planned_share=planned_share,
        )

    return SimulatedContender(name=name, label=fabric.CONTENDERS[name].title, make=make)


def scenario_of_part(part: FabricPart, stream_seed: int, start_spread_s: float = 0.0) -> Scenario:
    """Return the cell of a run; links have their rates of payload."""
    size = part.size
    if fabric.CONTENDERS[part.contender].is_served:
        share = LINK_SHARE
    else:
        sent = 2 * (size.num_workers - 1) / size.num_workers * size.model_bytes
        share = sent / ring_bytes(sent, size.rate_bits_per_s)
    rate = round(share * size.rate_bits_per_s)
    return Scenario(
        num_workers=size.num_workers,
        seed=part.cell.seed,
        stream_seed=stream_seed,
        message_wait_s=part.message_wait_s,
        start_spread_s=start_spread_s,
        update_bytes=size.model_bytes,
        link_bits_per_s=rate,
        server_link_bits_per_s=rate,
        compute_s=size.compute_s,
        links=part.cell.links,
        computing=part.cell.computing,
    )


def simulated_figures(part: FabricPart, run: ContenderRun) -> dict[str, float]:
    """Return the figures of a simulation that has lasted as long as the run."""
    seconds = part.figures["seconds"]
    rates = RateOverTime(size=part.size, trace=part.size.link_trace(part.cell))
    carried_bytes = rates.server_limit(seconds) * part.size.transfer_s / 8
    carried_bytes *= part.size.rate_bits_per_s
    received, sent = run.server_in_bytes, run.server_out_bytes
    return {
        "updates/s": run.figures.updates_per_s,
        "mean delay": run.figures.mean_delay,
        "push, s": _median(commit_times(run.events)),
        "get, s": _median(get_times(run.events)),
        "link in": _wire_bytes(received, sent) / carried_bytes,
        "link out": _wire_bytes(sent, received) / carried_bytes,
    }


def compare_part(
    part: FabricPart, draws: int, start_spread_s: float = 0.0
) -> list[Comparison] | None:
    """Return the figures of a run beside the means of its simulations, None if it has none."""
    contender = matching_contender(part.contender, part.transfers)
    if contender is None:
        return None
    found: list[dict[str, float]] = []
    for draw in range(draws):
        scenario = scenario_of_part(part, draw, start_spread_s)
        run = simulate(contender, scenario, duration_s=part.figures["seconds"])
        found.append(simulated_figures(part, run))
    return [
        Comparison(
            name=name,
            recorded=recorded,
            simulated=statistics.mean(each[name] for each in found),
        )
        for name, recorded in part.recorded.items()
    ]


def _median(values: Sequence[float]) -> float:
    return statistics.median(values) if values else 0.0


def _wire_bytes(there: float, back: float) -> float:
    """Return bytes of frames, and of acknowledgements of what goes the other direction."""
    frames = there * TCP_FRAME_BYTES + back * TCP_ACK_BYTES / 2
    return frames / TCP_PAYLOAD_BYTES


NAMES: Final = ("updates/s", "mean delay", "push, s", "get, s", "link in", "link out")


def row_text(part: FabricPart, rows: Sequence[Comparison]) -> str:
    """Return a line of the table: each figure live, simulated, and the difference."""
    known = {row.name: row for row in rows}
    cells = [part.workload, part.cell.links.value, part.cell.computing.value]
    cells += [f"{part.cell.seed}", part.contender]
    for name in NAMES:
        row = known.get(name)
        cells.append(
            f"{row.recorded:.2f}, {row.simulated:.2f}: {100 * row.difference:+.0f} %" if row else ""
        )
    return f"| {' | '.join(cells)} |"


def summary(
    compared: Iterable[tuple[FabricPart, Sequence[Comparison]]], tolerance: float
) -> Iterator[str]:
    """Yield a line for each contender: how many runs are close, and the range of differences."""
    by_name: dict[tuple[str, str], list[float]] = {}
    for part, rows in compared:
        for row in rows:
            by_name.setdefault((part.contender, row.name), []).append(row.difference)
    for (contender, name), found in by_name.items():
        close = sum(abs(each) <= tolerance for each in found)
        least, most = (f"{100 * each:+.0f}" for each in (min(found), max(found)))
        yield f"| {contender} | {name} | {close} of {len(found)} | {least} .. {most} % |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare; return the exit status."""
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("Run:")[0],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("parts", type=Path, nargs="+", metavar="FABRIC_JSON")
    parser.add_argument("--tolerance", type=float, default=0.1, help="default 0.1")
    parser.add_argument(
        "--draws", type=int, default=10, help="simulations of a run, of which the mean counts"
    )
    parser.add_argument(
        "--start-spread",
        type=float,
        default=0.0,
        metavar="S",
        help="workers begin at moments drawn from so many seconds; runs do not record when theirs"
        " did; default 0",
    )
    parser.add_argument("--name", default="simulator_fabric", help="of the file in results/")
    options = parser.parse_args(arguments)
    compared: list[tuple[FabricPart, list[Comparison]]] = []
    missing: set[str] = set()
    print(f"| workload | links | computing | seed | contender | {' | '.join(NAMES)} |")
    print(f"|---|---|---|---|---|{'---|' * len(NAMES)}")
    try:
        for path in options.parts:
            for part in read_parts(path):
                rows = compare_part(part, options.draws, options.start_spread)
                if rows is None:
                    missing.add(part.contender)
                    continue
                compared.append((part, rows))
                print(row_text(part, rows), flush=True)
    except (OSError, FabricPartError) as exc:
        parser.exit(2, f"{exc}\n")
    for name in sorted(missing):
        print(f"\n{name}: the simulator does not have it")
    tolerance = f"{100 * options.tolerance:.0f} %"
    print(f"\n| contender | figure | within {tolerance} | differences |\n|---|---|---|---|")
    for line in summary(compared, options.tolerance):
        print(line)
    content = [
        {
            "workload": part.workload,
            "contender": part.contender,
            "links": part.cell.links.value,
            "computing": part.cell.computing.value,
            "seed": part.cell.seed,
            "figures": [asdict(row) | {"difference": row.difference} for row in rows],
        }
        for part, rows in compared
    ]
    parameters = parameters_of(options)
    write_json(RESULTS / f"{options.name}.json", {"parameters": parameters, "rows": content})
    is_close = all(abs(row.difference) <= options.tolerance for _, rows in compared for row in rows)
    return 0 if is_close else 1


if __name__ == "__main__":
    sys.exit(main())
