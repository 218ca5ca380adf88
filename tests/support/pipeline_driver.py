# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Drives one compiled pipeline through the seam: no ports, no replication engine."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path

from switchfold.softswitch.compilation.compiler import compile_program
from switchfold.softswitch.program.model import KeyField, Program, pack_number
from switchfold.softswitch.switch.pipeline import (
    DEFAULT_ENTRY_HANDLE,
    P_OK,
    PHV_ALIGNMENT,
    IntrinsicT,
    PacketInfo,
    TableEntry,
    open_pipeline,
)

PROGRAMS = Path(__file__).parents[1] / "pipeline" / "programs"
CAPACITY = 9232


@dataclass
class Outcome:
    """What became of a packet: the intrinsics, and the frame unless it was dropped."""

    out: IntrinsicT
    frame: bytes | None


class Driver:
    """A pipeline with its phv and buffers."""

    def __init__(self, json_path: Path, cache_dir: Path | None = None) -> None:
        self.compiled = compile_program(json_path, cache_dir=cache_dir, cflags=("-Werror",))
        self.model: Program = self.compiled.model
        self._library, self.ops = open_pipeline(self.compiled.library)
        self.state = self.ops.create()
        assert self.state
        self._memory = ctypes.create_string_buffer(self.ops.phv_bytes + PHV_ALIGNMENT)
        address = ctypes.addressof(self._memory)
        self.phv = address + -address % PHV_ALIGNMENT
        self._frame = ctypes.create_string_buffer(1)
        self._written = ctypes.create_string_buffer(CAPACITY)

    def close(self) -> None:
        self.ops.destroy(self.state)
        self.state = None

    # ---- packets ----

    def ingress(self, frame: bytes, port: int = 1, **info: int) -> IntrinsicT:
        self._frame = ctypes.create_string_buffer(frame, max(len(frame), 1))
        out = IntrinsicT()
        packet = PacketInfo(ingress_port=port, packet_length=len(frame), **info)
        address = ctypes.addressof(self._frame)
        self.ops.start(self.state, self.phv, address, len(frame), packet)
        assert self.ops.parse(self.state, self.phv) == P_OK
        assert self.ops.ingress(self.state, self.phv, out) == P_OK
        return out

    def egress(self, port: int, **info: int) -> IntrinsicT:
        out = IntrinsicT()
        length = len(self._frame)
        packet = PacketInfo(egress_port=port, packet_length=length, **info)
        assert self.ops.egress(self.state, self.phv, packet, out) == P_OK
        return out

    def deparse(self, capacity: int = CAPACITY) -> bytes:
        count = self.ops.deparse(self.state, self.phv, ctypes.addressof(self._written), capacity)
        assert count >= 0, count
        return self._written.raw[:count]

    def process(self, frame: bytes, port: int = 1) -> Outcome:
        """Run a packet from ingress to the wire as a unicast."""
        out = self.ingress(frame, port)
        if out.egress_spec == self.ops.drop_port:
            return Outcome(out, None)
        after = self.egress(out.egress_spec)
        if after.egress_spec == self.ops.drop_port:
            return Outcome(after, None)
        return Outcome(out, self.deparse())

    # ---- control plane ----

    def position(self, table: str) -> int:
        return next(t.position for t in self.model.tables if t.name.endswith(f".{table}"))

    def entry(
        self,
        table: str,
        match: list[int | tuple[int, int]],
        action: str,
        params: list[int],
        priority: int = 0,
    ) -> TableEntry:
        model = self.model.tables[self.position(table)]
        prefix_len = 0
        key = mask = b""
        for part, value in zip(model.key, match, strict=True):
            first, second = _bytes_of(part, value)
            key, mask = key + first, mask + second
            if part.kind == "lpm":
                assert isinstance(value, tuple)
                prefix_len = value[1]
        held = next(a for a in model.actions if a.name.split(".")[-1] == action)
        data = b"".join(
            pack_number(value, parameter.width)
            for value, parameter in zip(params, held.parameters, strict=True)
        )
        return TableEntry(
            key, mask, prefix_len, priority, held.position, data, len(data), key_bytes=len(key)
        )

    def insert(
        self,
        table: str,
        match: list[int | tuple[int, int]],
        action: str,
        params: list[int],
        priority: int = 0,
    ) -> int:
        """Insert an entry that must be accepted; returns its handle."""
        handle = ctypes.c_uint64()
        entry = self.entry(table, match, action, params, priority)
        result = self.ops.table_insert(self.state, self.position(table), entry, handle)
        assert result == P_OK, result
        return handle.value

    def direct_counter(self, table: str, handle: int = DEFAULT_ENTRY_HANDLE) -> tuple[int, int]:
        packets, count = ctypes.c_uint64(), ctypes.c_uint64()
        position = self.position(table)
        result = self.ops.direct_counter(self.state, position, handle, packets, count)
        assert result == P_OK, result
        return packets.value, count.value

    def counter(self, name: str, index: int) -> tuple[int, int]:
        array = next(c.position for c in self.model.counters if c.name.endswith(name))
        packets, count = ctypes.c_uint64(), ctypes.c_uint64()
        assert self.ops.counter_read(self.state, array, index, packets, count) == P_OK
        return packets.value, count.value

    def register(self, name: str, index: int) -> int:
        array = next(r.position for r in self.model.registers if r.name.endswith(name))
        data = (ctypes.c_uint8 * 256)()
        size = self.ops.register_read(self.state, array, index, data, len(data))
        assert size > 0, size
        return int.from_bytes(bytes(data[:size]), "big")

    def write_register(self, name: str, index: int, value: bytes) -> int:
        """Write an element; returns the seam's code."""
        array = next(r.position for r in self.model.registers if r.name.endswith(name))
        return self.ops.register_write(self.state, array, index, value, len(value))


def _bytes_of(part: KeyField, value: int | tuple[int, int]) -> tuple[bytes, bytes]:
    ones = (1 << part.width) - 1
    first, second = value if isinstance(value, tuple) else (value, ones)
    if part.kind == "lpm":
        second = ones
    return pack_number(first, part.width), pack_number(second, part.width)
