// SPDX-License-Identifier: BSL-1.0
// Many numbers of a key's streams (core/random.hpp) on vectors of any length: Philox's words of 32 bits fill lanes, a
// counter each, and their products come as two halves.
#pragma once

#include <dfdx/kernels/box_muller.hpp>
#include <dfdx/kernels/rvv/evaluate.hpp>

#if defined(DFDX_RVV)

namespace dfdx::kernels::inline DFDX_TARGET {
namespace rvv {

namespace detail {

using Words = vuint32m2_t;

/// draw - the words at n counters from `first` on. P has the keys of each round and the stream.
template <class P>
DFDX_INLINE void draw(P const& philox, std::uint64_t first, std::size_t n, Words& c0, Words& c1, Words& c2,
                      Words& c3) {
  vuint64m4_t const counters = __riscv_vadd(__riscv_vid_v_u64m4(n), first, n);
  c0 = __riscv_vncvt_x(counters, n), c1 = __riscv_vnsrl(counters, 32, n);
  c2 = __riscv_vmv_v_x_u32m2(static_cast<std::uint32_t>(philox.stream), n);
  c3 = __riscv_vmv_v_x_u32m2(static_cast<std::uint32_t>(philox.stream >> 32), n);
#pragma clang loop unroll(full)
  for (int round = 0; round < 10; ++round) {
    Words const a = __riscv_vmulhu(c0, 0xD2511F53u, n), b = __riscv_vmulhu(c2, 0xCD9E8D57u, n);
    Words const low_a = __riscv_vmul(c0, 0xD2511F53u, n), low_b = __riscv_vmul(c2, 0xCD9E8D57u, n);
    c0 = __riscv_vxor(__riscv_vxor(b, c1, n), static_cast<std::uint32_t>(philox.keys[0][round]), n);
    c2 = __riscv_vxor(__riscv_vxor(a, c3, n), static_cast<std::uint32_t>(philox.keys[1][round]), n);
    c1 = low_b;
    c3 = low_a;
  }
}

/// upper_bits - the upper 53 of 64 bits, given in two words, as a whole number.
DFDX_INLINE Doubles upper_bits(Words const& high, Words const& low, std::size_t n) {
  vuint64m4_t const both =
      __riscv_vor(__riscv_vsll(__riscv_vzext_vf2(high, n), 32, n), __riscv_vzext_vf2(low, n), n);
  return __riscv_vfcvt_f(__riscv_vsrl(both, 11, n), n);
}

struct Radius {
  static constexpr auto eval(auto const& u) { return vectors::sqrt(kernels::detail::minus_two_log(u)); }
};
struct Cosine {
  static constexpr auto eval(auto const& v) { return kernels::detail::turn_cosine(v); }
};
struct Sine {
  static constexpr auto eval(auto const& v) { return kernels::detail::turn_sine(v); }
};

}  // namespace detail

/// uniform_numbers - y[i] = uniform_at of counter first + i, for i < count.
template <class P>
void uniform_numbers(P const& philox, std::uint64_t first, double* y, index_t count) {
  index_t const w = lanes();
  for (index_t i = 0; i < count; i += w) {
    auto const n = static_cast<std::size_t>(count - i < w ? count - i : w);
    detail::Words c0, c1, c2, c3;
    detail::draw(philox, first + static_cast<std::uint64_t>(i), n, c0, c1, c2, c3);
    store_part(y + i, 1, __riscv_vfmul(detail::upper_bits(c1, c0, n), 0x1p-53, n), n);
  }
}

/// normal_numbers - y[2 i], y[2 i + 1] = the two normal numbers of counter first + i, nearly (kernels/random.hpp), for
/// i < count.
template <class P>
void normal_numbers(P const& philox, std::uint64_t first, double* y, index_t count) {
  index_t const w = lanes();
  for (index_t i = 0; i < count; i += w) {
    auto const n = static_cast<std::size_t>(count - i < w ? count - i : w);
    detail::Words c0, c1, c2, c3;
    detail::draw(philox, first + static_cast<std::uint64_t>(i), n, c0, c1, c2, c3);
    Doubles const half = __riscv_vfadd(detail::upper_bits(c1, c0, n), 0.5, n);
    Doubles const radius = evaluate<detail::Radius, double>(__riscv_vfmul(half, 0x1p-53, n));
    Doubles const v = __riscv_vfmul(detail::upper_bits(c3, c2, n), 0x1p-53, n);
    store_part(y + 2 * i, 2, __riscv_vfmul(radius, evaluate<detail::Cosine, double>(v), n), n);
    store_part(y + 2 * i + 1, 2, __riscv_vfmul(radius, evaluate<detail::Sine, double>(v), n), n);
  }
}

}  // namespace rvv
}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // DFDX_RVV
