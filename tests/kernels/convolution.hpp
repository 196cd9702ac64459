// SPDX-License-Identifier: BSL-1.0
// Convolutions by their definition.
#pragma once

#include <dfdx/core/window.hpp>

#include <vector>

namespace convolution {

using namespace dfdx;

inline ConvGeometry geometry(index_t batch, index_t groups, index_t in, index_t out, index_t const (&x)[3],
                             Window const (&w)[3]) {
  ConvGeometry g{};
  g.batch = batch, g.groups = groups, g.in = in, g.out = out;
  for (int i = 0; i < 3; ++i) {
    g.x[i] = x[i], g.w[i] = w[i];
    g.y[i] = (x[i] + 2 * w[i].before - w[i].reach()) / w[i].stride + 1;
  }
  return g;
}

// f(place in x, in w, in y) for all products of a convolution.
template <class F>
void each_product(ConvGeometry const& g, F const& f) {
  index_t const taps = g.w_size();
  for (index_t s = 0; s < g.batch * g.groups; ++s)
    for (index_t q = 0; q < g.y_size(); ++q)
      for (index_t t = 0; t < taps; ++t) {
        index_t const at[] = {q / (g.y[1] * g.y[2]), q / g.y[2] % g.y[1], q % g.y[2]};
        index_t const k[] = {t / (g.w[1].size * g.w[2].size), t / g.w[2].size % g.w[1].size, t % g.w[2].size};
        index_t place = 0;
        bool inside = true;
        for (int i = 0; i < 3; ++i) {
          index_t const p = at[i] * g.w[i].stride + k[i] * g.w[i].dilation - g.w[i].before;
          inside = inside && p >= 0 && p < g.x[i];
          place = place * g.x[i] + p;
        }
        if (!inside) continue;
        for (index_t o = 0; o < g.out; ++o)
          for (index_t c = 0; c < g.in; ++c)
            f((s * g.in + c) * g.x_size() + place, ((s % g.groups * g.out + o) * g.in + c) * taps + t,
              (s * g.out + o) * g.y_size() + q);
      }
}

template <class E>
std::vector<E> numbers(index_t n, int seed) {
  std::vector<E> v(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < v.size(); ++i)
    v[i] =
        static_cast<E>(static_cast<int>((i * 7919 + static_cast<std::size_t>(seed) * 104729) % 2003) - 1001) /
        1000;
  return v;
}

}  // namespace convolution
