// SPDX-License-Identifier: BSL-1.0
// What every op is tested for: values against plain code in double, gradients against central differences, forward
// against reverse mode, gradients of gradients; and that it gives the same eagerly, on the tape and as a graph that is
// recorded. Functions are given on Arrays, so that one record serves all shapes, dtypes and regimes.
#pragma once

#include <dfdx/testing/run_plan.hpp>
#include <dfdx/vocabulary/draw.hpp>

#include <dfdx/tape/backward.hpp>

#include <catch2/catch_test_macros.hpp>

#include <algorithm>
#include <functional>
#include <string>

namespace suite {

using namespace dfdx;

using Function = std::function<Array(std::span<Array const>)>;

struct Tolerance {
  double rtol, atol;
};
/// The tolerances of values and gradients by dtype.
inline Tolerance tolerance(DType d) {
  if (d == DType::f64) return {1e-7, 1e-10};
  if (d == DType::f32) return {1e-4, 1e-7};
  if (d == DType::bf16) return {4e-2, 1e-3};  // 8 bits, and composites round after each of their ops
  return {1e-2, 1e-4};
}

/// Interval - where the operands of an op are drawn from.
struct Interval {
  double low = -2, high = 2;
};

/// How an operand lies in memory.
enum class Layout { dense, turned, sparse };

inline Array laid_out(Array const& x, Layout layout) {
  if (layout == Layout::dense || x.ndim() == 0) return x;
  int axes[max_rank] = {};
  for (int i = 0; i < x.ndim(); ++i) axes[i] = x.ndim() - 1 - i;
  index_t const reversed = op::pack_axes(axes, x.ndim());
  if (layout == Layout::turned)
    return permute_axes(dfdx::detail::packed(permute_axes(x, reversed)), reversed);
  // Every second element of an array whose others are garbage.
  Shape wide = x.shape();
  int const last = x.ndim() - 1;
  wide[last] = 2 * wide[last] + 1;
  Array const room = full(wide, 77, x.dtype());
  Array const view = slice_axis(room, last, 1, x.shape()[last], 2);
  copy_elements(x.operand(), view.operand());
  return view;
}

inline Array draw(Shape const& shape, Interval in, std::uint64_t seed, DType dtype) {
  if (dtype == DType::boolean) return randint(shape, Key{seed}, 0, 2, dtype);
  if (!is_floating(dtype))
    return randint(shape, Key{seed}, static_cast<std::int64_t>(in.low),
                   static_cast<std::int64_t>(in.high) + 1, dtype);
  return uniform(shape, Key{seed}, in.low, in.high, dtype);
}

/// On a device, where a test is compiled for devices, lying in memory there as here; else x.
inline Array on_device(Array const& x) {
#if defined(DFDX_WITH_CUDA)
  index_t last = 0;
  for (int i = 0; i < x.ndim(); ++i) last += (x.shape()[i] - 1) * x.strides()[i];
  Array const room(Meta{x.dtype(), make_shape(x.size() == 0 ? 0 : last + 1)}, cuda());
  Array const there = room.view(x.shape(), x.strides());
  dfdx::detail::copy_values(x, there);
  return there;
#else
  return x;
#endif
}
inline std::vector<Array> on_device(std::vector<Array> const& x) {
  std::vector<Array> r;
  for (Array const& a : x) r.push_back(on_device(a));
  return r;
}

inline double at(Array const& x, index_t i) { return read_real(dfdx::detail::packed(x).operand(), i); }

inline void require_close(Array const& got, Array const& want, Tolerance t, double scale = 0) {
  REQUIRE(testing::error_ratio(got, want, t.rtol, t.atol + t.rtol * scale) <= 1);
}

inline double largest(Array const& x) {
  double r = 0;
  for (index_t i = 0; i < x.size(); ++i) r = std::fmax(r, std::fabs(at(x, i)));
  return r;
}

namespace detail {

inline Meta meta_of(Array const& x, DType floating) {
  return Meta{is_floating(x.dtype()) ? floating : x.dtype(), x.shape()};
}

inline Graph recorded(Function const& f, std::vector<Array> const& x, DType floating) {
  std::vector<Meta> metas;
  for (Array const& a : x) metas.push_back(meta_of(a, floating));
  return testing::record([&](std::span<Array const> v) { return std::vector<Array>{f(v)}; }, metas);
}

// d <f(x), ct> / dx_k[i] by a central difference of fourth order, in double.
inline double difference(Graph const& g, std::vector<Array> x, std::size_t k, index_t i, Array const& ct) {
  Array const moved = dfdx::detail::packed(cast_to(x[k], DType::f64));
  Array copy(moved.meta());
  copy_elements(moved.operand(), copy.operand());
  x[k] = copy;
  double const here = read_real(copy.operand(), i), h = 1e-3 * std::fmax(1, std::fabs(here));
  auto const value = [&](double to) {
    write_real(copy.operand(), i, to);
    return testing::dot(testing::interpret(g, x)[0], ct);
  };
  double const far = value(here + 2 * h) - value(here - 2 * h), near = value(here + h) - value(here - h);
  return (8 * near - far) / (12 * h);
}

inline std::vector<Array> in_double(std::vector<Array> x) {
  for (Array& a : x)
    if (is_floating(a.dtype())) a = cast_to(a, DType::f64);
  return x;
}

inline std::vector<int> floating_inputs(std::vector<Array> const& x) {
  std::vector<int> r;
  for (std::size_t i = 0; i < x.size(); ++i)
    if (is_floating(x[i].dtype())) r.push_back(static_cast<int>(i));
  return r;
}

// Leaves of the tape that lie in memory as x does.
inline std::vector<Array> leaves(std::vector<Array> const& x) {
  std::vector<Array> r;
  for (Array const& a : x) {
    r.push_back(a.detach());
    if (is_floating(a.dtype())) r.back().requires_grad(true);
  }
  return r;
}
inline std::vector<Array> chosen(std::vector<Array> const& x, std::vector<int> const& which) {
  std::vector<Array> r;
  for (int w : which) r.push_back(x[static_cast<std::size_t>(w)]);
  return r;
}

// On the tape: the gradients of <f(x), ct>, zeros if f has none.
inline std::vector<Array> taped_gradients(Function const& f, std::vector<Array> const& x, Array const& ct,
                                          std::vector<int> const& wrt) {
  std::vector<Array> const on_tape = chosen(x, wrt);
  Array const y = f(x);
  if (y.requires_grad()) return gradients(sum(y * ct), on_tape, {.create_graph = true});
  std::vector<Array> zero;
  for (Array const& a : on_tape) zero.push_back(zeros_like(a.detach()));
  return zero;
}

}  // namespace detail

/// The value again, on the tape and as a recorded graph: the tape's to the last bit; that of the reference kernels, of
/// the graph as it is and of the plan that the passes make of it, to what a dtype's rounding leaves.
inline void check_regimes(Function const& f, std::vector<Array> const& x, Array const& eager) {
  Array const taped = f(detail::leaves(x));
  REQUIRE(taped.dtype() == eager.dtype());
  REQUIRE(testing::error_ratio(taped, eager, 0, 1e-300) == 0);
  std::vector<Meta> metas;
  for (Array const& a : x) metas.push_back(a.meta());
  Graph const g = testing::record([&](std::span<Array const> v) { return std::vector<Array>{f(v)}; }, metas);
  std::vector<Array> made = {testing::interpret(g, x)[0]};
  if (!(largest(eager) > 0x1p53))  // run_plan holds numbers as doubles
    made.push_back(testing::run_plan(graph::prepare(graph::simplify(g), {}), x).results[0]);
  double const t = !is_floating(eager.dtype())   ? 0
                   : eager.dtype() == DType::f64 ? 1e-12
                   : eager.dtype() == DType::f32 ? 1e-5
                                                 : tolerance(eager.dtype()).rtol;
#if defined(DFDX_WITH_CUDA)
  Array const there = f(detail::leaves(on_device(x)));
  REQUIRE(there.device() == cuda());
  REQUIRE(there.dtype() == eager.dtype());
  // Attention of 16 bits there rounds weights before they meet values, though its sums are f32.
  double by = t;
  for (Node const& n : g.nodes)
    if (n.op != nullptr && (is_op<op::attend>(*n.op) || is_op<op::attend_back>(*n.op)))
      by = std::max(by, tolerance(x[0].dtype()).rtol);
  require_close(dfdx::detail::here(there.detach()), eager, {by, 1e-300}, t == 0 ? 0 : largest(eager));
#endif
  for (Array const& y : made) {
    REQUIRE(y.dtype() == eager.dtype());
    require_close(y, eager, {t, 1e-300}, t == 0 ? 0 : largest(eager));
  }
}

/// Gradients of f at x against differences; forward against reverse mode; and, unless `twice` is off, gradients of
/// gradients likewise. The passes are run over all graphs on the way.
inline void check_rules(Function const& f, std::vector<Array> const& x, DType dtype, bool twice = true) {
  Graph const g = detail::recorded(f, x, dtype), exact = detail::recorded(f, x, DType::f64);
  std::vector<int> const wrt = detail::floating_inputs(x);
  Meta const result = g[g.outputs[0]].meta;
  Array const ct = draw(result.shape, {-1, 1}, 91, result.dtype);
  Graph reverse = g;
  testing::add_vjp(reverse, wrt);
  std::vector<Array> with_ct = x;
  with_ct.push_back(ct);
  std::vector<Array> const gradients =
      testing::run_plan(graph::prepare(graph::simplify(reverse), {}), with_ct).results;
  std::vector<Array> const plain = testing::interpret(reverse, with_ct);
  std::vector<Array> const taped = detail::taped_gradients(f, detail::leaves(x), ct, wrt);
#if defined(DFDX_WITH_CUDA)
  std::vector<Array> const there =
      detail::taped_gradients(f, detail::leaves(on_device(x)), on_device(ct), wrt);
  for (std::size_t k = 0; k < there.size(); ++k) {
    INFO("gradient of floating operand " << k << " on the device");
    REQUIRE(there[k].device() == cuda());
    require_close(dfdx::detail::here(there[k]), taped[k], {10 * tolerance(dtype).rtol, 1e-10},
                  largest(taped[k]));
  }
#endif
  Tolerance const t = tolerance(dtype);
  std::vector<Array> const point = detail::in_double(x);
  for (std::size_t k = 0; k < wrt.size(); ++k) {
    auto const input = static_cast<std::size_t>(wrt[k]);
    Array want(Meta{DType::f64, x[input].shape()});
    for (index_t i = 0; i < want.size(); ++i)
      write_real(want.operand(), i, detail::difference(exact, point, input, i, cast_to(ct, DType::f64)));
    INFO("gradient of operand " << input);
    // Products of a few rounded factors: relative to the largest as well.
    require_close(gradients[k], want, t, largest(want));
    require_close(plain[k], want, t, largest(want));
    require_close(taped[k], want, t, largest(want));
  }

  Graph forward = g;
  testing::add_jvp(forward, wrt);
  std::vector<Array> with_tangents = x;
  double left = 0, right = 0, scale = t.atol;
  for (std::size_t k = 0; k < wrt.size(); ++k) {
    Array const v = draw(x[static_cast<std::size_t>(wrt[k])].shape(), {-1, 1}, 60 + k, dtype);
    with_tangents.push_back(v);
    right += testing::dot(v, gradients[k]);
    scale += std::sqrt(testing::dot(v, v) * testing::dot(gradients[k], gradients[k]));
  }
  left = testing::dot(testing::interpret(graph::simplify(forward), with_tangents)[0], ct);
  CHECK(std::fabs(left - right) <= t.rtol * scale);

  if (!twice) return;
  // The gradient of <gradients, v>, in double.
  Graph second = exact;
  testing::add_vjp(second, wrt);
  Graph first = second;
  testing::add_vjp(second, wrt);
  std::vector<Array> inputs = point, directions;
  inputs.push_back(cast_to(ct, DType::f64));
  for (int w : wrt)
    directions.push_back(draw(x[static_cast<std::size_t>(w)].shape(), {-1, 1}, 70, DType::f64));
  std::vector<Array> with_directions = inputs;
  with_directions.insert(with_directions.end(), directions.begin(), directions.end());
  std::vector<Array> const hvp = testing::interpret(graph::simplify(second), with_directions);
  // <gradients, v> as one number, so that `difference` can take it.
  Sym total{};
  for (std::size_t k = 0; k < wrt.size(); ++k) {
    Array const v = testing::add_input(first, directions[k].meta());
    Array const d(&first, first.outputs[k], directions[k].meta());
    Sym const part = sum(d * v).sym();
    total = total ? total + part : part;
  }
  first.outputs = {total.id};
  std::vector<Array> const on_tape = detail::leaves(point);
  std::vector<Array> const once = detail::taped_gradients(f, on_tape, inputs.back(), wrt);
  Array taped_total = full({}, 0, DType::f64);
  for (std::size_t k = 0; k < wrt.size(); ++k) taped_total = taped_total + sum(once[k] * directions[k]);
  // Of a function that is linear there is nothing more to differentiate.
  std::vector<Array> const taped_twice = taped_total.requires_grad()
                                             ? dfdx::gradients(taped_total, detail::chosen(on_tape, wrt))
                                             : std::vector<Array>();
  for (std::size_t k = 0; k < wrt.size(); ++k) {
    auto const input = static_cast<std::size_t>(wrt[k]);
    Array want(Meta{DType::f64, x[input].shape()});
    for (index_t i = 0; i < want.size(); ++i)
      write_real(want.operand(), i,
                 detail::difference(first, with_directions, input, i, full({}, 1, DType::f64)));
    INFO("second derivative of operand " << input);
    require_close(hvp[k], want, {1e-6, 1e-8}, largest(want));
    require_close(taped_twice.empty() ? zeros_like(want) : taped_twice[k], want, {1e-6, 1e-8}, largest(want));
  }
}

}  // namespace suite
