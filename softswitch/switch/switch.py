# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The embedded switch: ports, packets and control operations over the C runtime."""

from __future__ import annotations

import ctypes
import errno
import os
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from ctypes import byref
from pathlib import Path
from types import TracebackType
from typing import Final, Protocol, Self, final

from ..compilation.runtime_library import FRAME_BYTES_MAX
from ..errors import NoProgramError, PortError, SoftswitchError, SwitchStateError
from .action_profiles import ActionProfiles
from .arrays import Arrays
from .idle_scan import IdleScan
from .native import NativeSwitch
from .pipeline import PipelineOps, open_pipeline
from .port_spec import port_not_found
from .ports import Ports
from .replication import Replication
from .reports import ReportKind, Reports
from .table_entries import Match
from .tables import Tables

MAX_PRIORITY_QUEUES: Final = 256
"""Queues of a port."""


class LoadableProgram(Protocol):
    """What the switch needs of a CompiledProgram."""

    @property
    def library(self) -> Path:
        """Shared library that exports p4_pipeline."""
        ...


@final
class Switch:
    """A P4 switch in this process; close it, or use it as a context manager.

    In synchronous use, `process` carries a frame through in the call, deterministically, with mem
    ports. In threaded use, `start` runs the data plane in a C thread, which gets frames from
    `ports.mem_port(n)` and from the network. Control operations work in both, also while packets
    flow.
    """

    def __init__(  # noqa: PLR0913 - the options of a switch
        self,
        program: LoadableProgram | None = None,
        *,
        device_id: int = 1,
        cpu_port: int = 255,
        drop_port: int = 511,
        priority_queues: int = 1,
        super_frames: bool = True,
        cache_dir: Path | None = None,
    ) -> None:
        """Make a switch, empty or with a program; raises CompilerNotFoundError without a compiler.

        A packet whose egress_spec is `drop_port` is dropped; mark_to_drop sets this value. Packets
        that wait for the rate of a port (`Impairments.rate_bits_per_s` of its `out`) wait in
        `priority_queues` queues by their standard_metadata.priority, and the highest priority
        leaves first; a packet whose priority has no queue is dropped. Raises ValueError unless
        there are 1 to 256. Without `super_frames`, ports send every frame by itself.
        """
        if not 1 <= priority_queues <= MAX_PRIORITY_QUEUES:
            raise ValueError(f"priority_queues must be 1 to {MAX_PRIORITY_QUEUES}")
        self.device_id = device_id
        self.cpu_port = cpu_port
        self.drop_port = drop_port
        self._native = NativeSwitch(
            cpu_port=cpu_port,
            drop_port=drop_port,
            priority_queues=priority_queues,
            cache_dir=cache_dir,
        )
        self.ports: Final = Ports(self._native, cpu_port, super_frames=super_frames)
        self.tables: Final = Tables(self._native)
        self.profiles: Final = ActionProfiles(self._native)
        self.arrays: Final = Arrays(self._native)
        self.replication: Final = Replication(self._native)
        self._reports = Reports(self._native)
        self._idle: IdleScan | None = None
        self._program: LoadableProgram | None = None
        self._loaded: tuple[ctypes.CDLL, PipelineOps] | None = None
        self._packet_in: Callable[[bytes], None] | None = None
        self._reader: threading.Thread | None = None
        self._is_reading = threading.Event()
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
        if self._native.is_closed:
            return
        self.set_packet_in(None)
        self.set_idle(None)
        self.stop()
        self.set_digest(None)
        self.set_log(None)
        self._native.close()
        self._loaded = None

    @property
    def program(self) -> LoadableProgram | None:
        """The loaded program."""
        return self._program

    def load(self, program: LoadableProgram | None) -> None:
        """Replace the program between two batches; ports stay, tables and groups are reset.

        None: run without a program.
        """
        if program is None:
            self._native.call("switch_load", None)
            self._loaded = self._program = None
            return
        loaded = open_pipeline(program.library)
        code: int = self._native.call("switch_load", byref(loaded[1]))
        if code < 0:
            why = os.strerror(-code)
            if code == -errno.ENOMEM:
                why = "no memory for its tables and arrays; make them smaller in the P4 program"
            raise SoftswitchError(f"{program.library}: cannot be loaded: {why}")
        # The old library may be unloaded only now that it has no pipeline any more.
        self._loaded = loaded
        self._program = program

    @property
    def is_running(self) -> bool:
        """Whether the data-plane thread runs."""
        return self._native.call("switch_is_running") == 1

    def start(self) -> None:
        """Start the data-plane thread."""
        code: int = self._native.call("switch_start")
        if code == -errno.EALREADY:
            raise SwitchStateError("the switch is already running")
        if code < 0:
            raise SwitchStateError(f"the data-plane thread cannot start: {os.strerror(-code)}")

    def stop(self) -> None:
        """Stop the data-plane thread; ports stay open. Nothing happens when it does not run."""
        self._native.call("switch_stop")

    def process(self, port: int, frame: bytes) -> list[tuple[int, bytes]]:
        """Send one frame through; return (egress port, frame) pairs in order of transmission.

        Frames for the CPU port are among them, and go to the packet-in callback as well.
        Impairments count packets instead of time: held packets come with a later call or with
        `flush_delayed`.
        """
        if self._program is None:
            raise NoProgramError("process: no program is loaded; load one first")
        return self._process(port, frame)

    def flush_delayed(self) -> list[tuple[int, bytes]]:
        """Release the packets that impairments hold (synchronous use); return as `process` does."""
        return self._process(0, None)

    def _process(self, port: int, frame: bytes | None) -> list[tuple[int, bytes]]:
        data, size = ctypes.c_void_p(), ctypes.c_size_t()
        length = len(frame) if frame is not None else 0
        # A call of another thread would overwrite the frames that this one has collected.
        with self._native.atomically():
            code: int = self._native.call(
                "switch_process", port, frame, length, 1, byref(data), byref(size)
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
        self._reports.drain()
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

    def packet_out(self, frame: bytes) -> None:
        """Inject a frame at ingress from the CPU port, controller header included.

        A switch that is not running handles it in the call. Raises PortError when the queue is
        full.
        """
        unused = byref(ctypes.c_void_p()), byref(ctypes.c_size_t())
        code: int = self._native.call(
            "switch_process", self.cpu_port, frame, len(frame), 0, *unused
        )
        if code == -errno.EBUSY:
            length = ctypes.c_int32(len(frame))
            accepted: int = self._native.call(
                "switch_mem_send", self.cpu_port, frame, byref(length), 1, len(frame)
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
        count: int = self._native.call(
            "switch_mem_receive",
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

        With None, they are queued for `packet_in`.
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

    def atomically(self) -> AbstractContextManager[None]:
        """Make this thread's operations within the block atomic: a packet sees all or none.

        Packets and operations of other threads wait meanwhile. Blocks may nest.
        """
        return self._native.atomically()

    def set_idle(self, callback: Callable[[int, Match], None] | None) -> None:
        """Call `callback` with (table, match) of each entry that was idle for its timeout.

        The call comes at most `IdleScan.INTERVAL_S` after the timeout, from a thread of its own,
        and comes again only after the entry was hit or written. The callback may use this object.
        None: no such calls.
        """
        if self._idle is not None:
            self._idle.close()
            self._idle = None
        if callback is not None:
            self._idle = IdleScan(self._native, callback)

    def set_digest(self, callback: Callable[[int, bytes], None] | None) -> None:
        """Hand digests to `callback`: id of the learn list, and one sample.

        A sample holds all fields of the list, big-endian, `(width + 7) // 8` bytes each. The
        callback comes from a thread of its own; digests of `process` come before it returns. If
        the callback is slow, digests are lost and counted as `dropped_digests`. None: no digests.
        """
        self._reports.set(ReportKind.DIGEST, callback)

    def set_log(self, callback: Callable[[str], None] | None) -> None:
        """Hand the messages of log_msg to `callback`, as `set_digest`; None: no messages."""

        def deliver(_: int, text: bytes) -> None:
            if callback is not None:
                callback(text.decode("utf-8", "replace"))

        self._reports.set(ReportKind.MESSAGE, None if callback is None else deliver)

    @property
    def lost_log_messages(self) -> int:
        """Messages of log_msg that were lost because the callback of `set_log` was too slow."""
        return self._reports.lost(ReportKind.MESSAGE)

    def _read_packet_in(self) -> None:
        while self._is_reading.is_set():
            frame = self.packet_in(_READER_WAIT_S)
            callback = self._packet_in
            if frame is not None and callback is not None:
                callback(frame)


_READER_WAIT_S: Final = 0.1
