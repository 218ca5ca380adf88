# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Writes a seeded trace of link rates that a testbed follows, from the simulator's own settings.

The simulator and all contenders of a live benchmark then see the same changes. Hosts are h1, h2,
...; the last ones are the servers.
Run: python benchmarks/simulator/link_trace.py --links redrawn --hosts 9 --seconds 60 FILE
Then: switchfold testbed rate --trace FILE
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.simulator.replay import parse_bits_per_s
from benchmarks.simulator.traces import LinkSetting, LinkTrace
from switchfold.bmv2_topos.network.rate_trace import LinkRateChange, write_trace


def link_trace(setting: LinkSetting, seed: int, num_hosts: int, num_servers: int = 1) -> LinkTrace:
    """Return the trace of hosts h1 to h<num_hosts>, of which the last ones are servers."""
    if not 1 <= num_servers < num_hosts:
        raise ValueError(f"{num_servers} servers of {num_hosts} hosts; give at least one worker")
    hosts = [f"h{number}" for number in range(1, num_hosts + 1)]
    workers = hosts[: num_hosts - num_servers]
    return LinkTrace(setting=setting, seed=seed, hosts=hosts, workers=workers)


def link_rate_changes(
    trace: LinkTrace, rate_bits_per_s: float, duration_s: float
) -> Iterator[LinkRateChange]:
    """Yield the rates of all hosts' links at the start, then those that differ from before."""
    before: dict[str, float] = {}
    num_periods = max(1, math.ceil(duration_s / trace.period_s)) if trace.changes else 1
    for period in range(num_periods):
        shares = trace.shares(period)
        for host, share in shares.items():
            if before.get(host) != share:
                yield LinkRateChange(
                    time_s=period * trace.period_s,
                    link=host,
                    rate_bits_per_s=round(share * rate_bits_per_s),
                )
        before = shares


def main() -> None:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("Run:")[0],
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    settings = [setting.value for setting in LinkSetting]
    parser.add_argument("file", type=Path, help="gets the trace, as JSON lines")
    parser.add_argument("--links", choices=settings, default=LinkSetting.REDRAWN.value)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--hosts", type=int, default=9, help="workers and servers")
    parser.add_argument("--servers", type=int, default=1, help="of them, the last ones")
    parser.add_argument("--rate", type=parse_bits_per_s, default=1e8, help="of the topology")
    parser.add_argument("--seconds", type=float, default=60.0, help="length of the trace")
    options = parser.parse_args()
    try:
        trace = link_trace(LinkSetting(options.links), options.seed, options.hosts, options.servers)
    except ValueError as exc:
        parser.error(str(exc))
    write_trace(options.file, link_rate_changes(trace, options.rate, options.seconds))


if __name__ == "__main__":
    main()
