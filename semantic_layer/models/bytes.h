/* Products of rows with weights of 8 bits, in whole numbers.

   A row is multiplied by the weight's smoothing and becomes bytes; each GROUP of its numbers has a
   scale, and its product with a group of weights is exact. Weights lie in tiles of 32 outputs:
   [n / 32][k / GROUP], each a group of bytes [GROUP / 4][32][4], then 32 scales, then the 32 whole
   numbers that take back what rows are lifted by.
*/
#ifndef BYTES_H
#define BYTES_H

#include "helpers.h"
#include <stdint.h>

#if defined(__AVX512VNNI__) && defined(__AVX512F__)
#define HAS_BYTES
#endif

#define GROUP 128
#define TILE 32

typedef struct {
    const float *smoothing; /* (k) */
    const int8_t *tiles;
    const float *bias; /* (n) */
} Weight;

typedef struct {
    uint8_t *digits; /* (rows, k), lifted by 128 */
    float *scales;   /* (rows, k / GROUP) */
} Bytes;

/* out = x * weight + bias, then its gelu, or `add` added to it; all of (rows, …). */
typedef struct {
    Weight weight;
    long k, n, rows;
    const float *x;
    Bytes bytes; /* room for those of x */
    float *out;
    const float *add;
    int with_gelu;
} Product;

void multiply(Crew *crew, Product product);

#endif
