# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own tests of distributed backends, run over this one and compared with Gloo."""
