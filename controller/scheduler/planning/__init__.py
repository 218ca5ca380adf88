# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Parts of plans that stand by themselves: gathering, allreduce, and what links carry."""
