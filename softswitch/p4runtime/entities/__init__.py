# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Entities of P4Runtime: table entries, profiles, meters, replication, value sets."""
