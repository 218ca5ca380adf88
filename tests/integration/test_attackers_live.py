# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A job sums on while somebody with raw frames and a job of his own attacks it, on a tree."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from attacker import Attack, Attacker, Seat, Station
from bmv2_topos import leaf_spine, state
from controller.outcome import OrdinaryOutcome
from hostlib.config import join_from_environment
from hostlib.options import SessionOptions
from hostlib.session import Session
from hostlib.straggler import WAIT_FOR_ALL, StragglerPolicy
from hostlib.wire import UDP_PORT, Outcome
from live_testbed import DEADLINE_S, LiveTestbed
from wire_tap import WireTap

LEAVES = "s1", "s2"
SPINE = "s3"
VICTIMS = 0, 1, 3, 4
"""Hosts of the job that is attacked: h1, h2 at s1, h4, h5 at s2."""
EVIL = 2, 5
"""Hosts of the attackers' own job: h3 at s1, h6 at s2."""
GUARDS = (
    Outcome.BAD_LENGTH,
    Outcome.BAD_CHECKSUM,
    Outcome.BAD_OPERATION,
    Outcome.FOREIGN_JOB,
    Outcome.FOREIGN_WORKER,
    Outcome.BAD_GENERATION,
    Outcome.BAD_SLOT,
    Outcome.BAD_CONTRIBUTION,
    Outcome.MISMATCH,
    Outcome.FOREIGN_RESULT,
)
"""What no lawful packet counts as."""
SWITCH_PORT = UDP_PORT.to_bytes(2, "big")
COUNTED_S = 5.0
"""Within this time all packets of an attack are in the counters that commands show."""
DTYPES = np.float32, np.int32, np.float64
Arrays = list[NDArray[Any]]
Results = list[bytes]
Counts = Counter[tuple[str, str, str]]
"""Packets by switch, job ("" for the switch as a whole) and cause."""


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveTestbed]:
    root: Path = tmp_path_factory.mktemp("r")
    topology = leaf_spine(2, 1, 3, host_rate_bits_per_s=None, uplink_rate_bits_per_s=None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "records_directory", lambda: root)
        with LiveTestbed(topology) as made:
            yield made


@pytest.fixture
def taps(live: LiveTestbed) -> Iterator[dict[int, WireTap]]:
    with ExitStack() as stack:
        made = {host: WireTap(live.made.endpoint(host)) for host in (VICTIMS[0], *EVIL)}
        for tap in made.values():
            stack.callback(tap.close)
        yield made


@contextmanager
def sessions(
    live: LiveTestbed,
    taps: dict[int, WireTap],
    job: str,
    hosts: tuple[int, ...],
    *,
    straggler: StragglerPolicy = WAIT_FOR_ALL,
    slots_wanted: int = 0,
) -> Generator[list[Session]]:
    """Join a job from some hosts, through their taps where they have one."""

    def join(worker_id: int) -> Session:
        host = hosts[worker_id]
        tap = taps.get(host)
        variables = tap.variables(job) if tap else live.made.endpoint(host).environment(job)
        variables["SWITCHFOLD_WORKER_ID"] = str(worker_id)
        variables["SWITCHFOLD_NUM_WORKERS"] = str(len(hosts))
        return join_from_environment(
            SessionOptions(timeout_s=20),
            slots_wanted=slots_wanted,
            straggler=straggler,
            variables=variables,
        )

    with ExitStack() as stack, ThreadPoolExecutor(len(hosts)) as pool:
        joins = [pool.submit(join, worker_id) for worker_id in range(len(hosts))]
        yield [stack.enter_context(joined.result(DEADLINE_S)) for joined in joins]


def tensors(step: int) -> Arrays:
    """Return what each victim contributes in a step."""
    dtype = DTYPES[step % len(DTYPES)]
    generator = np.random.default_rng(step)
    return [(generator.standard_normal(1500) * 1000).astype(dtype) for _ in VICTIMS]


def step(workers: list[Session], number: int, meanwhile: Callable[[], None]) -> Results:
    """Sum one tensor; `meanwhile` runs while its rounds wait for the last worker."""
    arrays = tensors(number)
    futures = [w.allreduce(a) for w, a in zip(workers[:-1], arrays[:-1], strict=True)]
    meanwhile()
    futures.append(workers[-1].allreduce(arrays[-1]))
    results = [future.result(DEADLINE_S) for future in futures]
    if arrays[0].dtype == np.int32:
        np.testing.assert_array_equal(results[0], np.sum(arrays, axis=0))
    assert {future.num_contributors for future in futures} == {len(VICTIMS)}
    return [result.tobytes() for result in results]


def slot_base(live: LiveTestbed, job: str, switch: str) -> int:
    layout = live.show("job", "show", job)["layouts"][-1]
    (base,) = (n["slot_base"] for n in layout["trees"][0]["nodes"] if n["switch"] == switch)
    return base


def read_counts(live: LiveTestbed, *jobs: str) -> Counts:
    """Return what the commands show of all causes that no lawful packet has."""
    guards = {outcome.name.lower() for outcome in GUARDS}
    found: Counts = Counter()
    for switch in (*LEAVES, SPINE):
        shown = live.show("switch", "show", switch)
        spoofed = OrdinaryOutcome.SPOOFED.name.lower()
        counts = {name: shown["counts"][name] for name in guards}
        counts[spoofed] = shown["ordinary_counts"][spoofed]
        found.update({(switch, "", name): count["packets"] for name, count in counts.items()})
    for job in jobs:
        for switch, counts in live.show("job", "show", job)["switch_counts"].items():
            found.update(
                {
                    (switch, job, name): count["packets"]
                    for name, count in counts.items()
                    if name in guards
                }
            )
    return +found


def check_counts(live: LiveTestbed, wanted: Counts, *jobs: str) -> Counts:
    """Wait until all that is wanted has been counted, and check that nothing else has."""
    end_s = time.monotonic() + COUNTED_S
    while (found := read_counts(live, *jobs)) != wanted and time.monotonic() < end_s:
        time.sleep(0.02)
    assert found == wanted, f"too many: {found - wanted}; too few: {wanted - found}"
    return found


def expected(leaf: str, attacks: list[Attack]) -> Counts:
    found: Counts = Counter()
    for attack in attacks:
        if attack.cause is not OrdinaryOutcome.FORWARDED:
            cause = attack.cause.name.lower()
            found[leaf, "", cause] += 1
            if attack.job:
                found[leaf, attack.job, cause] += 1
    return found


def make_attackers(
    live: LiveTestbed, victims: list[Session], evil: list[Session], job: str
) -> dict[int, Attacker]:
    """Return an attacker at each of the evil hosts; each aims at the victim of its own switch."""
    topology = live.made.topology
    switches = {switch.name: Station.of(switch) for switch in topology.switches}
    made: dict[int, Attacker] = {}
    for host, leaf, session in zip(EVIL, LEAVES, evil, strict=True):
        (other,) = set(LEAVES) - {leaf}
        made[host] = Attacker(
            host=Station.of(topology.hosts[host]),
            leaf=switches[leaf],
            spine=switches[SPINE],
            other_leaf=switches[other],
            seat=Seat("evil", session.view, slot_base(live, "evil", leaf)),
            victim=Seat(job, victims[0].view, slot_base(live, job, leaf)),
        )
    return made


@pytest.mark.parametrize(
    "straggler", [WAIT_FOR_ALL, StragglerPolicy(deadline_s=15)], ids=["strict", "partial"]
)
def test_attacks_change_nothing_and_are_counted_by_cause(
    live: LiveTestbed, taps: dict[int, WireTap], straggler: StragglerPolicy
) -> None:
    job = "partial" if straggler.allow_partial else "strict"
    stations = [Station.of(live.made.topology.hosts[host]) for host in VICTIMS]
    steps = range(6)
    with sessions(live, taps, f"calm-{job}", VICTIMS, straggler=straggler) as workers:
        calm = [step(workers, number, lambda: None) for number in steps]
    assert all(len(set(results)) == 1 for results in calm)

    tap = taps[VICTIMS[0]]
    with (
        sessions(live, taps, "evil", EVIL, slots_wanted=16) as evil,
        sessions(live, taps, job, VICTIMS, straggler=straggler) as workers,
    ):
        attackers = make_attackers(live, workers, evil, job)
        before = read_counts(live, job, "evil")
        wanted = Counter(before)

        def attack() -> None:
            captured = tap.to_switch[-20:]
            # The victim's cable has forged results too by now.
            results = [frame for frame in tap.to_worker if frame[34:36] == SWITCH_PORT][-10:]
            for host, leaf in zip(EVIL, LEAVES, strict=True):
                made = list(attackers[host].attacks(captured, results, stations))
                for each in made:
                    taps[host].inject(each.frame)
                wanted.update(expected(leaf, made))
            check_counts(live, wanted, job, "evil")

        found: list[Results] = []
        for number in steps:
            found.append(step(workers, number, attack if number in (1, 3) else lambda: None))
            if number == 2:
                attack()  # the rounds are over: the switches hold their results
        assert found == calm
        after = check_counts(live, wanted, job, "evil")
        assert not [key for key in (after - before) if key[0] == SPINE]
        code, text, _ = live.command("job", "show", job)
        assert code == 0
        assert all(cause in text for _, of, cause in after if of == job)
        _, verdicts = live.doctor()
        assert verdicts["switch s1 spoofed"][0] == "warn"
        assert verdicts[f"job {job} foreign"][0] == "warn"
