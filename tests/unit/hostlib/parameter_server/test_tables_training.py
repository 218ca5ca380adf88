# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false
"""A model whose parameters live on the servers, which do the optimizer's steps."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from loopback import LOOPBACK
from server_process import COMMAND, WAIT_S, ServerProcess
from torch_ranks import load_torch, require_torch

require_torch()
torch, _ = load_torch()

from torch import Tensor, nn  # noqa: E402

from switchfold.hostlib.parameter_server import (  # noqa: E402
    ClientOptions,
    ParameterServer,
    ServerOptions,
)
from switchfold.hostlib.parameter_server.rows import Sgd, Versions  # noqa: E402
from switchfold.hostlib.parameter_server.tables import (  # noqa: E402
    DenseTensor,
    TableClient,
    TensorDefinition,
)

WORKERS, SHARDS, ITERATIONS, RATE = 2, 2, 20, 0.05
PATIENT_S = 10 * WAIT_S
"""For a server process to come back, which takes long on a busy machine."""


class Worker:
    """A replica of the model, and its parameters as tensors of a client."""

    def __init__(self, client: TableClient, replica: nn.Module, momentum: float) -> None:
        self.client = client
        self.replica = replica
        self._tensors: dict[str, DenseTensor] = {}
        for name, parameter in replica.named_parameters():
            definition = TensorDefinition(
                name=name,
                num_values=parameter.numel(),
                optimiser=Sgd(learning_rate=RATE, momentum=momentum),
                staleness=0,
                is_mean=True,
                block_values=16,
            )
            self._tensors[name] = DenseTensor(client, definition)
            self._tensors[name].start(parameter.detach().numpy()).result(WAIT_S)

    def push(self, batch: Tensor) -> list[Future[Versions]]:
        self.replica.zero_grad()
        loss(self.replica, batch).backward()
        pushes: list[Future[Versions]] = []
        for name, parameter in self.replica.named_parameters():
            assert parameter.grad is not None
            pushes.append(self._tensors[name].push(parameter.grad.numpy()))
        return pushes

    def pull(self) -> None:
        pulls = {name: tensor.pull() for name, tensor in self._tensors.items()}
        for name, parameter in self.replica.named_parameters():
            values = torch.from_numpy(pulls[name].result(WAIT_S))
            parameter.data.copy_(values.reshape(parameter.shape))


def loss(model: nn.Module, x: Tensor) -> Tensor:
    return (model(x) - x[:, :5].sin()).square().mean()


def batches() -> Tensor:
    generator = torch.Generator().manual_seed(5)
    return torch.randn(ITERATIONS, WORKERS * 4, 12, generator=generator)


def model() -> nn.Module:
    torch.manual_seed(6)
    return nn.Sequential(nn.Linear(12, 16), nn.Tanh(), nn.Linear(16, 5))


def nothing(_iteration: int, _event: str, _pushes: Sequence[Future[None]]) -> None:
    pass


def train(
    addresses: Sequence[tuple[str, int]],
    momentum: float,
    on_event: Callable[[int, str, Sequence[Future[None]]], None] = nothing,
) -> list[Tensor]:
    """Return the parameters."""
    with ExitStack() as stack:
        options = [ClientOptions(worker_id=w, reconnect_s=PATIENT_S) for w in range(WORKERS)]
        clients = [stack.enter_context(TableClient(addresses, each)) for each in options]
        workers = [Worker(client, model(), momentum) for client in clients]
        for iteration, batch in enumerate(batches()):
            on_event(iteration, "begins", ())
            for number, part in enumerate(batch.chunk(WORKERS)):
                pushes = workers[number].push(part)
                on_event(iteration, f"worker {number} pushed", pushes)
                workers[number].client.advance()
                on_event(iteration, f"worker {number} advanced", ())
            for worker in workers:
                worker.pull()
        first, second = (list(worker.replica.parameters()) for worker in workers)
    assert all(torch.equal(one, other) for one, other in zip(first, second, strict=True))
    return [parameter.detach() for parameter in first]


@contextmanager
def servers() -> Generator[list[tuple[str, int]]]:
    with ExitStack() as stack:
        options = [ServerOptions(num_workers=WORKERS, shard=shard) for shard in range(SHARDS)]
        made = [stack.enter_context(ParameterServer(each, address=LOOPBACK)) for each in options]
        yield [(server.address, server.port) for server in made]


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_servers_train_as_torch_does_with_the_joint_batch(momentum: float) -> None:
    reference = model()
    optimizer = torch.optim.SGD(reference.parameters(), lr=RATE, momentum=momentum)
    for batch in batches():
        optimizer.zero_grad()
        loss(reference, batch).backward()
        optimizer.step()
    with servers() as addresses:
        trained = train(addresses, momentum)
    for parameter, expected in zip(trained, reference.parameters(), strict=True):
        torch.testing.assert_close(parameter, expected, atol=2e-6, rtol=1e-5)


def test_a_killed_server_changes_no_bit_of_the_result(tmp_path: Path) -> None:
    with servers() as addresses:
        expected = train(addresses, 0.9)
    freezes = [(5, "worker 0 pushed"), (12, "begins")]
    kills = [(5, "worker 1 pushed"), (12, "worker 1 advanced")]
    with ExitStack() as stack:
        processes = [
            stack.enter_context(
                ServerProcess(
                    *("--shard", str(shard), "--log", str(tmp_path / str(shard))),
                    num_workers=WORKERS,
                    command=COMMAND,
                )
            )
            for shard in range(SHARDS)
        ]

        def on_event(iteration: int, event: str, pushes: Sequence[Future[None]]) -> None:
            if (iteration, event) in freezes:
                for push in pushes:  # they are in the log, and wait for the other worker
                    push.result(WAIT_S)
                processes[1].freeze()
            if (iteration, event) in kills:
                kills.remove((iteration, event))
                processes[1].kill()
                processes[1].start()

        trained = train([process.address for process in processes], 0.9, on_event)
    assert not kills
    for parameter, value in zip(trained, expected, strict=True):
        assert torch.equal(parameter, value)
