// SPDX-License-Identifier: BSL-1.0
// Loops over vectors of a few numbers: a cascade of filters, and a differential equation. Their values and their
// gradients against the same written by hand.
#include <memory>
#include <vector>

#include <dfdx/dfdx.hpp>

#include "../ad/compare.hpp"
#include "small_loops.hpp"

using namespace dfdx;

namespace {

// --- four biquads one after another, transposed direct form II ---

constexpr std::size_t bands = 4, samples = 512;
using Signal = Tensor<double, samples>;
struct Cascade {
  Tensor<double, bands> b0, b1, b2, a1, a2;
  DFDX_FIELDS(b0, b1, b2, a1, a2)
};

constexpr auto filtered = [](Cascade const& c, Signal const& x) {
  auto const tick = [&](auto const& state, auto const& in) {
    auto const band = [&]<std::size_t I>(std::integral_constant<std::size_t, I>, auto const& v) {
      auto const [s0, s1] = unbind(select<0, I>(state));
      auto const y = select<0, I>(c.b0) * v + s0;
      return std::pair(stack(select<0, I>(c.b1) * v - select<0, I>(c.a1) * y + s1,
                             select<0, I>(c.b2) * v - select<0, I>(c.a2) * y),
                       y);
    };
    auto const [n0, y0] = band(std::integral_constant<std::size_t, 0>{}, in);
    auto const [n1, y1] = band(std::integral_constant<std::size_t, 1>{}, y0);
    auto const [n2, y2] = band(std::integral_constant<std::size_t, 2>{}, y1);
    auto const [n3, y3] = band(std::integral_constant<std::size_t, 3>{}, y2);
    return std::pair(stack(n0, n1, n2, n3), y3);
  };
  return scan(tick, zeros<double, bands, 2>(), x).second;
};
constexpr auto energy = [](Cascade const& c, Signal const& x) { return sum(square(filtered(c, x))); };

using Row = double[bands];
struct ByHand {
  Row b0, b1, b2, a1, a2;
};

void run_by_hand(ByHand const& c, double const* x, double* y, Row* in, Row* out) {
  double s0[bands] = {}, s1[bands] = {};
  for (std::size_t t = 0; t < samples; ++t) {
    double v = x[t];
    for (std::size_t b = 0; b < bands; ++b) {
      double const now = c.b0[b] * v + s0[b];
      s0[b] = c.b1[b] * v - c.a1[b] * now + s1[b];
      s1[b] = c.b2[b] * v - c.a2[b] * now;
      if (in != nullptr) in[t][b] = v, out[t][b] = now;
      v = now;
    }
    y[t] = v;
  }
}

double differentiate_by_hand(ByHand const& c, double const* x, double* y, Row* in, Row* out, ByHand& g) {
  run_by_hand(c, x, y, in, out);
  double total = 0, d0[bands] = {}, d1[bands] = {};
  g = ByHand{};
  for (std::size_t t = samples; t-- > 0;) {
    total += y[t] * y[t];
    double dy = 2 * y[t];
    for (std::size_t b = bands; b-- > 0;) {
      double const v = in[t][b], now = out[t][b];
      dy -= c.a1[b] * d0[b] + c.a2[b] * d1[b];
      g.b0[b] += v * dy;
      g.b1[b] += v * d0[b];
      g.b2[b] += v * d1[b];
      g.a1[b] -= now * d0[b];
      g.a2[b] -= now * d1[b];
      double const dv = c.b0[b] * dy + c.b1[b] * d0[b] + c.b2[b] * d1[b];
      d1[b] = d0[b];
      d0[b] = dy;
      dy = dv;
    }
  }
  return total;
}

void filters() {
  Cascade c{randn<double, bands>(Key{1}) * 0.1, randn<double, bands>(Key{2}) * 0.1,
            randn<double, bands>(Key{3}) * 0.1, randn<double, bands>(Key{4}) * 0.1,
            randn<double, bands>(Key{5}) * 0.1};
  c.b0 = c.b0 + 1.0;
  auto const x = randn<double, samples>(Key{6});
  ByHand hand{}, gradient{};
  for (std::size_t b = 0; b < bands; ++b) {
    auto const i = static_cast<index_t>(b);
    hand.b0[b] = c.b0(i), hand.b1[b] = c.b1(i), hand.b2[b] = c.b2(i), hand.a1[b] = c.a1(i),
    hand.a2[b] = c.a2(i);
  }
  double const* const in = Array(x).data<double>();
  std::vector<double> y(samples);
  std::unique_ptr<Row[]> const ins(new Row[samples]), outs(new Row[samples]);

  auto forward = compile(filtered).bind(c, x);
  run_by_hand(hand, in, y.data(), nullptr, nullptr);
  double const error = bench::largest_error(Array(forward()).data<double>(), y.data(), samples, 0, 0);
  bench::compare(
      "transforms", "scan: four biquads, samples:", static_cast<int>(samples), [&] { forward(); },
      [&] { run_by_hand(hand, in, y.data(), nullptr, nullptr); }, error);

  auto backward = value_and_grad(energy).bind(c, x);
  double const value = differentiate_by_hand(hand, in, y.data(), ins.get(), outs.get(), gradient);
  auto const& [ours, g] = backward();
  double worst = 0;
  double const* theirs = gradient.b0;
  visit(g, [&](auto const& leaf) {
    double const e =
        bench::largest_error(Array(leaf).template data<double>(), theirs, bands, ours.item(), value);
    worst = e > worst ? e : worst;
    theirs += bands;
  });
  bench::compare(
      "transforms", "scan: four biquads, gradient, samples:", static_cast<int>(samples), [&] { backward(); },
      [&] { differentiate_by_hand(hand, in, y.data(), ins.get(), outs.get(), gradient); }, worst);
}

// --- Lorenz' equations by the method of Runge and Kutta ---

constexpr std::size_t steps = 1000;
using Times = Tensor<double, steps>;
struct Lorenz {
  Tensor<double> s, r, b;
  DFDX_FIELDS(s, r, b)
};
constexpr auto slope = [](Lorenz const& p, auto const& u) {
  auto const [x, y, z] = unbind(u);
  return stack(p.s * (y - x), x * (p.r - z) - y, x * y - p.b * z);
};
constexpr auto orbit = [](Lorenz const& p, Tensor<double, 3> const& start, Times const& h) {
  auto const step = [&](auto const& u, auto const& dt) {
    auto const k1 = slope(p, u), k2 = slope(p, u + 0.5 * dt * k1);
    auto const k3 = slope(p, u + 0.5 * dt * k2), k4 = slope(p, u + dt * k3);
    auto const next = u + dt / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4);
    return std::pair(next, next);
  };
  return scan(step, start, h).second;
};
constexpr auto spread = [](Lorenz const& p, Tensor<double, 3> const& start, Times const& h) {
  return mean(square(orbit(p, start, h)));
};

struct Point {
  double v[3];
};
// p + f q
Point along(Point const& p, double f, Point const& q) {
  return {{p.v[0] + f * q.v[0], p.v[1] + f * q.v[1], p.v[2] + f * q.v[2]}};
}
Point slope_by_hand(double const* p, Point const& u) {
  return {{p[0] * (u.v[1] - u.v[0]), u.v[0] * (p[1] - u.v[2]) - u.v[1], u.v[0] * u.v[1] - p[2] * u.v[2]}};
}
// The cotangent of u for that of the slope; those of the parameters are added to g.
Point pull_by_hand(double const* p, Point const& u, Point const& ct, double* g) {
  g[0] += ct.v[0] * (u.v[1] - u.v[0]);
  g[1] += ct.v[1] * u.v[0];
  g[2] -= ct.v[2] * u.v[2];
  return {{-p[0] * ct.v[0] + (p[1] - u.v[2]) * ct.v[1] + u.v[1] * ct.v[2],
           p[0] * ct.v[0] - ct.v[1] + u.v[0] * ct.v[2], -u.v[0] * ct.v[1] - p[2] * ct.v[2]}};
}

void orbit_by_hand(double const* p, Point u, double const* h, Point* out) {
  for (std::size_t i = 0; i < steps; ++i) {
    Point const k1 = slope_by_hand(p, u), k2 = slope_by_hand(p, along(u, 0.5 * h[i], k1));
    Point const k3 = slope_by_hand(p, along(u, 0.5 * h[i], k2)), k4 = slope_by_hand(p, along(u, h[i], k3));
    u = along(u, h[i] / 6, along(along(along(k1, 2, k2), 2, k3), 1, k4));
    out[i] = u;
  }
}

double differentiate_by_hand(double const* p, Point const& start, double const* h, Point* out, double* g) {
  orbit_by_hand(p, start, h, out);
  double const share = 1.0 / (3 * static_cast<double>(steps));
  double total = 0;
  Point ct{};
  g[0] = g[1] = g[2] = 0;
  for (std::size_t i = steps; i-- > 0;) {
    for (double v : out[i].v) total += v * v * share;
    ct = along(ct, 2 * share, out[i]);
    Point const u = i == 0 ? start : out[i - 1];
    Point const k1 = slope_by_hand(p, u), u2 = along(u, 0.5 * h[i], k1);
    Point const k2 = slope_by_hand(p, u2), u3 = along(u, 0.5 * h[i], k2);
    Point const k3 = slope_by_hand(p, u3), u4 = along(u, h[i], k3);
    double const sixth = h[i] / 6;
    Point const zero{};
    Point const d4 = pull_by_hand(p, u4, along(zero, sixth, ct), g);
    Point const d3 = pull_by_hand(p, u3, along(along(zero, 2 * sixth, ct), h[i], d4), g);
    Point const d2 = pull_by_hand(p, u2, along(along(zero, 2 * sixth, ct), 0.5 * h[i], d3), g);
    Point const d1 = pull_by_hand(p, u, along(along(zero, sixth, ct), 0.5 * h[i], d2), g);
    ct = along(along(along(along(ct, 1, d1), 1, d2), 1, d3), 1, d4);
  }
  return total;
}

void equations() {
  Lorenz const p{10.0, 28.0, 8.0 / 3};
  Tensor<double, 3> const start{1.0, 2.0, 3.0};
  auto const h = full<double, steps>(0.001);
  double const numbers[] = {10.0, 28.0, 8.0 / 3};
  Point const begin{{1.0, 2.0, 3.0}};
  double const* const dt = Array(h).data<double>();
  std::vector<Point> out(steps);

  auto forward = compile(orbit).bind(p, start, h);
  orbit_by_hand(numbers, begin, dt, out.data());
  double const error = bench::largest_error(Array(forward()).data<double>(), out[0].v, 3 * steps, 0, 0);
  bench::compare(
      "transforms", "scan: Runge-Kutta of three equations, steps:", static_cast<int>(steps),
      [&] { forward(); }, [&] { orbit_by_hand(numbers, begin, dt, out.data()); }, error);

  double g[3] = {};
  auto backward = value_and_grad(spread).bind(p, start, h);
  double const value = differentiate_by_hand(numbers, begin, dt, out.data(), g);
  auto const& [ours, gradient] = backward();
  double const got[] = {gradient.s.item(), gradient.r.item(), gradient.b.item()};
  bench::compare(
      "transforms", "scan: Runge-Kutta, gradient, steps:", static_cast<int>(steps), [&] { backward(); },
      [&] { differentiate_by_hand(numbers, begin, dt, out.data(), g); },
      bench::largest_error(got, g, 3, ours.item(), value));
}

}  // namespace

void bench::small_loops() {
  filters();
  equations();
}
