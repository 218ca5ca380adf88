# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Training refuses jobs whose workers may do without results: replicas would differ."""

from __future__ import annotations

from typing import Any

import pytest

from lossy_sums import LossySession
from switchfold.hostlib import ConfigurationError
from switchfold.hostlib.loss_fill import FillPolicy
from switchfold.hostlib.loss_tolerance import LossTolerance
from switchfold.hostlib.straggler import StragglerPolicy
from torch_ranks import require_torch

require_torch()

from switchfold.hostlib.torch.agreement import require_equal_replicas  # noqa: E402
from switchfold.hostlib.torch.hybrid.switch_losses import SwitchLosses  # noqa: E402

STALE = LossTolerance(loss=0, stale=0.1)


def test_hybrid_training_refuses_a_session_with_stale_results() -> None:
    session: Any = LossySession(StragglerPolicy(tolerance=STALE))
    with pytest.raises(ConfigurationError, match=r"stale is 0\.1: ranks .* would drift apart"):
        SwitchLosses([], None, FillPolicy.MEAN, session)


def test_replicas_may_lack_contributions_alike() -> None:
    require_equal_replicas(None, LossTolerance(loss=0.1), {})
    with pytest.raises(ConfigurationError, match="would drift apart"):
        require_equal_replicas(None, STALE)
