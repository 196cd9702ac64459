// SPDX-License-Identifier: BSL-1.0
// nn::Repeat: N blocks of one type one after another, compiled once.
#pragma once

#include <dfdx/nn/dropout.hpp>
#include <dfdx/nn/init.hpp>
#include <dfdx/vocabulary/checkpoint.hpp>

namespace dfdx {

namespace detail {

template <class X, class Y>
struct RepeatRule {
  static constexpr Meta infer(Text* why) {
    if constexpr (typed<X> && typed<Y>) {
      Meta const x = X::static_meta, y = Y::static_meta;
      if (!(x == y))
        return refuse(why, "repeat: the block must return what it takes, ", x.dtype, " ", x.shape,
                      "; it returns ", y.dtype, " ", y.shape);
    }
    return std::is_same_v<X, Y> ? Meta{} : refuse(why, "repeat: the block must return what it takes");
  }
};

}  // namespace detail

namespace nn {

/// Repeat - N blocks in a row, each with parameters of its own. A std::array<Block, N> and a loop compute the same,
/// but there every block is compiled; here one is, and it runs N times. State: "0.fc.weight", "1.fc.weight", ...
///
/// Math      y = block_{N-1}(... block_0(x))
/// Shapes    as the block says; it must return what it takes
/// Dtypes    as the block says
/// Errors    "repeat: the block must return what it takes, f32 [2, 8]; it returns f32 [2, 4]" at compile time;
///           those of the block
/// Source    elementary
template <class Block, std::size_t N>
struct Repeat : Stacked<Block, N> {
  template <class X>
  constexpr auto operator()(X const& x) const {
    using Y = std::remove_cvref_t<decltype(std::declval<Block const&>()(x))>;
    if constexpr (refused<X, Y>) return Refused{};
    else if constexpr (refused<typename decltype(dfdx::detail::result_type<
                                                 dfdx::detail::RepeatRule<X, Y>>())::type>)
      return Refused{};
    else {
      return scan([](X const& h, Block const& block) { return block(h); }, x,
                  static_cast<Stacked<Block, N> const&>(*this));
    }
  }

  /// In training, each block with a key of its own; blocks with running statistics move theirs.
  template <class X, dfdx::detail::random_key K>
    requires dfdx::detail::has_buffers<Block>
  constexpr auto train(X const& x, K const& key) {
    using Part = std::pair<Block, Tensor<std::int64_t>>;
    auto const r = scan(
        [](X const& h, Part const& part) {
          Block block = part.first;
          auto const y = detail::trained(block, h, part.second);
          if constexpr (refused<decltype(y)>) return Refused{};
          else return std::pair(y, dfdx::detail::buffers_of(block));
        },
        x, std::pair(static_cast<Stacked<Block, N> const&>(*this), detail::part_keys<N>(key)));
    if constexpr (refused<decltype(r)>) return Refused{};
    else {
      if constexpr (!refused<decltype(r.second)>) dfdx::detail::set_buffers(this->leaves, r.second);
      return r.first;
    }
  }
  template <class X, dfdx::detail::random_key K>
    requires(!dfdx::detail::has_buffers<Block>)
  constexpr auto train(X const& x, K const& key) const {
    using Part = std::pair<Block, Tensor<std::int64_t>>;
    return scan([](X const& h, Part const& part) { return detail::trained(part.first, h, part.second); }, x,
                std::pair(static_cast<Stacked<Block, N> const&>(*this), detail::part_keys<N>(key)));
  }
};

}  // namespace nn

namespace detail {

// The same blocks as S stacks of N / S, leaf by leaf in the same memory.
template <std::size_t S, class Block, std::size_t N>
constexpr auto in_segments(Stacked<Block, N> const& all) {
  static_assert(S > 0 && N % S == 0,
                "checkpoint_sequential: the number of blocks must be a multiple of that of segments");
  Vec<Array> leaves;
  visit(all.leaves, [&](auto const& leaf) {
    Shape s = make_shape(static_cast<index_t>(S), static_cast<index_t>(N / S));
    for (int i = 1; i < leaf.shape().rank; ++i) s.push_back(leaf.shape()[i]);
    leaves.push_back(reshape_to(lazy<S>(leaf), s));
  });
  std::size_t k = 0;
  return filled(Stacked<Stacked<Block, N / S>, S>{}, [&] { return leaves[k++]; });
}

}  // namespace detail

/// checkpoint_sequential<S>(blocks, x) - blocks(x), but the backward pass keeps what enters each of S equal segments
/// and computes the blocks of a segment again, from there. With S the square root of their number it keeps as much as
/// two such numbers of blocks would, at the price of one more forward pass.
///
/// Math      y = block_{N-1}(... block_0(x))
/// Shapes    as nn::Repeat
/// Errors    "checkpoint_sequential: the number of blocks must be a multiple of that of segments" at compile time
/// Source    Chen et al., Training deep nets with sublinear memory cost, 2016
template <std::size_t S, class Block, std::size_t N, class X>
constexpr auto checkpoint_sequential(nn::Repeat<Block, N> const& blocks, X const& x) {
  return scan(
      [](X const& h, Stacked<Block, N / S> const& segment) {
        return checkpoint([](X const& in, Stacked<Block, N / S> const& some) {
          return scan([](X const& v, Block const& block) { return block(v); }, in, some);
        })(h, segment);
      },
      x, detail::in_segments<S>(static_cast<Stacked<Block, N> const&>(blocks)));
}

/// repeat<N>(block) - N copies of a block in a row.
template <std::size_t N, tree Block>
nn::Repeat<Block, N> repeat(Block const& block) {
  nn::Repeat<Block, N> r;
  for (std::size_t i = 0; i < N; ++i) r.set(static_cast<index_t>(i), block);
  return r;
}

}  // namespace dfdx
