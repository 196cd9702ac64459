// SPDX-License-Identifier: BSL-1.0
// The literals of a program: numbers that its function brings along itself, as constants of the program.
#pragma once

#include <bit>
#include <cstddef>
#include <type_traits>

#include <dfdx/program/program.hpp>

namespace dfdx::detail::inline DFDX_TARGET {

/// LiteralImage - literals as they lie in memory, each from a multiple of 64 bytes on.
template <std::size_t Bytes, std::size_t Count>
struct LiteralImage {
  alignas(64) std::byte bytes[Bytes]{};
  std::size_t first[Count]{};

  constexpr explicit LiteralImage(Graph const& g) {
    std::size_t at = 0;
    for (std::size_t k = 0; k < Count; ++k) {
      Node const& l = g.literals[k];
      first[k] = at;
      std::byte* to = bytes + at;
      std::size_t const size = size_of(l.meta.dtype);
      for (index_t i = 0; i < l.meta.shape.numel(); ++i)
        for (std::size_t b = 0; b < size; ++b) *to++ = byte_of(g.words[l.attrs.i[0] + i], b, size);
      at += literal_bytes(l.meta);
    }
  }

 private:
  static constexpr std::byte byte_of(std::uint64_t word, std::size_t b, std::size_t size) {
    std::size_t const up = std::endian::native == std::endian::little ? b : size - 1 - b;
    return static_cast<std::byte>(word >> (8 * up) & 0xff);
  }
};

// The graph of a function as it was recorded, which alone has the numbers.
template <class F, class... A>
constexpr Graph recorded_graph() {
  if constexpr (requires { F::template recorded<A...>(); }) return F::template recorded<A...>();
  else return trace<F, A...>();
}
template <std::size_t Bytes, std::size_t Count, class F, class... A>
inline constexpr LiteralImage<Bytes, Count> literal_image{recorded_graph<F, A...>()};

/// literals_of - those of a program.
template <class F, class... A>
constexpr auto const& literals_of(std::type_identity<program<F, A...>>) {
  constexpr LiteralInputs inputs = program<F, A...>::plan.literal_inputs;
  return literal_image<inputs.bytes, static_cast<std::size_t>(inputs.count), F, A...>;
}

}  // namespace dfdx::detail::inline DFDX_TARGET
