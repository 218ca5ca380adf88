// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
//
// Numbers of a chunk to and from int32 values. One loop per chunk; the compiler vectorises all of them. docs/protocol.md
// has the arithmetic: a chunk's numbers are multiplied by 2^s and rounded to even, its sums multiplied by 2^-s. Products
// are rounded once each, so that all machines compute the same bits.
#ifndef SWITCHFOLD_QUANTIZATION_H
#define SWITCHFOLD_QUANTIZATION_H

#include <stdint.h>

#include "value_words.h"

#define NONFINITE_EXPONENT (1 << 30)
#define ZERO_EXPONENT (-(1 << 14))
#define EXPONENT_BIAS 128

// For each of `count` chunks the smallest e with |x| < 2^e for all its numbers; ZERO_EXPONENT: all are 0;
// NONFINITE_EXPONENT: some are infinite or NaN.
void float16_exponents(const uint16_t *numbers, uint32_t values_per_chunk, uint32_t count, int32_t *exponents);
void float32_exponents(const float *numbers, uint32_t values_per_chunk, uint32_t count, int32_t *exponents);
void float64_exponents(const double *numbers, uint32_t values_per_chunk, uint32_t count, int32_t *exponents);

// From the agreed exponents: the factors 2^s and 2^-s of each chunk, (0, NaN) for one that is not finite, and the exponent
// field of the header. s = headroom - exponent, at most 126 for float32 and float16, 1022 for float64.
void float32_factors(const int32_t *exponents, uint32_t count, int32_t headroom, float *forward, float *backward,
                     uint8_t *biased);
void float64_factors(const int32_t *exponents, uint32_t count, int32_t headroom, double *forward, double *backward,
                     uint8_t *biased);

void int32_to_values(const int32_t *numbers, uint8_t *values, uint32_t count, byte_order_t);
void float16_to_values(const uint16_t *numbers, float scale, uint8_t *values, uint32_t count, byte_order_t);
void float32_to_values(const float *numbers, float scale, uint8_t *values, uint32_t count, byte_order_t);
void float64_to_values(const double *numbers, double scale, uint8_t *values, uint32_t count, byte_order_t);

// Divided by `divisor` first: the number of contributors for a mean, else 1.
void int32_from_values(const uint8_t *values, int32_t *numbers, uint32_t count, byte_order_t);
void float16_from_values(const uint8_t *values, float divisor, float scale, uint16_t *numbers, uint32_t count,
                         byte_order_t);
void float32_from_values(const uint8_t *values, float divisor, float scale, float *numbers, uint32_t count, byte_order_t);
void float64_from_values(const uint8_t *values, double divisor, double scale, double *numbers, uint32_t count,
                         byte_order_t);

#endif
