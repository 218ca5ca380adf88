# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""C parts of the packet rate benchmark, compiled at run time; ctypes calls the load generator."""

from __future__ import annotations

import ctypes
import hashlib
import os
import subprocess
from collections.abc import Sequence
from ctypes import POINTER, byref, c_char_p, c_int, c_uint8, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.packet_rate.traffic import TrafficPattern
from switchfold.softswitch.compilation.compiler import default_cache_dir, find_compiler
from switchfold.softswitch.compilation.runtime_library import RUNTIME

SOURCES = Path(__file__).parent
PORTS = RUNTIME / "ports"
FLAGS = ("-std=c11", "-O2", "-march=native", "-Wall", "-Wextra")
LOST, WRONG = -1000, -1001
ANSWER_TIMEOUT_MS = 30_000


class LoadError(Exception):
    """A frame was lost or is not the expected one: the run has no rate."""


class _Shape(ctypes.Structure):
    _fields_ = [
        *(
            (name, c_uint32)
            for name in (
                *("ports", "slots", "tails", "head_bytes", "tail_bytes"),
                *("slot_offset", "round_offset", "checksum_offset", "any_offset"),
            )
        ),
        *((name, POINTER(c_uint64)) for name in ("sends", "answers")),
        *((name, POINTER(c_uint8)) for name in ("heads", "bodies", "answer_heads")),
        ("answer_bodies", POINTER(c_uint8)),
    ]


class _Result(ctypes.Structure):
    _fields_ = [
        *((name, c_uint64) for name in ("sent", "received", "elapsed_ns")),
        *((name, c_uint32) for name in ("wrong_port", "wrong_bytes")),
        ("wrong", c_uint8 * 256),
    ]


@dataclass(frozen=True, kw_only=True)
class LoadResult:
    """One run in which every sent frame had the expected answer."""

    sent: int
    """Frames into the switch."""
    received: int
    """Frames out of the switch, each compared byte by byte."""
    elapsed_s: float
    """From the first frame in to the last frame out."""


def build(source: str, output: str, *flags: str) -> Path:
    """Compile one of this folder's C files into the cache of softswitch; return the path."""
    command = [*find_compiler(), *FLAGS, *flags]
    digest = hashlib.sha256(repr(command).encode())
    headers = ("offload.c", "offload.h", "layers.h", "internet_checksum.h")
    for path in (
        SOURCES / source,
        SOURCES / "packet_ring.h",
        *(PORTS / each for each in headers),
    ):
        digest.update(path.read_bytes())
    built = default_cache_dir() / f"{output}-{digest.hexdigest()[:20]}"
    if not built.exists():
        built.parent.mkdir(parents=True, exist_ok=True)
        unfinished = built.with_suffix(f".{os.getpid()}")
        subprocess.run([*command, "-o", str(unfinished), str(SOURCES / source)], check=True)
        unfinished.rename(built)
    return built


def build_forwarder() -> Path:
    """Return the bare forwarder's program."""
    return build("bare_forwarder.c", "bare_forwarder")


class LoadGenerator:
    """Packet sockets on interfaces of the calling thread's network namespace."""

    def __init__(self, interfaces: Sequence[str], *, super_frames: bool = False) -> None:
        flags = ("-shared", "-fPIC", f"-I{PORTS}", str(PORTS / "offload.c"))
        library = ctypes.CDLL(str(build("packet_load.c", "packet_load", *flags)))
        library.load_open.restype = c_void_p
        library.load_open.argtypes = [POINTER(c_char_p), c_uint32, c_int, POINTER(c_int)]
        library.load_close.argtypes = [c_void_p]
        library.load_close.restype = None
        library.load_run.argtypes = [c_void_p, POINTER(_Shape), c_uint64, c_int, POINTER(_Result)]
        self._library = library
        names = (c_char_p * len(interfaces))(*(name.encode() for name in interfaces))
        error = c_int()
        self._load = library.load_open(names, len(interfaces), int(super_frames), byref(error))
        if not self._load:
            raise OSError(-error.value, os.strerror(-error.value), ", ".join(interfaces))

    def close(self) -> None:
        """Close the sockets."""
        self._library.load_close(self._load)

    def run(self, traffic: TrafficPattern, duration_s: float) -> LoadResult:
        """Keep all slots of the traffic busy for a while; raises LoadError."""
        frames, answers = traffic.frames, traffic.answers
        # These references keep the arrays alive: the structure holds only addresses.
        arrays: dict[str, NDArray[Any]] = {
            "sends": np.ascontiguousarray(traffic.sends, np.uint64),
            "answers": np.ascontiguousarray(traffic.receives, np.uint64),
            "heads": np.ascontiguousarray(frames[:, :, : traffic.head_bytes]),
            "bodies": np.ascontiguousarray(frames[: traffic.tails, :, traffic.head_bytes :]),
            "answer_heads": np.ascontiguousarray(answers[:, :, : traffic.head_bytes]),
            "answer_bodies": np.ascontiguousarray(
                answers[: traffic.tails, :, traffic.head_bytes :]
            ),
        }
        shape = _Shape(
            ports=frames.shape[1],
            slots=frames.shape[0],
            tails=traffic.tails,
            head_bytes=traffic.head_bytes,
            tail_bytes=frames.shape[2] - traffic.head_bytes,
            slot_offset=traffic.slot_offset,
            round_offset=traffic.round_offset,
            checksum_offset=traffic.checksum_offset,
            any_offset=traffic.any_offset,
        )
        for name, array in arrays.items():
            kind = c_uint64 if array.dtype == np.uint64 else c_uint8
            setattr(shape, name, array.ctypes.data_as(POINTER(kind)))
        result = _Result()
        code: int = self._library.load_run(
            self._load, byref(shape), round(duration_s * 1e9), ANSWER_TIMEOUT_MS, byref(result)
        )
        if code == LOST:
            raise LoadError(
                f"{traffic.name}: no frame for {ANSWER_TIMEOUT_MS / 1000:g} s, but answers are "
                f"missing: {result.sent} frames sent, {result.received} received"
            )
        if code == WRONG:
            got = bytes(result.wrong[: result.wrong_bytes])
            slot = int.from_bytes(got[traffic.slot_offset : traffic.slot_offset + 4], "big")
            wanted = traffic.answers[slot % len(traffic.answers), result.wrong_port]
            raise LoadError(
                f"{traffic.name}: after {result.received} frames, port {result.wrong_port + 1} "
                f"sent an unexpected one:\n  received {got.hex(' ', 2)}\n"
                f"  expected {wanted[: len(got)].tobytes().hex(' ', 2)} (with its round)"
            )
        if code < 0:
            raise OSError(-code, os.strerror(-code))
        return LoadResult(
            sent=result.sent, received=result.received, elapsed_s=result.elapsed_ns / 1e9
        )
