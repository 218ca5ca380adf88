# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Aggregation trees: planned, compared with a ring and with a lower bound, drawn."""
