# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Topologies from TOML files: shapes, ports, addresses, and what is wrong with a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from switchfold.bmv2_topos.topology.topology import Topology
from switchfold.bmv2_topos.topology.topology_file import read_topology
from switchfold.bmv2_topos.topology.topology_options import described_topology

RING = """
switch = [{name = "s1"}, {name = "s2"}, {name = "top"}]
host = [
  {name = "a", switch = "s1", rate = "100M"},
  {name = "b", switch = "s2", port = 1, rate = 40_000_000},
  {name = "c", switch = "s2"},
]
link = [
  {a = "top", b = "s1", rate = "25M"},
  {a = "s1", b = "s2", a_port = 7},
  {a = "s2", b = "top", rate = "2.5 Gbit/s"},
]
"""


def read(folder: Path, text: str, *, is_shaped: bool = True) -> Topology:
    path = folder / "mine.toml"
    path.write_text(text)
    return read_topology(path, is_shaped=is_shaped)


def test_ring_of_three_switches(tmp_path: Path) -> None:
    made = read(tmp_path, RING)
    assert [(host.name, host.worker_id, host.interface) for host in made.hosts] == [
        ("a", 0, "a-eth0"),
        ("b", 1, "b-eth0"),
        ("c", 2, "c-eth0"),
    ]
    assert [switch.level for switch in made.switches] == [0, 0, 1]
    assert [switch.device_id for switch in made.switches] == [1, 2, 3]
    assert {host.address.rpartition(".")[0] for host in made.hosts[1:]} == {"10.0.2"}
    assert [link.port for link in made.links] == [1, 1, 2], "the lowest that no line names"
    assert [link.rate_bits_per_s for link in made.links] == [100_000_000, 40_000_000, None]
    assert [(link.a, link.a_port, link.b, link.b_port) for link in made.switch_links] == [
        ("s1", 2, "top", 1),
        ("s1", 7, "s2", 3),
        ("s2", 4, "top", 2),
    ]
    assert made.switch_links[2].rate_bits_per_s == 2_500_000_000
    assert made.switch_links[0].a_interface == "s1-eth2"


def test_unshaped_topology_has_no_rates(tmp_path: Path) -> None:
    made = read(tmp_path, RING, is_shaped=False)
    assert {link.rate_bits_per_s for link in (*made.links, *made.switch_links)} == {None}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", r"there is no \[\[switch\]\]"),
        ("switch = 3", "must be a list of tables"),
        ("switch = [3]", "switch 1 is no table"),
        ("not toml", "is no TOML"),
        ('[[switch]]\nname = "s1"', r"there is no \[\[host\]\]"),
        (
            'switch = [{name = "S 1"}]\nhost = [{name = "a", switch = "S 1"}]',
            "must be 1 to 8 lower-case",
        ),
        ("[[switch]]\nport = 1", r"\[\[switch\]\] 1 has port"),
        ("[[router]]", "router"),
    ],
)
def test_files_that_are_wrong_say_where(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        read(tmp_path, text)
    assert "mine.toml" in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('name = "a", switch = "s1"', 'name = "a", switch = "s9"', "switch 's9'"),
        ('name = "a"', 'name = "b"', "names must differ"),
        ('rate = "100M"', 'rate = "fast"', "'fast' is not a rate"),
        ('rate = "100M"', "rate = true", "rate True"),
        ('rate = "100M"', "rate = 5", "at least 1000000"),
        ("port = 1,", "port = 300,", "no port 300"),
        ("port = 1,", 'port = "x",', "must be a number"),
        ('a = "s1", b = "s2"', 'a = "s1", b = "s1"', "joins s1 with itself"),
        ('a = "s1", b = "s2", a_port = 7', 'a = "s1", b = "s2", b_port = 1', "used twice"),
        ('{a = "s2", b = "top"', '{a = "top", b = "s1"', "two links join"),
    ],
)
def test_links_and_hosts_that_do_not_fit_are_told(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    assert old in RING
    with pytest.raises(ValueError, match=said):
        read(tmp_path, RING.replace(old, new))


def test_option_excludes_those_of_other_shapes(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(RING)
    shape: dict[str, object] = {"topology": "single", "rate": 100, "workers": None}
    made = described_topology({**shape, "topology_file": path}, is_shaped=True)
    assert len(made.hosts) == 3
    with pytest.raises(ValueError, match="--workers does not go"):
        described_topology({**shape, "workers": 3, "topology_file": path}, is_shaped=True)
