/* Vectors of LANES floats, by the compiler's vector extensions, and what is computed with them. */
#ifndef VECTORS_H
#define VECTORS_H
#include <math.h>
#include <stdint.h>
#include <string.h>

#define LANES 16
#define GROUP 32
#define MAX_ROWS 8
#define INLINE static inline __attribute__((always_inline))

typedef float vf __attribute__((vector_size(4 * LANES)));
typedef int32_t vi __attribute__((vector_size(4 * LANES)));

INLINE vf load(const void *from) { vf v; memcpy(&v, from, sizeof v); return v; }
INLINE vi load_words(const void *from) { vi v; memcpy(&v, from, sizeof v); return v; }
INLINE void store(void *to, vf v) { memcpy(to, &v, sizeof v); }
INLINE vf choose(vi mask, vf a, vf b) { return (vf)((mask & (vi)a) | (~mask & (vi)b)); }

/* Fold the lanes in halves. */
INLINE float sum(vf v)
{
    float s[LANES];
    memcpy(s, &v, sizeof s);
    for (int half = LANES / 2; half; half /= 2)
        for (int i = 0; i < half; i++) s[i] += s[i + half];
    return s[0];
}

INLINE long group_words(int bits) { return (GROUP * bits / 32 + (bits < 16 ? 2 : 0)) * LANES; }

/* e^x for x <= 0 to float accuracy: 2^n by the exponent bits, the rest by a polynomial (Cephes). */
INLINE vf exp_of(vf x)
{
    x = choose(x < -87.0f, (vf){0} - 87.0f, x);
    vi n = __builtin_convertvector(x * 1.44269504f - 0.5f, vi);
    vf whole = __builtin_convertvector(n, vf);
    vf r = x - whole * 0.693359375f + whole * 2.12194440e-4f;
    vf p = r * 1.9875691500e-4f + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    return p * (vf)((n + 127) << 23);
}

/* Number j of those that a word of each lane holds. */
INLINE vf decode(vi word, int bits, int j)
{
    if (bits == 16) return (vf)(j ? word & (int32_t)0xffff0000 : word << 16);
    vi q = bits == 4 ? (word >> (4 * j)) & 15 : (word << (24 - 8 * j)) >> 24;
    return __builtin_convertvector(q, vf);
}

INLINE vf silu(vf v)
{
    vf small = exp_of(choose(v < 0, v, -v));
    return v * choose(v < 0, small, (vf){0} + 1.0f) / (1.0f + small);
}

INLINE void norm_row(const float *x, const float *weight, float eps, long k, float *out)
{
    vf squares = {0};
    for (long i = 0; i < k; i += LANES) squares += load(x + i) * load(x + i);
    const float factor = 1.0f / sqrtf(sum(squares) / (float)k + eps);
    for (long i = 0; i < k; i += LANES) store(out + i, load(weight + i) * (load(x + i) * factor));
}

#endif
