# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One flood, from a process of its own and at a stated rate, until its standard input ends.

It writes a line when the flood has begun, and in the end one of JSON: what it did, and the
processor time that it took itself.
"""

from __future__ import annotations

import argparse
import json
import select
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from flooding import (  # noqa: E402
    Closeable,
    Flood,
    Target,
    endless_headers,
    half_handshake,
    joining,
    silent,
    slow_messages,
    without_calls,
)
from switchfold.hostlib.control.session_api import session_pb2 as pb  # noqa: E402
from switchfold.hostlib.credentials import credentials_in  # noqa: E402
from switchfold.hostlib.slots.wire import WIRE_VERSION  # noqa: E402

HELD: Final = 300
"""Connections that stay open; beyond it, the attacker closes its oldest."""
GIANT_BYTES: Final = 250_000
"""Just below what a controller takes."""
BURNT_S: Final = 0.005
"""Processor time of one step of the attack that touches no server."""


def join_message(job: str) -> bytes:
    """Return what a worker says first that will wait for another one."""
    request = pb.JoinRequest(
        job_name=job,
        num_workers=2,
        wire_version=WIRE_VERSION,
        address="10.0.0.1",
        udp_port=5000,
        path=pb.HOST,
    )
    return pb.WorkerMessage(join_request=request).SerializeToString()


class Joins:
    """Workers that join, each a job of its own."""

    def __init__(self) -> None:
        self._count = 0

    def __call__(self, target: Target) -> Closeable:
        self._count += 1
        return joining(join_message(f"storm {self._count}"))(target)


class Nothing:
    """Stands for a connection."""

    def close(self) -> None:
        """Do nothing."""


def burn(_target: Target) -> Nothing:
    """Use the processor alone."""
    end_s = time.process_time() + BURNT_S
    while time.process_time() < end_s:
        pass
    return Nothing()


CALLERS: Final[dict[str, Callable[[Target], Closeable]]] = {
    "burn": burn,
    "silent": silent,
    "half_handshake": half_handshake,
    "without_calls": without_calls,
    "endless_headers": endless_headers,
    "joins": Joins(),
    "slow_messages": slow_messages,
    "giant_messages": joining(join_message("x" * GIANT_BYTES)),
}


def has_ended() -> bool:
    """Return whether the standard input is at its end."""
    return bool(select.select([sys.stdin], [], [], 0)[0]) and not sys.stdin.read(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("caller", choices=CALLERS)
    parser.add_argument("--address", default="")
    parser.add_argument("--method", default="")
    parser.add_argument("--credentials", default="")
    parser.add_argument("--server", default="")
    parser.add_argument("--token", default="")
    parser.add_argument("--rate", type=float, required=True, help="callers per second")
    options = parser.parse_args()
    target = Target(
        options.address,
        options.method,
        credentials_in(options.credentials),
        options.server,
        options.token,
    )
    count = 0
    with Flood(CALLERS[options.caller], target, HELD) as flood:
        flood.add(1)
        print("begun", flush=True)
        began_s, began_cpu_s = time.monotonic(), time.process_time()
        while not has_ended():
            flood.add(1)
            count += 1
            time.sleep(max(0.0, began_s + count / options.rate - time.monotonic()))
        seconds, cpu_s = time.monotonic() - began_s, time.process_time() - began_cpu_s
        refused = flood.num_refused
    found = {"callers": count, "refused": refused, "seconds": seconds, "cpu_s": cpu_s}
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
