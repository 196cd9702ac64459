// SPDX-License-Identifier: BSL-1.0
// Values joined along an axis that they have, concat, or along a new one, stack.
#pragma once

#include <concepts>
#include <span>
#include <tuple>
#include <vector>

#include <dfdx/vocabulary/shape.hpp>

namespace dfdx {

namespace detail {

struct Concat {
  int axis, count;
  constexpr Meta infer(Meta const* in, Text* why) const {
    int const a = rule_axis("concat", axis, in->shape, why);
    Meta r = a < 0 ? refuse(nullptr) : *in;
    for (int i = 1; r.valid() && i < count; ++i) {
      Meta const pair[] = {r, in[i]};
      r = op::concat::infer(Attrs{{a}}, pair, why);
    }
    return r;
  }
  template <class, class... V>
  constexpr auto run(Meta const& y, V const&... x) const {
    std::common_type_t<V...> const parts[] = {x...};
    return joined(parts, count, Attrs{{normalize_axis(axis, y.shape.rank)}});
  }
  // As a balanced tree: what is joined to what was joined is moved again.
  template <class V>
  static constexpr V joined(V const* x, int n, Attrs const& attrs) {
    if (n == 1) return *x;
    if constexpr (std::is_same_v<V, Array>) {
      bool at_once = n > 2;
      for (int i = 0; at_once && i < n; ++i) at_once = wants_values(x[i]);
      if (at_once) return joined_in_memory(x, n, attrs);
    }
    return bind<op::concat>(attrs, joined(x, n / 2, attrs), joined(x + n / 2, n - n / 2, attrs));
  }
  static Array joined_in_memory(Array const* x, int n, Attrs const& attrs) {
    auto const axis = static_cast<int>(attrs.i[0]);
    Meta m = x[0].meta();
    for (int i = 1; i < n; ++i) {
      Meta const pair[] = {m, x[i].meta()};
      m = checked_infer<op::concat>(attrs, pair);
    }
    Array const y(m);
    index_t at = 0;
    for (int i = 0; i < n; ++i) {
      copy_elements(x[i].operand(), y.view(x[i].shape(), y.strides(), at * y.strides()[axis]).operand());
      at += x[i].shape()[axis];
    }
    return y;
  }
};

struct Stack {
  int axis, count;
  constexpr Meta infer(Meta const* in, Text* why) const {
    Shape const& s = in->shape;
    for (int i = 1; i < count; ++i) {
      if (!agree(s, in[i].shape)) return refuse(why, "stack: shapes differ: ", s, " x ", in[i].shape);
      if (in[i].dtype != in->dtype)
        return refuse(why, "stack: one dtype required, got ", in->dtype, " x ", in[i].dtype);
    }
    Meta r = Unsqueeze{axis}.infer(in, why);
    if (!r.valid()) {
      if (why != nullptr) why->rename("stack");
      return r;
    }
    r.shape[normalize_axis(axis, r.shape.rank)] = count;
    return r;
  }
  template <class, class... V>
  constexpr auto run(Meta const& y, V const&... x) const {
    std::common_type_t<V...> const all[] = {wide(x)...};
    return joined(y, all);
  }
  template <class V>
  constexpr V wide(V const& x) const {
    Meta const m = x.meta();
    return bind_as<op::reshape>(Unsqueeze{axis}.infer(&m, nullptr), Attrs{}, x);
  }
  template <class V>
  constexpr V joined(Meta const& y, V const* all) const {
    return Concat::joined(all, count,
                          op::detail::attrs_for(op::Caller::stack, normalize_axis(axis, y.shape.rank)));
  }
};

/// array_list - a container or span of Arrays or Tensors.
template <class List>
concept array_list = !operand<List> && requires(List const& list) {
  requires std::is_base_of_v<Array, std::remove_cvref_t<decltype(*list.begin())>>;
  list.end();
};
// Of Tensors their Arrays.
template <array_list List>
auto arrays_of(List const& list) {
  if constexpr (std::convertible_to<List const&, std::span<Array const>>) return std::span<Array const>(list);
  else return std::vector<Array>(list.begin(), list.end());
}

// Whether a list of types ends with a number, an axis, behind operands.
template <class... Rest>
concept then_axis = sizeof...(Rest) > 1 &&
                    std::integral<std::tuple_element_t<sizeof...(Rest) - 1, std::tuple<Rest...>>> &&
                    (operand<Rest> + ... + 0) == sizeof...(Rest) - 1;
// Rule{axis, count} of operands behind which their axis stands.
template <class Rule, class... A>
constexpr auto joined_along(A const&... all) {
  auto const values = std::tie(all...);
  constexpr std::size_t count = sizeof...(A) - 1;
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return call(Rule{static_cast<int>(std::get<count>(values)), static_cast<int>(count)},
                std::get<I>(values)...);
  }(std::make_index_sequence<count>{});
}

}  // namespace detail

/// concat<Axis>(x, y, ...), concat(x, y, ..., axis), concat({x, y}, axis) - one after another along an axis; also a
/// container or span of Arrays or Tensors. Where the axis is no parameter the result is an Array.
///
/// Shapes    x: [.., N, ..], y: [.., M, ..], ... -> [.., N + M + ..., ..]
/// Dtypes    one, any
/// Errors    "concat: shapes differ off axis 0: [2, 3] x [2, 4]"
/// Source    NumPy's concatenate
template <int Axis = 0, operand X, operand... Rest>
constexpr auto concat(X const& x, Rest const&... rest) {
  return detail::call(detail::Fixed<detail::Concat{Axis, 1 + sizeof...(Rest)}>{}, x, rest...);
}
template <operand X, class... Rest>
  requires detail::then_axis<Rest...>
constexpr auto concat(X const& x, Rest const&... rest) {
  return detail::joined_along<detail::Concat>(x, rest...);
}
template <detail::array_list List>
Array concat(List const& list, int axis = 0) {
  auto const x = detail::arrays_of(list);
  if (x.empty()) raise("concat: no values");
  int const a = detail::checked_axis("concat", axis, x[0].shape());
  return detail::Concat::joined(&detail::lazy<sizeof(List)>(x[0]), static_cast<int>(x.size()), Attrs{{a}});
}
template <class X>
  requires std::is_base_of_v<Array, X>
Array concat(std::initializer_list<X> list, int axis = 0) {
  std::vector<Array> const values(list.begin(), list.end());
  return concat(values, axis);
}

/// cat<Axis>(x, y, ...), cat(x, y, ..., axis), cat({x, y}, axis) - concat, as PyTorch names it.
///
/// Shapes    x: [.., N, ..], y: [.., M, ..], ... -> [.., N + M + ..., ..]
/// Dtypes    one, any
/// Errors    those of concat
/// Source    PyTorch's cat
template <int Axis = 0, operand X, operand... Rest>
constexpr auto cat(X const& x, Rest const&... rest) {
  return concat<Axis>(x, rest...);
}
template <operand X, class... Rest>
  requires detail::then_axis<Rest...>
constexpr auto cat(X const& x, Rest const&... rest) {
  return concat(x, rest...);
}
template <detail::array_list List>
Array cat(List const& list, int axis = 0) {
  return concat(list, axis);
}
template <class X>
  requires std::is_base_of_v<Array, X>
Array cat(std::initializer_list<X> list, int axis = 0) {
  return concat(list, axis);
}

/// stack<Axis>(x, y, ...), stack(x, y, ..., axis), stack({x, y}, axis) - joined along a new axis; as concat.
///
/// Shapes    N values of [S...] -> [.., N, ..]
/// Dtypes    one, any
/// Errors    "stack: shapes differ: [2, 3] x [2, 4]"
/// Source    NumPy's stack
template <int Axis = 0, operand X, operand... Rest>
constexpr auto stack(X const& x, Rest const&... rest) {
  return detail::call(detail::Fixed<detail::Stack{Axis, 1 + sizeof...(Rest)}>{}, x, rest...);
}
template <operand X, class... Rest>
  requires detail::then_axis<Rest...>
constexpr auto stack(X const& x, Rest const&... rest) {
  return detail::joined_along<detail::Stack>(x, rest...);
}
template <detail::array_list List>
Array stack(List const& list, int axis = 0) {
  std::vector<Meta> metas;
  for (Array const& x : list) metas.push_back(x.meta());
  if (metas.empty()) raise("stack: no values");
  detail::Stack const rule{axis, static_cast<int>(metas.size())};
  Meta const y = detail::inferred_of(rule, metas.data());
  std::vector<Array> wide;
  for (Array const& x : list) wide.push_back(rule.wide(detail::lazy<sizeof(List)>(x)));
  return rule.joined(y, &detail::lazy<sizeof(List)>(wide[0]));
}
template <class X>
  requires std::is_base_of_v<Array, X>
Array stack(std::initializer_list<X> list, int axis = 0) {
  std::vector<Array> const values(list.begin(), list.end());
  return stack(values, axis);
}

}  // namespace dfdx
