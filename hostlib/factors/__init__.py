# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Sufficient factors: workers exchange them, and each one rebuilds the layer's gradient."""

from .block import FactorPair, rebuild
from .exchange import ExchangeOptions, FactorExchange

__all__ = ["ExchangeOptions", "FactorExchange", "FactorPair", "rebuild"]
