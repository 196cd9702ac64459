// SPDX-License-Identifier: BSL-1.0
// The kernels for RISC-V vectors of any length against plain ones: numbers of all kinds, strides, sizes around those of
// vectors, flush with pages that cannot be touched. The same program has to pass at every length.
#include <dfdx/kernels/gemm.hpp>
#include <dfdx/kernels/lanes.hpp>
#include <dfdx/kernels/map.hpp>
#include <dfdx/kernels/quantized.hpp>
#include <dfdx/kernels/reduce.hpp>
#include <dfdx/kernels/rvv/gather.hpp>
#include <dfdx/ops/binary.hpp>
#include <dfdx/ops/exponential.hpp>
#include <dfdx/ops/rounding.hpp>
#include <dfdx/ops/trigonometric.hpp>
#include <dfdx/ops/unary.hpp>

#include <catch2/catch_test_macros.hpp>

#if defined(DFDX_RVV)

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "flush.hpp"

namespace tests::kernels_rvv {

namespace {

using namespace dfdx;
using namespace dfdx::kernels;

// Sizes around those of vectors of any length, and prime ones.
std::vector<index_t> sizes() {
  index_t const w = rvv::lanes();
  return {0, 1, 2, 3, 7, w - 1, w, w + 1, 2 * w - 1, 2 * w, 2 * w + 3, 97, 211};
}

template <class T>
void fill(T* p, index_t n, unsigned seed, bool special) {
  using L = std::numeric_limits<T>;
  std::mt19937 chance(seed);
  std::uniform_real_distribution<double> number(-3, 3);
  T const values[] = {L::quiet_NaN(), L::infinity(), -L::infinity(), T(0), -T(0), L::max(), L::denorm_min()};
  for (index_t i = 0; i < n; ++i)
    p[i] = special && chance() % 5 == 0 ? values[chance() % 7] : static_cast<T>(number(chance));
}

template <class T>
bool is_close(T got, T want, double tolerance) {
  if (std::isnan(want)) return std::isnan(got);
  if (std::isinf(want) || std::isinf(got)) return got == want;
  return std::abs(static_cast<double>(got) - static_cast<double>(want)) <=
         tolerance * std::abs(static_cast<double>(want)) +
             static_cast<double>(std::numeric_limits<T>::denorm_min());
}

template <class Op, class T>
index_t wrong_maps(double tolerance) {
  index_t wrong = 0;
  for (index_t n : sizes()) {
    Flush<T> x(n), y(n);
    fill(x.data, n, static_cast<unsigned>(n), true);
    map_row<Op>(y.data, n, static_cast<T const*>(x.data));
    for (index_t i = 0; i < n; ++i)
      wrong += !is_close(y.data[i], static_cast<T>(Op::eval(x.data[i])), tolerance);
  }
  return wrong;
}

template <class T>
void maps(double tolerance) {
  CHECK(wrong_maps<op::neg, T>(0) == 0);
  CHECK(wrong_maps<op::abs, T>(0) == 0);
  CHECK(wrong_maps<op::sqrt, T>(tolerance) == 0);
  CHECK(wrong_maps<op::square, T>(tolerance) == 0);
  CHECK(wrong_maps<op::relu, T>(0) == 0);
  CHECK(wrong_maps<op::exp, T>(tolerance) == 0);
  CHECK(wrong_maps<op::log, T>(tolerance) == 0);
  CHECK(wrong_maps<op::log1p, T>(tolerance) == 0);
  CHECK(wrong_maps<op::tanh, T>(tolerance) == 0);
  CHECK(wrong_maps<op::sigmoid, T>(tolerance) == 0);
  CHECK(wrong_maps<op::sin, T>(tolerance) == 0);
  CHECK(wrong_maps<op::erf, T>(tolerance) == 0);
  CHECK(wrong_maps<op::cbrt, T>(tolerance) == 0);
  CHECK(wrong_maps<op::tan, T>(tolerance) == 0);
  CHECK(wrong_maps<op::asin, T>(tolerance) == 0);
  CHECK(wrong_maps<op::acos, T>(tolerance) == 0);
  CHECK(wrong_maps<op::atan, T>(tolerance) == 0);
  CHECK(wrong_maps<op::asinh, T>(tolerance) == 0);
  CHECK(wrong_maps<op::acosh, T>(tolerance) == 0);
  CHECK(wrong_maps<op::atanh, T>(tolerance) == 0);
}

// Loads, stores and their tails, at any stride and from any address.
template <class M>
index_t wrong_copies() {
  using L = Lanes<loop_code::four_bytes>;
  index_t wrong = 0;
  index_t const w = rvv::lanes();
  for (index_t n : sizes())
    for (index_t step : {1, 2, 5}) {
      if (n == 0) continue;
      Flush<M> x((n - 1) * step + 1), y((n - 1) * step + 1);
      for (index_t i = 0; i < n; ++i) x.data[i * step] = static_cast<M>(static_cast<float>(i % 31) - 7.5f);
      for (index_t i = 0; i < n; i += w) {
        int const count = static_cast<int>(n - i < w ? n - i : w);
        L::store<true>(y.data + i * step, step, L::load<true>(x.data + i * step, step, count), count);
      }
      for (index_t i = 0; i < n; ++i)
        wrong += std::memcmp(&x.data[i * step], &y.data[i * step], sizeof(M)) != 0;
    }
  return wrong;
}

template <class T>
index_t wrong_products(double tolerance) {
  index_t wrong = 0;
  index_t const w = rvv::lanes();
  struct {
    index_t m, n, k;
  } const shapes[] = {{1, 1, 1}, {1, 37, 19},    {29, 1, 19},        {3, 5, 7},     {23, 41, 31}, {7, 64, 5},
                      {5, 7, 0}, {8, 2 * w, 11}, {14, 2 * w + 1, 3}, {9, w - 1, 2}, {6, 389, 13}};
  for (auto const& s : shapes)
    for (int layout = 0; layout < 4; ++layout)
      for (bool special : {false, true}) {
        bool const a_t = layout & 1, b_t = layout & 2;
        Flush<T> a(s.m * s.k), b(s.k * s.n), c(s.m * s.n);
        fill(a.data, s.m * s.k, 1, special);
        fill(b.data, s.k * s.n, 2, special);
        rvv::Operand<T> const x{a.data, a_t ? 1 : s.k, a_t ? s.m : 1},
            y{b.data, b_t ? 1 : s.n, b_t ? s.k : 1};
        Flush<T> room(static_cast<index_t>(rvv::gemm_workspace<T>(s.n, s.k, true) / sizeof(T)));
        rvv::gemm(s.m, s.n, s.k, x, y, c.data, s.n, room.data, reference::store_as_is{});
        for (index_t i = 0; i < s.m; ++i)
          for (index_t j = 0; j < s.n; ++j) {
            double want = 0, size = 0;
            bool finite = true;
            for (index_t p = 0; p < s.k; ++p) {
              T const u = x.at[i * x.row + p * x.col], v = y.at[p * y.row + j * y.col];
              finite = finite && std::isfinite(u) && std::isfinite(v);
              want += static_cast<double>(u) * static_cast<double>(v);
              size += std::abs(static_cast<double>(u) * static_cast<double>(v));
            }
            T const got = c.data[i * s.n + j];
            // Infinity and NaN reach the sum; where products are too large it depends on their order what it is.
            if (!finite) wrong += std::isfinite(got);
            else if (size <= static_cast<double>(std::numeric_limits<T>::max()) / 4)
              wrong += !(std::abs(static_cast<double>(got) - want) <=
                         tolerance * size + static_cast<double>(s.k + 1) *
                                                static_cast<double>(std::numeric_limits<T>::denorm_min()));
          }
      }
  return wrong;
}

// Rows of a matrix picked apart by index, to the first that is out of range.
template <class T, class I>
index_t wrong_gathers() {
  index_t wrong = 0;
  for (index_t n : sizes())
    for (index_t step : {1, 3})
      for (index_t bad : {index_t{-1}, n / 2}) {
        if (n == 0) continue;
        constexpr index_t extent = 11;
        index_t const columns = n + 2;
        Flush<T> x(extent * columns), y((n - 1) * step + 1);
        Flush<I> places((n - 1) * step + 1);
        for (index_t i = 0; i < extent * columns; ++i) x.data[i] = static_cast<T>(i);
        for (index_t k = 0; k < n; ++k) {
          places.data[k * step] = static_cast<I>(k * 7 % extent);
          y.data[k * step] = T(-5);
        }
        if (bad >= 0) places.data[bad * step] = static_cast<I>(bad % 2 == 0 ? extent : -1);
        index_t const count =
            rvv::gather_row(static_cast<T const*>(x.data), columns, index_t{1},
                            static_cast<I const*>(places.data), step, extent, y.data, step, n);
        wrong += count != (bad < 0 ? n : bad / rvv::lanes() * rvv::lanes());
        for (index_t k = 0; k < count; ++k)
          wrong += y.data[k * step] != static_cast<T>(k * 7 % extent * columns + k);
      }
  return wrong;
}

template <Code C, class T>
bool folds() {
  for (index_t n : sizes()) {
    Flush<T> x(n);
    fill(x.data, n, 5, false);
    using Sum = FoldsIn<C, T>;
    double want = Fold<C, double>::identity;
    Sum const sum = fold_line<C, T>(Fold<C, Sum>::identity, x.data, n);
    for (index_t i = 0; i < n; ++i) want = Fold<C, double>::combine(want, static_cast<double>(x.data[i]));
    if (!is_close(static_cast<double>(sum), want, n * 1e-6)) return false;
    if (n == 0 || (C != Code::reduce_max && C != Code::reduce_min)) continue;
    x.data[n / 2] = std::numeric_limits<T>::quiet_NaN();
    if (!std::isnan(fold_line<C, T>(sum, x.data, n))) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("rvv maps", "[kernels]") {
  maps<float>(4e-7);
  maps<double>(1e-15);
}

TEST_CASE("rvv loads and stores", "[kernels]") {
  CHECK(wrong_copies<float>() == 0);
  CHECK(wrong_copies<std::int32_t>() == 0);
  CHECK(wrong_copies<bfloat16>() == 0);
  CHECK(wrong_copies<float16>() == 0);
  CHECK(wrong_copies<bool>() == 0);
}

TEST_CASE("rvv conversions", "[kernels]") {
  using L = Lanes<loop_code::four_bytes>;
  auto const wrong = []<class From, class To>(From, To) {
    index_t const w = rvv::lanes();
    index_t count = 0;
    Flush<From> x(w);
    Flush<To> y(w);
    for (index_t i = 0; i < w; ++i) x.data[i] = static_cast<From>((static_cast<double>(i) - 3.5) * 1.7);
    L::store<false>(y.data, 1, L::convert<To, From>(L::load<false>(x.data, 1, 0)), 0);
    for (index_t i = 0; i < w; ++i) count += y.data[i] != math::convert_number<To>(x.data[i]);
    return count;
  };
  auto const to_all = [&](auto from) {
    return wrong(from, float{}) + wrong(from, double{}) + wrong(from, std::int32_t{}) +
           wrong(from, std::int64_t{}) + wrong(from, bool{});
  };
  CHECK(to_all(float{}) == 0);
  CHECK(to_all(double{}) == 0);
  CHECK(to_all(std::int32_t{}) == 0);
  CHECK(to_all(std::int64_t{}) == 0);
  CHECK(wrong_maps<op::trunc, float>(0) == 0);
  CHECK(wrong_maps<op::floor, double>(0) == 0);
}

TEST_CASE("rvv half numbers, every one of them", "[kernels]") {
  using L = Lanes<loop_code::four_bytes>;
  index_t const w = rvv::lanes();
  index_t wrong = 0;
  auto const each = [&]<class H>(H) {
    for (index_t first = 0; first < 65536; first += w) {
      std::vector<H> x(static_cast<std::size_t>(w)), back(x.size());
      std::vector<float> y(x.size());
      for (index_t i = 0; i < w; ++i)
        x[static_cast<std::size_t>(i)].bits = static_cast<std::uint16_t>(first + i);
      L::store<false>(y.data(), 1, L::load<false>(x.data(), 1, static_cast<int>(w)), static_cast<int>(w));
      for (std::size_t i = 0; i < x.size(); ++i) {
        float const want = static_cast<float>(x[i]);
        wrong += std::isnan(want) ? !std::isnan(y[i]) : std::memcmp(&want, &y[i], 4) != 0;
        // Numbers between two half numbers, and in the middle of them.
        y[i] = want * 1.0004f + 1e-9f * static_cast<float>(i % 3);
      }
      L::store<false>(back.data(), 1, L::load<false>(y.data(), 1, static_cast<int>(w)), static_cast<int>(w));
      for (std::size_t i = 0; i < x.size(); ++i) {
        float const want = static_cast<float>(H(y[i])), got = static_cast<float>(back[i]);
        wrong += std::isnan(want) ? !std::isnan(got) : std::memcmp(&want, &got, 4) != 0;
      }
    }
  };
  each(float16{});
  each(bfloat16{});
  CHECK(wrong == 0);
}

TEST_CASE("rvv rows of half numbers", "[kernels]") {
  auto const wrong = []<class H>(H) {
    index_t count = 0;
    for (index_t n : sizes()) {
      Flush<H> x(n), back(n);
      Flush<float> y(n);
      for (index_t i = 0; i < n; ++i) x.data[i] = H(static_cast<float>(i) * 0.37f - 3.0f);
      widen(y.data, x.data, n);
      narrow(back.data, y.data, n);
      for (index_t i = 0; i < n; ++i)
        count += y.data[i] != static_cast<float>(x.data[i]) || back.data[i].bits != x.data[i].bits;
    }
    return count;
  };
  CHECK(wrong(float16{}) == 0);
  CHECK(wrong(bfloat16{}) == 0);
}

TEST_CASE("rvv reductions", "[kernels]") {
  CHECK(folds<Code::reduce_sum, float>());
  CHECK(folds<Code::reduce_max, float>());
  CHECK(folds<Code::reduce_min, float>());
  CHECK(folds<Code::reduce_sum, double>());
  CHECK(folds<Code::reduce_max, double>());
}

TEST_CASE("rvv matrix products", "[kernels]") {
  CHECK(wrong_products<float>(4e-6) == 0);
  CHECK(wrong_products<double>(1e-14) == 0);
}

TEST_CASE("rvv transpose", "[kernels]") {
  index_t wrong = 0;
  for (index_t rows : {1, 3, 17, 64})
    for (index_t columns : {1, 5, 31, 97}) {
      Flush<float> x(rows * columns), y(rows * columns);
      for (index_t i = 0; i < rows * columns; ++i) x.data[i] = static_cast<float>(i);
      rvv::transpose(x.data, index_t{1}, columns, columns, rows, y.data, rows);
      for (index_t i = 0; i < rows; ++i)
        for (index_t j = 0; j < columns; ++j) wrong += y.data[j * rows + i] != x.data[i * columns + j];
    }
  CHECK(wrong == 0);
}

TEST_CASE("rvv gather", "[kernels]") {
  CHECK(wrong_gathers<float, std::int32_t>() == 0);
  CHECK(wrong_gathers<float, std::int64_t>() == 0);
  CHECK(wrong_gathers<float, std::uint8_t>() == 0);
  CHECK(wrong_gathers<double, std::int32_t>() == 0);
  CHECK(wrong_gathers<double, std::int64_t>() == 0);
}

TEST_CASE("rvv products with quantized rows", "[kernels]") {
  auto const wrong = []<Quant F>(std::integral_constant<Quant, F>) {
    constexpr int length = q8_length(F);
    index_t count = 0;
    std::mt19937 chance(3);
    for (index_t blocks : {0, 1, 2, 7, length == 32 ? 97 : 17})
      for (index_t n : {1, 5}) {
        Flush<std::byte> w(n * blocks * static_cast<index_t>(block_bytes(F)));
        for (index_t i = 0; i < n * blocks * static_cast<index_t>(block_bytes(F)); ++i)
          w.data[i] = static_cast<std::byte>(chance() % 256);
        for (index_t b = 0; b < n * blocks; ++b)  // scales that are numbers
          for (index_t at : {1, 3, 209})
            if (at < static_cast<index_t>(block_bytes(F)))
              w.data[b * static_cast<index_t>(block_bytes(F)) + at] &= std::byte{0x3f};
        constexpr index_t m = 6;
        std::vector<float> x(static_cast<std::size_t>(m * blocks * length)),
            y(static_cast<std::size_t>(m * n), -1.0f);
        for (float& v : x) v = static_cast<float>(static_cast<int>(chance() % 2001) - 1000) * 1e-3f;
        std::vector<Q8Block<length>> q(static_cast<std::size_t>(m * blocks));
        to_q8<length>(x.data(), m * blocks * length, q.data());
        std::size_t const row = static_cast<std::size_t>(blocks) * block_bytes(F);
        multiply_quantized<F>(m, n, blocks * length, q.data(), w.data, row, y.data(), n);
        for (index_t i = 0; i < m; ++i)
          for (index_t j = 0; j < n; ++j) {
            auto const* at = w.data + static_cast<std::size_t>(j) * row;
            float const want = dfdx::quantized_dot<F>(at, q.data() + i * blocks, blocks * length);
            // Sums of blocks cancel, and within them the products and what is added: without signs.
            float size = 0;
            for (index_t b = 0; b < blocks; ++b) {
              UnpackedBlock<F> const u(at + static_cast<std::size_t>(b) * block_bytes(F));
              auto const& other = q[static_cast<std::size_t>(i * blocks + b)];
              for (int k = 0; k < length; ++k)
                size += (std::abs(u.scale[k / u.group] * static_cast<float>(u.q[k])) +
                         std::abs(u.low[k / u.group])) *
                        std::abs(static_cast<float>(other.q[k])) * other.scale;
            }
            count += !(std::abs(y[static_cast<std::size_t>(i * n + j)] - want) <= 1e-6f * size);
          }
      }
    return count;
  };
  int formats = 0;  // a bit each
  for (int f = 0; f < quant_count; ++f) formats |= dispatch(static_cast<Quant>(f), wrong) != 0 ? 1 << f : 0;
  CHECK(formats == 0);
}

}  // namespace tests::kernels_rvv

#endif
