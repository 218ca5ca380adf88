# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The embedded switch: ports, packets and control operations over the C runtime."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import sys
import threading
from collections.abc import Callable
from ctypes import byref
from pathlib import Path
from types import TracebackType
from typing import Final, Protocol, Self, final

from ..compilation.runtime_library import (
    CAPTURE_FAILED,
    FRAME_BYTES_MAX,
    ImpairmentsT,
    SwitchHandle,
    runtime_library,
)
from ..errors import (
    NoProgramError,
    PortError,
    PortPermissionError,
    SoftswitchError,
    SwitchStateError,
)
from .control import Control
from .impairments import Direction, Impairments
from .mem_port import MemPort
from .pipeline import PipelineOps, open_pipeline
from .ports import (
    PortSpec,
    capture_error,
    open_error,
    parse_port_spec,
    port_not_found,
)
from .reports import ReportKind, ReportReader

POOL_PACKETS: Final = 32768
"""Packets that the switch may hold at once: in batches and in impairments."""


class LoadableProgram(Protocol):
    """What the switch needs of a CompiledProgram."""

    @property
    def library(self) -> Path:
        """Shared library that exports p4_pipeline."""
        ...


@final
class Switch(Control):
    """A P4 switch in this process; close it, or use it as a context manager.

    Synchronous use: `process`, deterministic, with mem ports. Threaded use: `start` runs the data
    plane in a
    C thread, `mem_port(n)` and the network feed it. Control operations work in both, also while
    packets flow.
    """

    def __init__(
        self,
        program: LoadableProgram | None = None,
        *,
        device_id: int = 1,
        cpu_port: int = 255,
        drop_port: int = 511,
        priority_queues: int = 1,
        cache_dir: Path | None = None,
    ) -> None:
        """Make a switch, empty or with a program; CompilerNotFoundError without a C compiler.

        A packet whose egress_spec is `drop_port` is dropped, and mark_to_drop sets it. One whose
        standard_metadata.priority is not below `priority_queues` is dropped, too.
        """
        self.device_id = device_id
        self.cpu_port = cpu_port
        self.drop_port = drop_port
        library = runtime_library(cache_dir)
        handle = library.switch_create(cpu_port, drop_port, priority_queues, POOL_PACKETS)
        if not handle:
            raise SoftswitchError("no memory or no file descriptors left for a switch")
        super().__init__(library, SwitchHandle(library, handle))
        self._program: LoadableProgram | None = None
        self._loaded: tuple[ctypes.CDLL, PipelineOps] | None = None
        self._ports: dict[int, PortSpec] = {}
        self._packet_in: Callable[[bytes], None] | None = None
        self._reader: threading.Thread | None = None
        self._is_reading = threading.Event()
        self._reports: dict[ReportKind, ReportReader] = {}
        if program is not None:
            self.load(program)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop, close all ports and free the pipeline; calls after that raise SwitchStateError."""
        if self._open_handle is None:
            return
        self.set_packet_in(None)
        self.set_idle(None)
        self.stop()
        self.set_digest(None)
        self.set_log(None)
        handle, self._open_handle = self._open_handle, None
        handle.close()
        self._loaded = None

    @property
    def program(self) -> LoadableProgram | None:
        """The loaded program."""
        return self._program

    def load(self, program: LoadableProgram | None) -> None:
        """Replace the program between two batches; ports stay, tables and groups start afresh.

        None: run without a program.
        """
        if program is None:
            self._library.switch_load(self._handle, None)
            self._loaded = self._program = None
            return
        loaded = open_pipeline(program.library)
        code: int = self._library.switch_load(self._handle, byref(loaded[1]))
        if code < 0:
            why = os.strerror(-code)
            if code == -errno.ENOMEM:
                why = "no memory for its tables and arrays; make them smaller in the P4 program"
            raise SoftswitchError(f"{program.library}: cannot be loaded: {why}")
        # The old library goes only now that no pipeline of it is left.
        self._loaded = loaded
        self._program = program

    @property
    def ports(self) -> dict[int, str]:
        """Port numbers and their descriptions, without the CPU port."""
        return {number: spec.text for number, spec in self._ports.items()}

    def add_port(
        self,
        number: int,
        spec: str,
        *,
        impairments_in: Impairments | None = None,
        impairments_out: Impairments | None = None,
        capture: Path | None = None,
    ) -> None:
        """Open a port: `mem`, `veth:IFNAME`, `udp:HOST:PORT` or `udp:HOST:PORT-PEERHOST:PEERPORT`.

        Works on a running switch. `capture` names a pcap file for both directions. Raises
        PortError subclasses.
        """
        parsed = parse_port_spec(spec)
        if not 0 <= number <= 510:
            raise open_error(number, parsed, -errno.EINVAL)
        path = None if capture is None else os.fsencode(capture)
        match parsed.kind:
            case "mem":
                code = self._library.switch_add_mem_port(self._handle, number, path)
            case "veth":
                name = parsed.interface.encode()
                code = self._library.switch_add_veth_port(self._handle, number, name, path)
            case _:
                local = _encode_address(parsed.local)
                peer = _encode_address(parsed.peer) if parsed.peer else (None, None)
                code = self._library.switch_add_udp_port(self._handle, number, *local, *peer, path)
        if capture is not None and code <= CAPTURE_FAILED:
            raise capture_error(number, capture, CAPTURE_FAILED - code)
        if code < 0:
            raise open_error(number, parsed, code)
        self._ports[number] = parsed
        if impairments_in is not None:
            self.set_impairments(number, impairments_in, direction="in")
        if impairments_out is not None:
            self.set_impairments(number, impairments_out, direction="out")

    def remove_port(self, number: int) -> None:
        """Close a port.

        PortNotFoundError when there is none, PortPermissionError for the CPU port.
        """
        code: int = self._library.switch_remove_port(self._handle, number)
        if code == -errno.EPERM:
            raise PortPermissionError(f"port {number} is the CPU port and stays")
        if code < 0:
            raise port_not_found(number)
        self._ports.pop(number, None)

    def reopen_port(self, number: int) -> bool:
        """Open a veth port anew whose interface had gone and is back; False while it is not down.

        Statistics, impairments and capture go on. PortError subclasses as of add_port.
        """
        spec = self._ports.get(number)
        if spec is None:
            raise port_not_found(number)
        code: int = self._library.switch_reopen_port(self._handle, number)
        if code < 0 and code != -errno.EALREADY:
            raise open_error(number, spec, code)
        return code == 0

    def udp_address(self, number: int) -> tuple[str, int]:
        """Return host and UDP port that a udp port is bound to (of use after binding to port 0)."""
        spec = self._ports.get(number)
        if spec is None or spec.kind != "udp":
            raise port_not_found(number)
        return spec.local[0], self._library.switch_udp_number(self._handle, number)

    def set_impairments(
        self, number: int, impairments: Impairments, *, direction: Direction
    ) -> None:
        """Change what the port's link does; packets that the old settings hold go on at once."""
        settings = ImpairmentsT(
            impairments.loss,
            impairments.duplication,
            impairments.corruption,
            impairments.reordering,
            round(impairments.reordering_delay_s * 1e9),
            impairments.reordering_packets,
            round(impairments.delay_s * 1e9),
            impairments.rate_bits_per_s,
            impairments.queue_packets,
            impairments.seed,
        )
        is_out = int(direction == "out")
        code = self._library.switch_set_impairments(self._handle, number, is_out, byref(settings))
        if code < 0:
            raise port_not_found(number)

    def port_statistics(self, number: int) -> dict[str, int]:
        """Return the port's counters by name: packets, bytes, drops by cause, impairments."""
        count = self._library.switch_statistics_count()
        values = (ctypes.c_uint64 * count)()
        if self._library.switch_port_statistics(self._handle, number, values) < 0:
            raise port_not_found(number)
        names = [self._library.switch_statistic_name(index).decode() for index in range(count)]
        return dict(zip(names, values, strict=True))

    def statistics(self) -> dict[int, dict[str, int]]:
        """Return the counters of every port, the CPU port too, by port number."""
        counters: dict[int, dict[str, int]] = {}
        for number in sorted({*self.ports, self.cpu_port}):
            with contextlib.suppress(PortError):  # removed meanwhile
                counters[number] = self.port_statistics(number)
        return counters

    @property
    def is_running(self) -> bool:
        """Whether the data-plane thread runs."""
        return self._library.switch_is_running(self._handle) == 1

    def start(self) -> None:
        """Start the data-plane thread."""
        code: int = self._library.switch_start(self._handle)
        if code == -errno.EALREADY:
            raise SwitchStateError("the switch runs already")
        if code < 0:
            raise SwitchStateError(f"the data-plane thread cannot start: {os.strerror(-code)}")

    def stop(self) -> None:
        """Stop the data-plane thread; ports stay open. Nothing happens when it does not run."""
        self._library.switch_stop(self._handle)

    def process(self, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        """Send one frame through; returns (egress port, frame) in order of transmission.

        Frames for the CPU port are among them, and go to the packet-in callback as well.
        Impairments count
        packets instead of time: held packets come with a later call or with `flush_delayed`.
        """
        if self._program is None:
            raise NoProgramError("process: no program is loaded; load one first")
        return self._process(port, frame)

    def flush_delayed(self) -> list[tuple[int, bytes]]:
        """Release what the impairments hold (synchronous use); returns as `process`."""
        return self._process(0, None)

    def _process(self, port: int, frame: bytes | None) -> list[tuple[int, bytes]]:
        data, size = ctypes.c_void_p(), ctypes.c_size_t()
        length = len(frame) if frame is not None else 0
        with self.atomically():  # the next call, of another thread, writes over what this one found
            code: int = self._library.switch_process(
                self._handle, port, frame, length, 1, byref(data), byref(size)
            )
            self._check_process(code, port)
            collected = ctypes.string_at(data, size.value) if size.value else b""
        frames: list[tuple[int, bytes]] = []
        at = 0
        while at < len(collected):
            number = int.from_bytes(collected[at : at + 4], sys.byteorder)
            end = at + 8 + int.from_bytes(collected[at + 4 : at + 8], sys.byteorder)
            frames.append((number, collected[at + 8 : end]))
            at = (end + 3) & ~3
        callback = self._packet_in
        if callback is not None:
            for number, sent in frames:
                if number == self.cpu_port:
                    callback(sent)
        for reader in tuple(self._reports.values()):
            reader.drain()
        return frames

    def _check_process(self, code: int, port: int) -> None:
        if code == -errno.EBUSY:
            raise SwitchStateError(
                "the data-plane thread runs; use mem_port, or stop the switch first"
            )
        if code == -errno.EMSGSIZE:
            raise ValueError(f"frame too long: the switch carries up to {FRAME_BYTES_MAX} bytes")
        if code < 0:
            raise port_not_found(port)

    def mem_port(self, number: int) -> MemPort:
        """Return the user's end of a mem port."""
        spec = self._ports.get(number)
        if spec is None or spec.kind != "mem":
            raise port_not_found(number)
        return MemPort(self._library, lambda: self._handle, number)

    def packet_out(self, frame: bytes) -> None:
        """Inject a frame at ingress from the CPU port, controller header included.

        A switch that is not running handles it in the call. Raises PortError when the queue is
        full.
        """
        unused = byref(ctypes.c_void_p()), byref(ctypes.c_size_t())
        code: int = self._library.switch_process(
            self._handle, self.cpu_port, frame, len(frame), 0, *unused
        )
        if code == -errno.EBUSY:
            length = ctypes.c_int32(len(frame))
            accepted: int = self._library.switch_mem_send(
                self._handle, self.cpu_port, frame, byref(length), 1, len(frame)
            )
            if accepted < 1:
                raise PortError("packet-out: the CPU port's queue is full; send again later")
            return
        self._check_process(code, self.cpu_port)

    def packet_in(self, timeout_s: float = 0.0) -> bytes | None:
        """Take the next frame that left by the CPU port, controller header included.

        None after the timeout.
        """
        frame = ctypes.create_string_buffer(FRAME_BYTES_MAX)
        length = ctypes.c_int32()
        count: int = self._library.switch_mem_receive(
            self._handle,
            self.cpu_port,
            frame,
            byref(length),
            1,
            FRAME_BYTES_MAX,
            max(0, round(timeout_s * 1e9)),
        )
        return frame.raw[: length.value] if count > 0 else None

    def set_packet_in(self, callback: Callable[[bytes], None] | None) -> None:
        """Hand frames that leave by the CPU port to `callback`, from a thread of its own.

        None: queue them.
        """
        if self._reader is not None and self._reader is not threading.current_thread():
            self._is_reading.clear()
            self._reader.join()
            self._reader = None
        self._packet_in = callback
        if callback is None:
            return
        self._is_reading.set()
        self._reader = threading.Thread(
            target=self._read_packet_in, name="softswitch-packet-in", daemon=True
        )
        self._reader.start()

    def set_digest(self, callback: Callable[[int, bytes], None] | None) -> None:
        """Hand digests to `callback`: id of the learn list, and one sample.

        A sample holds all fields of the list, big-endian, `(width + 7) // 8` bytes each. The
        callback comes from a thread of its own; digests of `process` come before it returns. When
        the callback is slow, digests are lost and counted as `dropped_digests`. None: no digests.
        """
        self._set_reports(ReportKind.DIGEST, callback)

    def set_log(self, callback: Callable[[str], None] | None) -> None:
        """Hand the messages of log_msg to `callback`, as `set_digest`; None: no messages."""

        def deliver(_: int, text: bytes) -> None:
            if callback is not None:
                callback(text.decode("utf-8", "replace"))

        self._set_reports(ReportKind.MESSAGE, None if callback is None else deliver)

    @property
    def lost_log_messages(self) -> int:
        """Messages of log_msg that came faster than the callback of `set_log` took them."""
        reader = self._reports.get(ReportKind.MESSAGE)
        return 0 if reader is None else reader.lost

    def _set_reports(self, kind: ReportKind, deliver: Callable[[int, bytes], None] | None) -> None:
        reader = self._reports.pop(kind, None)
        if reader is not None:
            reader.close()
        if deliver is not None:
            self._reports[kind] = ReportReader(self._library, self._handle, kind, deliver)

    def _read_packet_in(self) -> None:
        while self._is_reading.is_set():
            frame = self.packet_in(_READER_WAIT_S)
            callback = self._packet_in
            if frame is not None and callback is not None:
                callback(frame)


_READER_WAIT_S: Final = 0.1


def _encode_address(address: tuple[str, int]) -> tuple[bytes, bytes]:
    return address[0].encode(), str(address[1]).encode()
