# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Changed rates of links, and traces of them, as far as they need no privileges."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.simulator.link_trace import link_rate_changes, link_trace
from benchmarks.simulator.traces import LinkSetting
from switchfold.bmv2_topos import state
from switchfold.bmv2_topos.commands import testbed as commands
from switchfold.bmv2_topos.errors import KernelError, LinkRateError
from switchfold.bmv2_topos.network import link_rates
from switchfold.bmv2_topos.network.link_rates import LinkRates
from switchfold.bmv2_topos.network.rate_trace import (
    LinkRateChange,
    changing_rates,
    follow,
    read_trace,
    write_trace,
)
from switchfold.bmv2_topos.topology.topology import single_switch
from time_bound import wait_until

RATE = 100_000_000


class Kernel:
    """Keeps the rates that it is given; a named interface refuses them."""

    def __init__(self) -> None:
        self.rates: list[tuple[str, int | None]] = []
        self.refused = ""
        self.num_refused = 0

    def reshape(self, interface: str, rate_bits_per_s: int | None, *, namespace: str) -> None:
        if interface == self.refused and rate_bits_per_s != RATE:
            self.num_refused += 1
            raise KernelError(f"cannot change {interface}")
        self.rates.append((interface, rate_bits_per_s))


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    made = Kernel()
    monkeypatch.setattr(link_rates, "reshape", made.reshape)
    monkeypatch.setattr(link_rates, "namespace_inode", lambda _name: 1)
    return made


@pytest.fixture
def record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> state.Record:
    monkeypatch.setattr(state, "records_directory", lambda: tmp_path)
    topology = single_switch(2, rate_bits_per_s=RATE)
    made = state.create_record("rates", topology, target="bmv2", mode="veth", variant="wide")
    made.namespaces = {f"sf-rates-{node}": 1 for node in ("h1", "h2", "s1")}
    return made


def test_a_rate_is_changed_in_both_directions_and_restored(
    record: state.Record, kernel: Kernel
) -> None:
    rates, link = LinkRates(record=record), record.topology.links[0]
    rates.set(link, 50_000_000)
    assert kernel.rates == [("h1-eth0", 50_000_000), ("s1-eth1", 50_000_000)]
    assert [end.rate_bits_per_s for end in rates.ends(link)] == [50_000_000] * 2
    assert LinkRates(record=record).changed() == {"h1-eth0": 50_000_000, "s1-eth1": 50_000_000}
    rates.set(link, None, sender="h1")
    assert [end.rate_bits_per_s for end in rates.ends(link)] == [None, 50_000_000]
    assert [end.sender for end in rates.restore()] == ["h1", "s1"]
    assert kernel.rates[-2:] == [("h1-eth0", RATE), ("s1-eth1", RATE)]
    assert rates.changed() == {}
    assert rates.restore() == []


def test_the_rate_of_the_topology_is_no_change(record: state.Record, kernel: Kernel) -> None:
    rates = LinkRates(record=record)
    rates.set(record.topology.links[1], RATE)
    assert kernel.rates == [("h2-eth0", RATE), ("s1-eth2", RATE)]
    assert rates.changed() == {}


def test_a_refused_change_changes_nothing(record: state.Record, kernel: Kernel) -> None:
    rates, link = LinkRates(record=record), record.topology.links[0]
    kernel.refused = "s1-eth1"
    with pytest.raises(KernelError):
        rates.set(link, 50_000_000)
    assert rates.changed() == {}
    assert kernel.rates == [("h1-eth0", 50_000_000), ("h1-eth0", RATE), ("s1-eth1", RATE)]


def test_wrong_changes_are_refused(record: state.Record, kernel: Kernel) -> None:
    rates, link = LinkRates(record=record), record.topology.links[0]
    with pytest.raises(ValueError, match="at least 1000000"):
        rates.set(link, 999_999)
    with pytest.raises(ValueError, match="h2 does not send"):
        rates.set(link, RATE, sender="h2")
    record.shaping = "switch"
    with pytest.raises(LinkRateError, match="shaped by its switches"):
        rates.set(link, RATE)
    record.shaping, record.mode = "links", "udp"
    with pytest.raises(LinkRateError, match="mode udp"):
        rates.set(link, RATE)
    record.mode, record.namespaces["sf-rates-h1"] = "veth", 2
    with pytest.raises(LinkRateError, match="sf-rates-h1 is gone"):
        rates.set(link, RATE)
    assert kernel.rates == []


def test_a_trace_is_written_and_read(record: state.Record, tmp_path: Path) -> None:
    changes = [
        LinkRateChange(time_s=2.5, link="h2-s1", rate_bits_per_s=25_000_000, sender="h2"),
        LinkRateChange(time_s=0.0, link="h1", rate_bits_per_s=50_000_000),
    ]
    path = tmp_path / "trace"
    write_trace(path, changes)
    assert path.read_text().splitlines()[0] == (
        '{"time_s": 0.0, "link": "h1", "rate_bits_per_s": 50000000}'
    )
    assert read_trace(path, record.topology) == changes[::-1]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("no JSON", "line 2 is no change"),
        ("[]", "give an object"),
        ('{"time_s": 1, "link": "h1", "rate": 5}', "give an object"),
        ('{"time_s": 1, "link": "h1"}', "rate_bits_per_s"),
        ('{"time_s": 1, "link": "h9", "rate_bits_per_s": 5000000}', "no link 'h9'"),
        ('{"time_s": -1, "link": "h1", "rate_bits_per_s": 5000000}', "a time from 0 on"),
        ('{"time_s": "1", "link": "h1", "rate_bits_per_s": 5000000}', "line 2 is no change"),
        ('{"time_s": 1, "link": "h1", "rate_bits_per_s": 5}', "at least 1000000"),
        ('{"time_s": 1, "link": "h1", "rate_bits_per_s": 5e6}', "no whole number"),
        ('{"time_s": 1, "link": "h1", "rate_bits_per_s": 5000000, "sender": "h2"}', "no end"),
        ('{"time_s": 0.5, "link": "h1", "rate_bits_per_s": 5000000}', "before the line above"),
    ],
)
def test_what_is_no_trace_is_refused(
    record: state.Record, tmp_path: Path, line: str, problem: str
) -> None:
    path = tmp_path / "trace"
    path.write_text(f'{{"time_s": 1, "link": "h1", "rate_bits_per_s": 5000000}}\n{line}\n')
    with pytest.raises(LinkRateError, match=problem):
        read_trace(path, record.topology)
    with pytest.raises(LinkRateError, match="cannot read"):
        read_trace(tmp_path / "absent", record.topology)


def test_a_trace_is_followed_in_its_order(record: state.Record, kernel: Kernel) -> None:
    changes = [
        LinkRateChange(time_s=0.0, link="h1", rate_bits_per_s=50_000_000),
        LinkRateChange(time_s=0.01, link="h2-s1", rate_bits_per_s=25_000_000, sender="s1"),
        LinkRateChange(time_s=0.01, link="h1", rate_bits_per_s=RATE),
    ]
    made: list[LinkRateChange] = []
    follow(LinkRates(record=record), changes, on_changed=made.append)
    assert made == changes
    assert LinkRates(record=record).changed() == {"s1-eth2": 25_000_000}


def test_a_trace_that_is_stopped_leaves_the_rest_out(record: state.Record, kernel: Kernel) -> None:
    stop = threading.Event()
    changes = [
        LinkRateChange(time_s=0.0, link="h1", rate_bits_per_s=50_000_000),
        LinkRateChange(time_s=3600.0, link="h2", rate_bits_per_s=50_000_000),
    ]
    follow(LinkRates(record=record), changes, on_changed=lambda _: stop.set(), stop=stop)
    assert {interface for interface, _ in kernel.rates} == {"h1-eth0", "s1-eth1"}


def test_links_are_restored_after_a_body(record: state.Record, kernel: Kernel) -> None:
    rates = LinkRates(record=record)
    changes = [LinkRateChange(time_s=0.0, link="h1", rate_bits_per_s=50_000_000)]
    with changing_rates(rates, changes):
        pass
    assert rates.changed() == {}
    kernel.refused = "h1-eth0"
    with pytest.raises(KernelError), changing_rates(rates, changes):
        wait_until(lambda: kernel.num_refused, "the change that is refused")
    assert rates.changed() == {}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "give LINK and RATE"),
        (["h1"], "give LINK and RATE"),
        (["h1", "50M", "--restore"], "give LINK and RATE"),
        (["h1", "--from", "h1", "--restore"], "--from needs LINK and RATE"),
        (["h1", "fast"], "not a rate"),
        (["h1", "5k"], "at least 1000000"),
        (["h7", "5M"], "no link 'h7'"),
    ],
)
def test_wrong_use_of_the_command(
    record: state.Record, kernel: Kernel, arguments: list[str], problem: str
) -> None:
    record.save()
    done = CliRunner().invoke(commands.testbed, ["rate", "--name", "rates", *arguments])
    assert done.exit_code == 2, done.output
    assert problem in done.output
    assert kernel.rates == []


def test_the_command_sets_follows_and_restores(
    record: state.Record, kernel: Kernel, tmp_path: Path
) -> None:
    record.save()
    trace = tmp_path / "trace"
    write_trace(trace, [LinkRateChange(time_s=0.0, link="h2", rate_bits_per_s=25_000_000)])
    for arguments, output in (
        (["h1-s1", "50M", "--from", "h1"], "h1 to s1: 50 Mbit/s\ns1 to h1: 100 Mbit/s\n"),
        (["--trace", str(trace)], "0.0"),
        (["h1", "0"], "h1 to s1: unshaped\ns1 to h1: unshaped\n"),
        (["--restore", "h2"], "h2 to s1: no longer 25 Mbit/s\ns1 to h2: no longer 25 Mbit/s\n"),
        (["--restore"], "h1 to s1: no longer unshaped\ns1 to h1: no longer unshaped\n"),
        (["--restore"], "no rate was changed\n"),
    ):
        done = CliRunner().invoke(commands.testbed, ["rate", "--name", "rates", *arguments])
        assert done.exit_code == 0, done.output
        assert done.output.startswith(output)
    assert LinkRates(record=record).changed() == {}


def test_the_simulators_settings_become_traces() -> None:
    redrawn = link_trace(LinkSetting.REDRAWN, seed=3, num_hosts=5)
    changes = list(link_rate_changes(redrawn, RATE, 12.0))
    assert [change.link for change in changes[:5]] == ["h1", "h2", "h3", "h4", "h5"]
    assert {change.time_s for change in changes} == {0.0, 5.0, 10.0}
    now: dict[str, int] = {}
    for period in range(3):
        now |= {each.link: each.rate_bits_per_s for each in changes if each.time_s == 5.0 * period}
        shares = redrawn.shares(period)
        assert now == {host: round(RATE * share) for host, share in shares.items()}
    assert changes == list(link_rate_changes(redrawn, RATE, 12.0))
    halved = link_trace(LinkSetting.HALVED, seed=3, num_hosts=21)
    slow = [each for each in link_rate_changes(halved, RATE, 60.0) if each.rate_bits_per_s < RATE]
    assert [each.rate_bits_per_s for each in slow] == [50_000_000] * 2
    assert "h21" not in {each.link for each in slow}
