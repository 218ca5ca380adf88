# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Switches as the controller sees them: sessions, reads, reconciliation, their program."""
