// SPDX-License-Identifier: BSL-1.0
// Attention block by block against sums in double that follow its definition: extents around those of blocks and lanes,
// causal and not, both passes; flush with memory that is not its own.
#include <dfdx/kernels/attention.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <random>
#include <vector>

#include "worse.hpp"

namespace tests::kernels_attention {

namespace {

using namespace dfdx;
using kernels::AttentionHead, kernels::MatrixRows;

// Rows with some numbers between them that nobody may touch.
template <class T>
struct Rows {
  static constexpr index_t apart = 3;
  static constexpr T untouched = T(-77);
  index_t rows, columns;
  std::vector<T> numbers;

  Rows(index_t r, index_t c, unsigned seed)
      : rows(r), columns(c), numbers(static_cast<std::size_t>(r * (c + apart)), untouched) {
    std::mt19937 chance(seed);
    std::uniform_real_distribution<double> number(-1.5, 1.5);
    for (index_t i = 0; i < r; ++i)
      for (index_t j = 0; j < c; ++j) at(i, j) = seed == 0 ? T(0) : static_cast<T>(number(chance));
  }
  T& at(index_t i, index_t j) { return numbers[static_cast<std::size_t>(i * (columns + apart) + j)]; }
  double get(index_t i, index_t j) { return static_cast<double>(at(i, j)); }
  MatrixRows<T> all() { return {numbers.data(), columns + apart}; }
  MatrixRows<T const> given() { return {numbers.data(), columns + apart}; }
  bool is_kept() {
    bool r = true;
    for (index_t i = 0; i < rows; ++i)
      for (index_t j = columns; j < columns + apart; ++j) r = r && at(i, j) == untouched;
    return r;
  }
  // The largest difference from `want`, as a share of what it is made of.
  double error(std::vector<double> const& want) {
    double most = 0, size = 1;
    for (double w : want) size = std::fmax(size, std::abs(w));
    for (index_t i = 0; i < rows; ++i)
      for (index_t j = 0; j < columns; ++j) {
        most = worse(most, std::abs(get(i, j) - want[static_cast<std::size_t>(i * columns + j)]));
      }
    return is_kept() ? most / size : 1;
  }
};

template <class T>
double attention_error(AttentionHead const& h) {
  Rows<T> q(h.queries, h.size, 1), k(h.keys, h.size, 2), v(h.keys, h.width, 3), ct(h.queries, h.width, 4);
  Rows<T> y(h.queries, h.width, 0), dq(h.queries, h.size, 0), dk(h.keys, h.size, 0), dv(h.keys, h.width, 0);
  auto const doubles = [](index_t n) { return std::vector<double>(static_cast<std::size_t>(n)); };
  auto want_y = doubles(h.queries * h.width), want_q = doubles(h.queries * h.size),
       want_k = doubles(h.keys * h.size), want_v = doubles(h.keys * h.width);
  std::vector<T> sums(static_cast<std::size_t>(h.queries)), d(sums.size());
  double worst = 0;
  std::vector<double> want_sums;
  for (index_t i = 0; i < h.queries; ++i) {
    index_t const seen = h.seen(i, 0, h.keys);
    std::vector<double> p;
    double sum = 0;
    for (index_t j = 0; j < seen; ++j) {
      double score = 0;
      for (index_t c = 0; c < h.size; ++c) score += q.get(i, c) * k.get(j, c);
      p.push_back(std::exp(score * h.scale));
      sum += p.back();
    }
    want_sums.push_back(std::log(sum));
    double given = 0;
    auto const place = [](index_t row, index_t n, index_t c) {
      return static_cast<std::size_t>(row * n + c);
    };
    std::vector<double> pull;
    for (index_t j = 0; j < seen; ++j) {
      double& w = p[static_cast<std::size_t>(j)];
      w /= sum;
      double of_w = 0;
      for (index_t c = 0; c < h.width; ++c) {
        want_y[place(i, h.width, c)] += w * v.get(j, c);
        want_v[place(j, h.width, c)] += w * ct.get(i, c);
        of_w += ct.get(i, c) * v.get(j, c);
      }
      given += w * of_w;
      pull.push_back(of_w);
    }
    d[static_cast<std::size_t>(i)] = static_cast<T>(given);
    for (index_t j = 0; j < seen; ++j) {
      auto const at = static_cast<std::size_t>(j);
      double const of_score = p[at] * (pull[at] - given) * h.scale;
      for (index_t c = 0; c < h.size; ++c) {
        want_q[place(i, h.size, c)] += of_score * k.get(j, c);
        want_k[place(j, h.size, c)] += of_score * q.get(i, c);
      }
    }
  }
  kernels::BlockedAttention<T> const attention(h);
  attention.forward(q.given(), k.given(), v.given(), y.all(), sums.data());
  attention.backward(q.given(), k.given(), v.given(), ct.given(), sums.data(), d.data(), dq.all(), dk.all(),
                     dv.all());
  for (std::size_t i = 0; i < sums.size(); ++i)
    worst = worse(worst, std::abs(static_cast<double>(sums[i]) - want_sums[i]));
  for (double e : {y.error(want_y), dq.error(want_q), dk.error(want_k), dv.error(want_v)})
    worst = worse(worst, e);
  return worst;
}

template <class T>
bool all_agree(double tolerance) {
  bool r = true;
  AttentionHead const heads[] = {
      {1, 1, 1, 1},        {1, 7, 5, 3},           {5, 1, 4, 9, 0.5},       {17, 33, 16, 8, 0.25},
      {3, 2, 64, 64},      {130, 7, 3, 5},         {129, 259, 9, 11, 2},    {4, 300, 32, 1},
      {37, 41, 1, 6},      {2, 257, 33, 31},       {64, 64, 64, 64, 0.125}, {48, 48, 6, 5},
      {49, 60, 8, 7, 0.5}, {97, 97, 12, 20, 0.25}, {128, 300, 5, 9}};
  for (AttentionHead h : heads) {
#if defined(DFDX_EMULATED)
    if (h.queries > 48 && h.keys > 64) continue;  // its sums in double take most of the time
#endif
    r = r && attention_error<T>(h) <= tolerance;
    if (h.keys < h.queries) continue;
    h.causal = true;
    h.offset = h.keys - h.queries;
    r = r && attention_error<T>(h) <= tolerance;
  }
  return r;
}

}  // namespace

TEST_CASE("attention of one head", "[kernels]") {
  CHECK(all_agree<float>(4e-5));
  CHECK(all_agree<double>(1e-13));
}

}  // namespace tests::kernels_attention
