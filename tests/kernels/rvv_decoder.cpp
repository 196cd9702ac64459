// SPDX-License-Identifier: BSL-1.0
// A decoder's rows on vectors of any length against plain sums in double.
#include <dfdx/models/decoder_kernels.hpp>

#include <catch2/catch_test_macros.hpp>

#if defined(DFDX_RVV)

#include <cmath>
#include <vector>

namespace tests::kernels_rvv_decoder {

namespace {

using namespace dfdx;
using Row = std::vector<float>;

Row numbers(index_t n, int seed) {
  Row v(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < v.size(); ++i)
    v[i] = static_cast<float>(static_cast<int>((i * 7919 + static_cast<std::size_t>(seed) * 104729) % 2003) -
                              1001) /
           500.0f;
  return v;
}

// How many numbers are not as f(i) says, relative to `size`.
template <class F>
int wrong(Row const& got, double size, F const& f) {
  int count = 0;
  for (std::size_t i = 0; i < got.size(); ++i)
    count += !(std::abs(static_cast<double>(got[i]) - f(i)) <= 2e-6 * size);
  return count;
}
double at(Row const& v, std::size_t i) { return static_cast<double>(v[i]); }

// Keys and values of type E, `heads` that share them.
template <class E>
int wrong_attention(index_t heads, index_t n, index_t size) {
  Row const q = numbers(heads * size, 1), k = numbers(n * size, 2), v = numbers(n * size, 3);
  std::vector<E> keys(k.size()), values(v.size());
  for (std::size_t i = 0; i < k.size(); ++i) keys[i] = static_cast<E>(k[i]), values[i] = static_cast<E>(v[i]);
  Row scores(static_cast<std::size_t>(heads * n)), y(q.size(), 7.0f);
  float const scale = 0.1f;
  models::detail::attend_one(q.data(), keys.data(), values.data(), heads, n, size, scale, scores.data(),
                             y.data());
  int count = 0;
  auto const width = static_cast<std::size_t>(size);
  for (std::size_t h = 0; h < static_cast<std::size_t>(heads); ++h) {
    std::vector<double> p(static_cast<std::size_t>(n)), want(width);
    double most = -1e300, sum = 0;
    for (std::size_t i = 0; i < p.size(); ++i) {
      for (std::size_t j = 0; j < width; ++j)
        p[i] += at(q, h * width + j) * static_cast<double>(static_cast<float>(keys[i * width + j]));
      p[i] *= static_cast<double>(scale);
      most = std::max(most, p[i]);
    }
    for (double& e : p) sum += e = std::exp(e - most);
    for (std::size_t i = 0; i < p.size(); ++i)
      for (std::size_t j = 0; j < width; ++j)
        want[j] += p[i] / sum * static_cast<double>(static_cast<float>(values[i * width + j]));
    for (std::size_t j = 0; j < width; ++j) count += !(std::abs(at(y, h * width + j) - want[j]) <= 3e-5);
  }
  return count;
}

}  // namespace

TEST_CASE("rvv rows of a decoder", "[kernels]") {
  for (index_t n : {2, 6, 16, 34, 96, 130, 288}) {
    Row const x = numbers(n, 1), w = numbers(n, 2), z = numbers(n, 3);
    double squares = 0;
    for (float v : x) squares += static_cast<double>(v) * static_cast<double>(v);
    double const by = 1 / std::sqrt(squares / static_cast<double>(n) + 1e-5);
    Row y = x;
    models::detail::normalize(y.data(), w.data(), n, 1e-5, y.data());
    CHECK(wrong(y, 4, [&](std::size_t i) { return at(x, i) * by * at(w, i); }) == 0);

    y = x;
    models::detail::add_to(y.data(), w.data(), n);
    CHECK(wrong(y, 4, [&](std::size_t i) { return at(x, i) + at(w, i); }) == 0);

    y = x;
    models::detail::silu_times(y.data(), w.data(), n);
    CHECK(wrong(y, 4, [&](std::size_t i) { return at(x, i) / (1 + std::exp(-at(x, i))) * at(w, i); }) == 0);

    y = x;
    models::detail::turn(y.data(), w.data(), z.data(), n);
    auto const half = static_cast<std::size_t>(n / 2);
    CHECK(wrong(y, 8, [&](std::size_t i) {
            return i < half ? at(x, i) * at(w, i) - at(x, i + half) * at(z, i)
                            : at(x, i) * at(w, i - half) + at(x, i - half) * at(z, i - half);
          }) == 0);

    y = x;
    models::detail::soften(y.data(), n, 1.5f);
    double sum = 0;
    for (float v : x) sum += std::exp(1.5 * static_cast<double>(v));
    CHECK(wrong(y, 1, [&](std::size_t i) { return std::exp(1.5 * at(x, i)) / sum; }) == 0);
  }
}

TEST_CASE("rvv attention of a decoder", "[kernels]") {
  for (index_t heads : {1, 3, 4, 6})
    for (index_t n : {1, 5, 70})
      for (index_t size : {8, 24, 48, 128}) {
        CHECK(wrong_attention<float>(heads, n, size) == 0);
        CHECK(wrong_attention<float16>(heads, n, size) == 0);
        CHECK(wrong_attention<bfloat16>(heads, n, size) == 0);
      }
}

}  // namespace tests::kernels_rvv_decoder

#endif
