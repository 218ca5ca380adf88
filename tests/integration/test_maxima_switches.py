# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Maxima and minima over the compiled P4 program: numpy's to the bit, on switches and on trees."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from maximum_oracle import all_pairs, largest, random_floats, special_floats, special_integers
from softswitch_job import running_job
from switchfold import p4src
from switchfold.bmv2_topos import Testbed, Topology, state
from switchfold.bmv2_topos.processes.daemons import Target
from switchfold.bmv2_topos.topology.fabrics import leaf_spine
from switchfold.bmv2_topos.topology.topology import single_switch
from switchfold.hostlib.options import ReduceOperation
from switchfold.hostlib.session import Session
from switchfold.hostlib.slots.wire import Outcome
from switchfold.hostlib.straggler import StragglerPolicy
from switchfold.softswitch.switch.impairments import Impairments
from tree_fabric import Shape
from tree_sessions import TreeOfSwitches

DEPTH_2: Shape = ((0, 1), (2, 3))
DEPTH_3: Shape = (((0, 2), 5), (1, 3))
WAIT_S = 120.0
OPERATIONS: list[ReduceOperation] = ["max", "min"]
needs_root = [
    pytest.mark.root,
    pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root"),
]
needs_bmv2 = [
    pytest.mark.bmv2,
    pytest.mark.skipif(
        shutil.which("simple_switch_grpc") is None, reason="simple_switch_grpc is not on the PATH"
    ),
]
WORKER = """
import json
import sys
import numpy as np
from switchfold.hostlib import SessionOptions
from switchfold.hostlib.config import join_from_environment

lines = []
with join_from_environment(SessionOptions(timeout_s=200.0)) as session:
    own, number = session.view.worker_id, session.view.num_workers
    for turn in range(2):
        for dtype in ("float32", "int32"):
            words = np.random.default_rng(turn).integers(0, 1 << 32, int(sys.argv[1]), np.uint32)
            arrays = [np.roll(words, 1009 * i).view(dtype) for i in range(number)]
            for op, choose in (("max", np.maximum), ("min", np.minimum), ("sum", None)):
                if op == "sum":
                    small = [array.view(np.int32) >> 4 for array in arrays]
                    result = session.allreduce(small[own]).result()
                    assert (result == np.sum(small, axis=0)).all()
                    continue
                result = session.allreduce(arrays[own], op, nonfinite="propagate").result()
                with np.errstate(invalid="ignore"):
                    expected = choose.reduce(arrays)
                is_nan = np.isnan(expected)
                assert (result.view(np.uint32)[is_nan] == 0x7FC00000).all()
                expected.view(np.uint32)[is_nan] = 0x7FC00000
                assert result.tobytes() == expected.tobytes(), (op, dtype)
                lines.append((op, dtype, bool(is_nan.any())))
    session.barrier("end")
    counts = session.statistics
print(json.dumps({"lines": lines, "again": counts["value_packets_retransmitted"]}))
"""


def bad_network(seed: int) -> Impairments:
    return Impairments(
        loss=0.05, duplication=0.05, reordering=0.05, reordering_delay_s=0.01, seed=seed + 1
    )


def check(workers: list[Session], arrays: list[NDArray[Any]], operation: ReduceOperation) -> None:
    """Reduce at all workers, and compare with numpy."""
    futures = [
        w.allreduce(a, operation, nonfinite="propagate", timeout_s=WAIT_S)
        for w, a in zip(workers, arrays, strict=True)
    ]
    for future in futures:
        assert future.result(WAIT_S).tobytes() == largest(arrays, operation).tobytes()


def tensors(number: int, seed: int) -> list[list[NDArray[Any]]]:
    """Return tensors for so many workers: pairs of special numbers, and random bits."""
    found: list[list[NDArray[Any]]] = []
    for numbers in (special_floats(), special_integers()):
        pair = all_pairs(numbers)
        found.append([pair[i % 2] for i in range(number)])
    for size in (1, 5000):
        floats = [random_floats(size, 1000 * seed + size + i) for i in range(number)]
        found += [floats, [array.view(np.int32) for array in floats]]
    return found


@pytest.mark.parametrize("variant", ["narrow", "wide"])
def test_switch_gives_numpys_bits_on_a_bad_network(variant: p4src.Variant) -> None:
    with (
        running_job(variant, 3, slot_count=24, impairments=bad_network) as job,
        job.sessions() as workers,
    ):
        num_rounds = 0
        for arrays in tensors(3, 1):
            for operation in OPERATIONS:
                check(workers, arrays, operation)
                num_rounds += -(-len(arrays[0]) // job.values_per_packet)
            small = [(array.view(np.int32) >> 3) for array in arrays]
            futures = [w.allreduce(a) for w, a in zip(workers, small, strict=True)]
            for future in futures:
                np.testing.assert_array_equal(future.result(WAIT_S), np.sum(small, axis=0))
            num_rounds += -(-len(arrays[0]) // job.values_per_packet)
        outcomes = job.outcomes()
        assert outcomes[Outcome.COMPLETED] == num_rounds, "each round ends once"
        assert outcomes[Outcome.ABSORBED] == 2 * num_rounds, "each contribution counts once"
        assert outcomes[Outcome.REPLAYED] > 0
        assert Outcome.MISMATCH not in outcomes


@pytest.mark.parametrize("shape", [DEPTH_2, DEPTH_3], ids=["depth 2", "depth 3"])
def test_tree_gives_numpys_bits_with_loss_on_every_hop(shape: Shape) -> None:
    with (
        TreeOfSwitches(shape, "narrow", slot_counts=(24,), impairments=bad_network) as made,
        made.sessions() as workers,
    ):
        for arrays in tensors(len(workers), 2):
            for operation in OPERATIONS:
                check(workers, arrays, operation)
        for node in made.tree.nodes[1:]:
            assert made.outcomes(node.number)[Outcome.RESENT]


def test_two_roots_share_the_slots() -> None:
    with TreeOfSwitches(DEPTH_2, "narrow", slot_counts=(24, 12), impairments=bad_network) as made:
        with made.sessions() as workers:
            for arrays in tensors(len(workers), 3):
                check(workers, arrays, "max")
        assert all(made.outcomes(job.tree.root)[Outcome.COMPLETED] for job in made.jobs)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_tree_that_goes_on_without_a_late_worker_says_whose_numbers_count(
    operation: ReduceOperation,
) -> None:
    policy = StragglerPolicy(deadline_s=0.2)
    with (
        TreeOfSwitches(DEPTH_3, "narrow", straggler=policy, impairments=bad_network) as made,
        made.sessions() as workers,
    ):
        ids = sorted(made.tree.workers)
        late = ids.index(5)
        arrays = [random_floats(500, 40 + i) for i in ids]
        futures = {
            index: workers[index].allreduce(arrays[index], operation, nonfinite="propagate")
            for index in range(len(ids))
            if index != late
        }
        for future in futures.values():
            future.result(WAIT_S)
        futures[late] = workers[late].allreduce(arrays[late], operation, nonfinite="propagate")
        assert len({future.result(WAIT_S).tobytes() for future in futures.values()}) == 1
        delivery = futures[0].delivery
        assert delivery is not None
        assert delivery.missing[5] == ((0, 500),)
        # On a busy machine another worker may be late, too, for some chunks.
        result = futures[0].result()
        for chunk in range(0, 500, made.values_per_packet):
            end = min(500, chunk + made.values_per_packet)
            present = [
                array[chunk:end]
                for worker, array in zip(ids, arrays, strict=True)
                if not any(s <= chunk < e for s, e in delivery.missing.get(worker, ()))
            ]
            assert result[chunk:end].tobytes() == largest(present, operation).tobytes()


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("target", "topology"),
    [
        pytest.param("softswitch", single_switch(4), marks=needs_root, id="softswitch"),
        pytest.param("softswitch", leaf_spine(2, 1, 2), marks=needs_root, id="softswitch tree"),
        pytest.param("bmv2", single_switch(2), marks=[*needs_root, *needs_bmv2], id="bmv2"),
        pytest.param("bmv2", leaf_spine(2, 1, 2), marks=[*needs_root, *needs_bmv2], id="bmv2 tree"),
    ],
)
def test_workers_on_a_testbed_get_numpys_bits(
    target: Target, topology: Topology, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "records_directory", lambda: tmp_path)
    name = f"maxima-{os.getpid()}"
    # BMv2 takes milliseconds for a wide packet.
    variant, size = ("wide", "20000") if target == "softswitch" else ("narrow", "3000")
    with Testbed(topology, name=name, target=target, variant=variant) as testbed:
        link = testbed.topology.links[0]
        testbed.impair_link(link.host, link.switch, "loss=0.05")
        results = testbed.run_workers([sys.executable, "-c", WORKER, size], timeout_s=250)
    for result in results:
        assert result.exit_status == 0, f"worker {result.worker_id}:\n{result.output}"
    told = [json.loads(result.output.splitlines()[-1]) for result in results]
    assert all(worker["lines"] == told[0]["lines"] for worker in told)
    assert [line[:2] for line in told[0]["lines"]] == 2 * [
        ["max", "float32"],
        ["min", "float32"],
        ["max", "int32"],
        ["min", "int32"],
    ]
    assert all(line[2] == (line[1] == "float32") for line in told[0]["lines"]), "NaN is among them"
    assert sum(worker["again"] for worker in told) > 0
