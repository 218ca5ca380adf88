# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Calls of BMv2's Thrift service `simple_switch`, without its tools.

Thrift's binary protocol: each string has its length before it, each field its type and number.
"""

from __future__ import annotations

import socket
import struct

DEADLINE_S = 60.0
_CALL, _REPLY = 0x80010001, 0x80010002
"""Version 1, and the kind of message."""
_STOP, _I32, _I64 = 0, 8, 10
_SEQUENCE = 1


def set_queue_rate(thrift_port: int, port: int, rate_pps: int) -> None:
    """Limit each queue of a port to a rate in packets per second; 0: no limit."""
    arguments = struct.pack(">bhi", _I32, 1, port) + struct.pack(">bhq", _I64, 2, rate_pps)
    assert _call(thrift_port, b"set_egress_queue_rate", arguments) == 0


def _call(thrift_port: int, method: bytes, arguments: bytes) -> int:
    """Call a method that returns an i32."""
    name = b"simple_switch:" + method
    request = struct.pack(f">Ii{len(name)}si", _CALL, len(name), name, _SEQUENCE)
    request += arguments + bytes([_STOP])
    reply = struct.Struct(f">Ii{len(method)}sibhib")
    with socket.create_connection(("127.0.0.1", thrift_port), DEADLINE_S) as connection:
        connection.sendall(request)
        answer = b""
        while len(answer) < reply.size:
            more = connection.recv(reply.size - len(answer))
            assert more, f"{method.decode()}: the connection ended after {answer!r}"
            answer += more
    kind, _, answered, sequence, result_type, field, result, end = reply.unpack(answer)
    expected = _REPLY, method, _SEQUENCE, _I32, 0, _STOP
    assert (kind, answered, sequence, result_type, field, end) == expected, answer
    return result
