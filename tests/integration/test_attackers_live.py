# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""A job on a tree goes on while attackers with raw frames and a job of their own attack it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from attack_counts import check_counts, expected, read_counts
from attacker import Attacker, JobKnowledge, Station, datagram_of, make_frame
from live_testbed import DEADLINE_S, LiveTestbed
from packet_frames import change
from switchfold.bmv2_topos import leaf_spine, state
from switchfold.hostlib.config import join_from_environment
from switchfold.hostlib.options import SessionOptions
from switchfold.hostlib.session import Session
from switchfold.hostlib.slots.wire import UDP_PORT
from switchfold.hostlib.straggler import WAIT_FOR_ALL, StragglerPolicy
from time_bound import wait_until
from wire_tap import WireTap

LEAVES = "s1", "s2"
SPINE = "s3"
VICTIMS = 0, 1, 3, 4
"""Hosts of the job that is attacked: h1, h2 at s1, h4, h5 at s2."""
EVIL = 2, 5
"""Hosts of the attackers' own job: h3 at s1, h6 at s2."""
NUM_ATTACKS = 3
FORWARDED_EACH = 2
"""Forged results that a switch takes for ordinary traffic: each victim gets so many of an attacker,
and drops them."""
SWITCH_PORT = UDP_PORT.to_bytes(2, "big")
DTYPES = np.float32, np.int32, np.float64
Arrays = list[NDArray[Any]]
Results = list[bytes]


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveTestbed]:
    root: Path = tmp_path_factory.mktemp("r")
    topology = leaf_spine(2, 1, 3, host_rate_bits_per_s=None, uplink_rate_bits_per_s=None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "records_directory", lambda: root)
        # No job ends because a switch is silent for a moment on a busy machine.
        with LiveTestbed(topology, controller_options=("--no-route", "600")) as made:
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
            SessionOptions(
                timeout_s=DEADLINE_S,
                slots_wanted=slots_wanted,
                straggler=straggler,
                path="switch",
            ),
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
    view = live.show("job", "show", job)["views"][-1]
    (base,) = (n["slot_base"] for n in view["trees"][0]["nodes"] if n["switch"] == switch)
    return base


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
            own=JobKnowledge("evil", session.view, slot_base(live, "evil", leaf)),
            victim=JobKnowledge(job, victims[0].view, slot_base(live, job, leaf)),
        )
    return made


@pytest.mark.parametrize(
    "straggler", [WAIT_FOR_ALL, StragglerPolicy(deadline_s=DEADLINE_S)], ids=["strict", "partial"]
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
            found.append(step(workers, number, attack if number in {1, 3} else lambda: None))
            if number == 2:
                attack()  # the rounds are over: the switches hold their results
        assert found == calm
        after = check_counts(live, wanted, job, "evil")
        forwarded = {w.statistics["refused_other_traffic"] for w in workers}
        assert forwarded == {len(EVIL) * NUM_ATTACKS * FORWARDED_EACH}
        assert not [key for key in (after - before) if key[0] == SPINE]
        code, text, _ = live.command("job", "show", job)
        assert code == 0
        assert all(cause in text for _, of, cause in after if of == job)
        _, verdicts = live.doctor()
        assert verdicts["switch s1 spoofed"][0] == "warn"
        assert verdicts[f"job {job} foreign"][0] == "warn"


def test_packets_of_earlier_views_are_refused(live: LiveTestbed, taps: dict[int, WireTap]) -> None:
    tap, leaf = taps[VICTIMS[0]], LEAVES[0]
    with sessions(live, taps, "calm", VICTIMS) as workers:
        calm = [step(workers, number, lambda: None) for number in range(3)]
    tap.to_switch.clear()
    with sessions(live, taps, "moving", VICTIMS) as workers:
        assert [step(workers, number, lambda: None) for number in range(2)] == calm[:2]
        old, old_view = tap.to_switch[-20:], workers[0].view
        with sessions(live, taps, "greedy", EVIL, slots_wanted=860):
            wait_until(
                lambda: (
                    all(w.view.slot_count < old_view.slot_count for w in workers)
                    and live.show("job", "show", "moving")["views"][-2]["state"] == "removed"
                ),
                "a smaller view",
            )
            (tree,) = workers[0].view.trees
            wanted = read_counts(live, "moving", "greedy")

            def of_this_view() -> list[bytes]:
                generation = workers[0].view.generation
                sent = list(tap.to_switch)
                return [f for f in sent if datagram_of(f)["header"]["generation"] == generation]

            def attack() -> None:
                """Send what a left-over process sends: from the victim's own port and address."""
                wait_until(of_this_view, "a packet to repeat")
                sender = Station.of(live.made.topology.hosts[VICTIMS[0]])
                switch = Station.of(live.made.topology.switches[0])
                for frame in old:
                    tap.inject(frame)
                    renamed = change(datagram_of(frame), job_id=tree.tree_id)
                    tap.inject(make_frame(sender, switch, renamed))
                wanted[leaf, "", "foreign_job"] += len(old)
                for name in ("", "moving"):
                    wanted[leaf, name, "bad_generation"] += len(old)
                for frame in of_this_view()[-20:]:
                    tap.inject(frame)  # duplicates, or packets of rounds that are over
                check_counts(live, wanted, "moving", "greedy")

            assert step(workers, 2, attack) == calm[2]
            assert step(workers, 0, attack) == calm[0]


def test_wrong_destination_harms_only_the_senders_own_job(
    live: LiveTestbed, taps: dict[int, WireTap]
) -> None:
    """Switches answer from the address that a packet was sent to; the next one compares it."""
    with (
        sessions(live, taps, "evil", EVIL, slots_wanted=16) as evil,
        sessions(live, taps, "victim", VICTIMS) as workers,
    ):
        step(workers, 1, lambda: None)
        attackers = make_attackers(live, workers, evil, "victim")
        heard = len(taps[VICTIMS[0]].to_worker)
        wanted = Counter(read_counts(live, "victim", "evil"))
        own_tree = workers[0].view.trees[0].tree_id

        def attack() -> None:
            for host in EVIL:
                attacker = attackers[host]
                packet = attacker.own.packet(slot_index=attacker.own.view.slot_count - 1)
                victims = (Station.of(live.made.topology.hosts[host]) for host in VICTIMS)
                aims = (attacker.spine, attacker.other_leaf, attacker.host, *victims)
                for aim in aims:
                    to = replace(aim, udp_port=UDP_PORT)
                    taps[host].inject(make_frame(attacker.host, to, packet))
                for name in ("", "evil"):
                    wanted[SPINE, name, "foreign_worker"] += len(aims)
            check_counts(live, wanted, "victim", "evil")
            # Meanwhile the victim may ask its switch why its round does not end.
            answers = map(datagram_of, taps[VICTIMS[0]].to_worker[heard:])
            assert {int(each["header"]["job_id"]) for each in answers} <= {own_tree}

        step(workers, 4, attack)
        assert not any(w.statistics.get("refused_other_traffic") for w in workers)
