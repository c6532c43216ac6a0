/* Attention over bfloat16 keys and values. */
#ifdef __AVX512BF16__
#define HALF
#include "attend.c"
#endif
