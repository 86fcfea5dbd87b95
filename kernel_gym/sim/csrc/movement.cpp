// Transposition between words in memory, all of a lane together, and vector rows.
#include "movement.h"

const u8 kNothing[16] = {};

void rows_from_words(u64 exec, u32* rows, const u32* words, int count) {
  if (count == 1) {
    for (int c = 0; c < kChunks; c++) {
      U x;
      memcpy(&x, words + kWidth * c, sizeof x);  // no alignment is known
      store(exec, rows, c, x);
    }
    return;
  }
#if defined(SIM_AVX512)
  if (count == 2) {
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd =
        _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
    for (int c = 0; c < kChunks; c++) {
      const __m512i w0 = _mm512_loadu_si512(words + 32 * c);
      const __m512i w1 = _mm512_loadu_si512(words + 32 * c + 16);
      store(exec, rows, c, (U)_mm512_permutex2var_epi32(w0, even, w1));
      store(exec, rows + kLanes, c, (U)_mm512_permutex2var_epi32(w0, odd, w1));
    }
    return;
  }
  if (count == 4) {
    const __m512i first =
        _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29);
    const __m512i second =
        _mm512_setr_epi32(2, 6, 10, 14, 18, 22, 26, 30, 3, 7, 11, 15, 19, 23, 27, 31);
    for (int c = 0; c < kChunks; c++) {
      const __m512i w0 = _mm512_loadu_si512(words + 64 * c);
      const __m512i w1 = _mm512_loadu_si512(words + 64 * c + 16);
      const __m512i w2 = _mm512_loadu_si512(words + 64 * c + 32);
      const __m512i w3 = _mm512_loadu_si512(words + 64 * c + 48);
      const __m512i a = _mm512_permutex2var_epi32(w0, first, w1);
      const __m512i b = _mm512_permutex2var_epi32(w0, second, w1);
      const __m512i d = _mm512_permutex2var_epi32(w2, first, w3);
      const __m512i e = _mm512_permutex2var_epi32(w2, second, w3);
      store(exec, rows, c, (U)_mm512_shuffle_i64x2(a, d, 0x44));
      store(exec, rows + kLanes, c, (U)_mm512_shuffle_i64x2(a, d, 0xee));
      store(exec, rows + 2 * kLanes, c, (U)_mm512_shuffle_i64x2(b, e, 0x44));
      store(exec, rows + 3 * kLanes, c, (U)_mm512_shuffle_i64x2(b, e, 0xee));
    }
    return;
  }
#endif
  Row row;
  for (int i = 0; i < count; i++) {
    for (int l = 0; l < kLanes; l++) row.words[l] = words[l * count + i];
    store_row(exec, rows + kLanes * i, row.words);
  }
}

void words_from_rows(const u32* rows, u32* words, int count) {
  if (count == 1) {
    memcpy(words, rows, 4 * kLanes);
    return;
  }
#if defined(SIM_AVX512)
  if (count == 2) {
    const __m512i first =
        _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const __m512i second =
        _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    for (int c = 0; c < kChunks; c++) {
      const __m512i r0 = _mm512_load_si512(rows + 16 * c);
      const __m512i r1 = _mm512_load_si512(rows + kLanes + 16 * c);
      _mm512_storeu_si512(words + 32 * c, _mm512_permutex2var_epi32(r0, first, r1));
      _mm512_storeu_si512(words + 32 * c + 16, _mm512_permutex2var_epi32(r0, second, r1));
    }
    return;
  }
  if (count == 4) {
    for (int c = 0; c < kChunks; c++) {
      const __m512i r0 = _mm512_load_si512(rows + 16 * c);
      const __m512i r1 = _mm512_load_si512(rows + kLanes + 16 * c);
      const __m512i r2 = _mm512_load_si512(rows + 2 * kLanes + 16 * c);
      const __m512i r3 = _mm512_load_si512(rows + 3 * kLanes + 16 * c);
      const __m512i t0 = _mm512_unpacklo_epi32(r0, r1), t1 = _mm512_unpackhi_epi32(r0, r1);
      const __m512i t2 = _mm512_unpacklo_epi32(r2, r3), t3 = _mm512_unpackhi_epi32(r2, r3);
      // 128-bit part j of u_k holds lane 4 j + k
      const __m512i u0 = _mm512_unpacklo_epi64(t0, t2), u1 = _mm512_unpackhi_epi64(t0, t2);
      const __m512i u2 = _mm512_unpacklo_epi64(t1, t3), u3 = _mm512_unpackhi_epi64(t1, t3);
      const __m512i p0 = _mm512_shuffle_i32x4(u0, u1, 0x44);
      const __m512i p1 = _mm512_shuffle_i32x4(u2, u3, 0x44);
      const __m512i p2 = _mm512_shuffle_i32x4(u0, u1, 0xee);
      const __m512i p3 = _mm512_shuffle_i32x4(u2, u3, 0xee);
      _mm512_storeu_si512(words + 64 * c, _mm512_shuffle_i32x4(p0, p1, 0x88));
      _mm512_storeu_si512(words + 64 * c + 16, _mm512_shuffle_i32x4(p0, p1, 0xdd));
      _mm512_storeu_si512(words + 64 * c + 32, _mm512_shuffle_i32x4(p2, p3, 0x88));
      _mm512_storeu_si512(words + 64 * c + 48, _mm512_shuffle_i32x4(p2, p3, 0xdd));
    }
    return;
  }
#endif
  for (int l = 0; l < kLanes; l++) {
    for (int i = 0; i < count; i++) words[l * count + i] = rows[kLanes * i + l];
  }
}
