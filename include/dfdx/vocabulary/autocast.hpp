// SPDX-License-Identifier: BSL-1.0
// autocast: a function whose products are computed in 16 bits, everything else in f32.
#pragma once

#include <utility>

#include <dfdx/vocabulary/scan.hpp>

namespace dfdx {

namespace detail {

// While it lives, products that are recorded in a graph are computed in a dtype.
class ProductsIn {
 public:
  constexpr ProductsIn(Graph* g, DType d)
      : graph_(g), before_(g == nullptr ? d : std::exchange(g->products, d)) {}
  ProductsIn(ProductsIn const&) = delete;
  ProductsIn& operator=(ProductsIn const&) = delete;
  constexpr ~ProductsIn() {
    if (graph_ != nullptr) graph_->products = before_;
  }

 private:
  Graph* graph_;
  DType before_;
};

}  // namespace detail

/// Autocast - what autocast returns.
template <class F, element T>
struct Autocast {
  template <class... A>
  constexpr auto operator()(A const&... args) const {
    Graph* g = nullptr;
    auto const look = [&](auto const& arg) {
      if constexpr (tree<std::remove_cvref_t<decltype(arg)>>) detail::meet(g, detail::graph_of(arg));
    };
    (look(args), ...);
    detail::ProductsIn const products(g, dtype_v<T>);
    return F{}(args...);
  }
};

/// autocast<bfloat16>(f) - f in mixed precision: in programs, matrix products, attention and convolutions of f32, and
/// the products of their gradients, take operands rounded to T and add up in f32; what products and convolutions give
/// is rounded to T too. Parameters, sums, losses and the optimizer stay in f32. In memory f computes as it is.
///
///     auto step = train_step(autocast<bfloat16>(loss), optim::AdamW{});
///     auto step = train_step(autocast<float16>(loss), optim::LossScale{optim::AdamW{}});  // f16 has a short range
///
/// Math      f
/// Shapes    those of f
/// Dtypes    T: f16 bf16, and f32 for no rounding inside of another autocast
/// Source    Micikevicius et al., "Mixed precision training", ICLR 2018; torch.autocast
template <element T, class F>
constexpr Autocast<F, T> autocast(F const&) {
  static_assert(std::is_empty_v<F>,
                "autocast: a lambda or function object without captures required; pass values as arguments");
  static_assert(dtype_v<T> == DType::f16 || dtype_v<T> == DType::bf16 || dtype_v<T> == DType::f32,
                "autocast: float16, bfloat16 or float required");
  return {};
}

}  // namespace dfdx
