// SPDX-License-Identifier: BSL-1.0
// What the device kernels of ops that have kernels of their own share: where the elements of an operand are, what a
// kernel is called with, and how it is started.
//
// A kernel is a struct with `threads` of a block and `run(OwnArguments)`. It says how many threads it would like,
// `work(symbols)`, or starts itself, `start_all(arguments, stream)`; and if it needs them how many bytes of
// `workspace(symbols)`, and that its result has to be zeros before, `into_zeros`.
#pragma once

#include <array>

#include <dfdx/core/dtype.hpp>
#include <dfdx/kernels/cuda/runtime.hpp>
#include <dfdx/kernels/cuda/threads.hpp>
#include <dfdx/kernels/loop_values.hpp>
#include <dfdx/value/node.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// Walks - what the step of an op with its own kernel is described by: for each operand its rank, extents and strides.
template <class Code>
class Walks {
  static constexpr auto const& code = Code::value;
  static constexpr std::size_t begin(int operand) {
    std::size_t at = 0;
    for (; operand > 0; --operand) at += 1 + 2 * static_cast<std::size_t>(code[at]);
    return at;
  }
  template <int K, int D>
  static constexpr index_t extent_code = code[begin(K) + 1 + static_cast<std::size_t>(D)];
  template <int K, int D>
  static constexpr index_t stride_code = code[begin(K) + 1 + static_cast<std::size_t>(code[begin(K)] + D)];

  // Whether all places fit in 32 bits, in which GPUs divide several times faster.
  static constexpr bool is_small() {
    if constexpr (requires { Code::is_small; }) return true;
    constexpr index_t most = INT32_MAX;
    for (std::size_t at = 0; at < std::size(code); at += 1 + 2 * static_cast<std::size_t>(code[at])) {
      index_t last = 0, count = 1;
      for (std::size_t d = at + 1; d <= at + static_cast<std::size_t>(code[at]); ++d) {
        index_t const n = code[d], by = code[d + static_cast<std::size_t>(code[at])];
        if (n < 0 || by < 0 || n > most || by > most) return false;
        last += n == 0 ? 0 : (n - 1) * by;
        count *= n;
        if (last > most || count > most) return false;
      }
    }
    return true;
  }
  using position_t = std::conditional_t<is_small(), std::uint32_t, index_t>;

 public:
  /// place_t - holds every place of an operand, and differences of two.
  using place_t = std::conditional_t<is_small(), std::int32_t, index_t>;
  /// quotient, remainder - of positions, which are not negative.
  static DFDX_INLINE constexpr index_t quotient(index_t a, index_t b) {
    return static_cast<index_t>(static_cast<position_t>(a) / static_cast<position_t>(b));
  }
  static DFDX_INLINE constexpr index_t remainder(index_t a, index_t b) {
    return static_cast<index_t>(static_cast<position_t>(a) % static_cast<position_t>(b));
  }

  template <int K>
  static constexpr int rank = static_cast<int>(code[begin(K)]);
  template <int K, int D>
  static DFDX_INLINE constexpr index_t extent(index_t const* symbols) {
    return kernels::detail::resolved(extent_code<K, D>, symbols);
  }
  template <int K, int D>
  static DFDX_INLINE constexpr index_t stride(index_t const* symbols) {
    return kernels::detail::resolved(stride_code<K, D>, symbols);
  }
  /// Positions of axes [First, Last) of operand K.
  template <int K, int First = 0, int Last = rank<K>>
  static DFDX_INLINE constexpr index_t count(index_t const* symbols) {
    if constexpr (First == Last) return 1;
    else return extent<K, First>(symbols) * count<K, First + 1, Last>(symbols);
  }
  /// Whether operand K lies row by row without gaps: then positions are places.
  template <int K, int D = 0>
  static DFDX_INLINE constexpr bool is_dense(index_t const* symbols) {
    if constexpr (D == rank<K>) return true;
    else
      return (extent<K, D>(symbols) == 1 || stride<K, D>(symbols) == count<K, D + 1, rank<K>>(symbols)) &&
             is_dense<K, D + 1>(symbols);
  }
  /// Where position `at` of axes [First, Last) of operand K, counted row by row, is in operand S, whose axis `Shift`
  /// behind walks the same. Axis Without counts, and is not walked.
  template <int K, int First, int Last, int S = K, int Shift = 0, int Without = -1>
  static DFDX_INLINE constexpr index_t offset(index_t at, index_t const* symbols) {
    if constexpr (First == Last) {
      return 0;
    } else {
      index_t const n = extent<K, Last - 1>(symbols);
      index_t const rest = offset<K, First, Last - 1, S, Shift, Without>(quotient(at, n), symbols);
      if constexpr (Last - 1 == Without) return rest;
      else return remainder(at, n) * stride<S, Last - 1 + Shift>(symbols) + rest;
    }
  }
};

/// AnyWalks - a description of operands of these ranks that says nothing else of them: extents and strides come with
/// each call, one operand after another.
template <int... Ranks>
struct AnyWalks {
  static constexpr int slots = (0 + ... + (2 * Ranks));
  static constexpr auto value = [] {
    std::array<index_t, sizeof...(Ranks) + static_cast<std::size_t>(slots)> r{};
    int k = 0;
    std::size_t at = 0;
    auto const add = [&](int rank) {
      r[at++] = rank;
      for (int i = 0; i < 2 * rank; ++i) r[at++] = kernels::detail::slot(k++);
    };
    (add(Ranks), ...);
    return r;
  }();
};

/// ImageWalks - three dense operands of four axes, whose places fit in 32 bits. What is known of their strides threads
/// need not have in registers.
struct ImageWalks {
  static constexpr int slots = 24;
  static constexpr bool is_small = true;
  static constexpr auto value = [] {
    auto r = AnyWalks<4, 4, 4>::value;
    for (std::size_t operand = 0; operand < 27; operand += 9) {
      r[operand + 7] = r[operand + 4];
      r[operand + 8] = 1;
    }
    return r;
  }();
};

/// OwnArguments - of all kernels of this kind: operands, the result last; the values of symbolic extents, or of slots;
/// what the op is given besides, and what is said of an index out of range.
struct OwnArguments {
  static constexpr int most_slots = 36;
  void* base[max_arity + 1] = {};
  index_t symbols[most_slots] = {};
  Attrs attrs{};
  char const* by = nullptr;
  cuda_runtime::Fault* fault = nullptr;
  void* workspace = nullptr;

  DFDX_INLINE bool holds(index_t i, index_t extent, bool is_label = false) const {
    if (i >= 0 && i < extent) return true;
    fault->index = i;
    fault->extent = extent;
    fault->is_label = is_label;
    fault->by = by;
    return false;
  }
};

inline constexpr int own_threads = 256;
inline constexpr index_t most_own_blocks = 4096;

/// blocks_for - how many blocks of T threads there are for n threads' work; each thread goes on in steps of all.
constexpr index_t blocks_for(index_t n, int threads) {
  index_t const blocks = (n + threads - 1) / threads;
  return blocks < most_own_blocks ? blocks : most_own_blocks;
}

/// workspace_of - bytes that a kernel needs besides its operands.
template <class Kernel>
constexpr index_t workspace_of(index_t const* symbols) {
  if constexpr (requires { Kernel::workspace(symbols); }) return Kernel::workspace(symbols);
  else return 0;
}

/// into_zeros - whether a kernel wants a result of zeros before it starts.
template <class Kernel>
constexpr bool into_zeros() {
  if constexpr (requires { Kernel::into_zeros; }) return Kernel::into_zeros;
  else return false;
}

/// CopyFirst - the first of four operands where the last, of its shape, lies: what kernels begin with that change a
/// part of a value, unless it keeps its place.
template <class Code, class E>
struct CopyFirst {
  using W = Walks<Code>;
  static constexpr int threads = own_threads, rank = W::template rank<3>;
  static DFDX_INLINE void run(OwnArguments const& x) {
    index_t const* const s = x.symbols;
    index_t const n = W::template count<3>(s);
    for (index_t t = block() * threads + thread(); t < n; t += blocks() * threads)
      static_cast<E*>(x.base[3])[W::template offset<3, 0, rank>(t, s)] =
          static_cast<E const*>(x.base[0])[W::template offset<3, 0, rank, 0>(t, s)];
  }
  static cudaError_t start_unless_there(OwnArguments const& x, cudaStream_t stream) {
    if (x.base[3] == x.base[0]) return cudaSuccess;
    return start<CopyFirst>(x, blocks_for(W::template count<3>(x.symbols), threads), stream);
  }
};

/// start_own - starts one of them; returns what the runtime says.
template <class Kernel>
cudaError_t start_own(OwnArguments const& x, cudaStream_t stream) {
  if constexpr (requires { Kernel::start_all(x, stream); }) return Kernel::start_all(x, stream);
  else return start<Kernel>(x, blocks_for(Kernel::work(x.symbols), Kernel::threads), stream);
}

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
