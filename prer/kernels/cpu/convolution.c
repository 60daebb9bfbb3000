/* 4x4 convolutions with stride 2 on a CPU, and their transposes: between large maps and small ones.

S seeds, B samples; C channels and H, W pixels of the large maps, N channels and Y, X pixels of the small ones, p and q
padding. Large maps [S, H, W, C, B], small maps [S, Y, X, N, B].

Samples come last in memory, so that each register lane holds one sample: no patch is copied, and padding is skipped.
B is a multiple of P. */

#include <string.h>

#include "products.h"

typedef struct {
    int64_t S, B, C, H, W, N, Y, X, p, q;
} Maps;

INLINE int64_t large(const Maps *n) { return n->H * n->W * n->C * n->B; }
INLINE int64_t small(const Maps *n) { return n->Y * n->X * n->N * n->B; }

/* The part of the patch of a small map's pixel that is inside the large map: rows i up to `end`, in each `taps` columns
from column j on. It starts `at` rows of B after the beginning of the large map. */
typedef struct {
    int64_t i, end, j, taps, at;
} Patch;

INLINE Patch patch(const Maps *n, int64_t pixel) {
    int64_t h = pixel / n->X * 2 - n->p, w = pixel % n->X * 2 - n->q;
    int64_t i = h < 0 ? -h : 0, j = w < 0 ? -w : 0;
    int64_t end = n->H - h < 4 ? n->H - h : 4, taps = (n->W - w < 4 ? n->W - w : 4) - j;
    return (Patch){i, end, j, taps, ((h + i) * n->W + w + j) * n->C};
}

/* The convolution, with weights [S, N, 4, 4, C] and bias [S, N]. */
void narrow(const Maps *n, const float *in, const float *weight, const float *bias, float *out) {
    int64_t B = n->B, C = n->C, N = n->N;
    for (int64_t s = 0; s < n->S; s++, in += large(n), out += small(n), weight += 16 * C * N, bias += N)
        for (int64_t t = 0; t < B; t += P)
            for (int64_t pixel = 0; pixel < n->Y * n->X; pixel++) {
                Patch at = patch(n, pixel);
                const float *from = in + at.at * B + t, *of_row = weight + (4 * at.i + at.j) * C, *first = bias;
                for (; at.i < at.end; at.i++, from += n->W * C * B, of_row += 4 * C, first = 0)
                    product(N, at.taps * C, of_row, 16 * C, 1, from, B, first, out + pixel * N * B + t);
            }
}

/* Its transpose, with weights [S, 4, 4, C, N] and bias [S, C]. */
void widen(const Maps *n, const float *in, const float *weight, const float *bias, float *out) {
    int64_t B = n->B, C = n->C, N = n->N;
    for (int64_t s = 0; s < n->S; s++, in += small(n), out += large(n), weight += 16 * C * N, bias += C) {
        for (int64_t row = 0; row < large(n) / B; row++)
            for (int64_t b = 0; b < B; b++) out[row * B + b] = bias[row % C];
        for (int64_t t = 0; t < B; t += P)
            for (int64_t pixel = 0; pixel < n->Y * n->X; pixel++) {
                Patch at = patch(n, pixel);
                const float *from = in + pixel * N * B + t, *of_row = weight + (4 * at.i + at.j) * C * N;
                float *to = out + at.at * B + t;
                for (; at.i < at.end; at.i++, to += n->W * C * B, of_row += 4 * C * N)
                    product(at.taps * C, N, of_row, N, 1, from, B, 0, to);
            }
    }
}

/* The gradient of the weights of both, [S, 4, 4, C, N]; `room` holds B + 16 C rows of P. */
void weights(const Maps *n, const float *of_large, const float *of_small, float *gradient, float *room) {
    int64_t B = n->B, C = n->C, N = n->N;
    float *turned = room, *columns = room + B * P;
    memset(turned, 0, 4 * B * P);
    for (int64_t s = 0; s < n->S; s++, of_large += large(n), of_small += small(n), gradient += 16 * C * N)
        for (int64_t o = 0; o < N; o += P) {
            int64_t wide = N - o < P ? N - o : P;
            memset(columns, 0, 4 * 16 * C * P);
            for (int64_t pixel = 0; pixel < n->Y * n->X; pixel++) {
                const float *rows = of_small + (pixel * N + o) * B;
                for (int64_t t = 0; t < B; t += LANES)
                    for (int64_t r = 0; r < wide; r++)
                        for (int64_t b = t; b < t + LANES; b++) turned[b * P + r] = rows[r * B + b];
                Patch at = patch(n, pixel);
                const float *from = of_large + at.at * B;
                float *to = columns + (4 * at.i + at.j) * C * P;
                for (; at.i < at.end; at.i++, from += n->W * C * B, to += 4 * C * P)
                    product(at.taps * C, B, from, B, 1, turned, P, 0, to);
            }
            for (int64_t r = 0; r < 16 * C; r++) memcpy(gradient + r * N + o, columns + r * P, 4 * wide);
        }
}
