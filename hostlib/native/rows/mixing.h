// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Random bits that depend on a start and a number alone: the generator splitmix64 (Steele, Lea and Flood, 2014).
#ifndef SWITCHFOLD_MIXING_H
#define SWITCHFOLD_MIXING_H

#include <stdint.h>

#define GOLDEN_GAMMA UINT64_C(0x9e3779b97f4a7c15) // the odd number next to 2^64 divided by the golden ratio

// A bijection in which every bit of the input changes half of the bits.
static inline uint64_t mix64(uint64_t bits) {
  bits = (bits ^ bits >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  bits = (bits ^ bits >> 27) * UINT64_C(0x94d049bb133111eb);
  return bits ^ bits >> 31;
}

// Output `number` of the sequence that begins at `start`.
static inline uint64_t draw(uint64_t start, uint64_t number) { return mix64(start + (number + 1) * GOLDEN_GAMMA); }

#endif
