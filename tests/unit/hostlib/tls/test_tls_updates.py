# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Scheduled updates over TLS, and the choice to do without it."""

from __future__ import annotations

import numpy as np
import pytest

from certificates import CertificateSet
from fake_transfers import grant_everything
from switchfold.hostlib.credentials import CredentialsError, Role
from switchfold.hostlib.parameter_server import ParameterServer, ServerOptions
from switchfold.hostlib.parameter_server.transfers import TransferOptions
from transfer_scene import WAIT_S, TransferScene, values


def test_updates_are_applied_over_tls(certificates: CertificateSet) -> None:
    secured = {"credentials": certificates.of(Role.SERVER)}
    with TransferScene(grant_everything(), server=secured) as scene:
        tensor = scene.tensor(0, credentials=certificates.of(Role.WORKER))
        fabric = scene.worker(0, tensor)
        part = fabric.push(values(1)).result(WAIT_S).parts[0]
        assert (part.version, part.is_granted) == (1, True)
        np.testing.assert_array_equal(fabric.get().result(WAIT_S), values(1))


def test_a_server_calls_no_scheduler_without_tls_unless_its_user_chose_so(
    certificates: CertificateSet, no_choice: None
) -> None:
    transfers = TransferOptions(controller="127.0.0.1:9", job="train", host="h1")
    options = ServerOptions(num_workers=1, transfers=transfers)
    with pytest.raises(CredentialsError, match="parameter server 0: no credentials"):
        ParameterServer(options, credentials=certificates.of(Role.SERVER))
