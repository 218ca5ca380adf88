# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The fabric, its free bandwidth, and the planning of aggregation trees with their cost."""
