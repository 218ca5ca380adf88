# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""Row servers: who is attached to which job, which rows they have set, and what they are told."""
