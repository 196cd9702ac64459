// SPDX-License-Identifier: BSL-1.0
// Attention of 12 heads of 64, forward alone and with its gradients.
#include "works.hpp"

namespace {

using namespace dfdx;

template <bool Causal>
struct Attend {
  constexpr auto operator()(auto const& q, auto const& k, auto const& v) const {
    return scaled_dot_product_attention(q, k, v, {.causal = Causal});
  }
};

template <std::size_t T, bool Causal>
void attention() {
  using X = Tensor<float, 1, 12, T, 64>;
  auto const q = bench::numbers<X>(1), k = bench::numbers<X>(2), v = bench::numbers<X>(3),
             ct = bench::numbers<X>(4);
  char const* const work = Causal ? "causal_attention" : "attention";
  std::string const name = std::string(Causal ? "causal, " : "") + "1x12x" + std::to_string(T) + "x64";
  // Two products forward, five more behind: the scores are computed again.
  double const product = 2.0 * 12 * T * T * 64 / (Causal ? 2 : 1);
  auto forward = compile(Attend<Causal>{});
  using Forward = typename decltype(forward)::template program_for<X, X, X>;
  bench::compare_works(
      {"attention", name, work, 1e-4, false, "", 1e-6 * Forward::arena_bytes, 2 * product},
      [&] { return forward(q, k, v); }, bench::plain(q), bench::plain(k), bench::plain(v));
  auto both = vjp(Attend<Causal>{});
  using Both = typename decltype(both)::template program_for<X, X, X, X>;
  bench::compare_works(
      {"attention", name + ", vjp", work, 1e-4, false, "", 1e-6 * Both::arena_bytes, 7 * product},
      [&] { return both(q, k, v, ct); }, bench::wanted(q), bench::wanted(k), bench::wanted(v),
      bench::plain(ct));
}

}  // namespace

int main() {
  attention<256, false>();
  attention<256, true>();
  attention<1024, false>();
  attention<1024, true>();
}
