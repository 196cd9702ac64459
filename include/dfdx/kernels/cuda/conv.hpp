// SPDX-License-Identifier: BSL-1.0
// Convolutions on devices, and their gradients: products of matrices that nobody writes down. The rows of one factor
// are channels; the columns of the other are positions (of the gradient of weights: weights), and an element is found
// from the windows when it is needed. Groups of few channels, whose tiles would be empty, take a thread for each
// element of the result, or a block where few are sums of many.
#pragma once

#include <dfdx/core/window.hpp>
#include <dfdx/kernels/cuda/cudnn.hpp>
#include <dfdx/kernels/cuda/lanes.hpp>
#include <dfdx/kernels/cuda/own.hpp>
#include <dfdx/kernels/cuda/tensor_tiles.hpp>
#include <dfdx/kernels/reference/gemm.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

using cuda_runtime::ConvDoes;

/// ConvProduct - one of them as a product: m rows, n columns and k terms of each sum, in each group.
template <ConvDoes Does, class Code, class T, class Windows>
struct ConvProduct {
  using W = Walks<Code>;
  using Sum = typename reference::accumulator<T>::type;
  static constexpr int rank = W::template rank<0>, axes = rank - 2;
  // Which operand is the input, the weights and the result of the convolution.
  static constexpr int x_at = Does == ConvDoes::input ? 2 : 0, w_at = Does == ConvDoes::weight ? 2 : 1,
                       y_at = Does == ConvDoes::result  ? 2
                              : Does == ConvDoes::input ? 0
                                                        : 1;

  template <int K, int D>
  static DFDX_INLINE constexpr index_t extent(index_t const* s) {
    return W::template extent<K, D>(s);
  }
  static DFDX_INLINE constexpr index_t in(index_t const* s) { return extent<w_at, 1>(s); }
  static DFDX_INLINE constexpr index_t groups(index_t const* s) {
    return in(s) == 0 ? 1 : extent<x_at, 1>(s) / in(s);
  }
  static DFDX_INLINE constexpr index_t out(index_t const* s) {
    return groups(s) == 0 ? 0 : extent<w_at, 0>(s) / groups(s);
  }
  template <int K>
  static DFDX_INLINE constexpr index_t positions(index_t const* s) {
    return W::template count<K, 2, rank>(s);
  }
  static DFDX_INLINE constexpr index_t m(index_t const* s) {
    return Does == ConvDoes::input ? in(s) : out(s);
  }
  static DFDX_INLINE constexpr index_t n(index_t const* s) {
    if constexpr (Does == ConvDoes::weight) return in(s)*positions<w_at>(s);
    else return extent<2, 0>(s) * positions<2>(s);
  }
  static DFDX_INLINE constexpr index_t k(index_t const* s) {
    if constexpr (Does == ConvDoes::weight) return extent<x_at, 0>(s) * positions<y_at>(s);
    else return (Does == ConvDoes::input ? out(s) : in(s)) * positions<w_at>(s);
  }

  /// Place - up to three positions.
  using place_t = typename W::place_t;
  struct Place {
    place_t i[3] = {};
  };
  /// The position `at`, counted row by row, of operand K.
  template <int K, int D = axes>
  static DFDX_INLINE void place_of(index_t at, index_t const* s, Place& p) {
    if constexpr (D > 0) {
      index_t const size = extent<K, D + 1>(s);
      p.i[D - 1] = static_cast<place_t>(W::remainder(at, size));
      place_of<K, D - 1>(W::quotient(at, size), s, p);
    }
  }
  // Where those are in operand K that `axis(a)` says; false if one lies outside.
  template <int K, int A = 0, class F>
  static DFDX_INLINE bool find(index_t const* s, place_t& offset, F const& axis) {
    if constexpr (A == axes) {
      return true;
    } else {
      place_t i = 0;
      bool const holds = axis(std::integral_constant<int, A>{}, i);
      if (!holds || i < 0 || i >= static_cast<place_t>(extent<K, A + 2>(s))) return false;
      offset += i * static_cast<place_t>(W::template stride<K, A + 2>(s));
      return find<K, A + 1>(s, offset, axis);
    }
  }
  template <int K>
  static DFDX_INLINE T const* data(OwnArguments const& x) {
    return static_cast<T const*>(x.base[K]);
  }
  template <int K>
  static DFDX_INLINE index_t sample(index_t i, OwnArguments const& x) {
    return i * W::template stride<K, 0>(x.symbols);
  }
  template <int K>
  static DFDX_INLINE index_t channel(index_t i, OwnArguments const& x) {
    return i * W::template stride<K, 1>(x.symbols);
  }

  /// Left - the factor whose rows are channels of the result (of the gradient of weights: those of y).
  struct Left {
    OwnArguments const& x;
    index_t group;
    static constexpr bool along_k = Does != ConvDoes::input;
    DFDX_INLINE T const* at(index_t row) const {
      if constexpr (Does == ConvDoes::result)
        return data<w_at>(x) + sample<w_at>(group * m(x.symbols) + row, x);
      else if constexpr (Does == ConvDoes::input)
        return data<w_at>(x) + sample<w_at>(group * out(x.symbols), x) + channel<w_at>(row, x);
      else return data<y_at>(x) + channel<y_at>(group * m(x.symbols) + row, x);
    }
    DFDX_INLINE T value(T const* row, index_t k) const {
      index_t const* const s = x.symbols;
      if constexpr (Does == ConvDoes::result) {
        return row[W::template offset<w_at, 1, rank>(k, s)];
      } else if constexpr (Does == ConvDoes::input) {
        index_t const size = positions<w_at>(s);
        return row[sample<w_at>(W::quotient(k, size), x) +
                   W::template offset<w_at, 2, rank>(W::remainder(k, size), s)];
      } else {
        index_t const size = positions<y_at>(s);
        return row[sample<y_at>(W::quotient(k, size), x) +
                   W::template offset<y_at, 2, rank>(W::remainder(k, size), s)];
      }
    }
  };

  /// Right - the factor whose columns are positions, or weights of one channel.
  struct Right {
    OwnArguments const& x;
    index_t group;
    static constexpr bool along_k = Does == ConvDoes::weight;
    struct Column {
      T const* from;
      Place place;
    };
    DFDX_INLINE Column at(index_t column) const {
      index_t const* const s = x.symbols;
      Column c{};
      constexpr int made = Does == ConvDoes::weight ? w_at : 2;
      index_t const size = positions<made>(s), major = W::quotient(column, size);
      place_of<made>(W::remainder(column, size), s, c.place);
      if constexpr (Does == ConvDoes::result)
        c.from = data<x_at>(x) + sample<x_at>(major, x) + channel<x_at>(group * in(s), x);
      else if constexpr (Does == ConvDoes::input)
        c.from = data<y_at>(x) + sample<y_at>(major, x) + channel<y_at>(group * out(s), x);
      else c.from = data<x_at>(x) + channel<x_at>(group * in(s) + major, x);
      return c;
    }
    DFDX_INLINE T value(Column const& c, index_t k) const {
      index_t const* const s = x.symbols;
      constexpr int walked = Does == ConvDoes::weight ? y_at : w_at,
                    read = Does == ConvDoes::input ? y_at : x_at;
      index_t const size = positions<walked>(s), major = W::quotient(k, size);
      Place other;
      place_of<walked>(W::remainder(k, size), s, other);
      auto offset =
          static_cast<place_t>(Does == ConvDoes::weight ? sample<read>(major, x) : channel<read>(major, x));
      bool const inside = find<read>(s, offset, [&](auto axis, place_t& i) {
        constexpr int a = decltype(axis)::value;
        if constexpr (Windows::value[a] >= 0) {
          constexpr Window w = Window::of(Windows::value[a]);
          return position<a>(c, other, i, known<w.stride>{}, known<w.dilation>{}, known<w.before>{});
        } else {
          Window const w = Window::of(kernels::detail::resolved(Windows::value[a], s));
          return position<a>(c, other, i, static_cast<place_t>(w.stride), static_cast<place_t>(w.dilation),
                             static_cast<place_t>(w.before));
        }
      });
      return inside ? c.from[offset] : T{};
    }

   private:
    template <index_t N>
    using known = std::integral_constant<place_t, static_cast<place_t>(N)>;
    // Where along axis A what is read lies; whether it is a position.
    template <int A, class By, class Apart, class Before>
    static DFDX_INLINE bool position(Column const& c, Place const& other, place_t& i, By by, Apart apart,
                                     Before before) {
      if constexpr (Does == ConvDoes::result) i = by * c.place.i[A] + apart * other.i[A] - before;
      else if constexpr (Does == ConvDoes::weight) i = by * other.i[A] + apart * c.place.i[A] - before;
      else {
        place_t const distance = c.place.i[A] + before - apart * other.i[A];
        i = distance / by;
        return distance >= 0 && distance % by == 0;
      }
      return true;
    }
  };

  /// Where element (row, column) of the result is.
  static DFDX_INLINE T* to(OwnArguments const& x, index_t group, index_t row, index_t column) {
    index_t const* const s = x.symbols;
    T* const y = static_cast<T*>(x.base[2]);
    if constexpr (Does == ConvDoes::weight)
      return y + sample<2>(group * m(s) + row, x) + W::template offset<2, 1, rank>(column, s);
    index_t const size = positions<2>(s);
    return y + sample<2>(W::quotient(column, size), x) + channel<2>(group * m(s) + row, x) +
           W::template offset<2, 2, rank>(W::remainder(column, size), s);
  }
};

/// ConvKernel - a convolution or one of its gradients.
template <ConvDoes Does, class Code, class T, class Windows>
struct ConvKernel {
  using P = ConvProduct<Does, Code, T, Windows>;
  using Sum = typename P::Sum;
  using Sums = ProductTile<ConvKernel, T, Sum>;
  static constexpr int threads = Sums::threads;

  static constexpr index_t tiles(index_t const* s) {
    return (P::m(s) + Sums::size - 1) / Sums::size * ((P::n(s) + Sums::size - 1) / Sums::size) * P::groups(s);
  }
  // Sums of weights' gradients are long and few: parts of them are summed apart, and then together in order.
  static constexpr index_t parts(index_t const* s) {
    if (Does != ConvDoes::weight) return 1;
    index_t const few = 256 / (tiles(s) < 1 ? 1 : tiles(s)), most = P::k(s) / 512;
    index_t const n = few < most ? few : most;
    return n < 1 ? 1 : n;
  }
  static constexpr index_t results(index_t const* s) { return P::m(s) * P::n(s) * P::groups(s); }
  static constexpr bool is_narrow(index_t const* s) { return P::m(s) < 8 || P::n(s) < 8; }
  static index_t workspace(index_t const* s) {
    index_t const own = is_narrow(s) || parts(s) == 1 ? 0 : parts(s) * results(s) * size<Sum>;
    // Whatever cuda_options says now: it may say something else when the program runs.
    index_t const other = is_cudnn_there() ? described(s).workspace() + alignment : 0;
    return own < other ? other : own;
  }

  static cudaError_t start_all(OwnArguments const& x, cudaStream_t stream) {
    index_t const* const s = x.symbols;
    if (is_cudnn_there()) {
      auto const at = reinterpret_cast<std::uintptr_t>(x.workspace);
      auto* const aligned = reinterpret_cast<void*>((at + alignment - 1) / alignment * alignment);
      if (Cudnn::convolve(described(s), x.base, aligned, stream)) return cudaSuccess;
    }
    index_t const n = results(s);
    if (is_narrow(s) && n < few_results && P::k(s) > long_sum)
      return start<Reduced>(x, blocks_for(n, 1), stream);
    if (is_narrow(s)) return start<Direct>(x, blocks_for(n, threads), stream);
    cudaError_t const said = start<ConvKernel>(x, blocks_for(tiles(s) * parts(s), 1), stream);
    if (said != cudaSuccess || parts(s) == 1) return said;
    return start<AddParts>(x, blocks_for(n, threads), stream);
  }

  static DFDX_INLINE void run(OwnArguments const& x) {
    index_t const* const s = x.symbols;
    index_t const m = P::m(s), n = P::n(s), across = (n + Sums::size - 1) / Sums::size,
                  down = (m + Sums::size - 1) / Sums::size, each = P::groups(s) * down * across,
                  count = parts(s);
    for (index_t t = block(); t < each * count; t += blocks()) {
      index_t const part = t / each, group = t % each / (down * across), row = t / across % down * Sums::size,
                    column = t % across * Sums::size, terms = P::k(s);
      index_t const begin = terms * part / count, end = terms * (part + 1) / count;
      Sums::run(typename P::Left{x, group}, typename P::Right{x, group}, row, column, m, n, begin, end,
                [&](index_t i, index_t j, Sum sum) {
                  if (count == 1) *P::to(x, group, i, j) = static_cast<T>(sum);
                  else static_cast<Sum*>(x.workspace)[((part * P::groups(s) + group) * m + i) * n + j] = sum;
                });
    }
  }

  /// AddParts - the sums of the parts of each sum.
  struct AddParts {
    static constexpr int threads = own_threads;
    static DFDX_INLINE void run(OwnArguments const& x) {
      index_t const* const s = x.symbols;
      index_t const m = P::m(s), n = P::n(s), all = results(s), count = parts(s);
      auto const* const from = static_cast<Sum const*>(x.workspace);
      for (index_t t = block() * threads + thread(); t < all; t += blocks() * threads) {
        Sum sum = from[t];
        for (index_t p = 1; p < count; ++p) sum = static_cast<Sum>(sum + from[p * all + t]);
        *P::to(x, t / (m * n), t / n % m, t % n) = static_cast<T>(sum);
      }
    }
  };
  /// Direct - a thread for each element.
  struct Direct {
    static constexpr int threads = own_threads;
    static DFDX_INLINE void run(OwnArguments const& x) {
      index_t const* const s = x.symbols;
      index_t const all = results(s);
      for (index_t t = block() * threads + thread(); t < all; t += blocks() * threads)
        one(x, t, [](Sum sum) { return sum; }, 0, 1, true);
    }
  };
  /// Reduced - a block for each element.
  struct Reduced {
    static constexpr int threads = own_threads;
    static DFDX_INLINE void run(OwnArguments const& x) {
      index_t const all = results(x.symbols);
      for (index_t t = block(); t < all; t += blocks())
        one(
            x, t, [](Sum sum) { return block_reduce<loop_code::reduce_sum, threads>(sum); }, thread(),
            threads, thread() == 0);
    }
  };

 private:
  using Cudnn = cuda_runtime::Cudnn;
  template <class E>
  static constexpr auto size = static_cast<index_t>(sizeof(E));
  static constexpr index_t few_results = 1 << 14, long_sum = 1024, alignment = 256;

  static bool is_cudnn_there() {
    constexpr bool takes =
        std::is_floating_point_v<T> || std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;
    return takes && Cudnn::version() != 0;
  }
  template <int K>
  static cuda_runtime::Convolution::Operand walked(index_t const* s) {
    cuda_runtime::Convolution::Operand r;
    [&]<std::size_t... D>(std::index_sequence<D...>) {
      ((r.extent[D] = P::template extent<K, D>(s), r.step[D] = P::W::template stride<K, D>(s)), ...);
    }(std::make_index_sequence<static_cast<std::size_t>(P::rank)>());
    return r;
  }
  static cuda_runtime::Convolution described(index_t const* s) {
    std::array<Window, 3> windows{};
    for (std::size_t a = 0; a < static_cast<std::size_t>(P::axes); ++a)
      windows[a] = Window::of(kernels::detail::resolved(Windows::value[a], s));
    return cuda_runtime::Convolution::of(Does, dtype_v<T>, P::rank,
                                         {walked<0>(s), walked<1>(s), walked<2>(s)}, windows);
  }

  template <class Join>
  static DFDX_INLINE void one(OwnArguments const& x, index_t t, Join const& join, index_t first, index_t step,
                              bool writes) {
    index_t const* const s = x.symbols;
    index_t const n = P::n(s), m = P::m(s), group = t / (m * n), row = t / n % m, column = t % n,
                  terms = P::k(s);
    typename P::Left const left{x, group};
    typename P::Right const right{x, group};
    auto const a = left.at(row);
    auto const b = right.at(column);
    Sum sum{};
    for (index_t k = first; k < terms; k += step)
      sum = static_cast<Sum>(
          sum + static_cast<Sum>(static_cast<Sum>(left.value(a, k)) * static_cast<Sum>(right.value(b, k))));
    sum = join(sum);
    if (writes) *P::to(x, group, row, column) = static_cast<T>(sum);
  }
};

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
