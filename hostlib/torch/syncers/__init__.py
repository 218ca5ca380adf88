# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Syncers of layers: Move, Send, Receive, Move, in an order that all ranks share."""
