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

from benchmarks.allreduce.allreduce import run_workers  # noqa: E402
from benchmarks.schemes.advice_report import HEADING, compare, describe_row, summary  # noqa: E402
from benchmarks.support.limits import collect_series  # noqa: E402
from benchmarks.support.machine import (  # noqa: E402
    check_machine,
    describe_machine,
    machine_line,
    parse_rate,
)
from benchmarks.support.results import parameters_of, write_json  # noqa: E402
from switchfold.bmv2_topos.errors import TestbedError  # noqa: E402
from switchfold.controller.cli.calibrate.command import calibrated  # noqa: E402
from switchfold.controller.cli.calibrate.rig import CalibrationPlan, Links  # noqa: E402
from switchfold.hostlib import SessionOptions  # noqa: E402
from switchfold.hostlib.schemes.calibration_file import Calibration  # noqa: E402

SECONDS: Final = 1.0
"""About as long as a sum may take on its links; the tensor is at most this long."""
MOST_BYTES: Final = 16_000_000


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rates", default="40M,100M,250M,500M,1G,2G,none", help="bit/s; none")
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


def measure(
    options: argparse.Namespace, rate_bits_per_s: int | None, num_workers: int
) -> dict[str, Any]:
    """Return the verified times of each contender on links of this rate."""
    condition = argparse.Namespace(
        **vars(options),
        bytes=tensor_bytes(rate_bits_per_s),
        variant="wide",
        target="softswitch",
        transport="udp",
        window=SessionOptions().window,
        slots=0,
    )
    workers = run_workers(condition, num_workers, rate_bits_per_s)
    labels = ("switchfold", "gloo_switch", "gloo_bridge")
    series = {label: collect_series(label, workers, 0.0) for label in labels}
    return {
        "rate_bits_per_s": rate_bits_per_s,
        "workers": num_workers,
        "bytes": condition.bytes,
        "slots": workers[0]["slots"],
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
        for rate in options.rates.split(","):
            for number in options.workers.split(","):
                rate_bits_per_s = None if rate == "none" else parse_rate(rate)
                measured = measure(options, rate_bits_per_s, int(number))
                rows.append(compare(measured, calibration, cores))
                print(describe_row(rows[-1]), flush=True)
                content = {
                    "machine": machine,
                    "parameters": parameters_of(options),
                    "shared_cores": cores,
                    "calibration": calibration.as_dict(),
                    "rows": rows,
                }
                write_json(options.out / "advice.json", content)  # a late failure loses one row
    except TestbedError as exc:
        raise SystemExit(f"benchmark stopped: {exc}") from exc
    print(f"\n{summary(rows)}\n{time.monotonic() - began_s:.0f} s")
    print(f"wrote {options.out / 'advice.json'}")


if __name__ == "__main__":
    main()
