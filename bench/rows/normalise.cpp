// SPDX-License-Identifier: BSL-1.0
// Work by rows: softmax, layer norm and cross entropy, forward and backward.
#include "works.hpp"

namespace {

using namespace dfdx;

template <std::size_t M, std::size_t N>
void softmax_rows() {
  using T = Tensor<float, M, N>;
  auto const x = bench::numbers<T>(1), ct = bench::numbers<T>(2);
  auto f = vjp([](auto const& v) { return softmax<1>(v); });
  bench::compare_works(
      {"normalise", "softmax " + std::to_string(M) + "x" + std::to_string(N) + ", vjp", "softmax"},
      [&] { return f(x, ct); }, bench::wanted(x), bench::plain(ct));
}

void layer_norm_rows() {
  using T = Tensor<float, 1024, 768>;
  auto const x = bench::numbers<T>(3), ct = bench::numbers<T>(4);
  nn::LayerNorm<768> norm;
  norm.weight = bench::numbers<Tensor<float, 768>>(5);
  norm.bias = bench::numbers<Tensor<float, 768>>(6);
  auto f = vjp([](auto const& v, auto const& model) { return model(v); });
  bench::compare_works(
      {"normalise", "layer norm 1024x768, vjp", "layer_norm", 1e-4}, [&] { return f(x, norm, ct); },
      bench::wanted(x), bench::wanted(norm.weight), bench::wanted(norm.bias), bench::plain(ct));
}

void cross_entropy_rows() {
  auto const x = bench::numbers<Tensor<float, 1024, 32000>>(7);
  auto const labels = bench::integers<Tensor<std::int32_t, 1024>>(8, 32000);
  auto f = value_and_grad([](auto const& v, auto const& y) { return cross_entropy(v, y); });
  bench::compare_works(
      {"normalise", "cross entropy 1024x32000, value and grad", "cross_entropy", 1e-4},
      [&] { return f(x, labels); }, bench::wanted(x), bench::plain(labels));
}

}  // namespace

int main() {
  softmax_rows<1024, 1024>();
  softmax_rows<100'000, 4>();
  layer_norm_rows();
  cross_entropy_rows();
}
