# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Reads a switch's counters and turns two readings into rates."""

import ctypes
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from finsy.proto import p4r

from ..compilation.compiler import CompiledProgram
from ..p4runtime.entities.entry_names import Reader, describe_entry
from ..program.model import Program
from ..switch.switch import Switch

ENTRIES_MAX = 2_000
"""Tables with more entries are not read for the busiest entries."""
BUSIEST = 8
_TRAFFIC = ("rx_packets", "rx_bytes", "tx_packets", "tx_bytes")
_NO_DROPS = frozenset({*_TRAFFIC, "rx_super_frames", "tx_super_frames"})


@dataclass(frozen=True, kw_only=True)
class PortRates:
    """Rates of a port, and its drops since the start by cause."""

    number: int
    spec: str
    rx_pps: float
    rx_bps: float
    tx_pps: float
    tx_bps: float
    drops: dict[str, int]


@dataclass(frozen=True, kw_only=True)
class TableRates:
    """Lookups of a table: per second, and since the start."""

    name: str
    entries: int
    hits_pps: float
    misses_pps: float
    hits: int
    misses: int


@dataclass(frozen=True, kw_only=True)
class EntryRates:
    """An entry with a direct counter."""

    table: str
    match: str
    pps: float
    packets: int
    octets: int


@dataclass(frozen=True, kw_only=True)
class Sample:
    """The switch over one interval."""

    program: str
    cpu: float
    """Processor time of the process over wall time: 1 is a full core."""
    ports: tuple[PortRates, ...]
    tables: tuple[TableRates, ...]
    entries: tuple[EntryRates, ...]
    parser_errors: dict[str, int]


class Sampler:
    """Samples one switch; rates are those since the previous sample."""

    def __init__(
        self,
        switch: Switch,
        read: Reader,
        table_ids: Callable[[], dict[int, int]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Sample a switch; table_ids gives the P4Info id of each table position."""
        self._switch = switch
        self._table_ids = table_ids
        self._read = read
        self._clock = clock
        self._last_s = clock()
        self._last_cpu_s = time.process_time()
        self._last: dict[object, int] = {}
        self._next: dict[object, int] = {}

    def sample(self) -> Sample:
        """Return rates since the previous sample, and current counters."""
        now_s, cpu_s = self._clock(), time.process_time()
        self._elapsed_s = max(now_s - self._last_s, 1e-6)
        cpu = (cpu_s - self._last_cpu_s) / self._elapsed_s
        self._last_s, self._last_cpu_s = now_s, cpu_s
        self._next = {}
        loaded = self._switch.program
        program = loaded.model if isinstance(loaded, CompiledProgram) else None
        result = Sample(
            program=program.name if program is not None else "no program",
            cpu=cpu,
            ports=tuple(self._ports()),
            tables=tuple(self._tables(program)),
            entries=tuple(self._entries()),
            parser_errors=self._parser_errors(program),
        )
        self._last = self._next
        return result

    def _rate(self, key: object, value: int) -> float:
        self._next[key] = value
        return max(value - self._last.get(key, value), 0) / self._elapsed_s

    def _ports(self) -> Iterable[PortRates]:
        specs = {**self._switch.ports.specs, self._switch.cpu_port: "CPU"}
        for number, statistics in self._switch.ports.all_statistics().items():
            spec = specs.get(number, "")
            rates = {name: self._rate((number, name), statistics[name]) for name in _TRAFFIC}
            others = {k: v for k, v in statistics.items() if v and k not in _NO_DROPS}
            yield PortRates(
                number=number,
                spec=spec,
                rx_pps=rates["rx_packets"],
                rx_bps=rates["rx_bytes"] * 8,
                tx_pps=rates["tx_packets"],
                tx_bps=rates["tx_bytes"] * 8,
                drops=others,
            )

    def _counts(self, name: str, size: int) -> list[int] | None:
        """Return an array of counters in the program's library; None if the build has none."""
        loaded = self._switch.program
        assert loaded is not None
        library = ctypes.CDLL(str(loaded.library))
        try:
            return list((ctypes.c_uint64 * size).in_dll(library, name))
        except ValueError:
            return None

    def _tables(self, program: Program | None) -> Iterable[TableRates]:
        if program is None:
            return
        counts = self._counts("p4_table_counts", max(2 * len(program.tables), 2))
        for table in program.tables:
            if counts is None or not table.key:
                continue
            misses, hits = counts[2 * table.position : 2 * table.position + 2]
            yield TableRates(
                name=table.name,
                entries=self._switch.tables.size(table.position),
                hits_pps=self._rate((table.name, "hits"), hits),
                misses_pps=self._rate((table.name, "misses"), misses),
                hits=hits,
                misses=misses,
            )

    def _entries(self) -> list[EntryRates]:
        loaded = self._switch.program
        if not isinstance(loaded, CompiledProgram):
            return []
        found: list[EntryRates] = []
        ids = self._table_ids()
        for table in loaded.model.tables:
            if not table.has_direct_counter or table.position not in ids:
                continue
            if self._switch.tables.size(table.position) > ENTRIES_MAX:
                continue
            query = p4r.TableEntry(table_id=ids[table.position], counter_data=p4r.CounterData())
            for entity in self._read(p4r.Entity(table_entry=query)):
                entry = entity.table_entry
                match = describe_entry(entry)
                packets = entry.counter_data.packet_count
                found.append(
                    EntryRates(
                        table=table.name,
                        match=match,
                        pps=self._rate((table.name, match), packets),
                        packets=packets,
                        octets=entry.counter_data.byte_count,
                    )
                )
        found.sort(key=lambda entry: (-entry.pps, -entry.packets))
        return [entry for entry in found if entry.packets][:BUSIEST]

    def _parser_errors(self, program: Program | None) -> dict[str, int]:
        if program is None:
            return {}
        counts = self._counts("p4_parser_errors", 256)
        names = {int(code): str(name) for name, code in program.json.get("errors", [])}
        if counts is None:
            return {}
        return {names.get(i, str(i)): n for i, n in enumerate(counts) if n and i}
