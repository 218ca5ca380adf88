# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What rounds of live groups took, their limits, and the tables of a report."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.simulator.spread import Spread
from switchfold.hostlib.schemes.tcp import TCP_FRAME_BYTES, TCP_PAYLOAD_BYTES
from switchfold.hostlib.slots.wire import VALUES_PER_PACKET_WIDE, frame_bytes

KINDS: Final = {
    "switch": "added by the switch",
    "hosts": "added by idle hosts",
    "direct": "granted, not added",
    "unscheduled": "neither granted nor added",
}
"""How updates reach their server."""
PAIRS: Final = (
    ("switch", "hosts"),
    ("hosts", "direct"),
    ("switch", "direct"),
    ("switch", "unscheduled"),
    ("direct", "unscheduled"),
)
"""Kinds whose rounds are compared, one by one."""
ROLES: Final = ("aggregators", "switch", "server", "controller", "workers")
"""Processes whose processor time is read; all workers are in one process."""
SUM_FRAME_BYTES: Final = frame_bytes(VALUES_PER_PACKET_WIDE)
"""Of a packet with a sum, as the counters of interfaces see it."""


@dataclass(frozen=True, kw_only=True)
class GroupRound:
    """A round of pushes of one kind."""

    kind: str
    """Key of KINDS."""
    num_updates: int
    last_s: float
    """From the pushes to the last commit."""
    mean_s: float
    ingress_bytes: int
    """Of frames into the server's host."""
    groups: tuple[int, ...]
    """Updates in each sum."""
    processor_s: Mapping[str, float]
    """By role."""
    num_withdrawn: int = 0
    """Updates whose grants the scheduler gave up: they came late, outside their places."""

    @property
    def num_grouped(self) -> int:
        """Updates that came in sums."""
        return sum(self.groups)

    @property
    def num_messages(self) -> int:
        """Sums, and updates by themselves."""
        return len(self.groups) + self.num_updates - self.num_grouped


@dataclass(frozen=True, kw_only=True)
class LinkLimits:
    """What messages need at least on the server's link."""

    num_values: int
    """Of an update."""
    rate_bits_per_s: int

    @property
    def update_bytes(self) -> int:
        """Of an update's values."""
        return 4 * self.num_values

    @property
    def tcp_bytes(self) -> int:
        """Of an update, or of a host's sum, in full TCP segments."""
        return -(-self.update_bytes // TCP_PAYLOAD_BYTES) * TCP_FRAME_BYTES

    @property
    def switch_bytes(self) -> int:
        """Of a switch's sum."""
        return -(-self.num_values // VALUES_PER_PACKET_WIDE) * SUM_FRAME_BYTES

    def sum_bytes(self, kind: str) -> int:
        """Return the bytes of one sum of a kind."""
        return self.switch_bytes if kind == "switch" else self.tcp_bytes

    def bytes_of(self, found: GroupRound) -> int:
        """Return the bytes of a round's messages."""
        num_sums = len(found.groups)
        alone = (found.num_messages - num_sums) * self.tcp_bytes
        return num_sums * self.sum_bytes(found.kind) + alone

    def seconds_of(self, found: GroupRound) -> float:
        """Return how long the link is busy with these bytes."""
        return 8 * self.bytes_of(found) / self.rate_bits_per_s


@dataclass(frozen=True, kw_only=True)
class Compression:
    """How many times fewer bytes reach the server's host if updates are merged."""

    kind: str
    num_members: int
    """Updates in each sum."""
    sum_bytes: tuple[float, ...]
    """Of a sum, by round."""
    least_bytes: int
    direct_bytes: float
    """Of an update by itself, as measured."""
    least_direct_bytes: int

    @property
    def measured(self) -> tuple[float, ...]:
        """By round."""
        return tuple(self.num_members * self.direct_bytes / each for each in self.sum_bytes)

    @property
    def ideal(self) -> float:
        """With full packets, and nothing sent again."""
        return self.num_members * self.least_direct_bytes / self.least_bytes


def compressions(rounds: Sequence[GroupRound], limits: LinkLimits) -> list[Compression]:
    """Return what merging so many updates saves, by kind and number.

    Of rounds with groups of several sizes, nothing is known. Updates by themselves count as in
    rounds of the kind direct. Without any of these, nothing is known at all.
    """
    direct = [each.ingress_bytes / each.num_updates for each in rounds if each.kind == "direct"]
    if not direct:
        return []
    direct_bytes = statistics.median(direct)
    found: dict[tuple[str, int], list[float]] = {}
    for each in rounds:
        if len(set(each.groups)) == 1:
            alone = (each.num_updates - each.num_grouped) * direct_bytes
            of_sum = (each.ingress_bytes - alone) / len(each.groups)
            found.setdefault((each.kind, each.groups[0]), []).append(of_sum)
    order = list(KINDS)
    return [
        Compression(
            kind=kind,
            num_members=num_members,
            sum_bytes=tuple(of_sums),
            least_bytes=limits.sum_bytes(kind),
            direct_bytes=direct_bytes,
            least_direct_bytes=limits.tcp_bytes,
        )
        for (kind, num_members), of_sums in sorted(
            found.items(), key=lambda item: (order.index(item[0][0]), item[0][1])
        )
    ]


def withdrawals(found: Mapping[str, Sequence[GroupRound]]) -> list[str]:
    """Return a line for each kind of which grants were given up: its times are not as planned."""
    lines: list[str] = []
    for kind, rounds in found.items():
        late = [each.num_withdrawn for each in rounds if each.num_withdrawn]
        if late:
            lines.append(
                f"{rounds[0].num_updates} workers, {KINDS[kind]}: {sum(late)} grants in"
                f" {len(late)} rounds were withdrawn, as their updates were late"
            )
    return lines


class RoundLog:
    """Reads the controller's timeline of one job, round by round."""

    def __init__(self, job: str) -> None:
        self._job = job
        self._num_read = 0
        self.events: Counter[str] = Counter()
        """Of this round, by name."""
        self._groups: dict[int, int | None] = {}
        """Of updates that are granted in this round, by worker; None: the update is in no group."""

    def take(self, lines: Sequence[str]) -> None:
        """Read what has been added; `lines` are all complete ones of the file."""
        for line in lines[self._num_read :]:
            event = json.loads(line)
            if event["job"] != self._job or "worker" not in event:
                continue
            self.events[event["event"]] += 1
            if event["event"] == "granted":
                self._groups[event["worker"]] = event.get("group")
        self._num_read = len(lines)

    def has(self, num_updates: int) -> bool:
        """Return whether so many updates of this round have ended, one of each worker.

        The scheduler withdraws what is overdue, or what an aggregator has not. Such an update is
        applied when it comes, and is never reported as committed.
        """
        return self.events["committed"] + self.events["withdrawn"] >= num_updates

    def is_granted(self, worker: int) -> bool:
        """Return whether a worker's update of this round is granted."""
        return worker in self._groups

    def end_round(self, is_summed: Sequence[bool]) -> tuple[int, ...]:
        """Return how many updates were in each sum, and begin the next round.

        `is_summed`: by worker, whether the update came in a sum.
        """
        members = [self._groups[number] for number, is_so in enumerate(is_summed) if is_so]
        self.events.clear()
        self._groups = {}
        return tuple(sorted(Counter(members).values(), reverse=True))


def spread(values: Sequence[float], digits: int = 2) -> str:
    """Return median (least .. most), or the median alone if the others read the same."""
    return Spread.of(values).text(digits)


def comparison(found: Mapping[str, Sequence[GroupRound]], limits: LinkLimits) -> list[str]:
    """Return a line for each kind of one number of workers: bytes, times, and their limits."""
    lines: list[str] = []
    for kind, rounds in found.items():
        cells = (
            str(rounds[0].num_updates),
            KINDS[kind],
            spread([each.num_messages for each in rounds], 0),
            spread([each.ingress_bytes / 1e6 for each in rounds]),
            spread([limits.bytes_of(each) / 1e6 for each in rounds]),
            spread([each.mean_s for each in rounds]),
            spread([each.last_s for each in rounds]),
            spread([limits.seconds_of(each) for each in rounds]),
            spread([100 * limits.seconds_of(each) / each.last_s for each in rounds], 0),
        )
        lines.append(_line(cells))
    return lines


COMPARISON_HEAD: Final = (
    "| workers | updates are | messages | MB into the server's host | least | mean commit, s"
    " | last commit, s | link busy at least, s | of that limit, % |\n"
    "|--:|---|--:|--:|--:|--:|--:|--:|--:|"
)


def ratios(found: Mapping[str, Sequence[GroupRound]]) -> list[str]:
    """Return a line for each pair of kinds of one number of workers."""
    looks: tuple[Callable[[GroupRound], float], ...] = (
        lambda each: each.ingress_bytes,
        lambda each: each.mean_s,
        lambda each: each.last_s,
    )
    lines: list[str] = []
    for one, other in PAIRS:
        if one in found and other in found:
            both = list(zip(found[one], found[other], strict=True))
            cells = [spread([look(a) / look(b) for a, b in both]) for look in looks]
            lines.append(_line((str(both[0][0].num_updates), f"{one} / {other}", *cells)))
    return lines


RATIOS_HEAD: Final = (
    "| workers | rounds, in pairs | MB into the server's host | mean commit | last commit |\n"
    "|--:|---|--:|--:|--:|"
)


def processor(found: Mapping[str, Sequence[GroupRound]], limits: LinkLimits) -> list[str]:
    """Return a line for each kind and role of one number of workers, where any time was used.

    Aggregators' time is by update that came in a host's sum; that of others by any update.
    """
    lines: list[str] = []
    for kind, rounds in found.items():
        for role in ROLES:
            counted = [
                (each.processor_s[role], _worked_on(each, role))
                for each in rounds
                if role in each.processor_s and _worked_on(each, role)
            ]
            if counted:
                ms = [1e3 * used_s / count for used_s, count in counted]
                by_mb = [each / (limits.update_bytes / 1e6) for each in ms]
                cells = (spread(ms, 1), spread(by_mb))
                lines.append(_line((str(rounds[0].num_updates), kind, role, *cells)))
    return lines


PROCESSOR_HEAD: Final = (
    "| workers | kind | processes | ms of processor for each update | for each MB of it |\n"
    "|--:|---|---|--:|--:|"
)


def compression_lines(found: Sequence[Compression]) -> list[str]:
    """Return a line for each kind and number of members."""
    return [
        _line(
            (
                KINDS[each.kind],
                str(each.num_members),
                str(len(each.sum_bytes)),
                spread([of_sum / 1e6 for of_sum in each.sum_bytes]),
                f"{each.least_bytes / 1e6:.2f}",
                spread(each.measured),
                f"{each.ideal:.2f}",
            )
        )
        for each in found
    ]


COMPRESSION_HEAD: Final = (
    "| updates are | in a sum | rounds | MB into the server's host for a sum | least"
    " | times fewer bytes | at best |\n|---|--:|--:|--:|--:|--:|--:|"
)


def _worked_on(found: GroupRound, role: str) -> int:
    return found.num_grouped if role == "aggregators" else found.num_updates


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
