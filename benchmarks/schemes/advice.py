# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Is the advice right? Sums through the switch and by Gloo's ring, and which of them is predicted.

First this machine is calibrated as by `switchfold calibrate`. Then, for each rate and number of
workers, the same workers sum the same tensors in turn as in the allreduce benchmark: by Switchfold,
by Gloo through the same switch, and by Gloo over a bridge. Every sum is verified. The prediction
knows the calibration and the nominal rate, and was made before the measurement; the table names the
faster of the two by prediction and by measurement, where the faster Gloo counts as the ring.

    python benchmarks/schemes/advice.py --rates 40M,100M,1G,none --workers 2,4
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any, Final

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.schemes.advice_report import (  # noqa: E402
    HEADING,
    LABELS,
    compare,
    describe_row,
    summary,
)
from benchmarks.support.limits import collect_series  # noqa: E402
from benchmarks.support.machine import (  # noqa: E402
    check_machine,
    describe_machine,
    machine_line,
    parse_rate,
)
from benchmarks.support.results import parameters_of, write_json  # noqa: E402
from benchmarks.support.worker_runs import outputs, switch_pids  # noqa: E402
from switchfold.bmv2_topos import Testbed, WorkerEndpoint, single_switch  # noqa: E402
from switchfold.bmv2_topos.errors import TestbedError  # noqa: E402
from switchfold.controller.cli.calibrate.command import calibrated  # noqa: E402
from switchfold.controller.cli.calibrate.rig import CalibrationPlan, Links  # noqa: E402
from switchfold.hostlib.schemes.calibration_file import Calibration  # noqa: E402

WORKER: Final = Path(__file__).with_name("advice_worker.py")
SECONDS: Final = 1.0
"""About as long as a sum may take on its links; the tensor is at most this long."""
MOST_BYTES: Final = 8_000_000


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rates", default="40M,100M,250M,500M,1G,none", help="bit/s; none")
    parser.add_argument("--workers", default="2,4", help="numbers of workers")
    parser.add_argument("--repeats", type=int, default=5, help="sums by each, after a warm-up")
    parser.add_argument("--offloads", action="store_true", help="links carry super-frames")
    parser.add_argument("--timeout", type=float, default=120.0, help="seconds per sum")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    return parser.parse_args()


def tensor_bytes(rate_bits_per_s: float | None) -> int:
    """Return the size of a tensor that a link carries in about a second, whole MB."""
    if rate_bits_per_s is None:
        return MOST_BYTES
    megabytes = max(1, round(rate_bits_per_s * SECONDS / 8e6))
    return min(MOST_BYTES, 1_000_000 * megabytes)


def measure(options: argparse.Namespace, num_workers: int) -> list[dict[str, Any]]:
    """Return the verified times of each contender, for each rate of the links."""
    rates = [None if each == "none" else parse_rate(each) for each in options.rates.split(",")]
    sizes = {str(rate or "none"): tensor_bytes(rate) for rate in rates}
    # Any rate will do at first: workers wait until the links have their own.
    topology = single_switch(num_workers, rate_bits_per_s=next(filter(None, rates), None))
    with (
        Testbed(topology, offloads=options.offloads) as testbed,
        Testbed(topology, has_bridge=True, offloads=options.offloads) as bridged,
    ):

        def command(endpoint: WorkerEndpoint) -> list[str]:
            return [
                *(sys.executable, str(WORKER), "--repeats", str(options.repeats)),
                *("--timeout", str(options.timeout), "--switch-pids", switch_pids(testbed)),
                *("--rendezvous", str(testbed.run_directory / "gloo-rendezvous")),
                *("--bridge-namespace", str(bridged.namespace_of(endpoint.host))),
                *("--testbeds", testbed.name, bridged.name),
                *("--conditions", *(f"{rate}:{size}" for rate, size in sizes.items())),
            ]

        workers = outputs(
            testbed.run_workers(
                command,
                job="advice",
                timeout_s=120 + 3 * len(rates) * (options.repeats + 1) * options.timeout,
                environment={"OMP_NUM_THREADS": "1"},
            )
        )
    return [
        {
            "rate_bits_per_s": rate,
            "workers": num_workers,
            "bytes": sizes[str(rate or "none")],
            "slots": workers[0]["slots"],
            **_times(workers, str(rate or "none")),
        }
        for rate in rates
    ]


def _times(workers: list[dict[str, Any]], rate: str) -> dict[str, Any]:
    """Return each contender's times at a rate; ValueError if workers hold different sums."""
    runs = [{"runs": worker["runs"][rate]} for worker in workers]
    series = {label: collect_series(label, runs, 0.0) for label in LABELS}
    return {
        "times_s": {label: each.times_s for label, each in series.items()},
        "busy_share": max(each.busy_share for each in series.values()),
    }


def calibrate(options: argparse.Namespace) -> Calibration:
    """Measure this machine as `switchfold calibrate` does by default, over the same links."""
    links: Links = "super-frames" if options.offloads else "veth"
    plan = CalibrationPlan(workers=4, num_bytes=8_000_000, repeats=5, links=links)
    return calibrated(plan)


def main() -> None:
    options = parse_options()
    check_machine()
    machine = describe_machine()
    print(machine_line(machine), flush=True)
    cores = os.cpu_count() or 1
    rows: list[dict[str, Any]] = []
    began_s = time.monotonic()
    try:
        calibration = calibrate(options)
        described = [each.describe() for each in (calibration.hosts, calibration.switch) if each]
        print("\n".join([*described, "", HEADING]), flush=True)
        for number in options.workers.split(","):
            rows += [compare(each, calibration, cores) for each in measure(options, int(number))]
            print("\n".join(describe_row(each) for each in rows if each["workers"] == int(number)))
            sys.stdout.flush()
            content = {
                "machine": machine,
                "parameters": parameters_of(options),
                "shared_cores": cores,
                "calibration": calibration.as_dict(),
                "rows": rows,
            }
            write_json(options.out / "advice.json", content)  # a late failure loses little
    except TestbedError as exc:
        raise SystemExit(f"benchmark stopped: {exc}") from exc
    print(f"\n{summary(rows)}\n{time.monotonic() - began_s:.0f} s")
    print(f"wrote {options.out / 'advice.json'}")


if __name__ == "__main__":
    main()
