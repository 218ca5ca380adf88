# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Configuration of the controller: files, command line, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from switchfold import controller
from switchfold.controller.config import (
    ControllerConfig,
    SwitchConfig,
    load_config,
    parse_host,
    parse_switch,
    with_service_addresses,
)
from switchfold.controller.errors import ConfigError

TOML = """
listen = "127.0.0.1:50599"
lease_s = 3
[[switch]]
name = "s1"
address = "127.0.0.1:9559"
device_id = 7
[[switch.host]]
name = "h1"
port = 1
address = "10.0.0.1"
mac = "02:00:00:00:00:01"
"""


FABRIC = """
[[switch]]
name = "s1"
address = "127.0.0.1:9559"
service_address = "10.0.255.1"
[[switch.host]]
name = "h1"
port = 1
address = "10.0.0.1"
mac = "02:00:00:00:00:01"
rate_bits_per_s = 100000000
[[switch]]
name = "s2"
address = "127.0.0.1:9560"
service_address = "10.0.255.2"
aggregates = false
[[link]]
a = "s1"
a_port = 2
b = "s2"
b_port = 1
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "controller.toml"
    path.write_text(text, "utf-8")
    return path


def test_config_file_is_read(tmp_path: Path):
    config = load_config(write(tmp_path, TOML))
    assert config.listen == "127.0.0.1:50599"
    assert config.lease_s == 3
    assert config.switches[0].device_id == 7
    assert config.switches[0].host_at("10.0.0.1") == config.switches[0].hosts[0]


def test_config_options_win_over_the_file(tmp_path: Path):
    config = load_config(write(tmp_path, TOML), listen="127.0.0.1:1", variant=None, token="x")
    assert (config.listen, config.variant, config.token) == ("127.0.0.1:1", "narrow", "x")


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("x = [", "not TOML"),
        ("surprise = 1", "unknown option 'surprise'"),
        ('lease_s = "long"', "not of type float"),
        ("default_slots = true", "not of type int"),
        ("max_calls_per_source = true", r"not of type int \| None"),
        (TOML.replace("lease_s = 3", "max_calls_per_source = 0"), "must be at least 1"),
        (TOML.replace("name", "nick", 1), "unknown option 'nick'"),
        (TOML.replace('address = "127.0.0.1:9559"', ""), "address is missing"),
        (TOML.replace("02:00:00:00:00:01", "02-00"), "not a MAC address"),
        (TOML.replace("10.0.0.1", "10.0.0.256"), "not an IPv4 address"),
        (TOML.replace("port = 1", "port = 255"), "255 is the CPU"),
        (TOML.replace("lease_s = 3", "lease_s = 0"), "above 0 seconds"),
        (TOML.replace("lease_s = 3", 'variant = "huge"'), "not one of narrow, wide"),
        (TOML.replace("[[switch]]", "[switch]"), r"write \[\[switch\]\]"),
        ("", "no switch configured"),
    ],
)
def test_config_refuses(tmp_path: Path, text: str, what: str):
    with pytest.raises(ConfigError, match=what):
        load_config(write(tmp_path, text))


def test_config_links_are_read(tmp_path: Path):
    config = load_config(write(tmp_path, FABRIC))
    assert config.links[0].name == "s1-s2"
    assert config.links[0].key == "s1:2-s2:1"
    assert config.switches[0].hosts[0].rate_bits_per_s == 100_000_000
    assert [switch.aggregates for switch in config.switches] == [True, False]


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ('b = "s2"', 'b = "s9"', "no switch 's9'; there is s1, s2"),
        ('b = "s2"', 'b = "s1"', "both ends are at switch s1"),
        ("a_port = 2", "a_port = 1", "port 1 of s1 has host h1"),
        ("a_port = 2", "a_port = 0", "0 is not a switch port"),
        ("b_port = 1", "b_port = 1\nrate_bits_per_s = 1", "at least 1000"),
        ("b_port = 1", "", "b_port is missing"),
        ("10.0.255.2", "10.0.0.1", "switch s2 and host h1 of s1 both have 10.0.0.1"),
        (
            "b_port = 1",
            'b_port = 1\n[[link]]\na = "s2"\na_port = 1\nb = "s1"\nb_port = 3',
            "port 1 of s2 has link s1:2-s2:1",
        ),
    ],
)
def test_config_refuses_links(tmp_path: Path, old: str, new: str, what: str):
    assert old in FABRIC
    with pytest.raises(ConfigError, match=what):
        load_config(write(tmp_path, FABRIC.replace(old, new)))


def test_config_missing_file(tmp_path: Path):
    with pytest.raises(ConfigError, match="cannot read"):
        load_config(tmp_path / "none.toml")


def test_config_two_switches_of_one_name():
    switch = SwitchConfig(name="s1", address="127.0.0.1:1")
    with pytest.raises(ConfigError, match="same name"):
        ControllerConfig(switches=(switch, switch))


def test_config_command_line_switch_and_host():
    assert parse_switch("s1=[::1]:9559/3").device_id == 3
    name, host = parse_host("s1/h2=2,10.0.0.2,02:00:00:00:00:0A")
    assert (name, host.port, host.mac) == ("s1", 2, "02:00:00:00:00:0a")
    for text in ("s1", "s1=x", "s1=h:1/x"):
        with pytest.raises(ConfigError):
            parse_switch(text)
    with pytest.raises(ConfigError, match="not SWITCH/HOST"):
        parse_host("h2=2,10.0.0.2")


def test_public_names():
    assert sorted(controller.__all__) == controller.__all__
    assert controller.load_config is load_config
    for name in controller.__all__:
        assert getattr(controller, name).__name__ == name
    with pytest.raises(AttributeError, match="nonsense"):
        _ = controller.nonsense


def test_service_addresses_of_the_command_line(tmp_path: Path):
    one = load_config(write(tmp_path, TOML))
    name = one.switches[0].name
    for text in ("192.168.7.254", f"{name}=192.168.7.254"):
        (switch,) = with_service_addresses(one, (text,)).switches
        assert switch.service_address == "192.168.7.254"
    for text, what in (("s9=1.2.3.4", "one of the switches"), ("1.2.3", "not an IPv4 address")):
        with pytest.raises(ConfigError, match=what):
            with_service_addresses(one, (text,))
    two = load_config(write(tmp_path, FABRIC))
    with pytest.raises(ConfigError, match="is not SWITCH=ADDRESS with one of the switches s1, s2"):
        with_service_addresses(two, ("192.168.7.254",))
