# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One worker of the floods benchmark: sums in calm and during each flood, in turns.

Worker 0 starts and ends the attackers. The last line of the output is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.support.processor import read_times  # noqa: E402
from switchfold.hostlib import Session, SessionOptions  # noqa: E402
from switchfold.hostlib.config import join_from_environment  # noqa: E402

ATTACKER = Path(__file__).with_name("flood_attacker.py")
CALM = "calm"
PEER = "peer"
"""Stands for the address of worker 1's peer server, which is known once it has joined."""


@contextmanager
def attack(arguments: list[str], pids: list[int]) -> Generator[dict[str, Any]]:
    """Run an attacker; fill in what it did, and what it cost itself and the processes `pids`."""
    found: dict[str, Any] = {}
    with subprocess.Popen(
        [sys.executable, str(ATTACKER), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        if process.stdout.readline() != "begun\n":
            raise SystemExit(f"the attacker {arguments[0]} did not begin")
        before = read_times(pids)
        yield found
        after = read_times(pids)
        process.stdin.close()
        found.update(json.loads(process.stdout.readline()))
        pairs = zip(before.switches_s, after.switches_s, strict=True)
        found["servers_s"] = [later - earlier for earlier, later in pairs]


def timed_turn(session: Session, first: int, options: argparse.Namespace) -> list[float]:
    """Sum tensors one after the other, and verify each; return the seconds of each sum."""
    own, count = int(os.environ["SWITCHFOLD_WORKER_ID"]), options.bytes // 4
    workers = int(os.environ["SWITCHFOLD_NUM_WORKERS"])
    times_s: list[float] = []
    for i in range(options.sums):
        step = (first + i) % 1000
        array = np.full(count, step + own, np.int32)
        began_s = time.perf_counter()
        result = session.allreduce(array).result()
        times_s.append(time.perf_counter() - began_s)
        expected = workers * step + workers * (workers - 1) // 2
        if not (result == expected).all():
            raise SystemExit(f"a sum is wrong: {result[:5]}, not {expected}")
    return times_s


def run_all(options: argparse.Namespace) -> dict[str, Any]:
    """Let floods take turns, each after a calm one; the first turns are warm-up."""
    floods: dict[str, list[str]] = json.loads(options.floods)
    times_s: dict[str, list[float]] = {name: [] for name in (CALM, *floods)}
    attacks: dict[str, list[dict[str, Any]]] = {name: [] for name in floods}
    is_first = os.environ["SWITCHFOLD_WORKER_ID"] == "0"
    with join_from_environment(SessionOptions(timeout_s=options.timeout)) as session:
        peer = session.view.members[1]
        address = f"{peer.peer_address}:{peer.peer_port}"
        floods = {
            name: [address if each == PEER else each for each in arguments]
            for name, arguments in floods.items()
        }
        order = [name for flood in floods for name in (CALM, flood)]
        for turn in range(options.turns + 1):
            for place, name in enumerate(order):

                def sums(
                    mark: str = f"{turn}-{place}", first: int = turn * options.sums
                ) -> list[float]:
                    session.barrier(f"{mark}-begin")
                    seconds = timed_turn(session, first, options)
                    session.barrier(f"{mark}-end")
                    return seconds

                if is_first and name != CALM:
                    with attack(floods[name], options.pids) as found:
                        seconds = sums()
                    attacks[name] += [found] * bool(turn)
                else:
                    seconds = sums()
                times_s[name] += seconds * bool(turn)
    return {"times_s": times_s, "attacks": attacks}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--bytes", type=int, required=True)
    parser.add_argument("--turns", type=int, required=True)
    parser.add_argument("--sums", type=int, required=True)
    parser.add_argument("--timeout", type=float, required=True)
    parser.add_argument("--floods", required=True, help="arguments of the attackers, as JSON")
    parser.add_argument("--pids", type=int, nargs="+", required=True)
    print(json.dumps(run_all(parser.parse_args())))


if __name__ == "__main__":
    main()
