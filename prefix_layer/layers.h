/* See layers.c. */
#include <stddef.h>
#include <stdint.h>

void narrow_linear(const float *x, const float *norm, float eps, long rows, long n, long k,
                   int bits, const int32_t *w, const float *bias, float *out, int add,
                   float *scratch);
void narrow_gated(const float *x, const float *norm, float eps, long rows, long n, long k,
                  int bits, const int32_t *w, float *out, float *scratch);
void narrow_rotate(float *qkv, const float *cos, const float *sin, long rows, long heads,
                   long kv_heads, long dim, const int64_t *slots, float *keys, float *values);
void narrow_attend(const float *q, long q_stride, long rows, long heads, long kv_heads, long dim,
                   const float *keys, const float *values, const int64_t *runs,
                   const int64_t *bounds, float scale, float *out);
void fixed_linear(const float *x, const float *norm, float eps, long rows, long n, long k, int bits,
                  const int32_t *w, const float *bias, float *out, int add, char *scratch);
void fixed_gated(const float *x, const float *norm, float eps, long rows, long n, long k, int bits,
                 const int32_t *w, float *out, char *scratch);
void half_linear(const float *x, const float *norm, float eps, long rows, long n, long k, int bits,
                 const int32_t *w, const float *bias, float *out, int add, void *scratch);
void half_gated(const float *x, const float *norm, float eps, long rows, long n, long k, int bits,
                const int32_t *w, float *out, void *scratch);
void half_rotate(float *qkv, const float *cos, const float *sin, long rows, long heads,
                 long kv_heads, long dim, const int64_t *slots, void *keys, void *values);
void half_attend(const float *q, long q_stride, long rows, long heads, long kv_heads, long dim,
                 const void *keys, const void *values, const int64_t *runs, const int64_t *bounds,
                 float scale, float *out);
