/* Products of small matrices whose right side is a few registers wide: the basis of all our C. */

#include <stdint.h>

#if defined __AVX512F__
#define LANES 16
#elif defined __AVX__
#define LANES 8
#else
#define LANES 4
#endif
#define TALL 6 /* rows of a product that are held in registers */
#define P (2 * LANES)
#define INLINE static inline __attribute__((always_inline))

typedef float vec __attribute__((vector_size(4 * LANES), aligned(4), may_alias));
typedef int32_t ivec __attribute__((vector_size(4 * LANES)));
typedef uint32_t uvec __attribute__((vector_size(4 * LANES)));
#define AT(pointer) (*(vec *)(pointer))

/* Rows of C [., P] = bias (none: C itself) + A [., I] X [I, P], where A[r, i] is A[r * down + i * right], and rows of X and
of C are `wide` floats apart. */
INLINE void tile(const int rows, int64_t I, const float *A, int64_t down, int64_t right, const float *X,
                 int64_t wide, const float *bias, float *C) {
    vec c[TALL][2];
    for (int r = 0; r < rows; r++)
        for (int j = 0; j < 2; j++) {
            if (bias) c[r][j] = bias[r] - (vec){0};
            else c[r][j] = AT(C + r * wide + j * LANES);
        }
    for (int64_t i = 0; i < I; i++, A += right, X += wide) {
        vec x0 = AT(X), x1 = AT(X + LANES);
        for (int r = 0; r < rows; r++) c[r][0] += A[r * down] * x0, c[r][1] += A[r * down] * x1;
    }
    for (int r = 0; r < rows; r++)
        for (int j = 0; j < 2; j++) AT(C + r * wide + j * LANES) = c[r][j];
}

static void product(int64_t M, int64_t I, const float *A, int64_t down, int64_t right, const float *X,
                    int64_t wide, const float *bias, float *C) {
    int64_t m = 0;
#define TILES(rows) \
    for (; m + (rows) <= M; m += (rows)) \
        tile(rows, I, A + m * down, down, right, X, wide, bias ? bias + m : 0, C + m * wide);
    TILES(TALL) TILES(4) TILES(2) TILES(1)
}
