// SPDX-License-Identifier: BSL-1.0
// Reductions that are called one by one, on a device: a thread for each line if there are many or they are short, else
// a block; of long lines parts, whose results are combined after them. The order is fixed, so results are reproducible.
#pragma once

#include <dfdx/core/loop_code.hpp>
#include <dfdx/kernels/cuda/any.hpp>
#include <dfdx/kernels/cuda/lanes.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// ReduceArguments - n results of `count` elements each, in `parts` parts of `part` elements; result o of part p is
/// number p n + o.
struct ReduceArguments {
  AnyOperand from, to;
  index_t n = 0, count = 0, parts = 1, part = 0;
  int kept = 0, reduced = 0;  // axes
  index_t extents[max_rank] = {}, along[max_rank] = {};
  index_t along_strides[max_rank] = {};  // from.strides are those of the axes that stay
};

/// AnyReduce - numbers E (double, float, 64-bit integers) combined by Do, floats as doubles.
template <index_t Do, class E, bool ByBlock>
struct AnyReduce {
  using Sum = std::conditional_t<std::is_floating_point_v<E>, double, std::int64_t>;
  using C = Combination<Do>;
  static constexpr int threads = own_threads, lanes = ByBlock ? threads : 1;

  static DFDX_INLINE void run(ReduceArguments const& x) {
    index_t const items = x.n * x.parts;
    index_t const first = ByBlock ? block() : block() * threads + thread();
    for (index_t t = first; t < items; t += ByBlock ? blocks() : blocks() * threads) {
      index_t const p = t / x.n, o = t % x.n, begin = p * x.part;
      index_t const end = begin + x.part < x.count ? begin + x.part : x.count;
      index_t const from = place(o, x.kept, x.extents, x.from.strides);
      Sum sum = C::template identity<Sum>();
      for (index_t i = begin + (ByBlock ? thread() : 0); i < end; i += lanes)
        sum = C::apply(sum, static_cast<Sum>(detail::loaded<E>(
                                x.from, from + place(i, x.reduced, x.along, x.along_strides))));
      if constexpr (ByBlock) sum = block_reduce<Do, threads>(sum);
      if (!ByBlock || thread() == 0) put(x, t, sum);
    }
  }

 private:
  static DFDX_INLINE index_t place(index_t i, int rank, index_t const (&extents)[max_rank],
                                   index_t const (&strides)[max_rank]) {
    if (rank == 1) return i * strides[0];
    index_t at = 0;
    DFDX_UNROLL for (int d = max_rank - 1; d >= 0; --d) {
      if (d >= rank) continue;
      at += i % extents[d] * strides[d];
      i /= extents[d];
    }
    return at;
  }
  static DFDX_INLINE void put(ReduceArguments const& x, index_t at, Sum sum) {
    if (x.to.dtype == dtype_v<Sum>) static_cast<Sum*>(x.to.data)[at] = sum;
    else if constexpr (std::is_integral_v<Sum>) detail::stored<Sum>(x.to, at, sum);
    else detail::stored<float>(x.to, at, static_cast<float>(sum));
  }
};

namespace detail {

// Axes of a shape that are a line, or those along which there are lines, with their strides in memory.
inline int joined(Shape s, Strides t, index_t (&extents)[max_rank], index_t (&strides)[max_rank]) {
  kernels::detail::join_axes(s, &t, 1);
  for (int d = 0; d < s.rank; ++d) {
    extents[d] = s[d];
    strides[d] = t[d];
  }
  return s.rank;
}

template <index_t Do, class E>
cudaError_t start_reduction(ReduceArguments const& x, bool by_block, cudaStream_t stream) {
  index_t const items = x.n * x.parts;
  if (by_block) return start<AnyReduce<Do, E, true>>(x, blocks_for(items * own_threads, own_threads), stream);
  return start<AnyReduce<Do, E, false>>(x, blocks_for(items, own_threads), stream);
}

}  // namespace detail

/// reduce_any - out = the reduction of x, which is not empty, over the axes on which out, dense and of its rank, has
/// extent 1.
template <index_t Do, class E>
cudaError_t reduce_any(Array const& x, Array const& out, Device device, cudaStream_t stream) {
  using Sum = typename AnyReduce<Do, E, true>::Sum;
  constexpr index_t wanted = index_t{1} << 17;  // threads that keep a large GPU busy
  constexpr index_t short_line = 32, least_part = 16;
  ReduceArguments a;
  Shape stay, line;
  Strides stay_strides, line_strides;
  for (int d = 0; d < x.ndim(); ++d) {
    bool const stays = x.shape()[d] == out.shape()[d];
    (stays ? stay : line).push_back(x.shape()[d]);
    (stays ? stay_strides : line_strides).push_back(x.strides()[d]);
  }
  a.from = as_operand(x);
  a.to = as_operand(out);
  a.n = stay.numel();
  a.count = line.numel();
  a.kept = detail::joined(stay, stay_strides, a.extents, a.from.strides);
  a.reduced = detail::joined(line, line_strides, a.along, a.along_strides);
  // Threads beside each other read what lies side by side: along the line, or across lines.
  bool const across = a.kept > 0 && a.from.strides[a.kept - 1] == 1;
  bool const by_block = !across && a.count > short_line;
  index_t const lanes = by_block ? own_threads : 1;
  index_t const most = (a.count + lanes * least_part - 1) / (lanes * least_part);
  index_t const few = (wanted + a.n * lanes - 1) / (a.n * lanes);
  a.parts = most < few ? most : few;
  a.part = (a.count + a.parts - 1) / a.parts;
  a.parts = (a.count + a.part - 1) / a.part;  // so that none is empty
  if (a.parts == 1) return detail::start_reduction<Do, E>(a, by_block, stream);

  Array const sums(Meta{dtype_v<Sum>, make_shape(a.parts, a.n)}, device);
  AnyOperand const result = a.to;
  a.to = as_operand(sums);
  if (cudaError_t const said = detail::start_reduction<Do, E>(a, by_block, stream); said != cudaSuccess)
    return said;
  ReduceArguments b;
  b.from = as_operand(sums);
  b.to = result;
  b.n = a.n;
  b.count = b.part = a.parts;
  b.kept = b.reduced = 1;
  b.extents[0] = a.n;
  b.from.strides[0] = 1;
  b.along[0] = a.parts;
  b.along_strides[0] = a.n;
  return detail::start_reduction<Do, Sum>(b, a.n == 1 && a.parts > short_line, stream);
}

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
