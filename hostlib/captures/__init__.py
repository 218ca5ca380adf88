# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Switchfold packets in other tools: a dissector for Wireshark, a layer for scapy."""
