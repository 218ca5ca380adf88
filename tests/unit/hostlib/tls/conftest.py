# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""One authority for the tests of this folder."""

from __future__ import annotations

import pytest

from certificates import CertificateSet


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> CertificateSet:
    return CertificateSet.create(tmp_path_factory.mktemp("certificates"))
