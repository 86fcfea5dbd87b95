// Between words in memory, all of a lane together, and chunks of rows. No alignment is known.
#pragma once

#include "lanes.h"

template <int count>
SIM_INLINE void chunk_from_words(U* rows, const u32* words) {
#if defined(SIM_AVX512)
  __m512i w[count];
  for (int i = 0; i < count; i++) w[i] = _mm512_loadu_si512(words + kWidth * i);
  if constexpr (count == 2) {
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd =
        _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    rows[0] = (U)_mm512_permutex2var_epi32(w[0], even, w[1]);
    rows[1] = (U)_mm512_permutex2var_epi32(w[0], odd, w[1]);
    return;
  }
  if constexpr (count == 4) {
    const __m512i first =
        _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29);
    const __m512i second =
        _mm512_setr_epi32(2, 6, 10, 14, 18, 22, 26, 30, 3, 7, 11, 15, 19, 23, 27, 31);
    const __m512i a = _mm512_permutex2var_epi32(w[0], first, w[1]);
    const __m512i b = _mm512_permutex2var_epi32(w[0], second, w[1]);
    const __m512i d = _mm512_permutex2var_epi32(w[2], first, w[3]);
    const __m512i e = _mm512_permutex2var_epi32(w[2], second, w[3]);
    rows[0] = (U)_mm512_shuffle_i64x2(a, d, 0x44);
    rows[1] = (U)_mm512_shuffle_i64x2(a, d, 0xee);
    rows[2] = (U)_mm512_shuffle_i64x2(b, e, 0x44);
    rows[3] = (U)_mm512_shuffle_i64x2(b, e, 0xee);
    return;
  }
#endif
  if constexpr (count == 1) {
    memcpy(rows, words, sizeof(U));
  } else {
    for (int i = 0; i < count; i++) {
      for (int l = 0; l < kWidth; l++) rows[i][l] = words[count * l + i];
    }
  }
}

template <int count>
SIM_INLINE void words_from_chunk(const u32* row, int c, u32* words) {
  row += kWidth * c;
#if defined(SIM_AVX512)
  __m512i r[count];
  for (int i = 0; i < count; i++) r[i] = _mm512_load_si512(row + kLanes * i);
  if constexpr (count == 2) {
    const __m512i first = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const __m512i second =
        _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    _mm512_storeu_si512(words, _mm512_permutex2var_epi32(r[0], first, r[1]));
    _mm512_storeu_si512(words + 16, _mm512_permutex2var_epi32(r[0], second, r[1]));
    return;
  }
  if constexpr (count == 4) {
    const __m512i t0 = _mm512_unpacklo_epi32(r[0], r[1]), t1 = _mm512_unpackhi_epi32(r[0], r[1]);
    const __m512i t2 = _mm512_unpacklo_epi32(r[2], r[3]), t3 = _mm512_unpackhi_epi32(r[2], r[3]);
    // 128-bit part j of u_k holds lane 4 j + k
    const __m512i u0 = _mm512_unpacklo_epi64(t0, t2), u1 = _mm512_unpackhi_epi64(t0, t2);
    const __m512i u2 = _mm512_unpacklo_epi64(t1, t3), u3 = _mm512_unpackhi_epi64(t1, t3);
    const __m512i p0 = _mm512_shuffle_i32x4(u0, u1, 0x44);
    const __m512i p1 = _mm512_shuffle_i32x4(u2, u3, 0x44);
    const __m512i p2 = _mm512_shuffle_i32x4(u0, u1, 0xee);
    const __m512i p3 = _mm512_shuffle_i32x4(u2, u3, 0xee);
    _mm512_storeu_si512(words, _mm512_shuffle_i32x4(p0, p1, 0x88));
    _mm512_storeu_si512(words + 16, _mm512_shuffle_i32x4(p0, p1, 0xdd));
    _mm512_storeu_si512(words + 32, _mm512_shuffle_i32x4(p2, p3, 0x88));
    _mm512_storeu_si512(words + 48, _mm512_shuffle_i32x4(p2, p3, 0xdd));
    return;
  }
#endif
  if constexpr (count == 1) {
    memcpy(words, row, sizeof(U));
  } else {
    for (int l = 0; l < kWidth; l++) {
      for (int i = 0; i < count; i++) words[count * l + i] = row[kLanes * i + l];
    }
  }
}
