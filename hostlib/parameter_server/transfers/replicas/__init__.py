# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Replicas of servers: what they and their servers may apply, and what workers send them."""
