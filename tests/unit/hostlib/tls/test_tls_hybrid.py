# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
# pyright: reportUnknownMemberType=false
"""Hybrid training over TLS: shards on the ranks, factors among them, or a server of its own."""

from __future__ import annotations

from typing import Any

import pytest

from torch_ranks import load_torch, require_torch

require_torch()
torch, _ = load_torch()

from torch import Tensor  # noqa: E402

from certificates import CertificateSet  # noqa: E402
from hybrid_ranks import (  # noqa: E402
    HybridRanks,
    batches,
    one_thread,
    parameters_of,
    seeded,
    three_layers,
    train,
)
from loopback import LOOPBACK  # noqa: E402
from switchfold.hostlib.credentials import Role  # noqa: E402
from switchfold.hostlib.errors import CredentialsError  # noqa: E402
from switchfold.hostlib.parameter_server import (  # noqa: E402
    ParameterServer,
    RuleKind,
    ServerOptions,
)

__all__ = ["one_thread"]

NUM_RANKS, ITERATIONS = 2, 5


@pytest.mark.parametrize("scheme", ["ps", "sfb", "elsewhere"])
def test_replicas_are_equal(certificates: CertificateSet, scheme: str) -> None:
    joint = batches(ITERATIONS, NUM_RANKS * 4, 12)
    reference = seeded(three_layers, 1)
    train(reference, joint, reference.parameters())
    ranks = HybridRanks(NUM_RANKS, has_switch=False)
    options: dict[str, Any] = {"credentials": str(certificates.of(Role.WORKER).folder)}
    server = ParameterServer(
        ServerOptions(num_workers=NUM_RANKS, rule=RuleKind.MEAN),
        address=LOOPBACK,
        credentials=certificates.of(Role.SERVER),
    )
    if scheme == "elsewhere":
        options["servers"] = [f"{LOOPBACK}:{server.port}"]

    def rank_main(rank: int) -> Tensor:
        module = seeded(three_layers, 1)
        name = "ps" if scheme == "elsewhere" else scheme
        with ranks.wrap(rank, module, scheme=name, **options) as model:
            train(model, [x[4 * rank : 4 * rank + 4] for x in joint], model.parameters())
            return parameters_of(module)

    try:
        first, second = ranks.run(rank_main)
    finally:
        ranks.close()
        server.close()
    assert torch.equal(first, second)
    assert (first - parameters_of(reference)).abs().max() < 1e-5
    assert (server.counters["updates"] > 0) is (scheme == "elsewhere")


@pytest.mark.usefixtures("no_choice")
def test_module_without_credentials_must_be_told_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("SWITCHFOLD_CREDENTIALS", raising=False)
    ranks = HybridRanks(NUM_RANKS, has_switch=False)
    joint = batches(1, NUM_RANKS * 4, 12)

    def rank_main(rank: int) -> None:
        with pytest.raises(CredentialsError, match=r"^HybridParallel: no credentials"):
            ranks.wrap(rank, three_layers(), scheme="ps")
        module = seeded(three_layers, 1)
        with ranks.wrap(rank, module, scheme="ps", insecure=True) as model:
            train(model, [x[4 * rank : 4 * rank + 4] for x in joint], model.parameters())

    try:
        ranks.run(rank_main)
    finally:
        ranks.close()
    said = [line for line in caplog.messages if line.startswith("INSECURE: HybridParallel")]
    assert len(said) == NUM_RANKS
