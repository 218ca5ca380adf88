# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One worker of the benchmark of the advice: the same sums by each contender, rate after rate.

advice.py starts it on every host of a testbed around a switch; the sockets of Gloo over the bridge
are opened in the host's twin namespace. Worker 0 changes the rates of both testbeds between sums.
Every result is verified before its time counts. The last line of the output is JSON.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.allreduce.allreduce_worker import (
    Allreduce,
    Floats,
    num_workers_here,
    open_bridged_gloo,
    open_gloo,
    own_worker_id,
    print_content,
    timed,
)
from benchmarks.schemes.advice_report import LABELS
from switchfold.bmv2_topos import Testbed
from switchfold.controller.cli.calibrate.sums import check_sum, contribution
from switchfold.hostlib import Session, SessionOptions
from switchfold.hostlib.config import join_from_environment


def set_rates(testbeds: list[Testbed], rate_bits_per_s: int | None) -> None:
    """Give all links of the testbeds a rate; None: none."""
    for testbed in testbeds:
        for link in testbed.topology.links:
            testbed.link_rates.set(link, rate_bits_per_s)


def run_rate(
    contenders: dict[str, Allreduce],
    session: Session,
    condition: tuple[str, int],
    options: argparse.Namespace,
) -> list[dict[str, Any]]:
    """Let contenders take turns at one rate; the first turn is warm-up."""
    rate, num_bytes = condition
    runs: list[dict[str, Any]] = []
    for repeat in range(options.repeats + 1):
        for label, allreduce in contenders.items():
            array = contribution(own_worker_id(), num_bytes // 4)
            name = f"{rate}-{label}-{repeat}"
            result, run = timed(
                allreduce, array, lambda name=name: session.barrier(name), options.switch_pids
            )
            check_sum(result, num_workers_here())
            runs.append({"label": label, "repeat": repeat, **run})
    return runs


def run_all(options: argparse.Namespace) -> dict[str, Any]:
    """Sum at each rate, and return the runs by rate."""
    is_first = own_worker_id() == 0
    testbeds = [Testbed.attach(name) for name in options.testbeds] if is_first else []
    with contextlib.ExitStack() as stack:
        session = stack.enter_context(
            join_from_environment(SessionOptions(timeout_s=options.timeout))
        )

        def switchfold(array: Floats) -> Floats:
            return session.allreduce(array, precision="block").result()

        gloo = open_gloo(options.rendezvous, options.timeout)
        bridged = open_bridged_gloo(options.bridge_namespace, options.timeout)
        contenders = dict(zip(LABELS, (switchfold, gloo, bridged), strict=True))
        found: dict[str, list[dict[str, Any]]] = {}
        for rate, num_bytes in options.conditions:
            session.barrier(f"{rate}-before")
            set_rates(testbeds, None if rate == "none" else int(rate))
            session.barrier(f"{rate}-set")
            found[rate] = run_rate(contenders, session, (rate, num_bytes), options)
        return {"runs": found, "slots": session.view.slot_count}


def read_condition(text: str) -> tuple[str, int]:
    """Return rate and bytes of RATE:BYTES."""
    rate, _, num_bytes = text.partition(":")
    return rate, int(num_bytes)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--conditions", type=read_condition, nargs="+", help="RATE:BYTES")
    parser.add_argument("--repeats", type=int, required=True)
    parser.add_argument("--timeout", type=float, required=True)
    parser.add_argument("--rendezvous", type=Path, required=True)
    parser.add_argument("--bridge-namespace", required=True)
    parser.add_argument("--testbeds", nargs=2, required=True)
    parser.add_argument(
        "--switch-pids", type=lambda text: [int(pid) for pid in text.split(",")], required=True
    )
    print_content(run_all, parser.parse_args())


if __name__ == "__main__":
    main()
