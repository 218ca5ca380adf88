# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Packets per second through softswitch, BMv2 and a bare packet-socket forwarder, in one run.

Both switches get the same compiled program, P4Runtime calls and frames. Every answer is compared
with the expected frame; a lost frame stops the benchmark.
"""

from __future__ import annotations

import argparse
import logging
import os
import platform
import signal
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SUPPORT = ROOT / "tests" / "support"
sys.path[:0] = [str(ROOT), str(SUPPORT), str(SUPPORT / "packet")]

from benchmarks.packet_rate import contenders, rate_report, traffic  # noqa: E402
from benchmarks.packet_rate.load_generator import LoadError  # noqa: E402
from benchmarks.packet_rate.mem_rate import mem_bench  # noqa: E402
from benchmarks.packet_rate.wires import Wires, wires  # noqa: E402
from benchmarks.support.results import write_json  # noqa: E402

WORKLOADS = ("narrow", "wide", "l3")
FRAMES_IN_FLIGHT = 512
"""Frames of the fast contenders that are sent but not yet answered."""
BMV2_FRAMES_IN_FLIGHT = 128
"""With twice as many, BMv2 loses some: its queue after ingress holds 64 frames per port."""
MEM_ROUNDS = {"narrow": 200, "wide": 80, "l3": 200}
SWITCH_CORE, LOAD_CORE = 0, 1


def make_traffic(name: str, frames_in_flight: int) -> traffic.TrafficPattern:
    """Return a workload that keeps this number of frames in flight."""
    if name == "l3":
        return traffic.l3_forwarding(frames_in_flight)
    slots = frames_in_flight // traffic.NUM_PORTS
    return traffic.aggregation("narrow" if name == "narrow" else "wide", slots)


def summarize(samples: Sequence[dict[str, float]]) -> dict[str, Any]:
    """Return median, minimum and maximum of each figure over the repeats."""
    return {
        key: {
            "median": statistics.median(values),
            "min": min(values),
            "max": max(values),
        }
        for key in samples[0]
        for values in [[sample[key] for sample in samples]]
    }


def sample(sent: int, elapsed_s: float, cpu_s: float) -> dict[str, float]:
    """Return the figures of one run."""
    return {
        "pps": sent / elapsed_s,
        "pps_per_core": sent / cpu_s,
        "cpu_us_per_packet": 1e6 * cpu_s / sent,
        "cores": cpu_s / elapsed_s,
    }


def measure_mem(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Measure the pipeline alone."""
    of = make_traffic(name, FRAMES_IN_FLIGHT)
    fill = contenders.setup(name, len(of.frames))
    with mem_bench(of, contenders.program(name), fill, {SWITCH_CORE}) as bench:
        bench.run(20, is_verified=True)
        runs = [bench.run(MEM_ROUNDS[name], is_verified=False) for _ in range(2 * options.repeats)]
        bench.run(20, is_verified=True)
    return summarize([sample(run.sent, run.elapsed_s, run.cpu_s) for run in runs])


def measure_veth(name: str, options: argparse.Namespace, between: Wires) -> dict[str, Any]:
    """Measure all contenders of one workload in turn, each on wires of its own."""
    fast = make_traffic(name, FRAMES_IN_FLIGHT)
    slow = make_traffic(name, BMV2_FRAMES_IN_FLIGHT)
    with ExitStack() as stack:
        running: list[tuple[contenders.Contender, traffic.TrafficPattern]] = []
        has_super_frames = fast.checksum_offset != 0  # only packets with checksums are joined
        for super_frames in (False, True) if has_super_frames else (False,):
            started = contenders.bare_forwarder(between, {SWITCH_CORE}, super_frames=super_frames)
            running.append((stack.enter_context(started), traffic.unchanged(fast)))
        for switch in ("softswitch", "softswitch-super", "bmv2"):
            if switch == "bmv2" and not options.has_bmv2:
                continue
            if switch == "softswitch-super" and not has_super_frames:
                continue
            is_fast = switch != "bmv2"
            of = fast if is_fast else slow
            # BMv2 may use all cores, because it has several threads.
            cores = {SWITCH_CORE} if is_fast else set(range(options.cores))
            fill = contenders.setup(name, len(of.frames))
            started = contenders.switch(switch, between, cores, contenders.program(name), fill)
            running.append((stack.enter_context(started), of))
        found: dict[str, list[dict[str, float]]] = {each.name: [] for each, _ in running}
        for repeat in range(options.repeats + 1):
            for each, of in running:
                cpu = each.cpu_s()
                result = each.load.run(of, options.duration if repeat else options.duration / 4)
                if repeat:
                    found[each.name].append(
                        sample(result.sent, result.elapsed_s, each.cpu_s() - cpu)
                    )
    return {each: summarize(samples) for each, samples in found.items()} | {
        "frame_bytes": fast.frame_bytes
    }


def describe_machine() -> dict[str, Any]:
    """Return facts about the machine that readers of the results need."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    models = (line.partition(": ")[2] for line in lines if line.startswith("model name"))
    return {
        "commit": done.stdout.strip() or "unknown",
        "cpu": next(models, platform.machine()),
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "load_before": round(os.getloadavg()[0], 2),
    }


def parse_options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--workloads", default=",".join(WORKLOADS), help="some of narrow, wide, l3")
    parser.add_argument("--over", default="mem,veth", help="mem, veth (root), or both")
    parser.add_argument("--repeats", type=int, default=7, help="after a warm-up, in turn")
    parser.add_argument("--duration", type=float, default=1.0, help="seconds of each veth run")
    parser.add_argument("--quick", action="store_true", help="3 repeats of 0.3 s")
    parser.add_argument("--without-bmv2", action="store_true", help="even if it is on the PATH")
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results")
    options = parser.parse_args()
    if options.quick:
        options.repeats, options.duration = 3, 0.3
    unknown = set(options.workloads.split(",")) - set(WORKLOADS)
    if unknown or not set(options.over.split(",")) <= {"mem", "veth"}:
        parser.error("--workloads takes narrow, wide, l3; --over takes mem, veth")
    options.cores = min(2, os.cpu_count() or 1)
    options.has_bmv2 = contenders.has_bmv2() and not options.without_bmv2
    return options


def main() -> None:
    """Measure, print and write everything."""
    options = parse_options()
    if "veth" in options.over and os.geteuid() != 0:
        raise SystemExit("veth needs root (network namespaces); without it: --over mem")
    for number in (signal.SIGTERM, signal.SIGHUP):  # exit with cleanup
        signal.signal(number, lambda *_: sys.exit(1))
    logging.getLogger("finsy").setLevel(logging.ERROR)  # it warns because BMv2 has no gNMI
    os.sched_setaffinity(0, {LOAD_CORE if options.cores > 1 else 0})
    machine = describe_machine()
    print(", ".join(f"{key.replace('_', ' ')} {value}" for key, value in machine.items()))
    rows: dict[str, Any] = {}
    measures: dict[str, Callable[[str], Any]] = {}
    with ExitStack() as stack:
        if "mem" in options.over:
            measures["mem"] = lambda name: measure_mem(name, options)
        if "veth" in options.over:
            between = stack.enter_context(wires())
            measures["veth"] = lambda name: measure_veth(name, options, between)
        print(rate_report.heading(options.repeats, has_bmv2=options.has_bmv2))
        for name in options.workloads.split(","):
            try:
                rows[name] = {over: measure(name) for over, measure in measures.items()}
            except LoadError as exc:
                raise SystemExit(f"benchmark stopped: {exc}") from exc
            print(rate_report.describe(name, rows[name]), flush=True)
    aims = rate_report.aims(rows)
    print(rate_report.describe_aims(aims))
    report = {
        "machine": machine,
        "repeats": options.repeats,
        "duration_s": options.duration,
        "frames_in_flight": {"default": FRAMES_IN_FLIGHT, "bmv2": BMV2_FRAMES_IN_FLIGHT},
        "rows": rows,
        "aims": aims,
    }
    path = options.out / "packet_rate.json"
    write_json(path, report)
    print(f"wrote {path}")


if __name__ == "__main__":
    main()
