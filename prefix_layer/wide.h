/* See wide.c. */
#include "vectors.h"

void wide_linear(const float *x, const float *norm, float eps, long rows, long n, long k, int bits,
                 const int32_t *w, const float *bias, float *out, int add, float *scratch);
void wide_gated(const float *x, const float *norm, float eps, long rows, long n, long k, int bits,
                const int32_t *w, float *out, float *scratch);
