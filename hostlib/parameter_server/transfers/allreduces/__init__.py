# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Sums of all members' vectors, piece by piece at the members that the scheduler chooses."""
