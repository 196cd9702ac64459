// SPDX-License-Identifier: BSL-1.0
// The optimizers inside compiled steps, against their formulas in double: f64 models to f64's precision, models of
// several dtypes each leaf to its own, and 16-bit models updated in f32.
#include "optim/formulas.hpp"

#include <catch2/catch_test_macros.hpp>

namespace tests::optim_optimizers {

using namespace dfdx;
using namespace formulas;

namespace {

// Adam in double; `l2` is added to the gradient, `decay` taken off the parameter.
auto adam(double lr, double beta1, double beta2, double eps, double l2, double decay) {
  return [=, m = std::array<double, n>{}, v = std::array<double, n>{}](int k, std::size_t i, double p,
                                                                       double g) mutable {
    g += l2 * p;
    p -= lr * decay * p;
    m[i] = beta1 * m[i] + (1 - beta1) * g;
    v[i] = beta2 * v[i] + (1 - beta2) * g * g;
    return p - lr * (m[i] / (1 - std::pow(beta1, k))) / (std::sqrt(v[i] / (1 - std::pow(beta2, k))) + eps);
  };
}
auto sgd(double lr) {
  return [=](int, std::size_t, double p, double g) { return p - lr * g; };
}

}  // namespace

TEST_CASE("f64 models are updated in f64", "[optim]") {
  CHECK(error_of(optim::SGD{.lr = 0.1}, sgd(0.1)) < 1e-13);
  auto const momentum = [v = std::array<double, n>{}](int, std::size_t i, double p, double g) mutable {
    g += 0.01 * p;
    v[i] = 0.9 * v[i] + g;
    return p - 0.1 * (g + 0.9 * v[i]);
  };
  CHECK(error_of(optim::SGD{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.01, .nesterov = true}, momentum) <
        1e-13);
  CHECK(error_of(optim::Adam{.lr = 0.01, .weight_decay = 0.1}, adam(0.01, 0.9, 0.999, 1e-8, 0.1, 0)) < 1e-13);
  CHECK(error_of(optim::Adam{.lr = 0.02, .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-6},
                 adam(0.02, 0.8, 0.95, 1e-6, 0, 0)) < 1e-13);
  CHECK(error_of(optim::AdamW{.lr = 0.01, .weight_decay = 0.1}, adam(0.01, 0.9, 0.999, 1e-8, 0, 0.1)) <
        1e-13);
  CHECK(error_of(optim::ClipNorm{optim::SGD{.lr = 0.1}, 0.7}, sgd(0.1), 0.7) < 1e-13);
  CHECK(error_of(optim::ClipValue{optim::SGD{.lr = 0.1}, 0.3}, sgd(0.1), INFINITY, 0.3) < 1e-13);
}

TEST_CASE("options of SGD, Adam and RMSprop, and the adaptive rules, follow their formulas", "[optim]") {
  auto const damped = [v = Slot{}](int k, std::size_t i, double p, double g) mutable {
    v[i] = k == 1 ? g : 0.9 * v[i] + 0.7 * g;
    return p - 0.1 * v[i];
  };
  CHECK(error_of(optim::SGD{.lr = 0.1, .momentum = 0.9, .dampening = 0.3}, damped) < 1e-13);
  // Where nothing is kept, nothing is dampened.
  CHECK(error_of(optim::SGD{.lr = 0.1, .momentum = 0.0, .dampening = 0.3},
                 [](int, std::size_t, double p, double g) { return p - 0.1 * g; }) < 1e-13);
  auto const largest = [m = Slot{}, v = Slot{}, top = Slot{}](int k, std::size_t i, double p,
                                                              double g) mutable {
    p -= 0.1 * 0.01 * p;
    m[i] = 0.9 * m[i] + 0.1 * g;
    v[i] = 0.5 * v[i] + 0.5 * g * g;
    top[i] = std::fmax(top[i], v[i]);
    return p - 0.1 * (m[i] / (1 - std::pow(0.9, k))) / (std::sqrt(top[i] / (1 - std::pow(0.5, k))) + 1e-8);
  };
  CHECK(error_of(optim::AdamW{.lr = 0.1, .beta2 = 0.5, .amsgrad = true}, largest) < 1e-13);
  auto const root = [v = Slot{}, b = Slot{}](int, std::size_t i, double p, double g) mutable {
    g += 0.1 * p;
    v[i] = 0.8 * v[i] + 0.2 * g * g;
    b[i] = 0.7 * b[i] + g / (std::sqrt(v[i]) + 1e-3);
    return p - 0.05 * b[i];
  };
  CHECK(error_of(optim::RMSprop{.lr = 0.05, .alpha = 0.8, .eps = 1e-3, .weight_decay = 0.1, .momentum = 0.7},
                 root) < 1e-13);
  auto const centred = [v = Slot{}, m = Slot{}](int, std::size_t i, double p, double g) mutable {
    v[i] = 0.8 * v[i] + 0.2 * g * g;
    m[i] = 0.8 * m[i] + 0.2 * g;
    return p - 0.05 * g / (std::sqrt(v[i] - m[i] * m[i]) + 1e-3);
  };
  CHECK(error_of(optim::RMSprop{.lr = 0.05, .alpha = 0.8, .eps = 1e-3, .centered = true}, centred) < 1e-12);
  auto const all = [v = Slot{}](int k, std::size_t i, double p, double g) mutable {
    g += 0.1 * p;
    v[i] += g * g;
    return p - 0.1 / (1 + 0.2 * (k - 1)) * g / (std::sqrt(v[i] + 0.5) + 1e-10);
  };
  CHECK(error_of(optim::Adagrad{.lr = 0.1, .lr_decay = 0.2, .weight_decay = 0.1, .initial_accumulator = 0.5},
                 all) < 1e-13);
  auto const steps_alike = [v = Slot{}, u = Slot{}](int, std::size_t i, double p, double g) mutable {
    g += 0.1 * p;
    v[i] = 0.8 * v[i] + 0.2 * g * g;
    double const d = std::sqrt(u[i] + 1e-3) / std::sqrt(v[i] + 1e-3) * g;
    u[i] = 0.8 * u[i] + 0.2 * d * d;
    return p - 0.5 * d;
  };
  CHECK(error_of(optim::Adadelta{.lr = 0.5, .rho = 0.8, .eps = 1e-3, .weight_decay = 0.1}, steps_alike) <
        1e-13);
}

TEST_CASE("relatives of Adam follow their formulas", "[optim]") {
  auto const max_norm = [m = Slot{}, u = Slot{}](int k, std::size_t i, double p, double g) mutable {
    g += 0.1 * p;
    m[i] = 0.8 * m[i] + 0.2 * g;
    u[i] = std::fmax(0.6 * u[i], std::fabs(g) + 1e-3);
    return p - 0.1 / (1 - std::pow(0.8, k)) * m[i] / u[i];
  };
  CHECK(error_of(optim::Adamax{.lr = 0.1, .beta1 = 0.8, .beta2 = 0.6, .eps = 1e-3, .weight_decay = 0.1},
                 max_norm) < 1e-13);
  auto const nesterov = [m = Slot{}, v = Slot{}](int k, std::size_t i, double p, double g) mutable {
    auto const mu = [](int t) { return 0.8 * (1 - 0.5 * std::pow(0.96, t * 0.1)); };
    g += 0.1 * p;
    m[i] = 0.8 * m[i] + 0.2 * g;
    v[i] = 0.6 * v[i] + 0.4 * g * g;
    float product = 1;
    for (int t = 1; t <= k; ++t) product *= static_cast<float>(mu(t));
    double const d = std::sqrt(v[i] / (1 - std::pow(0.6, k))) + 1e-3;
    return p - 0.1 * (1 - mu(k)) / (1 - static_cast<double>(product)) * g / d -
           0.1 * mu(k + 1) / (1 - static_cast<double>(product) * mu(k + 1)) * m[i] / d;
  };
  CHECK(
      error_of(
          optim::NAdam{
              .lr = 0.1, .beta1 = 0.8, .beta2 = 0.6, .eps = 1e-3, .weight_decay = 0.1, .momentum_decay = 0.1},
          nesterov) < 1e-13);
  // With this beta2 both sides of r_t = 5 are met within the steps.
  bool plain = false, rectified = false;
  auto const warm = [&, m = Slot{}, v = Slot{}](int k, std::size_t i, double p, double g) mutable {
    g += 0.1 * p;
    m[i] = 0.8 * m[i] + 0.2 * g;
    v[i] = 0.9 * v[i] + 0.1 * g * g;
    double const r = 19, q = std::pow(0.9, k), now = r - 2 * k * q / (1 - q),
                 step = 0.1 * m[i] / (1 - std::pow(0.8, k));
    (now > 5 ? rectified : plain) = true;
    if (now <= 5) return p - step;
    return p - step * std::sqrt((now - 4) * (now - 2) * r / ((r - 4) * (r - 2) * now)) * std::sqrt(1 - q) /
                   (std::sqrt(v[i]) + 1e-3);
  };
  CHECK(error_of(optim::RAdam{.lr = 0.1, .beta1 = 0.8, .beta2 = 0.9, .eps = 1e-3, .weight_decay = 0.1},
                 warm) < 1e-13);
  CHECK(plain);
  CHECK(rectified);
}

namespace {

struct Mixed {
  Tensor<float, n> narrow;
  Tensor<double, n> wide;
  Tensor<bfloat16, n> short_one;
  Tensor<std::int32_t, n> table;
  DFDX_FIELDS(narrow, wide, short_one, table)
};
constexpr auto pull_all = [](auto const& m, auto const& g) {
  return sum(cast<double>(m.narrow) * g) + sum(m.wide * g) + sum(cast<double>(m.short_one) * g);
};

template <class Loss, class M, class... A>
constexpr DType scalars_of =
    decltype(train_step(Loss{}, optim::Adam{}))::template Scalars<M>::static_meta.dtype;

}  // namespace

TEST_CASE("the scalars have the widest floating dtype of the model", "[optim]") {
  using Loss = decltype(pull);
  STATIC_CHECK(scalars_of<Loss, Model<float>> == DType::f32);
  STATIC_CHECK(scalars_of<Loss, Model<double>> == DType::f64);
  STATIC_CHECK(scalars_of<Loss, Model<float16>> == DType::f32);
  STATIC_CHECK(scalars_of<Loss, Model<bfloat16>> == DType::f32);
  STATIC_CHECK(scalars_of<Loss, Mixed> == DType::f64);
}

TEST_CASE("each leaf of a mixed model is updated in its own dtype", "[optim]") {
  Mixed model{filled<float>(start), filled<double>(start), filled<bfloat16>(start),
              Tensor<std::int32_t, n>::from({3, 1, 4, 1, 5})};
  auto step = train_step(pull_all, optim::Adam{.lr = 0.01});
  auto rule = adam(0.01, 0.9, 0.999, 1e-8, 0, 0);
  double want[n], worst_narrow = 0, worst_wide = 0, worst_short = 0;
  for (std::size_t i = 0; i < n; ++i) want[i] = start(i);
  for (int k = 1; k <= steps; ++k) {
    auto const g = filled<double>([&](std::size_t i) { return gradient(k, i); });
    step(model, g);
    for (std::size_t i = 0; i < n; ++i) {
      want[i] = rule(k, i, want[i], g(i));
      worst_narrow = tests::worse(worst_narrow, std::fabs(static_cast<double>(model.narrow(i)) - want[i]));
      worst_wide = tests::worse(worst_wide, std::fabs(model.wide(i) - want[i]));
      worst_short = tests::worse(worst_short, std::fabs(static_cast<float>(model.short_one(i)) - want[i]));
    }
  }
  CHECK(worst_wide < 1e-13);
  CHECK(worst_narrow < 2e-6);
  CHECK(worst_narrow > 1e-12);
  CHECK(worst_short < 0.05);
  CHECK(array_equal(model.table, Tensor<std::int32_t, n>::from({3, 1, 4, 1, 5})));
}

TEST_CASE("16-bit models are updated in f32", "[optim]") {
  auto const numbers = [](auto const& f) { return filled<float16>(f); };
  auto const one = [](std::size_t) { return 1.0f; };
  // In f16 Adam's eps is 0, and 0 / 0 where no gradient came.
  Model<float16> model{numbers(one)};
  auto adam_step = train_step(pull, optim::Adam{.lr = 0.25});
  adam_step(model, numbers([](std::size_t i) { return i == 0 ? 0.0f : 0.5f; }));
  CHECK(static_cast<float>(model.w(0)) == 1.0f);
  CHECK(std::fabs(static_cast<float>(model.w(1)) - 0.75f) < 1e-3f);
  // The squares of these gradients are beyond f16.
  Model<float16> clipped{numbers(one)};
  auto clipped_step = train_step(pull, optim::ClipNorm{optim::SGD{.lr = 0.5}, 1.0});
  clipped_step(clipped, numbers([](std::size_t i) { return i == 0 ? 300.0f : i == 1 ? 400.0f : 0.0f; }));
  CHECK(std::fabs(static_cast<float>(clipped.w(0)) - 0.7f) < 1e-3f);
  CHECK(std::fabs(static_cast<float>(clipped.w(1)) - 0.6f) < 1e-3f);
  CHECK(static_cast<float>(clipped.w(2)) == 1.0f);
}

}  // namespace tests::optim_optimizers
