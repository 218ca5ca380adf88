# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false
"""A model whose parameters live on the servers, which do the optimizer's steps."""

from __future__ import annotations

import pytest

from parameter_cluster import WAIT_S, ParameterCluster
from torch_ranks import load_torch, require_torch

require_torch()
torch, _ = load_torch()

from torch import Tensor, nn  # noqa: E402

from switchfold.hostlib.parameter_server import PullFuture, RuleKind, UpdateRule  # noqa: E402

WORKERS = 2


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_servers_train_as_torch_does_with_the_joint_batch(momentum: float) -> None:
    torch.manual_seed(5)
    batches = torch.randn(20, WORKERS * 4, 12)
    models = [nn.Sequential(nn.Linear(12, 16), nn.Tanh(), nn.Linear(16, 5)) for _ in range(3)]
    reference, *replicas = models
    optimizer = torch.optim.SGD(reference.parameters(), lr=0.05, momentum=momentum)
    rule = UpdateRule(kind=RuleKind.SGD, learning_rate=0.05, momentum=momentum)
    for replica in replicas[1:]:  # replicas start with what the first one brings
        replica.load_state_dict(replicas[0].state_dict())
    reference.load_state_dict(replicas[0].state_dict())
    with ParameterCluster(WORKERS, 0, rule=rule, client={"pair_bytes": 256}) as cluster:
        for client, replica in zip(cluster.clients, replicas, strict=True):
            initial = [
                client.initialise(name, p.detach().numpy())
                for name, p in replica.named_parameters()
            ]
            assert [future.applied for future in initial if future.result(WAIT_S).size] == [-1] * 4
        for iteration, batch in enumerate(batches):
            optimizer.zero_grad()
            loss(reference, batch).backward()
            optimizer.step()
            pulls: list[tuple[Tensor, PullFuture]] = []
            for worker, (client, replica) in enumerate(zip(cluster.clients, replicas, strict=True)):
                replica.zero_grad()
                loss(replica, batch[4 * worker : 4 * worker + 4]).backward()
                for name, parameter in replica.named_parameters():
                    assert parameter.grad is not None
                    gradient = parameter.grad.numpy()
                    pulls.append((parameter, client.push_pull(name, gradient, iteration)))
            for parameter, future in pulls:
                parameter.data.copy_(torch.from_numpy(future.result(WAIT_S)))
    for name, parameter in reference.named_parameters():
        first, second = (replica.get_parameter(name) for replica in replicas)
        assert torch.equal(first, second)
        torch.testing.assert_close(first, parameter, atol=2e-6, rtol=1e-5)


def loss(model: nn.Module, x: Tensor) -> Tensor:
    return (model(x) - x[:, :5].sin()).square().mean()
