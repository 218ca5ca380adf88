# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Writes: batches, what undoes them, runs of insertions, reconciliation."""
