# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Sufficient factors: every worker gets every other's, and makes the layer's gradient itself."""

from .block import FactorPair, rebuild
from .exchange import ExchangeOptions, FactorExchange

__all__ = ["ExchangeOptions", "FactorExchange", "FactorPair", "rebuild"]
