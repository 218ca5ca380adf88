# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""SWITCHFOLD_TRACE around unmodified training: passes, buckets, and a file per rank."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from switchfold.controller.__main__ import run
from switchfold.controller.cli.traces.alignment import Alignment, load_traces
from switchfold.hostlib import ConfigurationError
from switchfold.hostlib.tracing.trace_files import union
from torch_ranks import TorchTestbed, load_torch, require_torch, run_ranks

require_torch()

pytestmark = pytest.mark.timeout(600)
NUM_RANKS = 2
NUM_STEPS = 3
INPUTS = 400


def train(rank: int) -> dict[str, Any]:
    """Train a model whose first layer, the last in the backward pass, has most of the values."""
    torch, dist = load_torch()
    dist.init_process_group("switchfold")
    torch.manual_seed(1)
    model = torch.nn.Sequential(
        torch.nn.Linear(INPUTS, 60), torch.nn.ReLU(inplace=True), torch.nn.Linear(60, 300)
    )
    model = torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.02)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loss = torch.nn.MSELoss()
    for _ in range(NUM_STEPS):
        optimizer.zero_grad()
        loss(model(torch.randn(8, INPUTS)), torch.randn(8, 300)).backward()
        optimizer.step()
    flat = torch.cat([parameter.detach().reshape(-1) for parameter in model.parameters()])
    dist.destroy_process_group()
    # The tests' own process never loads torch.
    from switchfold.hostlib.torch.timeline import group_recording  # noqa: PLC0415

    own = record_by_hand(rank)
    dist.init_process_group("gloo")  # a second group, which leaves the first file alone
    life = group_recording(rank, "second")
    assert life is not None
    life.stop()
    dist.destroy_process_group()
    return {"bytes": flat.numel() * 4, "sum": flat.double().sum().item(), "own": own}


def record_by_hand(rank: int) -> list[str]:
    """Record a part of a program in which a forward pass fails; return what was recorded."""
    from switchfold.hostlib.torch.timeline import start_recording  # noqa: PLC0415

    torch, _ = load_torch()
    recording = start_recording(rank)
    with pytest.raises(ConfigurationError, match="stop that first"):
        start_recording(rank)
    clocks: list[Any] = []
    for _ in range(2):  # the second group may be of other ranks: no barrier to align all by
        recording.enter_group()
        clocks.append(recording.timeline.clock)
    assert clocks[0] == clocks[1]
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 1))
    with pytest.raises(RuntimeError):
        model(torch.ones(1, 4))
    model(torch.ones(1, 3)).sum().backward()
    timeline = recording.stop()
    model(torch.ones(1, 3))
    assert recording.stop() is timeline
    return [f"{span.name} {span.category}" for span in timeline.spans]


@pytest.fixture(scope="module")
def traces(torch_testbed: TorchTestbed, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("traces")
    results = run_ranks(
        "test_torch_timeline:train",
        NUM_RANKS,
        testbed=torch_testbed,
        environment={"SWITCHFOLD_TRACE": str(folder)},
        preload=("torch._dynamo",),
        timeout_s=540.0,
    )
    assert results[0] == results[1]
    assert results[0]["bytes"] == 4 * (60 * INPUTS + 60 + 300 * 60 + 300)
    files = sorted(folder.iterdir())
    names = ["trace-0.2.json", "trace-0.json", "trace-1.2.json", "trace-1.json"]
    assert [path.name for path in files] == names
    assert results[0]["own"] == [
        *("0 forward", "Sequential forward"),  # the call that failed
        *("0 forward", "1 forward", "Sequential forward"),
        *("1 backward", "0 backward", "backward backward"),
    ]
    return files[1::2]


def test_buckets_and_passes_of_unmodified_ddp_are_recorded(traces: list[Path]) -> None:
    trace = load_traces(traces)
    assert trace.alignment is Alignment.SHARED_CLOCK
    for events in trace.ranks:
        spans = events.spans
        names = {(span.name, span.category) for span in spans}
        for name in ("0", "1", "2"):
            assert {(name, "forward"), (name, "backward")} <= names
        assert ("SGD", "optimizer") in names
        assert [span.name for span in spans].count("backward") == NUM_STEPS
        assert [span.name for span in spans].count("DistributedDataParallel") == NUM_STEPS
        assert all(span.begin_s <= span.end_s for span in spans)
        assert not any(each.error for each in events.transfers)
        gradients = [each for each in events.transfers if "all_reduce" in each.name]
        values = 60 * INPUTS + 60 + 300 * 60 + 300
        sent = [each.num_bytes for each in gradients]
        assert sum(sent) >= 4 * values * NUM_STEPS
        for each in gradients:
            assert each.ready_s <= each.first_packet_s < each.last_result_s <= each.done_s


def test_buckets_leave_while_the_backward_pass_runs(traces: list[Path]) -> None:
    for events in load_traces(traces).ranks:
        backward = union(
            (span.begin_s, span.end_s) for span in events.spans if span.name == "backward"
        )
        assert len(backward) == NUM_STEPS
        # DDP makes its buckets again after the first step, by the order of the gradients.
        for begin_s, end_s in backward[1:]:
            ready = [t.ready_s for t in events.transfers if begin_s <= t.ready_s <= end_s]
            assert ready, "no bucket was handed over before the backward pass ended"


def test_traces_are_summed_up_and_drawn(
    traces: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [str(path) for path in traces]
    assert run(["trace", "summary", "--json", *files]) == 0
    told = json.loads(capsys.readouterr().out)
    for each in told["ranks"]:
        assert 0 < each["compute_s"] < each["duration_s"]
        assert 0 < each["transfer_s"] < each["duration_s"]
        assert 0 <= each["overlap_share"] <= 1
    assert run(["trace", "plot", *files, "--out", str(tmp_path / "trace.png")]) == 0
    assert (tmp_path / "trace.png").stat().st_size > 10_000
