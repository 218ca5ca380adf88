# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Sums of all members as the transfer scheduler plans them, beside a ring over TCP.

Members are on hosts of a testbed, in network namespaces around softswitch, and its controller plans
on a share of the links' rates. For each number of members, planned sums and those of a ring take
turns: first on equal links, then with a slower one. Each sum must be exact. A planned sum that a
member has sent without a grant is made again, and counted. Links are narrow, so that the processor
limits nothing; the report says how busy it was.
Run as root: python benchmarks/scheduler/allreduces.py
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from benchmarks.support.limits import Series, host_allreduce_limit_s, ring_limit_s  # noqa: E402
from benchmarks.support.machine import (  # noqa: E402
    check_machine,
    describe_machine,
    machine_line,
    parse_rate,
)
from benchmarks.support.processor import read_times  # noqa: E402
from benchmarks.support.results import parameters_of, write_json  # noqa: E402
from benchmarks.support.transfers import restart_controller  # noqa: E402
from benchmarks.support.worker_runs import switch_pids  # noqa: E402
from benchmarks.transport.among_hosts import join_among_hosts  # noqa: E402
from scheme_fabric import Fabric  # noqa: E402
from switchfold.bmv2_topos import Testbed, Topology, single_switch  # noqa: E402
from switchfold.bmv2_topos.errors import TestbedError  # noqa: E402
from switchfold.hostlib.errors import HostlibError  # noqa: E402
from switchfold.hostlib.future import AllreduceFuture  # noqa: E402
from switchfold.hostlib.parameter_server import ClientOptions  # noqa: E402
from switchfold.hostlib.parameter_server.transfers import (  # noqa: E402
    FabricMember,
    TransferOptions,
)
from switchfold.hostlib.peers import PeerServer  # noqa: E402

Floats = NDArray[np.float32]
Calls = Sequence[Callable[[], Future[Floats] | AllreduceFuture]]
WAIT_S: Final = 300.0
PORT: Final = 7_200
"""Of members; that of the ring is the next one. Each further job has the two after them."""
PAYLOAD_SHARE: Final = 0.92
"""Of a link's rate: headers of TCP take a twentieth, and acknowledgements of the other direction up
to as much again."""
EQUAL_AIM: Final = 0.2
"""How far planned sums and the ring's may be apart on equal links."""
MOST_UNGRANTED: Final = 5
"""For each round, others in which a member may have no grant."""
LINKS: Final = ("equal", "slow")
HEADINGS: Final = (
    "members",
    "planned, s",
    "ring, s",
    "planned / ring",
    "limit, s: planned, ring",
    "of the limit, %: planned, ring",
    "processor busy, %",
    "without a grant",
)


class SumError(Exception):
    """A sum is wrong, or does not travel as planned: nothing is reported."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Compared:
    """Rounds of one number of members on links of one kind."""

    links: str
    num_members: int
    planned: Series
    ring: Series
    num_ungranted: int
    """Sums that a member has sent without a grant, made again."""

    @property
    def ratios(self) -> list[float]:
        """By round, the planned sum's time over the ring's."""
        pairs = zip(self.planned.times_s, self.ring.times_s, strict=True)
        return [planned / ring for planned, ring in pairs]

    @property
    def ratio(self) -> float:
        """Their median."""
        return statistics.median(self.ratios)

    def as_dict(self) -> dict[str, Any]:
        """Return all figures."""
        return {
            "links": self.links,
            "members": self.num_members,
            "planned": self.planned.as_dict(),
            "ring": self.ring.as_dict(),
            "ratios": self.ratios,
            "ungranted": self.num_ungranted,
        }


@dataclasses.dataclass(frozen=True, kw_only=True)
class SumRound:
    """What one sum took; all figures in seconds but the share."""

    time_s: float
    busy_share: float
    """Used share of all cores' time, by any process."""
    worker_cpu_s: float
    """Processor time of this process, in which all members are."""
    switch_cpu_s: float


def series(label: str, rounds: Sequence[SumRound], limit_s: float) -> Series:
    """Return the figures of a contender's sums through one switch."""
    switch_cpu_s = tuple(each.switch_cpu_s for each in rounds)
    return Series(
        label=label,
        limit_s=limit_s,
        times_s=tuple(each.time_s for each in rounds),
        busy_shares=tuple(each.busy_share for each in rounds),
        worker_cpu_s=tuple(each.worker_cpu_s for each in rounds),
        switch_cpu_s=switch_cpu_s,
        busiest_switch_s=switch_cpu_s,
    )


def take_turns(
    planned: Callable[[], SumRound],
    ring: Callable[[], SumRound],
    num_ungranted: Callable[[], int],
    rounds: int,
) -> tuple[list[SumRound], list[SumRound], int]:
    """Sum by both kinds in turn, after a warm-up; return also how many sums had no grant.

    `num_ungranted` returns how many calls of members have had none so far; such a sum is made
    again. Raises SumError if there are too many of them.
    """
    planned()
    ring()
    found: list[SumRound] = []
    others: list[SumRound] = []
    ungranted = 0
    while len(found) < rounds:
        before = num_ungranted()
        one = planned()
        if num_ungranted() > before:
            ungranted += 1
            if ungranted > MOST_UNGRANTED * rounds:
                raise SumError("the controller grants no sums; its log says why")
            continue
        found.append(one)
        others.append(ring())
    return found, others, ungranted


class SumJob:
    """Members on the first hosts of a testbed, and the workers of a ring on the same hosts."""

    def __init__(
        self, stack: contextlib.ExitStack, testbed: Testbed, num_members: int, num_values: int
    ) -> None:
        self._testbed, self._num_values = testbed, num_values
        self._fabric, self._numbers = Fabric(testbed), range(num_members)
        self._switch_pids = [int(pid) for pid in switch_pids(testbed).split(",")]
        self._seed = 0
        addresses = self._fabric.addresses[:num_members]
        port = PORT + 2 * num_members
        members = [(address, port) for address in addresses]
        self._members = [
            stack.enter_context(self._fabric.at(n, lambda n=n: self._member(members, n)))
            for n in self._numbers
        ]
        peers = [
            self._fabric.at(n, lambda n=n: PeerServer(addresses[n], port + 1))
            for n in self._numbers
        ]
        self._sessions = [
            stack.enter_context(  # it closes the peer server, too
                self._fabric.at(n, lambda n=n: join_among_hosts(addresses, n, peers[n], WAIT_S))
            )
            for n in self._numbers
        ]

    def _member(self, members: Sequence[tuple[str, int]], number: int) -> FabricMember:
        endpoint = self._testbed.endpoint(number)
        options = TransferOptions(
            controller=self._testbed.controller_address,
            job=f"sums of {len(members)}",
            host=endpoint.host.name,
            token=endpoint.token,
            credentials=str(endpoint.credentials),
            grant_wait_s=WAIT_S,
        )
        client = ClientOptions(
            worker_id=number, source=endpoint.host.address, timeout_s=WAIT_S, insecure=True
        )
        return FabricMember(members, options, client)

    def num_ungranted(self) -> int:
        """Return how many calls of members have had no grant."""
        return sum(member.counters["ungranted_allreduces"] for member in self._members)

    def planned(self) -> SumRound:
        """Sum as the scheduler plans it. Raises SumError."""
        vectors = self._vectors()
        pairs = zip(self._members, vectors, strict=True)
        return self._sum([lambda m=m, v=v: m.all_reduce(v) for m, v in pairs], vectors)

    def ring(self) -> SumRound:
        """Sum by the ring. Raises SumError."""
        vectors = self._vectors()
        pairs = zip(self._sessions, vectors, strict=True)
        return self._sum([lambda s=s, v=v: s.allreduce(v) for s, v in pairs], vectors)

    def _vectors(self) -> list[Floats]:
        """Return others than before, of whole numbers: sums are exact in any order."""
        self._seed += 1
        rng = np.random.default_rng(self._seed)
        return [rng.integers(-9, 10, self._num_values).astype(np.float32) for _ in self._numbers]

    def _sum(self, calls: Calls, vectors: Sequence[Floats]) -> SumRound:
        """Make all calls at once; verify each result."""
        total = np.sum(vectors, axis=0)
        before, cpu_before_s = read_times(self._switch_pids), time.process_time()
        began_s = time.monotonic()
        results = [future.result(WAIT_S) for future in [call() for call in calls]]
        taken_s = time.monotonic() - began_s
        after, cpu_after_s = read_times(self._switch_pids), time.process_time()
        verify(results, total)
        total_s = after.total_s - before.total_s
        return SumRound(
            time_s=taken_s,
            busy_share=(after.busy_s - before.busy_s) / total_s if total_s else 0.0,
            worker_cpu_s=cpu_after_s - cpu_before_s,
            switch_cpu_s=sum(after.switches_s) - sum(before.switches_s),
        )


def verify(results: Sequence[Floats], total: Floats) -> None:
    """Raise SumError unless all members have the exact sum."""
    wrong = [number for number, each in enumerate(results) if not np.array_equal(each, total)]
    if wrong:
        raise SumError(f"members {wrong} of {len(results)} have a wrong sum")


def topology_of(links: str, num_hosts: int, rate: int, slow_share: float) -> Topology:
    """Return hosts around one switch; the first one's link may be slower."""
    topology = single_switch(num_hosts, rate_bits_per_s=rate)
    if links == "equal":
        return topology
    first, *others = topology.links
    slow = dataclasses.replace(first, rate_bits_per_s=round(slow_share * rate))
    return dataclasses.replace(topology, links=(slow, *others))


def measure(options: argparse.Namespace, links: str) -> Iterator[Compared]:
    """Yield the figures of each number of members on a testbed with links of one kind.

    Raises SumError, TestbedError and HostlibError.
    """
    topology = topology_of(links, max(options.members), options.rate, options.slow_share)
    num_values = round(options.megabytes * 1e6) // 4
    waits = {"grant_wait_s": "60", "server_wait_s": "60"}
    with Testbed(topology) as testbed:
        restart_controller(testbed, {"payload_share": f"{options.payload_share}", **waits})
        for count in options.members:
            rates = [float(link.rate_bits_per_s or 0) for link in topology.links[:count]]
            with contextlib.ExitStack() as stack:
                job = SumJob(stack, testbed, count, num_values)
                planned, ring, num_ungranted = take_turns(
                    job.planned, job.ring, job.num_ungranted, options.rounds
                )
            size = 4 * num_values
            yield Compared(
                links=links,
                num_members=count,
                planned=series("planned", planned, host_allreduce_limit_s(size, rates)),
                ring=series("ring", ring, ring_limit_s(size, min(rates), count)),
                num_ungranted=num_ungranted,
            )


def spread(values: Sequence[float], digits: int = 2) -> str:
    """Return median (least .. most)."""
    parts = statistics.median(values), min(values), max(values)
    return "{:.{d}f} ({:.{d}f} .. {:.{d}f})".format(*parts, d=digits)


def line(found: Compared) -> str:
    """Return a line of the table."""
    planned, ring = found.planned, found.ring
    busy = max(planned.busy_share, ring.busy_share)
    is_bound = planned.is_cpu_bound or ring.is_cpu_bound
    cells = (
        f"{found.num_members}",
        spread(planned.times_s),
        spread(ring.times_s),
        spread(found.ratios),
        f"{planned.limit_s:.2f}, {ring.limit_s:.2f}",
        f"{100 * planned.share_of_limit:.0f}, {100 * ring.share_of_limit:.0f}",
        f"{100 * busy:.0f}{', which is the limit' if is_bound else ''}",
        f"{found.num_ungranted}",
    )
    return f"| {' | '.join(cells)} |"


def aims(rows: Sequence[Compared]) -> list[str]:
    """Return what became of the aims, by medians.

    With two members, a slow link must carry the vector once by either kind of sum, so neither can
    be faster.
    """
    lines: list[str] = []
    equal = [row for row in rows if row.links == "equal"]
    if equal:
        far = [row.num_members for row in equal if abs(row.ratio - 1) > EQUAL_AIM]
        ratios = [row.ratio for row in equal]
        lines.append(
            f"aim: on equal links, within {100 * EQUAL_AIM:.0f} % of the ring:"
            f" {_verdict(far)} (ratios {min(ratios):.2f} .. {max(ratios):.2f})"
        )
    slow = [row for row in rows if row.links == "slow" and row.num_members > 2]
    if slow:
        late = [row.num_members for row in slow if row.ratio >= 1]
        ratios = [row.ratio for row in slow]
        lines.append(
            "aim: with one slow link and 3 members or more, faster than the ring:"
            f" {_verdict(late)} (ratios {min(ratios):.2f} .. {max(ratios):.2f})"
        )
    return lines


def _verdict(missed: Sequence[int]) -> str:
    return f"missed with {', '.join(map(str, missed))} members" if missed else "met"


def parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the options; SystemExit with status 2 says what is wrong with one."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    counts = [*range(2, 9)]
    add("--members", type=int, nargs="+", default=counts, metavar="N", help="default 2 to 8")
    add("--links", nargs="+", choices=LINKS, default=LINKS, help="default both")
    add("--rate", type=parse_rate, default=20_000_000, help="of links (20M)")
    add("--slow-share", type=float, default=0.25, help="of the rate, on a slow link (0.25)")
    add("--payload-share", type=float, default=PAYLOAD_SHARE, help="of the rate, planned (0.92)")
    add("--megabytes", type=float, default=2.5, help="of a vector (2.5)")
    add("--rounds", type=int, default=5, help="of both kinds, after a warm-up (5)")
    add("--json", type=Path, help="file that also gets the figures")
    options = parser.parse_args(arguments)
    if not all(2 <= count <= 16 for count in options.members):
        parser.error("--members: a sum has 2 to 16 members")
    if not (0 < options.slow_share <= 1 and options.rounds > 0 and options.megabytes > 0):
        parser.error("--slow-share lies in 0..1, and --rounds and --megabytes are above 0")
    return options


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print; SystemExit says why it stopped."""
    options = parse_options(arguments)
    check_machine(has_torch=False)
    machine = describe_machine(has_torch=False)
    print(machine_line(machine))
    print(
        f"vectors of {options.megabytes:g} MB, links of {options.rate / 1e6:g} Mbit/s, plans on"
        f" {options.payload_share:g} of it; {options.rounds} rounds in turn, medians"
        " (least .. most); every sum is exact"
    )
    rows: list[Compared] = []
    try:
        for links in options.links:
            slow = f"one of {options.slow_share * options.rate / 1e6:g} Mbit/s"
            print(f"\nlinks: {'all equal' if links == 'equal' else slow}\n")
            print(f"| {' | '.join(HEADINGS)} |\n|{'---|' * len(HEADINGS)}")
            for found in measure(options, links):
                rows.append(found)
                print(line(found), flush=True)
    except (SumError, TestbedError, HostlibError) as exc:
        raise SystemExit(f"benchmark stopped: {exc}") from exc
    print("", *aims(rows), sep="\n")
    if options.json:
        content = {"machine": machine, "parameters": parameters_of(options)}
        write_json(options.json, content | {"rows": [row.as_dict() for row in rows]})


if __name__ == "__main__":
    main()
