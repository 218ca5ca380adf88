# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Aggregation trees: planning, comparison with a ring and a lower bound, text and pictures."""
