// SPDX-License-Identifier: BSL-1.0
// Numbers that a function brings along itself. Where it is recorded, in a constant expression, there is no memory:
// they are a small graph of their own, which lives as long as a value of it, and is copied into the graph of the
// function where they meet values of that (vocabulary/literal.hpp).
#pragma once

#include <bit>

#include <dfdx/core/convert.hpp>
#include <dfdx/value/node.hpp>

namespace dfdx::detail {

// The descriptor of such numbers: attrs.i[0] is where their words begin in the graph, attrs.i[1] how many there are,
// one for each element or one for all.
inline constexpr OpInfo literal_info{.name = "literal"};

// What memory one takes in a program: blocks of 64 bytes.
constexpr std::size_t literal_bytes(Meta const& meta) {
  return (static_cast<std::size_t>(meta.shape.numel()) * size_of(meta.dtype) + 63) / 64 * 64;
}

// The bits of an element.
template <element T>
constexpr std::uint64_t word_of(T x) {
  if constexpr (sizeof(T) == 8) return std::bit_cast<std::uint64_t>(x);
  else if constexpr (sizeof(T) == 4) return std::bit_cast<std::uint32_t>(x);
  else if constexpr (sizeof(T) == 2) return std::bit_cast<std::uint16_t>(x);
  else return static_cast<std::uint8_t>(x);
}
// Of a number in another type.
template <class N>
constexpr std::uint64_t word_as(DType dtype, N value) {
  return dispatch(
      dtype, [&](auto type) { return word_of(math::convert_number<typename decltype(type)::type>(value)); });
}

// The number that a word stands for, and whether it is that number.
constexpr double number_of(DType dtype, std::uint64_t word) {
  switch (dtype) {
    case DType::f64: return std::bit_cast<double>(word);
    case DType::f32: return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(word)));
    case DType::f16:
      return static_cast<double>(float(std::bit_cast<float16>(static_cast<std::uint16_t>(word))));
    case DType::bf16:
      return static_cast<double>(float(std::bit_cast<bfloat16>(static_cast<std::uint16_t>(word))));
    case DType::i32: return static_cast<double>(static_cast<std::int32_t>(word));
    case DType::i8: return static_cast<double>(static_cast<std::int8_t>(word));
    default: return static_cast<double>(static_cast<std::int64_t>(word));
  }
}
constexpr bool is_number(DType dtype, std::uint64_t word) {
  constexpr std::int64_t most = std::int64_t{1} << 53;
  auto const i = static_cast<std::int64_t>(word);
  return dtype != DType::i64 || (-most <= i && i <= most);
}

// A graph of one value, whose elements are all alike or have a word each.
constexpr Graph* literal_graph(Meta const& meta, Vec<std::uint64_t> words) {
  auto* const g = new Graph;
  g->holders = 0;
  g->words = std::move(words);
  g->push(Node{&literal_info, Attrs{{0, static_cast<index_t>(g->words.size())}}, meta, {}});
  return g;
}

// b ? f() : g(). In constant expressions g++ 12 destroys what a conditional expression of class type has made once too
// often, and a graph of literals would be gone before its last value.
template <class F, class G>
DFDX_INLINE constexpr auto either(bool b, F const& f, G const& g) {
  using R = std::remove_cvref_t<decltype(f())>;
  if (b) return R(f());
  return R(g());
}

}  // namespace dfdx::detail
