/* Numbers of 16 bits (bfloat16), and sums of their products in float32. */
#ifndef HALF_H
#define HALF_H
#include <immintrin.h>
#include "vectors.h"

typedef uint16_t Half;

INLINE vi load_halves(const Half *from)
{
    return (vi)_mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)from));
}

INLINE vf widen(const Half *from) { return (vf)(load_halves(from) << 16); }

INLINE void put_half(Half *to, vf v)
{
    _mm256_storeu_si256((void *)to, (__m256i)_mm512_cvtneps_pbh((__m512)v));
}

/* Two numbers a lane: the first in the lower half. */
INLINE vi pair(vf first, vf second)
{
    const vi low = (vi)_mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh((__m512)first));
    const vi high = (vi)_mm512_cvtepu16_epi32((__m256i)_mm512_cvtneps_pbh((__m512)second));
    return low | (high << 16);
}

/* The same of what is in memory; the second may be missing. */
INLINE vi interleaved(const Half *first, const Half *second)
{
    return load_halves(first) | (second ? load_halves(second) << 16 : (vi){0});
}

/* Add to each lane the products of its two numbers and the two at b. */
INLINE vf dot(vf total, vi a, const Half *b)
{
    int32_t two;
    memcpy(&two, b, sizeof two);
    return (vf)_mm512_dpbf16_ps((__m512)total, (__m512bh)a, (__m512bh)_mm512_set1_epi32(two));
}

#endif
