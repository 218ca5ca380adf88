# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""`testbed impair` on links to both targets, while a job sums: counted there, and nowhere else."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Iterator

import pytest
from click.testing import CliRunner, Result

from job_workers import WorkerProcess, Workers
from switchfold.bmv2_topos import Testbed, single_switch, state
from switchfold.bmv2_topos.commands import testbed as commands
from switchfold.bmv2_topos.errors import ImpairmentError
from switchfold.bmv2_topos.impairment.impaired_links import ImpairedDirection
from switchfold.bmv2_topos.network.link_counters import read_counters
from switchfold.bmv2_topos.network.links import create_internal_pair, interface_index
from switchfold.bmv2_topos.network.namespaces import call_with_route
from switchfold.bmv2_topos.processes.daemons import Target
from switchfold.bmv2_topos.processes.processes import read_records
from time_bound import wait_until

pytestmark = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]
needs_bmv2 = [
    pytest.mark.bmv2,
    pytest.mark.skipif(
        shutil.which("simple_switch_grpc") is None, reason="no simple_switch_grpc on the PATH"
    ),
]
DROPPED = 10
on_softswitch = pytest.mark.parametrize("testbed", ["softswitch"], indirect=True)


@pytest.fixture(
    scope="module",
    params=["softswitch", pytest.param("bmv2", marks=needs_bmv2)],
)
def testbed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Testbed]:
    records = tmp_path_factory.mktemp("records")
    target: Target = request.param
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state, "records_directory", lambda: records)
        name = f"imp-{target}-{os.getpid()}"  # of 24 characters at most
        with Testbed(single_switch(2), name=name, target=target, variant="narrow") as made:
            yield made


@pytest.fixture(scope="module")
def workers(testbed: Testbed) -> Iterator[list[WorkerProcess]]:
    """Run a job, which sums while tests change its links."""
    with Workers(testbed, "sums", 2, VALUES="640") as workers:
        yield workers


def clear_and_sum(testbed: Testbed, workers: list[WorkerProcess]) -> list[ImpairedDirection]:
    """Clear all impairments; the sums so far were right, and go on over whole links."""
    cleared = testbed.clear_impairments()
    assert shown(testbed) == {}
    now_s = time.monotonic()
    for worker in workers:
        worker.until_later(now_s)
    return cleared


def shown(testbed: Testbed) -> dict[tuple[str, str], ImpairedDirection]:
    return {(each.sender, each.receiver): each for each in testbed.impaired_links.show()}


def wait_for(testbed: Testbed, sender: str, receiver: str, *counters: str) -> ImpairedDirection:
    """Wait until each of these counters of a direction has counted some packets."""

    def found() -> ImpairedDirection:
        return shown(testbed)[sender, receiver]

    wait_until(
        lambda: all(found().counters[name] >= DROPPED for name in counters),
        lambda: f"{counters} of {found()}",
    )
    return found()


def processes(testbed: Testbed) -> dict[str, int]:
    return {each.name: each.pid for each in read_records(testbed.run_directory)}


def interfaces(testbed: Testbed) -> dict[str, set[str]]:
    nodes = (*testbed.topology.hosts, *testbed.topology.switches)
    return {node.name: set(read_counters(str(testbed.namespace_of(node)))) for node in nodes}


def command(testbed: Testbed, *words: str) -> Result:
    return CliRunner().invoke(commands.impair, ["--name", testbed.name, *words])


def test_packets_of_one_link_are_lost_delayed_and_reordered(
    testbed: Testbed, workers: list[WorkerProcess]
) -> None:
    before, running = interfaces(testbed), processes(testbed)
    testbed.impair_link("h1", "s1", "loss=0.2,seed=3", sender="h1")
    lossy = wait_for(testbed, "h1", "s1", "lost")
    # Without delay, each packet is sent or lost as soon as it is seen.
    assert lossy.counters["seen"] == lossy.counters["sent"] + lossy.counters["lost"]
    assert lossy.dropped == lossy.counters["lost"]
    assert list(shown(testbed)) == [("h1", "s1")]

    settings = "burst_start=0.1,burst_end=0.5,delay_s=0.0005,reordering=0.2,reordering_packets=2"
    testbed.impair_link("s1", "h2", settings, sender="s1")
    mixed = wait_for(testbed, "s1", "h2", "burst_lost", "delayed", "reordered")
    assert mixed.counters["lost"] == mixed.counters["script_lost"] == 0

    # The same relay, with other settings, and the other direction of this link as well.
    testbed.impair_link("h1", "s1", "script=3p:0/1p:1/repeat,rate_bits_per_s=50e6")
    scripted = wait_for(testbed, "s1", "h1", "script_lost", "delayed")
    assert scripted.counters["script_lost"] == scripted.counters["seen"] // 4
    assert wait_for(testbed, "h1", "s1", "script_lost").counters["lost"] >= DROPPED
    assert set(shown(testbed)) == {("h1", "s1"), ("s1", "h1"), ("s1", "h2")}
    assert interfaces(testbed)["h2"] == before["h2"], "nothing takes frames off what h2 sends"

    cleared = {(e.sender, e.receiver): e for e in clear_and_sum(testbed, workers)}
    assert set(cleared) == {("h1", "s1"), ("s1", "h1"), ("s1", "h2")}
    for each in cleared.values():
        copies = each.counters["seen"] + each.counters["duplicated"]
        assert copies == each.counters["sent"] + each.dropped, f"not all are counted: {each}"
    assert interfaces(testbed) == before
    assert running.items() <= processes(testbed).items(), "no process was started again"


@on_softswitch
def test_command_sets_shows_and_clears(testbed: Testbed, workers: list[WorkerProcess]) -> None:
    # The testbed's owner starts the relays' process, and so reaps it.
    testbed.impair_link("h2", "s1", "delay_s=0.1", sender="h2")
    set_up = command(testbed, "s1-h2", "loss=0.3", "--from", "h2")
    assert set_up.exit_code == 0, set_up.output
    assert set_up.output.startswith("h2 to s1: loss=0.3\n")
    wait_for(testbed, "h2", "s1", "lost")
    (found,) = json.loads(command(testbed, "--show", "--json").output)
    assert (found["sender"], found["receiver"], found["settings"]) == ("h2", "s1", "loss=0.3")
    assert command(testbed, "h1", "--show").output == "no link is impaired\n"
    assert command(testbed, "h1", "--clear").output == "no link was impaired\n"
    cleared = command(testbed, "h2", "--clear").output
    assert cleared.startswith("h2 to s1: no longer loss=0.3\n")
    assert " dropped (lost " in cleared
    assert clear_and_sum(testbed, workers) == []


@on_softswitch
def test_nothing_changes_where_one_direction_fails(testbed: Testbed) -> None:
    testbed.impair_link("h1", "s1", "loss=0.5", sender="h1")
    node = testbed.topology.switches[0]
    namespace = str(testbed.namespace_of(node))
    create_internal_pair("s1-eth1-i", "taken", namespace=namespace)
    before = interfaces(testbed)
    with pytest.raises(ImpairmentError, match="s1-eth1-i or s1-eth1-o exists"):
        testbed.impair_link("h1", "s1", "loss=0.1")
    assert [each.settings for each in shown(testbed).values()] == ["loss=0.5"]
    assert interfaces(testbed) == before
    testbed.impair_link("h1", "s1", "loss=0.1", sender="h1")
    assert [each.settings for each in shown(testbed).values()] == ["loss=0.1"]
    testbed.clear_impairments()
    call_with_route(
        namespace, lambda route: route.link("del", index=interface_index(route, "taken"))
    )


@on_softswitch
def test_links_of_a_killed_relay_are_mended_by_clearing(
    testbed: Testbed, workers: list[WorkerProcess]
) -> None:
    before = interfaces(testbed)
    testbed.impair_link("h1", "s1", "loss=0.1")
    (relay,) = (each for each in read_records(testbed.run_directory) if each.name == "impair")
    os.kill(relay.pid, signal.SIGKILL)
    wait_until(lambda: not relay.is_leader_alive(), "end of the relay")
    with pytest.raises(ImpairmentError, match="until `switchfold testbed impair --clear`"):
        testbed.impaired_links.show()
    assert clear_and_sum(testbed, workers) == []
    assert interfaces(testbed) == before
    testbed.impair_link("h1", "s1", "loss=0.1")
    wait_for(testbed, "h1", "s1", "lost")
    assert len(clear_and_sum(testbed, workers)) == 2


@on_softswitch
@pytest.mark.parametrize(
    ("words", "code", "named"),
    [
        (["h7-s1", "loss=0.1"], 2, "no link 'h7-s1' in this topology; there are h1-s1, h2-s1"),
        (["h1", "loss=2"], 2, "loss is 2; it must be a probability"),
        (["h1", "delay_s=-1"], 2, "delay_s is -1"),
        (["h1", "loss=0.1", "--from", "h2"], 2, "h2 does not send on the link h1-s1"),
        (["h1", "rate_bits_per_s=1e9"], 2, "more than the 100000000 bit/s of the link h1-s1"),
        (["h1"], 2, "give LINK with settings"),
        (["--clear", "--show"], 2, "give LINK with settings"),
        (["--clear", "--from", "h1"], 2, "--from needs LINK"),
        (["--name", "absent", "h1", "loss=0.1"], 1, "no testbed absent"),
    ],
)
def test_wrong_use_is_named(testbed: Testbed, words: list[str], code: int, named: str) -> None:
    result = command(testbed, *words)
    assert result.exit_code == code
    assert named in result.output
    assert shown(testbed) == {}


@on_softswitch
def test_testbeds_that_cannot_impair_say_so(testbed: Testbed) -> None:
    name = f"test-udp-{os.getpid()}"
    with Testbed(single_switch(1), name=name, mode="udp", has_switch=False) as made:
        with pytest.raises(ImpairmentError, match="is in mode udp: the link h1-s1"):
            made.impair_link("h1", "s1", "loss=0.1")
        assert processes(made) == {}
    with Testbed(single_switch(1), name=name, has_switch=False):
        record = state.load_record(name)
        record.namespaces = dict.fromkeys(record.namespaces, 1)
        record.save()
        of_others = Testbed.attach(name)
        with pytest.raises(ImpairmentError, match=r"is not running: its namespace .* is gone"):
            of_others.impair_link("h1", "s1", "loss=0.1")
