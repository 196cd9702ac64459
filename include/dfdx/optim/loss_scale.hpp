// SPDX-License-Identifier: BSL-1.0
// Loss scaling, for computing in 16 bits with parameters in f32.
#pragma once

#include <dfdx/optim/sgd.hpp>
#include <dfdx/program/rule.hpp>

namespace dfdx::optim {

/// Scaling - the numbers of LossScale. With growth_interval 0 the scale stays as it is.
///
/// Math      none
/// Shapes    none
/// Dtypes    none
/// Errors    none
/// Source    torch.amp.GradScaler
struct Scaling {
  double scale = 65536, growth = 2, backoff = 0.5;
  int growth_interval = 2000;
  DFDX_STATE(scale, growth, backoff, growth_interval)
};

/// LossScale - does as O with gradients that are computed of the loss times a scale, so that small ones are not lost in
/// f16. A step in which one of them is infinite or NaN is skipped: parameters, buffers and state stay, it is counted
/// and the scale is halved; after growth_interval good steps in a row it is doubled. It must be the outermost rule.
///
///   auto step = train_step(loss, optim::LossScale{optim::AdamW{}, {.scale = 1024}});
///   step.optimizer().skipped
///
/// The loss casts the model (cast_tree) and returns f32. On the tape multiply it by `rule().scaling.scale` before
/// backward().
///
/// Math      g = d(scale loss) / scale
/// Shapes    any
/// Dtypes    floating; use it with parameters in f32
/// Errors    none
/// Source    Micikevicius et al., "Mixed precision training", ICLR 2018; torch.amp.GradScaler
template <class O>
struct LossScale {
  O inner{};
  Scaling scaling{};

  std::int64_t skipped = 0;  ///< steps so far
  int good = 0;              ///< steps since the scale changed or one was skipped
  DFDX_STATE(inner, scaling, skipped, good)

  using inner_type = O;
  static constexpr int slots = O::slots;
  static constexpr int scalars = O::scalars + 3;
  /// Which numbers are the scale, and after `prepare` whether the gradients are finite.
  static constexpr int scale_at = O::scalars, finite_at = O::scalars + 2;

  /// Steps that were skipped are none to the inner rule.
  auto scalars_at(std::int64_t step, std::int64_t update = 0) const {
    return detail::with_scalars(inner, step - skipped, update,
                                std::array<double, 3>{scaling.scale, 1 / scaling.scale, 0});
  }
  std::int64_t updates_in(std::int64_t steps) const { return detail::updates_in(inner, steps - skipped); }
  template <class V>
  static constexpr void prepare(V* g, std::size_t n, V* slot, std::size_t stride, V* s) {
    // A sum that overflows has gradients that no step should be made of either.
    V total = s[finite_at];
    for (std::size_t i = 0; i < n; ++i) {
      g[i] = g[i] * detail::beside(s[scale_at + 1], g[i]);
      total = total + cast_to(V(sum(apply<op::abs>(g[i]))), total.dtype());
    }
    s[finite_at] = cast_to(V(total <= most(total.dtype())), total.dtype());
    if constexpr (detail::prepares_slots<O>()) {
      Vec<V> before;
      for (std::size_t i = 0; i < n * stride; ++i) before.push_back(slot[i]);
      detail::prepare<O>(g, n, slot, stride, s);
      auto const finite = s[finite_at] > 0;
      for (std::size_t i = 0; i < n * stride; ++i) slot[i] = apply<op::where>(finite, slot[i], before[i]);
    } else {
      detail::prepare<O>(g, n, slot, stride, s);
    }
  }
  template <class V>
  static constexpr void update(std::string_view name, V& p, V const& g, V* slot, V const* s) {
    V next = p, mine[O::slots + 1];
    for (int k = 0; k < O::slots; ++k) mine[k] = slot[k];
    detail::update<O>(name, next, g, mine, s);
    auto const finite = s[finite_at] > 0;
    p = apply<op::where>(finite, next, p);
    for (int k = 0; k < O::slots; ++k) slot[k] = apply<op::where>(finite, mine[k], slot[k]);
  }

  /// Called after each step.
  void seen(bool finite) {
    if (!finite) {
      ++skipped;
      good = 0;
      if (scaling.growth_interval > 0) scaling.scale *= scaling.backoff;
    } else if (++good == scaling.growth_interval) {
      scaling.scale *= scaling.growth;
      good = 0;
    }
  }

 private:
  static constexpr double most(DType d) {
    return d == DType::f64 ? 1.7976931348623157e308 : 3.4028234663852886e38;
  }
};
template <class O>
LossScale(O) -> LossScale<O>;
template <class O>
LossScale(O, Scaling) -> LossScale<O>;

}  // namespace dfdx::optim
