# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What one core does for a chunk: move a datagram, quantise values; in this process alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import numpy as np

from ....hostlib.control.view import Endpoint
from ....hostlib.schemes.calibration_file import MeasuredFigure
from ....hostlib.slots.wire import VALUES_PER_PACKET_WIDE, datagram_bytes
from ....hostlib.summation.chunks import FloatSource, Summand
from ....hostlib.summation.native_source import NativeSource
from ....hostlib.summation.quantization import chunk_exponents
from ....hostlib.transports.udp import UdpTransport
from .errors import CalibrationRunError

_BATCH: Final = 64
_BATCHES: Final = 300
_CHUNKS: Final = 3000
_WAIT_S: Final = 5.0
LOOPBACK: Final = "127.0.0.1"


def measure_components(repeats: int) -> dict[str, MeasuredFigure]:
    """Return `datagram_s` and `quantized_value_s`; CalibrationRunError if datagrams get lost."""
    return {
        "datagram_s": _repeated(_datagrams_s, repeats, _BATCH * _BATCHES),
        "quantized_value_s": _repeated(_quantise_s, repeats, _CHUNKS * VALUES_PER_PACKET_WIDE),
    }


def _repeated(measure: Callable[[], float], repeats: int, count: int) -> MeasuredFigure:
    measure()  # warm-up
    return MeasuredFigure.of([measure() / count for _ in range(repeats)])


def _datagrams_s() -> float:
    """Return the processor seconds of batches that go from one socket to another."""
    size = datagram_bytes(VALUES_PER_PACKET_WIDE)
    rows = np.zeros((_BATCH, size), np.uint8)
    arrived = np.empty_like(rows)
    sender, receiver = UdpTransport(LOOPBACK), UdpTransport(LOOPBACK)
    try:
        sender.open(Endpoint(address=LOOPBACK, udp_port=receiver.local.udp_port), size)
        receiver.open(Endpoint(address=LOOPBACK, udp_port=sender.local.udp_port), size)
        began_s = time.process_time()
        for _ in range(_BATCHES):
            taken = sender.send(rows)
            while taken:
                count = receiver.receive(arrived, _WAIT_S)
                if count <= 0:
                    raise CalibrationRunError(
                        f"{taken} datagrams over {LOOPBACK} did not arrive within {_WAIT_S:g} s: a"
                        " firewall may drop UDP on the loopback interface"
                    )
                taken -= count
        return time.process_time() - began_s
    finally:
        sender.close()
        receiver.close()


def _quantise_s() -> float:
    """Return the processor seconds of quantising and dequantising chunks."""
    values = np.random.default_rng(1).standard_normal(
        (_CHUNKS, VALUES_PER_PACKET_WIDE), dtype=np.float32
    )
    rows = np.empty(values.shape, np.int32)
    began_s = time.process_time()
    source = FloatSource(
        Summand(tensor_id=1, flat=values.reshape(-1), is_mean=False, retains=True),
        chunk_exponents(values),
        VALUES_PER_PACKET_WIDE,
        num_workers=2,
    )
    native = NativeSource(source)
    native.fill(0, rows)
    native.take(0, rows)
    return time.process_time() - began_s
