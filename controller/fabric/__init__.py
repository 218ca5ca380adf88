# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Planning of aggregation trees: the fabric, its free bandwidth, the trees, and their cost."""
