# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""The hot rows of a parameter server: which rounds count, and what workers and switches are told.

`rounds`, `served_rows`, `changes` and `state` are without input and output: the same changes in the
same order make the same state. The other modules speak to the switch, the controller and workers.
"""
