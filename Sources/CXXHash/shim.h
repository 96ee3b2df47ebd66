#pragma once
#include <xxhash.h>
#if defined(__x86_64__)
// Chooses SSE2, AVX2 or AVX-512 when it runs; the values are the same.
#include <xxh_x86dispatch.h>
#endif

static inline XXH_errorcode reel_xxh3_update(XXH3_state_t *state, const void *bytes, size_t count) {
    return XXH3_64bits_update(state, bytes, count);
}

static inline XXH64_hash_t reel_xxh3(const void *bytes, size_t count) {
    return XXH3_64bits(bytes, count);
}
