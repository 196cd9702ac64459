// SPDX-License-Identifier: BSL-1.0
// Norms that are called on the emulated device, and their gradients there, beside the CPU's.
#include "called.hpp"

#include <dfdx/vocabulary/channel_norm.hpp>

#include <algorithm>

namespace tests::cuda_emulated_called_norms {

using namespace emulated;

namespace {

using Values = std::vector<Array>;

// The value and the gradients of f at x, and how far those of the device are from the CPU's, of what they are at most.
template <class F>
double apart(F const& f, Values const& x, bool on_device_alone = true) {
  auto const all = [&](bool on_device) {
    Values v;
    for (Array const& a : x) {
      v.push_back((on_device ? there(a) : a).detach());
      v.back().requires_grad(true);
    }
    Array const y = f(v), ct = drawn(y.shape(), 9, y.dtype());
    Values r = gradients(sum(y * (on_device ? there(ct) : ct)), v);
    r.push_back(y.detach());
    return r;
  };
  Values const here = all(false);
  Missed const missed;
  Values const far = all(true);
  if (on_device_alone) CHECK(Missed::names() == std::vector<std::string>());
  CHECK(std::ranges::count(Missed::done(), "standardize") == 1);
  CHECK(std::ranges::count(Missed::done(), "standardize_back") == 1);
  double r = 0;
  for (std::size_t k = 0; k < here.size(); ++k) {
    REQUIRE(far[k].device() == cuda());
    REQUIRE(far[k].shape() == here[k].shape());
    Array const a = cast_to(to({}, far[k]), DType::f64), b = cast_to(here[k], DType::f64);
    r = std::max(r, max(abs(a - b)).item() / (1 + max(abs(b)).item()));
  }
  return r;
}

}  // namespace

TEST_CASE("norms called on a device have kernels there, and so have their gradients") {
  for (DType const d : {DType::f32, DType::f64, DType::bf16}) {
    double const near = d == DType::f64 ? 1e-12 : d == DType::f32 ? 1e-5 : 2e-2;
    for (Shape const& s : {make_shape(5, 7), make_shape(1, 1), make_shape(70, 33), make_shape(2, 3, 1100)}) {
      Shape const last = make_shape(s[s.rank - 1]);
      Values const x{drawn(s, 1, d), drawn(last, 2, d), drawn(last, 3, d)};
      INFO(s << " " << d);
      CHECK(apart([](Values const& v) { return layer_norm(v[0], v[1], v[2]); }, x) < near);
      CHECK(apart([](Values const& v) { return layer_norm(transpose(transpose(v[0])), v[1]); },
                  {x[0], x[1]}) < near);
      CHECK(apart([](Values const& v) { return rms_norm(v[0], v[1]); }, {x[0], x[1]}) < near);
      CHECK(apart([&](Values const& v) { return layer_norm(v[0], {last[0]}); }, {x[0]}) < near);
    }
    for (Shape const& s : {make_shape(3, 6), make_shape(2, 6, 5, 4), make_shape(3, 6, 400)}) {
      Values const x{drawn(s, 1, d), drawn(make_shape(6), 2, d), drawn(make_shape(6), 3, d)};
      INFO(s << " " << d);
      CHECK(apart([](Values const& v) { return group_norm(v[0], 3, v[1], v[2]); }, x) < near);
      CHECK(apart([](Values const& v) { return group_norm(v[0], 6); }, {x[0]}) < near);
      CHECK(apart(
                [&](Values const& v) {
                  Array const mean = to(v[0].device(), full({6}, 0, d)),
                              var = to(v[0].device(), full({6}, 1, d));
                  auto const r = batch_norm(v[0], mean, var, v[1], v[2], {.training = true});
                  return std::get<0>(r) + sum(std::get<1>(r)) + sum(std::get<2>(r));
                },
                x) < 2 * near);
    }
  }
}

TEST_CASE("norms of what lies in another order on a device, and of far numbers") {
  Array const x = drawn(make_shape(40, 6), 1, DType::f64);
  CHECK(apart([](Values const& v) { return layer_norm(transpose(v[0]), v[1]); },
              {x, drawn(make_shape(40), 2, DType::f64)}) < 1e-12);
  Array const far = drawn(make_shape(3, 2000), 1) + 1e4;
  CHECK(apart([](Values const& v) { return layer_norm(v[0], {2000}); }, {far}) < 2e-3);
}

TEST_CASE("norms on a device of numbers that are all alike are 0, and so is the gradient of one alone") {
  auto const norm = [](Values const& v) { return layer_norm(v[0], Extents{v[0].shape()[1]}, 1e-12); };
  for (double alike : {2024.3, -99999.9, 0.1})
    for (DType const d : {DType::f32, DType::f64})
      for (index_t n : {61, 1000, 9001}) {
        Array const x = full({3, n}, alike, d);
        CHECK(max(abs(to({}, norm({there(x)})))).item() == 0);
        CHECK(apart([&](Values const& v) { return layer_norm(v[0], {n}); }, {x}) <
              (d == DType::f64 ? 1e-11 : 1e-3));
        auto const batch = [](Values const& v) {
          Array const zero = zeros_like(select(v[0], 1, 0)), one = zero + 1.0;
          BatchNorm const o{.training = true, .momentum = 1, .eps = 1e-12};
          return std::get<0>(batch_norm(transpose(v[0]), zero, one, o));
        };
        CHECK(max(abs(to({}, batch({there(x)})))).item() == 0);
      }
  Array x = there(drawn(make_shape(200, 1), 1)), w = there(drawn(make_shape(1), 2));
  x.requires_grad(true);
  Array const g = gradients(sum(layer_norm(x, w) * there(drawn(make_shape(200, 1), 3))), {x})[0];
  CHECK(max(abs(to({}, g))).item() == 0);
}

}  // namespace tests::cuda_emulated_called_norms
