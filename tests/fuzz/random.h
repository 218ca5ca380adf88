// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Random numbers of a seed, the same on every machine.
#ifndef SWITCHFOLD_FUZZ_RANDOM_H
#define SWITCHFOLD_FUZZ_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

extern uint64_t random_state;

static inline uint64_t draw64(void) { // splitmix64
  uint64_t z = random_state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

static inline uint32_t draw(uint32_t limit) { return (uint32_t)(draw64() % limit); }

static inline uint32_t between(uint32_t least, uint32_t most) { return least + draw(most - least + 1); }

static inline bool happens(uint32_t per_mille) { return draw(1000) < per_mille; }

#endif
