# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Records of a worker's computation and transfers: timelines, trace files, transfer times."""
