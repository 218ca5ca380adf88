# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Time to plan the trees of a job with 1,024 workers on 64 switches, and to encode its entries.

Every plan is verified before it counts: each tree joins all workers, and the predicted time is not
below the lower bound. Run: python benchmarks/trees/tree_planning.py
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from switchfold.controller.config import ControllerConfig, HostConfig, LinkConfig, SwitchConfig
from switchfold.controller.fabric.fabric import Fabric
from switchfold.controller.fabric.routes import routes_at
from switchfold.controller.fabric.trees.frame_cost import Traffic
from switchfold.controller.fabric.trees.planner import plan_trees
from switchfold.controller.fabric.trees.tree_plan import TreePlan
from switchfold.controller.jobs.job import Tree, View, Worker
from switchfold.controller.switches.program import load_program
from switchfold.controller.switches.reconcile import desired_entities
from switchfold.controller.views.tree_shape import tree_shape

AIM_S = 1.0
GBIT = 1_000_000_000
NUM_SLOTS = 128
HOSTS_PER_LEAF = 32


def build_fabric(levels: list[int], joined: Callable[[int, int], bool]) -> ControllerConfig:
    """Build leaves with hosts at 10 Gbit/s and switches above them, 10 Gbit/s per link.

    `levels` counts the switches of each level, leaves first. `joined(a, b)` tells whether switches
    a and b have a link; switches are numbered from 0 over all levels.
    """
    names = [f"s{number + 1}" for number in range(sum(levels))]
    used = [HOSTS_PER_LEAF if number < levels[0] else 0 for number in range(len(names))]
    switches = [
        SwitchConfig(
            name=name,
            address="127.0.0.1:9559",
            service_address=f"10.255.{number // 250}.{number % 250 + 1}",
            service_mac=f"02:53:46:00:{number >> 8:02x}:{number & 255:02x}",
            hosts=tuple(_host(number, port) for port in range(1, used[number] + 1)),
        )
        for number, name in enumerate(names)
    ]
    links: list[LinkConfig] = []
    for a in range(len(names)):
        for b in range(a + 1, len(names)):
            if joined(a, b):
                used[a] += 1
                used[b] += 1
                links.append(
                    LinkConfig(
                        a=names[a],
                        a_port=used[a],
                        b=names[b],
                        b_port=used[b],
                        rate_bits_per_s=10 * GBIT,
                    )
                )
    return ControllerConfig(switches=tuple(switches), links=tuple(links), variant="wide")


def _host(switch: int, port: int) -> HostConfig:
    return HostConfig(
        name=f"h{switch * HOSTS_PER_LEAF + port}",
        port=port,
        address=f"10.{switch + 1}.0.{port}",
        mac=f"02:00:00:{switch:02x}:00:{port:02x}",
        rate_bits_per_s=10 * GBIT,
    )


def clos(pods: int = 8) -> ControllerConfig:
    """Return pods of 4 leaves and 2 aggregation switches, each below as many cores as pods."""
    first, core = 4 * pods, 6 * pods  # aggregation switches, cores

    def joined(a: int, b: int) -> bool:
        if a < first <= b < core:
            return a // 4 == (b - first) // 2
        return first <= a < core <= b and (a - first) % 2 == (b - core) // pods

    return build_fabric([4 * pods, 2 * pods, 2 * pods], joined)


def leaf_spine() -> ControllerConfig:
    """Return 32 leaves and 32 spines with 1024 links."""
    return build_fabric([32, 32], lambda a, b: a < 32 <= b)


def congested(config: ControllerConfig) -> Fabric:
    """Return the fabric with a different load on every link, so that it has no symmetry."""
    fabric = Fabric.of(config)
    used = {
        direction: fabric.rate(direction) * ((number * 37) % 90) / 100
        for number, link in enumerate(config.links)
        for direction in fabric.directions_at(link.a, link.a_port)
    }
    return fabric.with_use(used)


def workers_of(config: ControllerConfig) -> list[Worker]:
    places = [(switch.name, host) for switch in config.switches for host in switch.hosts]
    return [
        Worker(
            worker_id=worker_id,
            switch=switch,
            port=host.port,
            address=host.address,
            mac=host.mac,
            udp_port=50000,
        )
        for worker_id, (switch, host) in enumerate(places)
    ]


def verify(plan: TreePlan, num_workers: int) -> None:
    """Raise SystemExit unless every tree joins all workers once and the time is possible."""
    for tree in plan.trees:
        ids = [c.worker_id for node in tree.nodes for c in node.children if c.worker_id is not None]
        if sorted(ids) != list(range(num_workers)) or tree.root.num_workers != num_workers:
            raise SystemExit(f"a tree with root {tree.root.switch} does not join all workers")
    if plan.seconds < plan.lower_bound_s:
        raise SystemExit("a plan is faster than the lower bound")


def make_view(plan: TreePlan, workers: list[Worker], fabric: Fabric) -> View:
    trees: list[Tree] = []
    counts = plan.slot_counts(NUM_SLOTS)
    for tree_id, (tree, count) in enumerate(zip(plan.trees, counts, strict=True), 1):
        shape = tree_shape(tree, workers, fabric.switches)
        trees.append(dataclasses.replace(shape, tree_id=tree_id, slot_count=count))
    return View(generation=1, job_number=1, members=tuple(workers), trees=tuple(trees))


def measure(name: str, fabric: Fabric, config: ControllerConfig, repeats: int) -> dict[str, Any]:
    """Plan and encode `repeats` times after one warm-up; return the times."""
    workers = workers_of(config)
    program = load_program("wide")
    traffic = Traffic(tensor_bytes=64 << 20, values_per_packet=program.values_per_packet)
    times: dict[str, list[float]] = {"plan": [], "plan_cpu": [], "encode": []}
    entities = 0
    plan = plan_trees(fabric, workers, traffic)
    for repeat in range(repeats + 1):
        fresh = dataclasses.replace(fabric)  # empty caches, as after every change
        began = time.perf_counter()
        cpu_began = time.process_time()
        plan = plan_trees(fresh, workers, traffic)
        planned = time.perf_counter()
        cpu_planned = time.process_time()
        view = make_view(plan, workers, fabric)
        entities = 0
        for switch in fabric.switches:
            for entity in desired_entities((), view.placements(switch)):
                entity.encode(program.schema)
                entities += 1
        encoded = time.perf_counter()
        verify(plan, len(workers))
        if repeat:
            times["plan"].append(planned - began)
            times["plan_cpu"].append(cpu_planned - cpu_began)
            times["encode"].append(encoded - planned)
    began = time.perf_counter()
    routes = sum(len(routes_at(fabric, switch)) for switch in fabric.switches)
    return {
        "fabric": name,
        "switches": len(fabric.switches),
        "links": len(fabric.links),
        "workers": len(workers),
        "trees": len(plan.trees),
        "depth": max(tree.depth for tree in plan.trees),
        "predicted_over_bound": plan.seconds / plan.lower_bound_s,
        "entities": entities,
        "routes": routes,
        "routes_s": time.perf_counter() - began,
        "plan_s": times["plan"],
        "plan_cpu_s": times["plan_cpu"],
        "encode_s": times["encode"],
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path, help="file that also gets the figures")
    options = parser.parse_args()
    cases = [
        ("3-level Clos, idle", Fabric.of(clos()), clos()),
        ("3-level Clos, loaded", congested(clos()), clos()),
        ("leaf-spine, idle", Fabric.of(leaf_spine()), leaf_spine()),
        ("leaf-spine, loaded", congested(leaf_spine()), leaf_spine()),
    ]
    print(f"{platform.processor() or platform.machine()}, Python {platform.python_version()}")
    print(f"{options.repeats} repeats after a warm-up; median (min .. max)")
    rows: list[dict[str, Any]] = []
    for name, fabric, config in cases:
        row = measure(name, fabric, config, options.repeats)
        rows.append(row)
        print(
            f"{name}: {row['switches']} switches, {row['links']} links, {row['workers']} workers: "
            f"{row['trees']} trees, depth {row['depth']}, "
            f"{row['predicted_over_bound']:.3f} times the lower bound"
        )
        for step, title in (
            ("plan", "plan"),
            ("plan_cpu", "plan, processor time"),
            ("encode", f"encode {row['entities']} entries"),
        ):
            times = row[f"{step}_s"]
            print(
                f"  {title}: {statistics.median(times):.3f} s "
                f"({min(times):.3f} .. {max(times):.3f})"
            )
        print(f"  routes: {row['routes']} in {row['routes_s']:.3f} s")
    slowest = max(statistics.median(row["plan_s"]) for row in rows)
    verdict = "met" if slowest < AIM_S else "MISSED"
    print(f"slowest plan {slowest:.3f} s, aim below {AIM_S} s: {verdict}")
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2) + "\n", "utf-8")
    return 0 if slowest < AIM_S else 1


if __name__ == "__main__":
    sys.exit(main())
