// SPDX-License-Identifier: BSL-1.0
// Attention of 16-bit floats by tensor cores, on the emulated device: results and gradients are the CPU's, which are
// computed in f32 from the same operands, up to the rounding of weights and of results.
#include "emulated.hpp"

#include <dfdx/vocabulary/attention.hpp>

#include "worse.hpp"

namespace tests::cuda_emulated_attention {

using namespace emulated;

namespace {

template <bool Causal, index_t Offset>
struct Attend {
  constexpr auto operator()(auto const& q, auto const& k, auto const& v) const {
    return scaled_dot_product_attention(q, k, v, {.causal = Causal, .offset = Offset});
  }
};
// [T, H, D], as models have them; values the other way round.
struct AttendTurned {
  constexpr auto operator()(auto const& q, auto const& k, auto const& v) const {
    return scaled_dot_product_attention(transpose<0, 1>(q), transpose<0, 1>(k), transpose<1, 2>(v),
                                        {.causal = true, .scale = 0.4});
  }
};
// Some heads of more, whose rows begin where no 16 bytes do.
struct AttendParts {
  constexpr auto operator()(auto const& x) const {
    auto const of = [&](auto part) { return slice<1, part.value * 64 + 1, part.value * 64 + 33>(x); };
    using std::integral_constant;
    return scaled_dot_product_attention(of(integral_constant<index_t, 0>{}),
                                        of(integral_constant<index_t, 1>{}),
                                        of(integral_constant<index_t, 2>{}));
  }
};
struct AttendLeast {
  constexpr auto operator()(auto const& q, auto const& k, auto const& v) const {
    return scaled_dot_product_attention(q, k, v, {.causal = true, .scale = -0.7});
  }
};
struct AttendProjected {
  constexpr auto operator()(auto const& x) const {
    auto const qkv = permute<2, 0, 3, 1, 4>(x);
    return scaled_dot_product_attention(select<0, 0>(qkv), select<0, 1>(qkv), select<0, 2>(qkv),
                                        {.causal = true});
  }
};
// The gradients of a sum of squares have cotangents of all sizes.
template <class F>
struct SquaresOf {
  constexpr auto operator()(auto const&... x) const { return sum(square(cast<float>(F{}(x...)))); }
};

struct Made {
  std::uint64_t products = cuda_fake::tensor_products, wide = cuda_fake::wide_copies,
                of_warpgroups = cuda_fake::warpgroup_products;
  auto has_products() const {
    return cuda_fake::tensor_products + cuda_fake::warpgroup_products > products + of_warpgroups;
  }
  auto is_by_warpgroups() const { return cuda_fake::warpgroup_products > of_warpgroups; }
  auto has_wide() const { return cuda_fake::wide_copies > wide; }
};
template <class E>
constexpr double rounding = std::is_same_v<E, float16> ? 2e-3 : 1.6e-2;

// The largest difference of any leaf's numbers, relative to the largest of them.
template <class A, class B>
double apart_in_leaves(A const& found, B const& expected) {
  std::vector<std::vector<double>> of[2];
  visit(found, [&](auto const& leaf) { of[0].push_back(numbers(leaf)); });
  visit(expected, [&](auto const& leaf) { of[1].push_back(numbers(leaf)); });
  double worst = 0;
  for (std::size_t i = 0; i < of[1].size(); ++i) {
    double largest = 0, most = 0;
    for (std::size_t j = 0; j < of[1][i].size(); ++j) {
      if (std::isnan(of[0][i][j])) return INFINITY;
      largest = std::fmax(largest, std::fabs(of[1][i][j]));
      most = tests::worse(most, std::fabs(of[0][i][j] - of[1][i][j]));
    }
    worst = tests::worse(worst, largest == 0 ? most : most / largest);
  }
  return worst;
}
template <class F, class... X>
void check_one(F const& f, double bound, X const&... x) {
  Made const before;
  auto compiled = compile(F{});
  auto const expected = compiled(x...);
  double const d = apart_in_leaves(compiled(to(cuda(), x)...), expected);
  INFO("apart: " << d << " of the largest");
  CHECK(d < bound);
  CHECK(before.has_products());
  CHECK(apart(f, x...) < bound);  // with the threads of blocks in any order
}
// Whether results and gradients are the CPU's and are made by tensor cores.
template <class F, class Q, class... X>
void check(Q const& q, X const&... x) {
  double const bound = rounding<typename Q::value_type>;
  check_one(F{}, bound, q, x...);
  if constexpr (sizeof...(X) == 0) check_one(grad(SquaresOf<F>{}), 2 * bound, q);
  else check_one(grad(SquaresOf<F>{}, wrt<0, 1, 2>), 2 * bound, q, x...);
}
template <class E, bool Causal, index_t Offset, index_t Heads, index_t KeyHeads, index_t Queries,
          index_t Keys, index_t Size, index_t Width = Size>
void check_heads() {
  check<Attend<Causal, Offset>>(filled<Tensor<E, Heads, Queries, Size>>(1),
                                filled<Tensor<E, KeyHeads, Keys, Size>>(2),
                                filled<Tensor<E, KeyHeads, Keys, Width>>(3));
}

// Attention of that many multiplications or more is by warpgroups as long as it lives.
struct From {
  std::int64_t before = cuda_options.warpgroup_attention_from;
  explicit From(std::int64_t n) { cuda_options.warpgroup_attention_from = n; }
  From(From const&) = delete;
  ~From() { cuda_options.warpgroup_attention_from = before; }
};
constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

// The same with the kernels for warpgroups where they take it, and whether results and gradients were made by them:
// those of gradients alone copy what they know of rows.
template <class Check>
auto is_by_warpgroups(Check const& one) {
  Made const before;
  auto const lines = cuda_fake::line_copies;
  From const all(0);
  one();
  auto const gradients = cuda_fake::line_copies > lines;
  CHECK(gradients == before.is_by_warpgroups());
  return gradients;
}

}  // namespace

TEST_CASE("attention by warpgroups: tiles that are whole, and not", "[cuda]") {
  CHECK(is_by_warpgroups(check_heads<float16, false, 0, 2, 2, 128, 128, 64>));
  CHECK(is_by_warpgroups(check_heads<bfloat16, true, 0, 3, 3, 300, 300, 64>));
  CHECK(is_by_warpgroups(check_heads<float16, false, 0, 1, 1, 1, 4104, 16>));
  CHECK(is_by_warpgroups(check_heads<bfloat16, false, 0, 1, 1, 4100, 1, 16>));
}
TEST_CASE("attention by warpgroups: heads that share keys, offsets, sizes", "[cuda]") {
  CHECK(is_by_warpgroups(check_heads<float16, true, 5, 4, 2, 170, 175, 24>));
  CHECK(is_by_warpgroups(check_heads<bfloat16, true, 100, 3, 1, 40, 140, 48>));
  CHECK(is_by_warpgroups(check_heads<float16, true, 3, 4, 1, 130, 50, 16>));
  CHECK(is_by_warpgroups(check_heads<float16, false, 0, 1, 1, 65, 300, 128>));
  CHECK(is_by_warpgroups(check_heads<bfloat16, true, 0, 2, 1, 200, 260, 80, 112>));
  CHECK(is_by_warpgroups(check_heads<float16, false, 0, 1, 1, 66, 67, 40, 128>));
  CHECK(is_by_warpgroups(check_heads<bfloat16, false, 0, 1, 1, 66, 67, 128, 16>));
}
TEST_CASE("attention by warpgroups: more heads than multiprocessors, several axes of them, strides",
          "[cuda]") {
  CHECK(is_by_warpgroups([] {
    using X = Tensor<float16, 2, 3, 140, 16>;
    check<Attend<true, 0>>(filled<X>(1), filled<X>(2), filled<X>(3));
  }));
  CHECK(is_by_warpgroups([] {
    using X = Tensor<bfloat16, 2, 1, 3, 70, 16>;
    check<Attend<false, 0>>(filled<X>(1), filled<X>(2), filled<X>(3));
  }));
  // [B, T, 3, H, D], as a projection leaves them.
  CHECK(is_by_warpgroups([] { check<AttendProjected>(filled<Tensor<float16, 2, 70, 3, 2, 24>>(1)); }));
}
TEST_CASE("attention by warpgroups: not of rows that are long, not aligned or not in order", "[cuda]") {
  CHECK(!is_by_warpgroups(check_heads<float16, true, 2, 2, 2, 66, 67, 9, 13>));
  CHECK(!is_by_warpgroups(check_heads<float16, false, 0, 1, 1, 64, 65, 192>));
  CHECK(!is_by_warpgroups([] {
    check<AttendTurned>(filled<Tensor<float16, 70, 2, 24>>(1), filled<Tensor<float16, 70, 2, 24>>(2),
                        filled<Tensor<float16, 2, 16, 70>>(3));
  }));
  CHECK(!is_by_warpgroups([] { check<AttendParts>(filled<Tensor<bfloat16, 66, 192>>(1)); }));
}
TEST_CASE("attention of 16 bits: whole tiles", "[cuda]") {
  From const warpgroups(never);
  Made const before;
  check_heads<float16, false, 0, 2, 2, 64, 64, 64>();
  CHECK(before.has_wide());
  check_heads<bfloat16, true, 0, 1, 1, 128, 128, 32>();
}
TEST_CASE("attention of 16 bits: lengths that fill no tile", "[cuda]") {
  From const warpgroups(never);
  check_heads<float16, false, 0, 1, 1, 1, 4100, 16>();
  check_heads<bfloat16, false, 0, 1, 1, 4100, 1, 16>();
  check_heads<float16, false, 0, 2, 2, 17, 250, 32>();
  check_heads<bfloat16, true, 0, 2, 2, 65, 65, 64>();
  check_heads<float16, true, 0, 1, 1, 130, 130, 64>();
}
TEST_CASE("attention of 16 bits: heads that share keys, offsets, fewer keys than queries", "[cuda]") {
  From const warpgroups(never);
  check_heads<float16, true, 5, 4, 2, 70, 75, 24>();
  check_heads<bfloat16, true, 100, 3, 1, 40, 140, 48>();
  check_heads<float16, true, 3, 4, 1, 130, 50, 16>();
}
TEST_CASE("attention of 16 bits: sizes of heads", "[cuda]") {
  From const warpgroups(never);
  check_heads<float16, false, 0, 1, 1, 65, 70, 128>();
  check_heads<bfloat16, true, 0, 2, 1, 65, 70, 80, 112>();
  check_heads<float16, true, 2, 2, 2, 66, 67, 9, 13>();
  check_heads<float16, false, 0, 1, 1, 66, 67, 40, 128>();
  check_heads<bfloat16, false, 0, 1, 1, 66, 67, 128, 16>();
}
TEST_CASE("attention of 16 bits: long rows", "[cuda]") {
  From const warpgroups(never);
  // Results alone: gradients are computed by other kernels.
  check_heads<bfloat16, true, 0, 1, 1, 65, 64, 256>();
  check_heads<float16, false, 0, 1, 1, 64, 65, 192>();
}
TEST_CASE("attention of 16 bits: a factor below 0, and results of an odd width", "[cuda]") {
  From const warpgroups(never);
  auto const q = filled<Tensor<float16, 2, 70, 16>>(1), k = filled<Tensor<float16, 2, 70, 16>>(2);
  auto const one = [&] { check<AttendLeast>(q, k, filled<Tensor<float16, 2, 70, 24>>(3)); };
  CHECK(!is_by_warpgroups([&] { check<AttendLeast>(q, k, filled<Tensor<float16, 2, 70, 15>>(3)); }));
  one();
  CHECK(is_by_warpgroups(one));
}
TEST_CASE("attention of 16 bits: strides", "[cuda]") {
  From const warpgroups(never);
  check<AttendTurned>(filled<Tensor<float16, 70, 2, 24>>(1), filled<Tensor<float16, 70, 2, 24>>(2),
                      filled<Tensor<float16, 2, 16, 70>>(3));
  check<AttendParts>(filled<Tensor<bfloat16, 66, 192>>(1));
}
TEST_CASE("attention of 16 bits: by autocast", "[cuda]") {
  From const warpgroups(never);
  auto const q = filled<Tensor<float, 2, 70, 32>>(1), k = filled<Tensor<float, 2, 70, 32>>(2),
             v = filled<Tensor<float, 2, 70, 32>>(3);
  using F = Attend<true, 0>;
  double const bound = rounding<float16>;
  check_one(autocast<float16>(F{}), bound, q, k, v);
  check_one(grad(SquaresOf<Autocast<F, float16>>{}, wrt<0, 1, 2>), 2 * bound, q, k, v);
}

}  // namespace tests::cuda_emulated_attention
