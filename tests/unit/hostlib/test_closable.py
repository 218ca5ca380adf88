# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""What a with-statement closes, and that its error passes."""

from __future__ import annotations

import pytest

from switchfold.hostlib.closable import Closable


class _Opened(Closable):
    def __init__(self) -> None:
        self.num_closes = 0

    def close(self) -> None:
        self.num_closes += 1


def test_the_end_of_a_with_statement_closes_once() -> None:
    opened = _Opened()
    with opened as within:
        assert within is opened
        assert not opened.num_closes
    assert opened.num_closes == 1


def test_an_error_closes_too_and_passes() -> None:
    opened = _Opened()
    with pytest.raises(KeyError), opened:
        raise KeyError
    assert opened.num_closes == 1
