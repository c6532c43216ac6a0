/* Decode steps: products for a few rows at once, in float32.

   Weights are kept in few bits where that loses nothing:
     4 bits   scale * q + offset, q in 0..15, one scale and offset for GROUP weights of an output
     8 bits   the same with q in -127..127
     16 bits  the upper half of a float32 (bfloat16)
   Layout, per tile of LANES outputs, groups one after the other: GROUP * bits / 32 vectors of LANES
   32-bit words, each word holding 32 / bits consecutive weights of one output; then, below 16 bits,
   LANES scales and LANES offsets. What is left of a line of weights behind the last whole group or
   tile is not supported: such layers stay as they are.
*/
#include "vectors.h"
#include "wide.h"

INLINE void tile(const float *x, const float *sums, long rows, long k, int bits, const int32_t *w,
                 vf *total)
{
    const int words = GROUP * bits / 32, per_word = 32 / bits;
    const long groups = k / GROUP;
    for (long r = 0; r < rows; r++) total[r] = (vf){0};
    for (long g = 0; g < groups; g++, w += group_words(bits)) {
        vf acc[MAX_ROWS];
        for (long r = 0; r < rows; r++) acc[r] = bits < 16 ? (vf){0} : total[r];
        for (int i = 0; i < words; i++) {
            vi word = load_words(w + i * LANES);
            for (int j = 0; j < per_word; j++) {
                vf value = decode(word, bits, j);
                for (long r = 0; r < rows; r++)
                    acc[r] += value * x[r * k + g * GROUP + i * per_word + j];
            }
        }
        if (bits == 16) {
            for (long r = 0; r < rows; r++) total[r] = acc[r];
            continue;
        }
        vf scale = load(w + words * LANES), offset = load(w + (words + 1) * LANES);
        for (long r = 0; r < rows; r++) total[r] += acc[r] * scale + offset * sums[r * groups + g];
    }
}

#define CASE(n, bits) if (rows <= n) { tile(x, sums, n, k, bits, w, total); return; }
#define CASES(bits) { CASE(1, bits) CASE(2, bits) CASE(3, bits) CASE(4, bits) CASE(5, bits) \
                      CASE(6, bits) CASE(7, bits) CASE(8, bits) }

/* Let the compiler make one loop for each number of rows and bits; x has MAX_ROWS rows. */
static void product(const float *x, const float *sums, long rows, long k, int bits,
                    const int32_t *w, vf *total)
{
    if (bits == 4) CASES(4) else if (bits == 8) CASES(8) else CASES(16)
}

/* Root-mean-square norm of each row. */
void narrow_norm(const float *x, const float *weight, float eps, long rows, long k, float *out)
{
    #pragma omp parallel for schedule(static)
    for (long r = 0; r < rows; r++) norm_row(x + r * k, weight, eps, k, out + r * k);
}

/* out (rows, n) = silu(x[:, :n]) * x[:, n:] */
void narrow_gate(const float *x, long rows, long n, float *out)
{
    #pragma omp parallel for schedule(static)
    for (long r = 0; r < rows; r++)
        for (long i = 0; i < n; i += LANES)
            store(out + r * n + i, silu(load(x + 2 * r * n + i)) * load(x + (2 * r + 1) * n + i));
}

/* Root-mean-square norm of each row where there is a norm, and the sum of each group of a row. */
static const float *prepare(const float *x, const float *norm, float eps, long rows, long k,
                            float *scratch, float **sums)
{
    *sums = scratch + MAX_ROWS * k;
    if (!norm) {
        if (rows == 1) scratch = (float *)x;
        else memcpy(scratch, x, sizeof(float) * rows * k);
    } else {
        for (long r = 0; r < rows; r++) norm_row(x + r * k, norm, eps, k, scratch + r * k);
    }
    for (long g = 0; g < rows * (k / GROUP); g++)
        (*sums)[g] = sum(load(scratch + g * GROUP) + load(scratch + g * GROUP + LANES));
    return scratch;
}

/* out[r] = weight * norm(x[r]) + bias (+ out[r]); scratch holds room for MAX_ROWS rows and their
   sums, or for all rows where there are more. */
void narrow_linear(const float *x, const float *norm, float eps, long rows, long n, long k,
                   int bits, const int32_t *w, const float *bias, float *out, int add,
                   float *scratch)
{
    if (rows > MAX_ROWS) {
        wide_linear(x, norm, eps, rows, n, k, bits, w, bias, out, add, scratch);
        return;
    }
    float *sums;
    const float *ready = prepare(x, norm, eps, rows, k, scratch, &sums);
    const long tile_words = k / GROUP * group_words(bits);
    #pragma omp parallel for schedule(static)
    for (long t = 0; t < n / LANES; t++) {
        vf total[MAX_ROWS];
        product(ready, sums, rows, k, bits, w + t * tile_words, total);
        for (long r = 0; r < rows; r++) {
            float *to = out + r * n + t * LANES;
            if (bias) total[r] += load(bias + t * LANES);
            store(to, add ? total[r] + load(to) : total[r]);
        }
    }
}

/* out[r] = silu(gate * norm(x[r])) * (up * norm(x[r])), w being the n outputs of gate, then up's */
void narrow_gated(const float *x, const float *norm, float eps, long rows, long n, long k,
                  int bits, const int32_t *w, float *out, float *scratch)
{
    if (rows > MAX_ROWS) {
        wide_gated(x, norm, eps, rows, n, k, bits, w, out, scratch);
        return;
    }
    float *sums;
    const float *ready = prepare(x, norm, eps, rows, k, scratch, &sums);
    const long tile_words = k / GROUP * group_words(bits);
    #pragma omp parallel for schedule(static)
    for (long t = 0; t < n / LANES; t++) {
        vf g[MAX_ROWS], u[MAX_ROWS];
        product(ready, sums, rows, k, bits, w + t * tile_words, g);
        product(ready, sums, rows, k, bits, w + (n / LANES + t) * tile_words, u);
        for (long r = 0; r < rows; r++) store(out + r * n + t * LANES, silu(g[r]) * u[r]);
    }
}

static int pack_group(const float *w, int bits, int32_t *to, long lane)
{
    const int per_word = 32 / bits;
    float low = w[0], high = w[0];
    for (int i = 1; i < GROUP; i++) {
        low = w[i] < low ? w[i] : low;
        high = w[i] > high ? w[i] : high;
    }
    const float most = -low > high ? -low : high;
    const float scale = bits == 4 ? (high - low) / 15 : most / 127;
    const float offset = bits == 4 ? low : 0;
    for (int i = 0; i < GROUP; i++) {
        int32_t q = 0;
        if (bits == 16) {
            memcpy(&q, w + i, sizeof q);
            if (q & 0xffff) return 0;
            q = (q >> 16) & 0xffff;
        } else {
            if (scale > 0) q = (int32_t)lrintf((w[i] - offset) / scale);
            if (!(fabsf((float)q * scale + offset - w[i]) <= 1e-6f * most)) return 0;
            q &= (1 << bits) - 1;
        }
        to[i / per_word * LANES + lane] |= (int32_t)((uint32_t)q << (i % per_word * bits));
    }
    if (bits < 16) {
        memcpy(to + GROUP * bits / 32 * LANES + lane, &scale, sizeof scale);
        memcpy(to + (GROUP * bits / 32 + 1) * LANES + lane, &offset, sizeof offset);
    }
    return 1;
}

/* Write weights w (n, k) in so many bits to zeroed memory; 0 when that would change any. */
int narrow_pack(const float *w, long n, long k, int bits, int32_t *out)
{
    int fits = 1;
    #pragma omp parallel for schedule(static)
    for (long row = 0; row < n; row++) {
        int32_t *to = out + row / LANES * (k / GROUP) * group_words(bits);
        for (long g = 0; g < k / GROUP && fits; g++, to += group_words(bits))
            if (!pack_group(w + row * k + g * GROUP, bits, to, row % LANES)) fits = 0;
    }
    return fits;
}
