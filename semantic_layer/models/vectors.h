/* Vectors of 16 floats, and what is computed of them alone. */
#ifndef VECTORS_H
#define VECTORS_H

#include <immintrin.h>
#include <math.h>

#define LANES 16
#define INLINE static inline __attribute__((always_inline))

typedef __m512 vf;

INLINE vf load(const float *from) { return _mm512_loadu_ps(from); }
INLINE void store(float *to, vf v) { _mm512_storeu_ps(to, v); }

/* e^x: two to the whole part, the rest by its series to the seventh power. */
INLINE vf exp_of(vf x)
{
    x = _mm512_max_ps(x, _mm512_set1_ps(-87.0f));
    const vf n = _mm512_roundscale_ps(x * 1.44269504f, _MM_FROUND_TO_NEAREST_INT);
    const vf r = x - n * 0.693145752f - n * 1.42860677e-6f;
    vf p = r * (1.0f / 5040) + (1.0f / 720);
    p = p * r + (1.0f / 120);
    p = p * r + (1.0f / 24);
    p = p * r + (1.0f / 6);
    p = p * r + 0.5f;
    return _mm512_scalef_ps(p * r * r + r + 1.0f, n);
}

/* x * Phi(x). Source: Abramowitz and Stegun 7.1.26, erf within 1.5e-7. */
INLINE vf gelu(vf x)
{
    const vf z = _mm512_abs_ps(x) * 0.707106781f;
    const vf t = 1.0f / (z * 0.3275911f + 1.0f);
    vf p = t * 1.061405429f - 1.453152027f;
    p = p * t + 1.421413741f;
    p = p * t - 0.284496736f;
    p = p * t + 0.254829592f;
    const vf rest = p * t * exp_of(-(z * z)) * 0.5f; /* Phi(-|x|) */
    const __mmask16 negative = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ);
    return x * _mm512_mask_blend_ps(negative, 1.0f - rest, rest);
}

#endif
