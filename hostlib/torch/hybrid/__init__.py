# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Hybrid training: each layer's gradient travels by the scheme that is cheapest for it."""
