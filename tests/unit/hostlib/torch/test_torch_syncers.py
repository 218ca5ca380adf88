# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportPrivateUsage=false
"""Syncers, their pools and their order, with channels in memory."""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from torch_ranks import load_torch, require_torch

require_torch()
torch, _ = load_torch()

from torch import Tensor, nn  # noqa: E402

from switchfold.hostlib.errors import ConfigurationError, PeerClosedError, SessionClosedError  # noqa: E402
from switchfold.hostlib.schemes import Scheme  # noqa: E402
from switchfold.hostlib.torch.hybrid.linear_factors import LinearFactors  # noqa: E402
from switchfold.hostlib.torch.hybrid.used_parameters import UsedParameters  # noqa: E402
from switchfold.hostlib.torch.staging.streams import HostCopyStream  # noqa: E402
from switchfold.hostlib.torch.syncers.completion_vector import CompletionVector  # noqa: E402
from switchfold.hostlib.torch.syncers.scheme_channels import Mean, Reception, Values  # noqa: E402
from switchfold.hostlib.torch.syncers.submission_order import Submission, SubmissionOrder  # noqa: E402
from switchfold.hostlib.torch.syncers.sync_error import SyncError, SyncTimeoutError  # noqa: E402
from switchfold.hostlib.torch.syncers.sync_parts import DensePart, FactorPart  # noqa: E402
from switchfold.hostlib.torch.syncers.sync_schedule import SyncSchedule  # noqa: E402
from switchfold.hostlib.torch.syncers.syncer import Syncer, SyncerTrace, Turn  # noqa: E402
from switchfold.hostlib.torch.syncers.syncer_pools import SyncerPools  # noqa: E402

CPU = torch.device("cpu")
WAIT_S = 60.0


class GatedReception:
    """Arrives when the gate opens; the others sent the same."""

    def __init__(self, gate: threading.Event, mean: Mean) -> None:
        self._gate, self._mean = gate, mean

    def wait(self, timeout_s: float) -> None:
        if not self._gate.wait(timeout_s):
            raise TimeoutError(f"nothing within {timeout_s:.2f} s")

    def mean(self) -> Mean:
        return self._mean


class MemoryChannel:
    """Doubles what it gets, as if another worker had sent three times as much."""

    scheme = Scheme.INA
    takes_float64 = True

    def __init__(self, *, is_ordered: bool = False) -> None:
        self.is_ordered = is_ordered
        self.gates: dict[str, threading.Event] = {}
        self.sent: list[str] = []
        self.dtypes: list[np.dtype[Any]] = []
        self.is_open = True
        self.refusal: Exception | None = None

    def gate(self, key: str) -> threading.Event:
        gate = self.gates.setdefault(key, threading.Event())
        if self.is_open:
            gate.set()
        return gate

    def send(self, key: str, values: Values, iteration: int) -> Reception:
        if self.refusal is not None:
            raise self.refusal
        self.dtypes.append(values.dtype)
        gate = self.gate(key)
        self.sent.append(key)  # last: a test that sees the key finds its gate
        return GatedReception(gate, Mean(values * 2, 2))


class MemoryFactors:
    """Rebuilds from the factors and doubles."""

    scheme = Scheme.SFB
    is_ordered = False

    def send(self, key: str, u: Values, v: Values, iteration: int) -> Reception:
        assert u.dtype == v.dtype == np.float32
        gate = threading.Event()
        gate.set()
        return GatedReception(gate, Mean(u.T @ v * 2, 3))


def all_used(parameters: list[Tensor]) -> UsedParameters:
    """Return the state after a backward pass through all of them."""
    used = UsedParameters(parameters)
    for parameter in parameters:
        used.note(parameter)
    return used


class Run:
    """Syncers over one channel, a parameter each, at work in pools."""

    def __init__(self, channel: MemoryChannel, *, num_layers: int, pool: int) -> None:
        self.parameters = [nn.Parameter(torch.zeros(4)) for _ in range(num_layers)]
        for number, parameter in enumerate(self.parameters):
            parameter.grad = torch.full((4,), float(number))
        self.trace = SyncerTrace()
        self.syncers = [
            Syncer(
                Turn(index, index),
                f"layer{index}",
                [DensePart(f"layer{index}", [parameter], channel, all_used([parameter]))],
                place="rank 3",
                trace=self.trace,
            )
            for index, parameter in enumerate(self.parameters)
        ]
        self.completion = CompletionVector(num_layers)
        self.order = SubmissionOrder()
        self.pools = SyncerPools(pool, CPU)
        self.completion.clear()

    def start(self, *indices: int, timeout_s: float = WAIT_S) -> None:
        for index in indices:
            self.pools.submit(
                lambda stream, syncer=self.syncers[index]: syncer.run(
                    stream,
                    iteration=7,
                    order=self.order,
                    completion=self.completion,
                    deadline_s=time.monotonic() + timeout_s,
                )
            )

    def gradients(self) -> list[float]:
        return [float(p.grad[0]) for p in self.parameters if p.grad is not None]


@pytest.fixture
def channel() -> MemoryChannel:
    return MemoryChannel()


@pytest.fixture
def runs() -> Iterator[list[Run]]:
    started: list[Run] = []
    yield started
    for run in started:
        run.pools.close()


def wait_until(condition: Any) -> None:
    deadline_s = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline_s
        threading.Event().wait(0.001)


def test_a_job_moves_sends_receives_and_moves(channel: MemoryChannel, runs: list[Run]) -> None:
    run = Run(channel, num_layers=2, pool=2)
    runs.append(run)
    channel.is_open = False
    run.start(0, 1)
    wait_until(lambda: len(channel.sent) == 2)
    assert run.completion.bits == (False, False)  # receive blocks
    assert run.completion.wait(0.01) == [0, 1]
    channel.gates["layer1"].set()
    wait_until(lambda: run.completion.bits == (False, True))
    channel.gates["layer0"].set()
    assert run.completion.wait(WAIT_S) == []
    assert run.gradients() == [0.0, 2.0]
    for layer in ("layer0", "layer1"):
        events = run.trace.events(layer, 7)
        assert [event.step for event in events] == ["move", "send", "receive", "move"]
        times = [time_s for event in events for time_s in (event.start_s, event.end_s)]
        assert times == sorted(times)
    assert [syncer.num_contributors for syncer in run.syncers] == [2, 2]


def test_a_timeline_that_fails_ends_the_iteration_by_its_error(
    channel: MemoryChannel, runs: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise KeyError("no such record")

    monkeypatch.setattr(Syncer, "_record", fail)
    run = Run(channel, num_layers=1, pool=1)
    runs.append(run)
    run.start(0)
    with pytest.raises(SyncError, match="no such record"):
        run.completion.wait(WAIT_S)


def test_a_pool_of_two_runs_six_layers_two_at_a_time(
    channel: MemoryChannel, runs: list[Run]
) -> None:
    run = Run(channel, num_layers=6, pool=2)
    runs.append(run)
    channel.is_open = False
    run.start(*range(6))
    for index in range(6):
        wait_until(lambda index=index: len(channel.sent) == min(index + 2, 6))
        channel.gates[f"layer{index}"].set()
    assert run.completion.wait(WAIT_S) == []
    assert run.pools.most_running == 2
    wide = Run(channel, num_layers=6, pool=6)
    runs.append(wide)
    channel.gates.clear()
    channel.sent.clear()
    wide.start(*range(6))
    wait_until(lambda: len(channel.sent) == 6)  # all at once
    assert wide.pools.most_running == 6
    for gate in channel.gates.values():
        gate.set()
    assert wide.completion.wait(WAIT_S) == []


def test_streams_limit_jobs_as_threads_do() -> None:
    pools = SyncerPools(3, CPU, num_streams=1)
    gate, started = threading.Event(), threading.Semaphore(0)

    def job(_stream: object) -> None:
        started.release()
        gate.wait(WAIT_S)

    for _ in range(3):
        pools.submit(job)
    assert started.acquire(timeout=WAIT_S)
    assert not started.acquire(timeout=0.02)
    gate.set()
    pools.close()
    assert pools.most_running == 1
    with pytest.raises(SessionClosedError):
        pools.submit(job)
    with pytest.raises(ConfigurationError, match="at least 1"):
        SyncerPools(0, CPU)


def test_ordered_channels_are_asked_in_the_agreed_order(runs: list[Run]) -> None:
    channel = MemoryChannel(is_ordered=True)
    run = Run(channel, num_layers=5, pool=5)
    runs.append(run)
    run.start(4, 2, 0)
    wait_until(lambda: run.completion.bits[0])
    assert channel.sent == ["layer0"]
    run.start(3, 1)
    assert run.completion.wait(WAIT_S) == []
    assert channel.sent == [f"layer{i}" for i in range(5)]
    run.order.restart()
    run.completion.clear()
    run.start(0, 1, 2, 3, 4)
    assert run.completion.wait(WAIT_S) == []


def test_an_error_names_rank_layer_and_remedy_and_ends_the_others(runs: list[Run]) -> None:
    channel = MemoryChannel(is_ordered=True)
    run = Run(channel, num_layers=3, pool=3)
    runs.append(run)
    run.start(1, 2)
    channel.refusal = PeerClosedError("the connection was closed")
    run.start(0)
    with pytest.raises(
        SyncError, match=r"rank 3, layer layer\d \(ina\), iteration 7: the connection .*; check"
    ) as caught:
        run.completion.wait(WAIT_S)
    assert isinstance(caught.value.__cause__, PeerClosedError)
    late = Submission(lambda: pytest.fail("sent after a failure"))
    run.order.put(9, late)
    with pytest.raises(SyncError):
        late.reception(WAIT_S)  # pending submissions are told after who waits for completion


def test_nothing_is_sent_after_a_submission_that_failed() -> None:
    # Other workers would take it for the one that is missing, and sum what does not belong.
    order = SubmissionOrder()
    later = Submission(lambda: pytest.fail("sent after a failure"))
    order.put(1, later)

    def refuse() -> Reception:
        raise PeerClosedError("no route")

    first = Submission(refuse)
    order.put(0, first)
    with pytest.raises(PeerClosedError, match="no route"):
        first.reception(0)
    order.fail(SyncError("rank 3: no route"))
    with pytest.raises(SyncError):
        later.reception(0)


def test_a_long_backward_pass_takes_nothing_of_a_layers_time(
    monkeypatch: pytest.MonkeyPatch, runs: list[Run]
) -> None:
    channel = MemoryChannel()
    channel.is_open = False
    run = Run(channel, num_layers=1, pool=1)
    runs.append(run)
    options: dict[str, Any] = {"has_overlap": True, "timeout_s": WAIT_S, "place": "rank 3"}
    schedule = SyncSchedule(run.syncers, run.pools, **options)
    with monkeypatch.context() as patch:
        clock = SimpleNamespace(monotonic=lambda: time.monotonic() - 2 * WAIT_S)
        patch.setattr("switchfold.hostlib.torch.syncers.sync_schedule.time", clock)
        schedule.begin(0)
    schedule.ready(0, None)
    wait_until(lambda: channel.sent)
    channel.gates["layer0"].set()
    schedule.finish(None)
    assert schedule.completion.bits == (True,)


def test_a_turn_that_never_comes_ends_by_time(runs: list[Run]) -> None:
    run = Run(MemoryChannel(is_ordered=True), num_layers=2, pool=2)
    runs.append(run)
    run.start(1, timeout_s=0.02)
    with pytest.raises(SyncTimeoutError, match="with an earlier turn"):
        run.completion.wait(WAIT_S)


def test_a_reception_that_never_comes_ends_by_time(channel: MemoryChannel, runs: list[Run]) -> None:
    run = Run(channel, num_layers=1, pool=1)
    runs.append(run)
    channel.is_open = False
    run.start(0, timeout_s=0.02)
    with pytest.raises(SyncTimeoutError, match=r"layer layer0 .*doctor"):
        run.completion.wait(WAIT_S)


def moved(part: DensePart | FactorPart) -> int:
    stream, order = HostCopyStream(), SubmissionOrder()
    part.move_out(stream)
    part.send(0, order, 0)
    part.receive(WAIT_S)
    return part.move_in(stream)


def test_dense_parts_take_any_gradients(channel: MemoryChannel) -> None:
    embedding = nn.Embedding(5, 2, sparse=True)
    embedding(torch.tensor([1, 3])).sum().backward()
    half = nn.Parameter(torch.ones(3, dtype=torch.bfloat16))
    half.grad = torch.full((3,), 1.5, dtype=torch.bfloat16)
    strided = nn.Parameter(torch.ones(2, 3))
    strided.grad = torch.arange(6.0).view(3, 2).t()
    unused, scalar = nn.Parameter(torch.ones(2)), nn.Parameter(torch.tensor(1.0))
    scalar.grad = torch.tensor(4.0)
    parameters: list[Tensor] = [embedding.weight, half, strided, unused, scalar]
    used = UsedParameters(parameters)
    for parameter in parameters:
        if parameter is not unused:
            used.note(parameter)
    assert moved(DensePart("all", parameters, channel, used)) == 2
    assert unused.grad is None  # until it is known that another rank has used it
    used.settle()
    assert channel.dtypes == [np.float32]
    expected = [
        torch.tensor([[0.0, 0], [2, 2], [0, 0], [2, 2], [0, 0]]),
        torch.full((3,), 3.0, dtype=torch.bfloat16),
        2 * torch.arange(6.0).view(3, 2).t(),
        torch.zeros(2),
        torch.tensor(8.0),
    ]
    for parameter, gradient in zip(parameters, expected, strict=True):
        assert parameter.grad is not None
        assert torch.equal(parameter.grad, gradient)
    long = nn.Parameter(torch.ones(2, dtype=torch.float64))
    long.grad = torch.full((2,), 1e-12, dtype=torch.float64) + 1
    moved(DensePart("long", [long], channel, all_used([long])))
    assert channel.dtypes[1:] == [np.float64]
    assert torch.equal(long.grad, torch.full((2,), 2e-12, dtype=torch.float64) + 2)


@pytest.mark.parametrize(("dtype", "bound"), [(torch.float32, 1e-5), (torch.bfloat16, 0.05)])
def test_factor_parts_replace_the_gradient_by_the_rebuilt_one(dtype: Any, bound: float) -> None:
    layer = nn.Linear(6, 4, bias=False, dtype=dtype)
    capture = LinearFactors("layer", [layer], lambda _: None)
    capture.install()
    part = FactorPart("layer", capture, MemoryFactors(), all_used([layer.weight]))
    x = torch.randn(3, 6, dtype=dtype)
    (gradient,) = torch.autograd.grad(
        nn.functional.linear(x, layer.weight).tanh().sum(), layer.weight
    )
    for _ in range(2):
        layer(x).tanh().sum().backward()
        assert layer.weight.grad is None
        assert moved(part) == 3
        assert part.num_rows == 3
        assert layer.weight.grad is not None
        torch.testing.assert_close(layer.weight.grad, 2 * gradient, atol=bound, rtol=bound)
        layer.zero_grad()


def test_factors_live_until_the_stream_has_joined_them() -> None:
    layer = nn.Linear(6, 4)
    capture = LinearFactors("layer", [layer], lambda _: None)
    capture.install()
    (layer(torch.ones(3, 6)).sum() + layer(torch.ones(2, 6)).sum()).backward()
    noted = [weakref.ref(tensor) for _, *pair in capture._noted for tensor in pair]
    alive: list[bool] = []

    class Stream(HostCopyStream):
        def synchronize(self) -> None:
            alive.extend(ref() is not None for ref in noted)

    part = FactorPart("layer", capture, MemoryFactors(), all_used([layer.weight]))
    part.move_out(Stream())
    assert alive == [True] * 4
    assert part.num_rows == 5
    assert [ref() for ref in noted] == [None] * 4


def test_send_of_ten_megabytes_neither_copies_nor_waits() -> None:
    parameter = nn.Parameter(torch.zeros(2_500_000))
    parameter.grad = torch.ones_like(parameter)
    sent: list[Values] = []

    class Keeping(MemoryChannel):
        def send(self, key: str, values: Values, iteration: int) -> Reception:
            sent.append(values)
            return GatedReception(threading.Event(), Mean(values, 2))  # arrives never

    part = DensePart("large", [parameter], Keeping(), all_used([parameter]))
    for iteration in range(2):
        part.move_out(HostCopyStream())
        part.send(iteration, SubmissionOrder(), 0)
    assert sent[0].nbytes == part.num_bytes == 10_000_000
    assert np.shares_memory(sent[0], sent[1])  # the part's own array, not a copy of it
    with pytest.raises(TimeoutError):
        part.receive(0)
