# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Topologies from a TOML file: hosts, switches and links of any shape.

[[switch]]
name = "s1"

[[host]]
name = "h1"
switch = "s1"
rate = "100M"

[[link]]
a = "s1"
b = "s2"
rate = "25M"

A port that is not given is the lowest free one of its switch, in the order of the file. Addresses,
MACs and device ids follow from the order, as in the other topologies. A rate that is not given, or
0, leaves a link unshaped.
"""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, cast

from .rates import parse_rate
from .topology import (
    MAX_HOSTS,
    Host,
    Link,
    Switch,
    SwitchLink,
    Topology,
    join_host,
    make_host,
    make_switch,
)

_KEYS: Final = {
    "switch": frozenset({"name"}),
    "host": frozenset({"name", "switch", "port", "rate"}),
    "link": frozenset({"a", "b", "a_port", "b_port", "rate"}),
}
_NEEDED: Final = {"switch": ("name",), "host": ("name", "switch"), "link": ("a", "b")}
_NAME: Final = re.compile(r"[a-z][a-z0-9]{0,7}")
"""Interfaces are called NAME-ethPORT, in at most 15 characters."""

_Table = Mapping[str, Any]


def read_topology(path: Path, *, is_shaped: bool = True) -> Topology:
    """Read a topology; ValueError says what is wrong with the file.

    Without `is_shaped`, links have no rate, as in mode udp.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as exc:
        raise ValueError(f"{path} cannot be read: {exc}") from exc
    except tomllib.TOMLDecodeError as exc:
        raise ValueError(f"{path} is no TOML: {exc}") from exc
    try:
        return _topology(content, is_shaped=is_shaped)
    except ValueError as exc:
        raise ValueError(f"{path}: {exc}") from exc


def _topology(content: _Table, *, is_shaped: bool) -> Topology:
    if unknown := sorted(content.keys() - _KEYS.keys()):
        raise ValueError(f"knows no {', '.join(unknown)}; there are [[switch]], [[host]], [[link]]")
    tables = {kind: _tables(content, kind) for kind in _KEYS}
    names = [_name(table) for table in tables["switch"]]
    for kind, keys in (("host", ("switch",)), ("link", ("a", "b"))):
        for table in tables[kind]:
            for key in keys:
                if table[key] not in names:
                    raise ValueError(f"[[{kind}]] names switch {table[key]!r}, which is not there")
    ports = _Ports(tables)
    switches = _switches(names, tables)
    hosts, links = _hosts(tables["host"], names, ports, is_shaped=is_shaped)
    levels = {switch.name: switch.level for switch in switches}
    return Topology(
        hosts=hosts,
        switches=switches,
        links=links,
        switch_links=tuple(
            _switch_link(table, levels, ports, is_shaped=is_shaped) for table in tables["link"]
        ),
    )


def _tables(content: _Table, kind: str) -> list[_Table]:
    found: Any = content.get(kind, [])
    if not isinstance(found, list):
        raise ValueError(f"{kind} must be a list of tables, [[{kind}]]")
    tables = cast("list[Any]", found)
    for number, table in enumerate(tables, 1):
        if not isinstance(table, dict):
            raise ValueError(f"{kind} {number} is no table: write [[{kind}]]")
        keys = cast("dict[str, Any]", table).keys()
        if unknown := sorted(keys - _KEYS[kind]):
            known = ", ".join(sorted(_KEYS[kind]))
            raise ValueError(f"[[{kind}]] {number} has {', '.join(unknown)}; it may have {known}")
        if missing := [key for key in _NEEDED[kind] if key not in keys]:
            raise ValueError(f"[[{kind}]] {number} has no {', '.join(missing)}")
    if kind != "link" and not tables:
        raise ValueError(f"there is no [[{kind}]]")
    return tables


def _name(table: _Table) -> str:
    name = table["name"]
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(
            f"name {name!r} must be 1 to 8 lower-case letters and digits, a letter first"
        )
    return name


class _Ports:
    """Gives a free port to each end of a link that names none."""

    def __init__(self, tables: Mapping[str, list[_Table]]) -> None:
        self._used: dict[str, set[int]] = defaultdict(set)
        for table in tables["host"]:
            self._note(table["switch"], table.get("port"))
        for table in tables["link"]:
            self._note(table["a"], table.get("a_port"))
            self._note(table["b"], table.get("b_port"))

    def _note(self, switch: str, port: Any) -> None:
        if port is None:
            return
        if not isinstance(port, int) or isinstance(port, bool):
            raise ValueError(f"port {port!r} of {switch} must be a number")
        if port in self._used[switch]:
            raise ValueError(f"port {port} of {switch} is used twice")
        self._used[switch].add(port)

    def of(self, switch: str, given: int | None) -> int:
        """Return the given port, or the lowest that is free."""
        if given is not None:
            return given
        port = 1
        while port in self._used[switch]:
            port += 1
        self._used[switch].add(port)
        return port


def _switches(names: list[str], tables: Mapping[str, list[_Table]]) -> tuple[Switch, ...]:
    levels = _levels(
        names,
        {table["switch"] for table in tables["host"]},
        [(table["a"], table["b"]) for table in tables["link"]],
    )
    return tuple(
        replace(make_switch(number, level=levels[name]), name=name)
        for number, name in enumerate(names, 1)
    )


def _levels(
    names: Iterable[str], with_hosts: set[str], links: list[tuple[str, str]]
) -> dict[str, int]:
    """Return each switch's distance from the nearest switch with hosts; 0 where none is near."""
    levels = dict.fromkeys(with_hosts, 0)
    level, front = 0, with_hosts
    while front:
        level += 1
        near = {b for a, b in links if a in front} | {a for a, b in links if b in front}
        front = near - levels.keys()
        levels.update(dict.fromkeys(front, level))
    return {name: levels.get(name, 0) for name in names}


def _hosts(
    tables: list[_Table], names: list[str], ports: _Ports, *, is_shaped: bool
) -> tuple[tuple[Host, ...], tuple[Link, ...]]:
    hosts: list[Host] = []
    links: list[Link] = []
    places: dict[str, int] = defaultdict(int)
    for number, table in enumerate(tables, 1):
        name, at = _name(table), table["switch"]
        places[at] += 1
        if places[at] > MAX_HOSTS:
            raise ValueError(f"{at} has more than {MAX_HOSTS} hosts")
        subnet = names.index(at) + 1
        made = make_host(number, subnet=subnet, place=places[at])
        host = replace(made, name=name, interface=f"{name}-eth0")
        hosts.append(host)
        switch = replace(make_switch(subnet), name=at)
        port = ports.of(at, table.get("port"))
        links.append(join_host(host, switch, port, _rate(table, is_shaped=is_shaped)))
    return tuple(hosts), tuple(links)


def _switch_link(
    table: _Table, levels: Mapping[str, int], ports: _Ports, *, is_shaped: bool
) -> SwitchLink:
    ends = [(table[key], ports.of(table[key], table.get(f"{key}_port"))) for key in ("a", "b")]
    (a, a_port), (b, b_port) = sorted(ends, key=lambda end: levels[end[0]])
    return SwitchLink(
        a=a,
        a_port=a_port,
        b=b,
        b_port=b_port,
        a_interface=f"{a}-eth{a_port}",
        b_interface=f"{b}-eth{b_port}",
        rate_bits_per_s=_rate(table, is_shaped=is_shaped),
    )


def _rate(table: _Table, *, is_shaped: bool) -> int | None:
    rate = table.get("rate", 0)
    if isinstance(rate, bool) or not isinstance(rate, int | str):
        raise ValueError(f"rate {rate!r} must be a number of bits per second, or such as '100M'")
    bits_per_s = parse_rate(str(rate))
    return bits_per_s if bits_per_s and is_shaped else None
