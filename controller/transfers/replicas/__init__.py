# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Replicas of a job's servers: where they are, what they hear, and how they take over."""
