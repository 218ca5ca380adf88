// SPDX-FileCopyrightText: 2026 The Switchfold Authors
// SPDX-License-Identifier: Apache-2.0
#include "quantization.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "vectorised.h"

// Adding and subtracting 2^23 (2^52) rounds to even what is smaller; what is not is whole already. Quantised numbers may be
// up to 2^30.
static inline float round_float(float number) {
  float rounded = (fabsf(number) + 0x1p23f) - 0x1p23f;
  return fabsf(number) < 0x1p23f ? copysignf(rounded, number) : number;
}

static inline double round_double(double number) { return copysign((fabs(number) + 0x1p52) - 0x1p52, number); }

static inline float half_to_float(uint16_t half) {
  // The exponent field moves to its place and is rebiased by a product, which also makes denormals ordinary.
  uint32_t sign = (uint32_t)(half & 0x8000) << 16, magnitude = (uint32_t)(half & 0x7fff) << 13;
  float number;
  if ((half & 0x7c00) == 0x7c00) magnitude |= 0x70000000; // infinity and NaN: stays so by the product
  memcpy(&number, &magnitude, sizeof number);
  number *= 0x1p112f;
  uint32_t bits;
  memcpy(&bits, &number, sizeof bits);
  bits |= sign;
  memcpy(&number, &bits, sizeof number);
  return number;
}

// Round to nearest, ties to even; beyond the range: infinity.
static inline uint16_t float_to_half(float number) {
  uint32_t bits;
  memcpy(&bits, &number, sizeof bits);
  uint32_t sign = bits >> 16 & 0x8000, magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return (uint16_t)(sign | 0x7e00); // NaN
  if (magnitude >= 0x477ff000) return (uint16_t)(sign | 0x7c00); // 65520 and more
  if (magnitude < 0x38800000) { // denormal: adding 0.5 shifts the rounding to the last of its bits
    float positive;
    memcpy(&positive, &magnitude, sizeof positive);
    positive += 0.5f;
    memcpy(&bits, &positive, sizeof bits);
    return (uint16_t)(sign | (bits - 0x3f000000));
  }
  magnitude += 0xc8000fff + (magnitude >> 13 & 1);
  return (uint16_t)(sign | magnitude >> 13);
}

// Magnitudes of floats are in the order of their bits, infinity and NaN above all others.
VECTORISED static int32_t largest16(const uint16_t *numbers, uint32_t count) {
  int32_t largest = 0;
  for (uint32_t i = 0; i < count; i++) {
    int32_t magnitude = numbers[i] & 0x7fff;
    if (magnitude > largest) largest = magnitude;
  }
  return largest;
}

VECTORISED static int32_t largest32(const float *numbers, uint32_t count) {
  int32_t largest = 0;
  for (uint32_t i = 0; i < count; i++) {
    int32_t magnitude;
    memcpy(&magnitude, &numbers[i], sizeof magnitude);
    magnitude &= 0x7fffffff;
    if (magnitude > largest) largest = magnitude;
  }
  return largest;
}

VECTORISED static int64_t largest64(const double *numbers, uint32_t count) {
  int64_t largest = 0;
  for (uint32_t i = 0; i < count; i++) {
    int64_t magnitude;
    memcpy(&magnitude, &numbers[i], sizeof magnitude);
    magnitude &= INT64_MAX;
    if (magnitude > largest) largest = magnitude;
  }
  return largest;
}

static int32_t exponent_of(double magnitude, bool is_finite) {
  int exponent;
  if (!is_finite) return NONFINITE_EXPONENT;
  if (magnitude == 0) return ZERO_EXPONENT;
  frexp(magnitude, &exponent);
  return exponent;
}

void float16_exponents(const uint16_t *numbers, uint32_t values_per_chunk, uint32_t count, int32_t *exponents) {
  for (uint32_t i = 0; i < count; i++) {
    int32_t largest = largest16(numbers + (size_t)i * values_per_chunk, values_per_chunk);
    exponents[i] = exponent_of(half_to_float((uint16_t)largest), largest < 0x7c00);
  }
}

void float32_exponents(const float *numbers, uint32_t values_per_chunk, uint32_t count, int32_t *exponents) {
  for (uint32_t i = 0; i < count; i++) {
    int32_t largest = largest32(numbers + (size_t)i * values_per_chunk, values_per_chunk);
    float magnitude;
    memcpy(&magnitude, &largest, sizeof magnitude);
    exponents[i] = exponent_of(magnitude, largest < 0x7f800000);
  }
}

void float64_exponents(const double *numbers, uint32_t values_per_chunk, uint32_t count, int32_t *exponents) {
  for (uint32_t i = 0; i < count; i++) {
    int64_t largest = largest64(numbers + (size_t)i * values_per_chunk, values_per_chunk);
    double magnitude;
    memcpy(&magnitude, &largest, sizeof magnitude);
    exponents[i] = exponent_of(magnitude, largest < INT64_C(0x7ff0000000000000));
  }
}

static uint8_t biased_exponent(int32_t exponent) {
  int32_t most = UINT8_MAX - EXPONENT_BIAS;
  return (uint8_t)((exponent > most ? most : exponent < -EXPONENT_BIAS ? -EXPONENT_BIAS : exponent) + EXPONENT_BIAS);
}

static double power_of_two(int32_t exponent) { return ldexp(1, exponent); }

// The shift s of a chunk that is finite.
static int32_t shift_of(int32_t exponent, int32_t headroom, int32_t limit) {
  int64_t shift = (int64_t)headroom - exponent;
  return (int32_t)(shift > limit ? limit : shift < -limit ? -limit : shift);
}

void float32_factors(const int32_t *exponents, uint32_t count, int32_t headroom, float *forward, float *backward,
                     uint8_t *biased) {
  for (uint32_t i = 0; i < count; i++) {
    bool is_finite = exponents[i] != NONFINITE_EXPONENT;
    int32_t shift = shift_of(exponents[i], headroom, 126);
    forward[i] = is_finite ? (float)power_of_two(shift) : 0;
    backward[i] = is_finite ? (float)power_of_two(-shift) : NAN;
    biased[i] = biased_exponent(exponents[i]);
  }
}

void float64_factors(const int32_t *exponents, uint32_t count, int32_t headroom, double *forward, double *backward,
                     uint8_t *biased) {
  for (uint32_t i = 0; i < count; i++) {
    bool is_finite = exponents[i] != NONFINITE_EXPONENT;
    int32_t shift = shift_of(exponents[i], headroom, 1022);
    forward[i] = is_finite ? power_of_two(shift) : 0;
    backward[i] = is_finite ? power_of_two(-shift) : NAN;
    biased[i] = biased_exponent(exponents[i]);
  }
}

VECTORISED void int32_to_values(const int32_t *restrict numbers, uint8_t *restrict values, uint32_t count,
                                byte_order_t order) {
  for (uint32_t i = 0; i < count; i++) word_put(values, i, numbers[i], order);
}

VECTORISED void float16_to_values(const uint16_t *restrict numbers, float scale, uint8_t *restrict values, uint32_t count,
                                  byte_order_t order) {
  for (uint32_t i = 0; i < count; i++) word_put(values, i, (int32_t)round_float(half_to_float(numbers[i]) * scale), order);
}

VECTORISED void float32_to_values(const float *restrict numbers, float scale, uint8_t *restrict values, uint32_t count,
                                  byte_order_t order) {
  for (uint32_t i = 0; i < count; i++) word_put(values, i, (int32_t)round_float(numbers[i] * scale), order);
}

VECTORISED void float64_to_values(const double *restrict numbers, double scale, uint8_t *restrict values, uint32_t count,
                                  byte_order_t order) {
  for (uint32_t i = 0; i < count; i++) word_put(values, i, (int32_t)round_double(numbers[i] * scale), order);
}

VECTORISED void int32_from_values(const uint8_t *restrict values, int32_t *restrict numbers, uint32_t count,
                                  byte_order_t order) {
  for (uint32_t i = 0; i < count; i++) numbers[i] = word_get(values, i, order);
}

VECTORISED void float16_from_values(const uint8_t *restrict values, float divisor, float scale, uint16_t *restrict numbers,
                                    uint32_t count, byte_order_t order) {
  for (uint32_t i = 0; i < count; i++) numbers[i] = float_to_half((float)word_get(values, i, order) / divisor * scale);
}

VECTORISED void float32_from_values(const uint8_t *restrict values, float divisor, float scale, float *restrict numbers,
                                    uint32_t count, byte_order_t order) {
  for (uint32_t i = 0; i < count; i++) numbers[i] = (float)word_get(values, i, order) / divisor * scale;
}

VECTORISED void float64_from_values(const uint8_t *restrict values, double divisor, double scale,
                                    double *restrict numbers, uint32_t count, byte_order_t order) {
  for (uint32_t i = 0; i < count; i++) numbers[i] = (double)word_get(values, i, order) / divisor * scale;
}
