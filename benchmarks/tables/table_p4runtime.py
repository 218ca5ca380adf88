# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Table entries through P4Runtime: rates of Write and Read, and memory of the switch's process.

Requests are built before the measurement starts. All entries are read back and compared.
"""

import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from finsy.proto import U128, p4i, p4r, p4r_grpc
from google.protobuf import text_format

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "tests/pipeline/programs/table_kinds"
TABLE, ACTION = "exact_large", "answer"
BATCH = 5_000
TIMEOUT_S = 600.0
KEY_STEP = 2654435761
"""Odd, so that the keys of all entries differ."""


@dataclass(frozen=True)
class Rates:
    """Measurement with one number of entries, in seconds of wall clock."""

    entries: int
    insert_s: float
    read_s: float
    megabytes: float


def resident_mb(pid: int) -> float:
    """Return the memory of a process in MB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096 / 1e6


@contextmanager
def _switch(address: str) -> Iterator[int]:
    command = [sys.executable, "-m", "switchfold.softswitch", "run", f"{PROGRAM}.json"]
    command += ["--p4info", f"{PROGRAM}.p4info.txtpb", "--grpc", address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            if not line.startswith("ready"):
                raise SystemExit(f"softswitch run did not start: {line}")
            yield process.pid
        finally:
            process.terminate()


class _Client:
    """The primary of the switch; it sends encoded messages."""

    def __init__(self, address: str) -> None:
        options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
        self._channel = grpc.insecure_channel(address, options=options)
        update = p4r.MasterArbitrationUpdate(device_id=1, election_id=U128.encode(1))
        request = p4r.StreamMessageRequest(arbitration=update)
        self._stub = p4r_grpc.P4RuntimeStub(self._channel)
        self._stream: Any = self._stub.StreamChannel(_kept_open(request))
        if next(self._stream).arbitration.status.code:
            raise SystemExit("not primary")
        self._write: Any = self._channel.unary_unary("/p4.v1.P4Runtime/Write")

    def write(self, request: bytes) -> None:
        self._write(request, timeout=TIMEOUT_S)

    def read(self, query: p4r.TableEntry) -> Iterator[p4r.TableEntry]:
        request = p4r.ReadRequest(device_id=1, entities=[p4r.Entity(table_entry=query)])
        for response in self._stub.Read(request, timeout=TIMEOUT_S):
            for entity in response.entities:
                yield entity.table_entry

    def close(self) -> None:
        self._stream.cancel()
        self._channel.close()


def _kept_open(request: p4r.StreamMessageRequest) -> Iterator[p4r.StreamMessageRequest]:
    yield request
    threading.Event().wait()


def _requests(table: int, action: int, entries: int) -> Iterator[bytes]:
    for start in range(0, entries, BATCH):
        request = p4r.WriteRequest(device_id=1, election_id=U128.encode(1))
        for number in range(start, min(start + BATCH, entries)):
            update = request.updates.add(type=p4r.Update.INSERT)
            entry = update.entity.table_entry
            entry.table_id = table
            for field_id, value in enumerate(_key(number), 1):
                entry.match.add(field_id=field_id).exact.value = value
            entry.action.action.action_id = action
            for param_id, value in enumerate(_params(number), 1):
                entry.action.action.params.add(param_id=param_id, value=value)
        yield request.SerializeToString()


def _key(number: int) -> tuple[bytes, bytes]:
    return _canonical(number * KEY_STEP % (1 << 32), 4), _canonical(number & 0xFFFF, 2)


def _params(number: int) -> tuple[bytes, bytes]:
    return _canonical(number, 4), _canonical(number ^ 0xFFFF_FFFF, 4)


def _canonical(number: int, size: int) -> bytes:
    return number.to_bytes(size, "big").lstrip(b"\0") or b"\0"


def _verify(client: _Client, table: int, entries: int) -> float:
    """Read all entries back and compare them; return the seconds until the last one."""
    start = time.perf_counter()
    found = list(client.read(p4r.TableEntry(table_id=table)))
    seconds = time.perf_counter() - start
    seen = bytearray(entries)
    for entry in found:
        first, second = (item.value for item in entry.action.action.params)
        number = int.from_bytes(first, "big")
        key = tuple(item.exact.value for item in entry.match)
        if seen[number] or key != _key(number) or (first, second) != _params(number):
            raise SystemExit(f"read back a wrong entry: {entry}")
        seen[number] = 1
    if len(found) != entries:
        raise SystemExit(f"{len(found)} entries read back, {entries} written")
    return seconds


def measure(entries: int) -> Rates:
    """Insert, read back and compare `entries` entries in a new switch."""
    text = PROGRAM.with_suffix(".p4info.txtpb").read_text(encoding="utf-8")
    info = text_format.Parse(text, p4i.P4Info())
    ids = {item.preamble.alias: item.preamble.id for item in (*info.tables, *info.actions)}
    requests = list(_requests(ids[TABLE], ids[ACTION], entries))
    with tempfile.TemporaryDirectory() as folder, _switch(f"unix:{folder}/switch") as pid:
        client = _Client(f"unix:{folder}/switch")
        try:
            before = resident_mb(pid)
            start = time.perf_counter()
            for request in requests:
                client.write(request)
            insert_s = time.perf_counter() - start
            megabytes = resident_mb(pid) - before
            read_s = _verify(client, ids[TABLE], entries)
            megabytes = max(megabytes, resident_mb(pid) - before)
        finally:
            client.close()
    return Rates(entries, insert_s, read_s, megabytes)
