// SPDX-License-Identifier: BSL-1.0
// Activations and losses in compiled programs: values and gradients are those of the interpreted graph.
#include "ops/compiled.hpp"

#include <dfdx/vocabulary/loss.hpp>

namespace tests::ops_compiled_activations {

using namespace dfdx;
using compiled::check_vjp;

namespace {

Tensor<float, 3, 5> x() { return randn<float, 3, 5>(Key{1}); }
Tensor<float, 3, 5> y() { return uniform<float, 3, 5>(Key{2}, 0.1, 0.9); }

}  // namespace

TEST_CASE("compiled activations", "[ops]") {
  check_vjp(
      [](auto const& v) {
        return std::tuple(relu6(v * 4.0f), clamp(v, -0.5, 0.75), clamp_min(v, 0.25), clamp_max(v, 0.25),
                          hardtanh(v), leaky_relu(v), threshold(v, 0.5, -1.0));
      },
      x());
  check_vjp([](auto const& v, auto const& low) { return clamp(v, low, low + 0.5); }, x(), y() - 0.8f);
  check_vjp(
      [](auto const& v) {
        return std::tuple(elu(v, 1.5), celu(v, 1.5), selu(v), log_sigmoid(v), mish(v), quick_gelu(v));
      },
      x());
  check_vjp(
      [](auto const& v) {
        return std::tuple(softsign(v), tanhshrink(v), hardsigmoid(v), hardswish(v), softshrink(v),
                          hardshrink(v));
      },
      x());
}

TEST_CASE("compiled prelu", "[ops]") {
  auto const f = [](auto const& v, auto const& w) { return prelu(v, w); };
  check_vjp(f, x(), Tensor<float, 5>::from({0.1f, 0.2f, 0.3f, 0.4f, 0.5f}));
  check_vjp(f, x(), Tensor<float, 1>::from({0.25f}));
  check_vjp(f, randn<float, 2, 3, 4>(Key{4}), Tensor<float, 3>::from({0.1f, 0.2f, 0.3f}));
}

TEST_CASE("compiled losses", "[ops]") {
  check_vjp(
      [](auto const& a, auto const& b) {
        return std::tuple(l1_loss(a, b), mse_loss<Reduction::sum>(a, b), huber_loss(a, b, 0.5),
                          smooth_l1_loss<Reduction::none>(a, b, 0.5), bce_with_logits(a, b),
                          kl_div<Reduction::batchmean>(a, b));
      },
      x(), y());
  check_vjp([](auto const& a, auto const& b) { return std::tuple(bce_loss(a, b), kl_div_log(a, b)); }, y(),
            y());
  check_vjp([](auto const& a, auto const& b, auto const& w) { return bce_with_logits(a, b, w); }, x(), y(),
            Tensor<float, 5>::from({1, 2, 3, 0.5f, 1}));
}

}  // namespace tests::ops_compiled_activations
