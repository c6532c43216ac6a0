/* Products of 16-bit weights (bfloat16) with any number of rows, themselves rounded to bfloat16.

   Sums are float32. Weights lie as in narrow.c. Rows lie in blocks of up to BLOCK: two numbers of the
   first, of the second, and so on, then the next two. A row's result does not depend on the rows beside
   it.
*/
#ifndef __AVX512BF16__

int half_is_there(void) { return 0; }
void half_linear(void) {}
void half_gated(void) {}
void half_rotate(void) {}
void half_attend(void) {}
void half_attend_span(void) {}

#else
#include <stdlib.h>
#include "half.h"
#include "target.h"

#define BLOCK 12
#define READ_BOUND 4
#define FEW_ROWS 32 /* threads would take longer to come together */
#define JOBS 8
#define PANEL_BYTES (1 << 19)

int half_is_there(void) { return 1; }

INLINE long block_of(long row) { return row / BLOCK * BLOCK; }
INLINE int block_rows(long row, long rows) { return rows - row < BLOCK ? (int)(rows - row) : BLOCK; }

/* Round a row, at this place of a block of so many rows. */
static void round_row(const float *x, long k, int rows, Half *to)
{
    for (long i = 0; i < k; i += LANES) {
        Half halves[LANES];
        put_half(halves, load(x + i));
        for (int j = 0; j < LANES; j += 2) memcpy(to + (i + j) * rows, halves + j, 2 * sizeof(Half));
    }
}

/* Round all rows, normed where there is a norm. */
static void round_rows(const float *x, const float *norm, float eps, long rows, long k, Half *to)
{
    #pragma omp parallel if (rows > FEW_ROWS)
    {
        float *normed = norm ? malloc(sizeof(float) * k) : NULL;
        #pragma omp for schedule(static)
        for (long r = 0; r < rows; r++) {
            const long first = block_of(r);
            if (norm) norm_row(x + r * k, norm, eps, k, normed);
            round_row(norm ? normed : x + r * k, k, block_rows(first, rows),
                      to + first * k + 2 * (r - first));
        }
        free(normed);
    }
}

INLINE void block(const Half *x, int rows, long k, const int32_t *const w[2], vf total[BLOCK][2])
{
    vf acc[BLOCK][2];
    for (int r = 0; r < rows; r++) acc[r][0] = acc[r][1] = (vf){0};
    for (long i = 0; i < k / 2; i++, x += 2 * rows) {
        const vi a = load_words(w[0] + i * LANES), b = load_words(w[1] + i * LANES);
        #pragma GCC unroll 12
        for (int r = 0; r < rows; r++) {
            acc[r][0] = dot(acc[r][0], a, x + 2 * r);
            acc[r][1] = dot(acc[r][1], b, x + 2 * r);
        }
    }
    for (int r = 0; r < rows; r++) memcpy(total[r], acc[r], sizeof acc[r]);
}

#define CASE(n) if (rows == n) { block(x, n, k, w, total); return; }

/* Let the compiler make one loop for each number of rows. */
static void product(const Half *x, int rows, long k, const int32_t *const w[2], vf total[BLOCK][2])
{
    CASE(12) CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8) CASE(9) CASE(10) CASE(11)
}

/* Compute all rows of tile pairs; a job is a pair of tiles and a panel of rows that fits a cache. */
static void compute(const Half *x, long rows, long k, const int32_t *w, Target to, int gated)
{
    const long words = k / 2 * LANES, tiles = to.n / LANES;
    const long pairs = num_pairs(tiles, gated);
    const long panel = block_of(PANEL_BYTES / (2 * k)) + BLOCK;
    const int chunk = rows <= READ_BOUND ? (int)(pairs / JOBS) + 1 : 1;
    #pragma omp parallel for schedule(dynamic, chunk)
    for (long job = 0; job < pairs * ((rows + panel - 1) / panel); job++) {
        const long t = job % pairs, from = job / pairs * panel;
        const long until = from + panel < rows ? from + panel : rows;
        const TilePair at = tile_pair(t, tiles, gated);
        const int32_t *const both[2] = {w + at.first * words, w + at.next * words};
        for (long row = from; row < until; row += BLOCK) {
            const int count = block_rows(row, rows);
            vf total[BLOCK][2];
            product(x + row * k, count, k, both, total);
            for (int r = 0; r < count; r++) put_pair(to, row + r, at, total[r]);
        }
    }
}

/* out[r] = weight * norm(x[r]) + bias (+ out[r]); scratch has room for all rows. */
void half_linear(const float *x, const float *norm, float eps, long rows, long n, long k, int bits,
                 const int32_t *w, const float *bias, float *out, int add, void *scratch)
{
    round_rows(x, norm, eps, rows, k, scratch);
    compute(scratch, rows, k, w, (Target){bias, out, n, add}, 0);
}

/* out[r] = silu(gate * norm(x[r])) * (up * norm(x[r])), w being the n outputs of gate, then up's */
void half_gated(const float *x, const float *norm, float eps, long rows, long n, long k, int bits,
                const int32_t *w, float *out, void *scratch)
{
    round_rows(x, norm, eps, rows, k, scratch);
    compute(scratch, rows, k, w, (Target){NULL, out, n, 0}, 1);
}
#endif
