# SPDX-FileCopyrightText: 2026 The Switchfold Authors
# SPDX-License-Identifier: Apache-2.0
"""How tensors become integers that switches can add: chunks, block exponents, exact limbs."""
