# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Sufficient factors: every worker gets every other's, and makes the layer's gradient itself."""

from hostlib.factors.block import FactorPair, rebuild
from hostlib.factors.exchange import ExchangeOptions, FactorExchange

__all__ = ["ExchangeOptions", "FactorExchange", "FactorPair", "rebuild"]
