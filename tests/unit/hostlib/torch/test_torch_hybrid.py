# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false, reportPrivateUsage=false
"""Hybrid training: replicas are equal, and equal to one process on the joint batch."""

from __future__ import annotations

import copy
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from torch_ranks import load_torch, require_torch

require_torch()
torch, _ = load_torch()

from torch import Tensor, nn  # noqa: E402

from hybrid_ranks import (  # noqa: E402
    NUM_RANKS,
    WAIT_S,
    HybridRanks,
    batches,
    one_thread,
    parameters_of,
    ranks,
    seeded,
    steps,
    three_layers,
    train,
)
from switchfold.hostlib.errors import ConfigurationError, SchemeError, SessionClosedError  # noqa: E402
from switchfold.hostlib.schemes import Cluster, Layer  # noqa: E402
from switchfold.hostlib.torch.hybrid import plan as hybrid_plan  # noqa: E402
from switchfold.hostlib.torch.hybrid.hybrid_parallel import HybridParallel  # noqa: E402
from switchfold.hostlib.torch.timeline import start_recording  # noqa: E402
from switchfold.hostlib.tracing.timeline import WAIT  # noqa: E402

__all__ = ["one_thread", "ranks"]

ITERATIONS = 50
MIX = {"0": "ps", "2": "sfb", "4": "ina"}


@pytest.mark.parametrize(
    ("scheme", "bound"),
    [("ps", 1e-5), ("sfb", 1e-5), ("adam", 1e-5), ("ina", 1e-4), (MIX, 1e-4), ("auto", 1e-4)],
    ids=["ps", "sfb", "adam", "ina", "mix", "auto"],
)
def test_replicas_equal_each_other_and_one_process(
    ranks: HybridRanks, scheme: Any, bound: float
) -> None:
    joint = batches(ITERATIONS, NUM_RANKS * 4, 12)
    reference = seeded(three_layers, 1)
    expected = train(reference, joint, reference.parameters())

    def rank_main(rank: int) -> tuple[Tensor, list[float], dict[str, str], dict[str, bool]]:
        module = seeded(three_layers, 1 + rank)  # rank 0's are shared
        with ranks.wrap(rank, module, scheme=scheme) as model:
            own = [x[4 * rank : 4 * rank + 4] for x in joint]
            losses = train(model, own, model.parameters())
            chosen = {e.layer.name: e.scheme.value for e in model.book.entries}
            assert model.iteration == ITERATIONS
            assert set(model.num_contributors.values()) == {NUM_RANKS}
            return parameters_of(module), losses, chosen, model.completion

    results = ranks.run(rank_main)
    parameters = [result[0] for result in results]
    for other in parameters[1:]:
        assert torch.equal(parameters[0], other)
    assert (parameters[0] - parameters_of(reference)).abs().max() < bound
    mean = sum(result[1][-1] for result in results) / NUM_RANKS
    assert mean == pytest.approx(expected[-1], abs=1e-4)
    assert all(result[3] == {"4": True, "2": True, "0": True} for result in results)
    chosen = results[0][2]
    if scheme == MIX:
        weights = {name: s for name, s in chosen.items() if name.endswith("weight")}
        assert weights == {"0.weight": "ps", "2.weight": "sfb", "4.weight": "ina"}


def test_a_default_device_of_the_program_changes_nothing(ranks: HybridRanks) -> None:
    def rank_main(rank: int) -> Tensor:
        module, own = seeded(three_layers, 1), batches(2, 4, 12, seed=rank)
        with torch.device("meta"), ranks.wrap(rank, module, scheme=MIX) as model:
            train(model, own, model.parameters())
        return parameters_of(module)

    first, *others = ranks.run(rank_main)
    assert all(torch.equal(first, other) for other in others)


def test_accumulated_gradients_leave_with_the_last_pass(ranks: HybridRanks) -> None:
    joint = batches(6, NUM_RANKS * 6, 12)
    reference = seeded(three_layers, 1)
    train(reference, joint, reference.parameters())

    def rank_main(rank: int) -> tuple[Tensor, int]:
        module = seeded(three_layers, 1)
        with ranks.wrap(rank, module, scheme=MIX) as model:
            optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
            for number, x in enumerate(joint):
                # To none and to zero: both forget what was accumulated.
                optimizer.zero_grad(set_to_none=number % 2 == 0)
                own = x[6 * rank : 6 * rank + 6]
                thirds = [own[start : start + 2] for start in (0, 2, 4)]
                losses = [(model(part) - part[:, :5].sin()).square().mean() / 3 for part in thirds]
                with model.no_sync():
                    losses[0].backward()
                    losses[1].backward()
                assert model.iteration == number
                losses[2].backward()
                optimizer.step()
            return parameters_of(module), model.iteration

    results = ranks.run(rank_main)
    assert all(torch.equal(results[0][0], result[0]) for result in results)
    assert (results[0][0] - parameters_of(reference)).abs().max() < 1e-4
    assert results[0][1] == 6


class Branches(nn.Module):
    """Layers that ranks use differently, a shared weight, a frozen one, others than linear."""

    def __init__(self) -> None:
        super().__init__()
        self.unused = nn.Linear(6, 6)
        self.a, self.b, self.tied = nn.Linear(6, 6), nn.Linear(6, 6), nn.Linear(6, 6)
        self.tied.weight = self.a.weight
        self.frozen = nn.Linear(6, 6)
        self.frozen.weight.requires_grad_(False)
        self.conv = nn.Conv1d(1, 2, 3, padding=1)
        self.norm = nn.BatchNorm1d(2)
        self.scale = nn.Parameter(torch.ones(6))

    def forward(self, x: Tensor, use_b: bool) -> Tensor:
        x = self.tied(torch.tanh(self.a(x))) * self.scale
        if use_b:
            x = self.b(torch.tanh(x))
        x = self.norm(self.conv(self.frozen(x)[:, None]))
        return x.mean(1)


@pytest.mark.parametrize("scheme", ["ps", "ina", "sfb", {"a": "sfb", "b": "sfb"}])
def test_what_some_ranks_do_not_use_counts_as_zeros_there(ranks: HybridRanks, scheme: Any) -> None:
    inputs = batches(NUM_RANKS, 5, 6)
    reference = [seeded(Branches, 9) for _ in range(NUM_RANKS)]
    for rank, module in enumerate(reference):
        module(inputs[rank], rank == 0).square().mean().backward()

    def rank_main(rank: int) -> list[dict[str, Tensor | None]]:
        module: Any = seeded(Branches, 9)
        found: list[dict[str, Tensor | None]] = []
        with ranks.wrap(rank, module, scheme=scheme, pool=2, batch=5) as model:
            for _ in range(2):  # the second on top of the first, which are means already
                model(inputs[rank], rank == 0).square().mean().backward()
            found.append({name: p.grad for name, p in module.named_parameters()})
            # Now one rank alone uses b, in a pass whose gradients leave with the next: none else.
            module.zero_grad()
            with model.no_sync():
                model(inputs[rank], rank == 1).square().mean().backward()
            module.b.bias.grad = torch.full((6,), 7.0) if rank == 1 else None
            model(inputs[rank], False).square().mean().backward()
            found.append({name: p.grad for name, p in module.named_parameters()})
            # And nobody does: what is there stays.
            kept: Any = [parameter.grad.clone() for parameter in module.b.parameters()]
            model(inputs[rank], False).square().mean().backward()
            assert torch.equal(module.b.weight.grad, kept[0])
            assert torch.equal(module.b.bias.grad, kept[1])
        return found

    results = ranks.run(rank_main)
    for name, _ in reference[0].named_parameters():
        gradients = [module.get_parameter(name).grad for module in reference]
        found = [result[0][name] for result in results]
        if name == "frozen.weight" or name.startswith("unused."):
            assert found == [None] * NUM_RANKS
            continue
        expected = torch.zeros_like(reference[0].get_parameter(name))
        for gradient in gradients:
            expected += 0 if gradient is None else 2 * gradient / NUM_RANKS
        for gradient in found:
            assert gradient is not None
            torch.testing.assert_close(gradient, expected, atol=1e-5, rtol=1e-4)
    for result in results:
        torch.testing.assert_close(result[1]["b.bias"], torch.full((6,), 7.0 / NUM_RANKS))
        assert result[1]["b.weight"].abs().max() > 0


def test_weights_by_factors_and_biases_otherwise_are_counted_apart(ranks: HybridRanks) -> None:
    def rank_main(rank: int) -> dict[str, dict[str, Any]]:
        module = seeded(lambda: nn.Linear(64, 48), 1)
        with ranks.wrap(rank, module, scheme={"weight": "sfb", "bias": "ps"}) as model:
            model(torch.ones(4, 64)).sum().backward()
            return model.counters

    counters = ranks.run(rank_main)
    for own in counters:
        assert own["sfb"]["sent_floats"] == 4 * (64 + 48) * (NUM_RANKS - 1)
        assert own["sfb"]["received_floats"] == 4 * (64 + 48) * (NUM_RANKS - 1)
    # A shard's own rank puts nothing on the wire; flags of two parameters are on another shard.
    assert sorted(own["ps"].get("sent_floats", 0) for own in counters) == [2, 48, 50]


def test_layers_leave_while_the_backward_pass_goes_on(ranks: HybridRanks) -> None:
    seen: list[tuple[dict[str, bool], bool]] = []

    def rank_main(rank: int, overlap: bool) -> None:
        module = seeded(three_layers, 1)
        with ranks.wrap(rank, module, scheme="ps", overlap=overlap) as model:

            def look(gradient: Tensor) -> None:
                """Between the backward passes of the second layer and the first."""
                if overlap:
                    wait_until(lambda: model.completion["2"] and model.completion["4"])
                seen.append((model.completion, overlap))

            def tap(_module: nn.Module, _args: Any, output: Tensor) -> None:
                output.register_hook(look)

            module.get_submodule("1").register_forward_hook(tap)
            model(torch.ones(2, 12)).sum().backward()
            assert model.completion == {"4": True, "2": True, "0": True}
            events = model.trace.events(iteration=0)
            steps = [event.step for event in events if event.layer == "2"]
            assert steps == ["move", "send", "receive", "move"]

    ranks.run(lambda rank: rank_main(rank, True))
    ranks.run(lambda rank: rank_main(rank, False))
    assert seen[:NUM_RANKS] == [({"4": True, "2": True, "0": False}, True)] * NUM_RANKS
    assert seen[NUM_RANKS:] == [({"4": False, "2": False, "0": False}, False)] * NUM_RANKS


def test_one_delayed_layer_delays_the_next_forward_pass(ranks: HybridRanks) -> None:
    gate = threading.Event()
    returned: list[float] = []

    def rank_main(rank: int) -> None:
        module = seeded(three_layers, 1)
        with ranks.wrap(rank, module, scheme="ps", batch=2) as model:
            if rank == 0:
                delay(model, "2", gate)
            model(torch.ones(2, 12)).sum().backward()
            returned.append(time.monotonic())
            model(torch.ones(2, 12))
            if rank == 0:
                last = [e for e in model.trace.events("2", 0) if e.step == "move"][-1]
                assert returned[-1] >= last.end_s >= opened[0]

    opened: list[float] = []

    def open_gate(models_done: int) -> None:
        wait_until(lambda: len(returned) == models_done)
        assert not gate.is_set()
        opened.append(time.monotonic())
        gate.set()

    with ThreadPoolExecutor(1) as pool:
        # The other ranks are through; only the delayed layer's rank waits.
        opener = pool.submit(open_gate, NUM_RANKS - 1)
        ranks.run(rank_main)
        opener.result(WAIT_S)
    assert len(returned) == NUM_RANKS


def delay(model: HybridParallel, layer: str, gate: threading.Event) -> None:
    """Let a layer's Receive wait for a gate."""
    schedule = model._run.schedule
    assert schedule is not None
    (syncer,) = [syncer for syncer in schedule.syncers if syncer.name == layer]
    part: Any = syncer.parts[0]
    receive = part.receive

    def receive_late(timeout_s: float) -> None:
        receive(timeout_s)
        assert gate.wait(timeout_s)

    part.receive = receive_late


def wait_until(condition: Any) -> None:
    deadline_s = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline_s
        threading.Event().wait(0.001)


def test_no_slots_fall_back_to_the_parameter_server(caplog: pytest.LogCaptureFixture) -> None:
    without = HybridRanks(2, has_switch=False)

    def rank_main(rank: int, scheme: str) -> set[str]:
        with without.wrap(rank, seeded(three_layers, 1), scheme=scheme, batch=2) as model:
            model(torch.ones(2, 12)).sum().backward()
            return {entry.scheme.value for entry in model.book.entries}

    with caplog.at_level("WARNING", "switchfold.hostlib.torch"):
        assert without.run(lambda rank: rank_main(rank, "ina")) == [{"ps"}] * 2
    assert "no slots on a switch" in caplog.text
    assert "ina" not in set.union(*without.run(lambda rank: rank_main(rank, "auto")))
    without.close()


def test_a_pool_of_slots_that_is_used_up_is_none(ranks: HybridRanks) -> None:
    def rank_main(rank: int) -> tuple[set[str], set[str], list[int]]:
        facts = Cluster(num_workers=NUM_RANKS, slots=1)  # float tensors need two
        module = seeded(three_layers, 1)
        options: dict[str, Any] = {"scheme": {"0": "ina", "2": "ina"}, "batch": 2}
        with ranks.wrap(rank, module, cluster=facts, **options) as model:
            before = {entry.scheme.value for entry in model.book.entries[:4]}
            model(torch.ones(2, 12)).sum().backward()
            # Slots became free: the choice is made again between two iterations.
            epochs = [model.book.epoch]
            model._run._options = replace(model._run._options, cluster=None)
            model.replan()
            model(torch.ones(2, 12)).sum().backward()
            after = {entry.scheme.value for entry in model.book.entries[:4]}
            assert model.iteration == 2
            return before, after, [*epochs, model.book.epoch]

    assert ranks.run(rank_main) == [({"ps"}, {"ina"}, [1, 2])] * NUM_RANKS


def test_ranks_that_disagree_get_the_difference(ranks: HybridRanks) -> None:
    def rank_main(rank: int, **options: Any) -> str:
        size = options.pop("size", 12)
        with pytest.raises(ConfigurationError) as caught:
            ranks.wrap(rank, nn.Linear(size, 3), **options)
        return str(caught.value)

    for text in ranks.run(lambda rank: rank_main(rank, size=12 + (rank == 1))):
        assert "rank 1 and rank 0 differ in parameter weight (3, 1" in text
    for text in ranks.run(lambda rank: rank_main(rank, scheme=["ps", "ps", "ina"][rank])):
        assert "rank 2 and rank 0 differ in option scheme=" in text
    for text in ranks.run(lambda rank: rank_main(rank, scheme={"fc9": "ps"})):
        assert "'fc9'" in text
    for text in ranks.run(lambda rank: rank_main(rank, scheme={"bias": "sfb"})):
        assert "only weights of nn.Linear" in text
    for text in ranks.run(lambda rank: rank_main(rank, timeout_s=0.0)):
        assert "must be positive" in text
    for text in ranks.run(lambda rank: rank_main(rank, scheme="best")):
        assert "no scheme 'best'; choose auto, two-way" in text


def test_states_pass_through_and_training_resumes(ranks: HybridRanks) -> None:
    inputs = batches(6, 4, 12)

    def rank_main(rank: int) -> tuple[Tensor, Tensor]:
        whole = seeded(three_layers, 1)
        with ranks.wrap(rank, whole, scheme=MIX) as model:
            train(model, inputs, model.parameters())
            with pytest.raises(SchemeError, match=r"no layer '0\.weigth'"):
                model.book.query("0.weigth")
        first, second = seeded(three_layers, 1), seeded(three_layers, 2)
        with ranks.wrap(rank, first, scheme=MIX) as model:
            optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
            steps(model, optimizer, inputs[:3])
            # A worker keeps all that is needed: a switch holds no parameters.
            kept = copy.deepcopy((model.state_dict(), optimizer.state_dict(), model.iteration))
        with ranks.wrap(rank, second, scheme=MIX, first_iteration=kept[2]) as model:
            assert set(model.state_dict()) == set(second.state_dict())
            model.load_state_dict(kept[0])
            optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
            optimizer.load_state_dict(kept[1])
            steps(model, optimizer, inputs[3:])
            assert model.iteration == 6
        with pytest.raises(SessionClosedError):
            model(inputs[0])
        second(inputs[0]).sum().backward()  # without the wrapper
        return parameters_of(whole), parameters_of(second)

    for expected, resumed in ranks.run(rank_main):
        assert torch.equal(expected, resumed)


def test_one_rank_trains_as_without_the_wrapper() -> None:
    alone = HybridRanks(1, has_switch=False)
    inputs = batches(3, 4, 12)
    expected, module = seeded(three_layers, 1), seeded(three_layers, 1)
    train(expected, inputs, expected.parameters())
    with alone.wrap(0, module, scheme={"0": "sfb"}) as model:
        train(model, inputs, model.parameters())
        last: Any = module.get_submodule("4")
        last.weight = nn.Parameter(last.weight.detach().clone())
        with pytest.raises(ConfigurationError, match=r"4\.weight was replaced"):
            model(inputs[0])
        with torch.no_grad():
            assert model(inputs[0]).shape == (4, 5)
    torch.testing.assert_close(parameters_of(module), parameters_of(expected))
    alone.close()


def test_a_recording_has_a_transfer_per_layer_and_the_wait(ranks: HybridRanks) -> None:
    recording = start_recording(0)

    def rank_main(rank: int) -> None:
        with ranks.wrap(rank, seeded(three_layers, 1), scheme=MIX, batch=2) as model:
            model(torch.ones(2, 12)).sum().backward()

    try:
        ranks.run(rank_main)
    finally:
        timeline = recording.stop()
    sizes = {transfer.name: transfer.num_bytes for transfer in timeline.transfers}
    assert sizes["0 by ps"] == 4 * (12 * 16 + 16)
    assert sizes["4 by ina"] == 4 * (14 * 5 + 5)
    assert any(name.startswith("2 by sfb+") for name in sizes)
    for transfer in timeline.transfers:
        times = (transfer.ready_s, transfer.first_packet_s, transfer.last_result_s, transfer.done_s)
        assert sorted(times) == list(times)
    assert any(span.category == WAIT for span in timeline.spans)


def test_the_switch_multicasts_factors_where_that_is_faster(
    ranks: HybridRanks, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs = batches(3, 12, 12)

    # So small as they are here, streams are always faster.
    def goes_by_multicast(layer: Layer, _: Cluster) -> bool:
        return layer.name == "0.weight"

    monkeypatch.setattr(hybrid_plan, "goes_by_multicast", goes_by_multicast)

    def rank_main(rank: int) -> tuple[Tensor, int]:
        module = seeded(three_layers, 1)
        scheme = {"0.weight": "sfb", "2.weight": "sfb", "4": "ina", "0.bias": "ina"}
        with ranks.wrap(rank, module, scheme=scheme, multicast=True) as model:
            # In the last iteration one rank has fewer rows, and zeros fill its block.
            own = [
                x[4 * rank : 4 * rank + 4 - (rank == 1 and i == 2)] for i, x in enumerate(inputs)
            ]
            train(model, own, model.parameters())
            copied = [entry.layer.name for entry in model.book.entries if entry.is_copied]
            assert copied == ["0.weight"]
            return parameters_of(module), model.counters["sfb"]["sent_floats"]

    results = ranks.run(rank_main)
    assert all(torch.equal(results[0][0], other) for other, _ in results)
    rows = [3 * 4 - (rank == 1) for rank in range(NUM_RANKS)]
    assert [sent for _, sent in results] == [
        3 * 4 * (12 + 16) + (NUM_RANKS - 1) * own * (16 + 14) for own in rows
    ]
