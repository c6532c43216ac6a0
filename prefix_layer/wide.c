/* Products of few-bit weights with more rows than narrow.c's, in float32.

   The weights of two tiles of outputs are widened to float32 in a cache and used for all rows: from
   memory they come in their few bits. They lie as in narrow.c.
*/
#include <stdlib.h>
#include "target.h"
#include "wide.h"

#define BLOCK 12

/* Write the weights of one tile to every other vector. */
static void widen(const int32_t *w, long groups, int bits, vf *out)
{
    const int words = GROUP * bits / 32, per_word = 32 / bits;
    for (long g = 0; g < groups; g++, w += group_words(bits)) {
        vf scale = {0}, offset = {0};
        if (bits < 16) {
            scale = load(w + words * LANES);
            offset = load(w + (words + 1) * LANES);
        }
        for (int i = 0; i < words; i++) {
            const vi word = load_words(w + i * LANES);
            for (int j = 0; j < per_word; j++, out += 2) {
                const vf value = decode(word, bits, j);
                *out = bits < 16 ? value * scale + offset : value;
            }
        }
    }
}

static void widen_pair(const int32_t *const w[2], long groups, int bits, vf *out)
{
    for (int t = 0; t < 2; t++) {
        if (bits == 4) widen(w[t], groups, 4, out + t);
        else if (bits == 8) widen(w[t], groups, 8, out + t);
        else widen(w[t], groups, 16, out + t);
    }
}

INLINE void block(const float *x, int rows, long k, const vf *w, vf total[BLOCK][2])
{
    vf acc[BLOCK][2];
    for (int r = 0; r < rows; r++) acc[r][0] = acc[r][1] = (vf){0};
    for (long i = 0; i < k; i++) {
        const vf a = w[2 * i], b = w[2 * i + 1];
        #pragma GCC unroll 12
        for (int r = 0; r < rows; r++) {
            const float value = x[r * k + i];
            acc[r][0] += a * value;
            acc[r][1] += b * value;
        }
    }
    for (int r = 0; r < rows; r++) memcpy(total[r], acc[r], sizeof acc[r]);
}

#define CASE(n) if (rows == n) { block(x, n, k, w, total); return; }

/* Let the compiler make one loop for each number of rows. */
static void product(const float *x, int rows, long k, const vf *w, vf total[BLOCK][2])
{
    CASE(12) CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8) CASE(9) CASE(10) CASE(11)
}

/* Compute all rows of one pair of tiles after the other. */
static void compute(const float *x, long rows, long k, int bits, const int32_t *w, Target to,
                    int gated)
{
    const long words = k / GROUP * group_words(bits), tiles = to.n / LANES;
    #pragma omp parallel
    {
        vf *room = aligned_alloc(sizeof(vf), 2 * k * sizeof(vf));
        #pragma omp for schedule(dynamic, 1)
        for (long t = 0; t < num_pairs(tiles, gated); t++) {
            const TilePair at = tile_pair(t, tiles, gated);
            const int32_t *const both[2] = {w + at.first * words, w + at.next * words};
            widen_pair(both, k / GROUP, bits, room);
            for (long row = 0; row < rows; row += BLOCK) {
                const int count = rows - row < BLOCK ? (int)(rows - row) : BLOCK;
                vf total[BLOCK][2];
                product(x + row * k, count, k, room, total);
                for (int r = 0; r < count; r++) put_pair(to, row + r, at, total[r]);
            }
        }
        free(room);
    }
}

static const float *normed(const float *x, const float *norm, float eps, long rows, long k,
                           float *scratch)
{
    if (!norm) return x;
    for (long r = 0; r < rows; r++) norm_row(x + r * k, norm, eps, k, scratch + r * k);
    return scratch;
}

/* out[r] = weight * norm(x[r]) + bias (+ out[r]) */
void wide_linear(const float *x, const float *norm, float eps, long rows, long n, long k, int bits,
                 const int32_t *w, const float *bias, float *out, int add, float *scratch)
{
    const float *ready = normed(x, norm, eps, rows, k, scratch);
    compute(ready, rows, k, bits, w, (Target){bias, out, n, add}, 0);
}

/* out[r] = silu(gate * norm(x[r])) * (up * norm(x[r])), w being the n outputs of gate, then up's */
void wide_gated(const float *x, const float *norm, float eps, long rows, long n, long k, int bits,
                const int32_t *w, float *out, float *scratch)
{
    const float *ready = normed(x, norm, eps, rows, k, scratch);
    compute(ready, rows, k, bits, w, (Target){NULL, out, n, 0}, 1);
}
