// SPDX-License-Identifier: BSL-1.0
// The kernel of a fused loop group, generated from its description (core/loop_code.hpp): a nest over the outer
// dims, and for each row its phases (kernels/loop_body.hpp).
#pragma once

#include <dfdx/kernels/loop_body.hpp>
#include <dfdx/kernels/simd/prefetch.hpp>
#include <dfdx/kernels/simd/transpose.hpp>

namespace dfdx::kernels::inline DFDX_TARGET {

/// Loop - the kernel of one description, at the width it asks for or another. Given and Stored are set when it is
/// the epilogue of a matrix product (`at`).
template <class Code, index_t Width = Code::value[loop_code::width], int Given = -1, int Stored = -1,
          int Divided = -1>
class Loop : protected LoopBody<Code, Width, Given, Stored, Divided> {
 protected:
  using Body = LoopBody<Code, Width, Given, Stored, Divided>;
  using Body::all_instructions;
  using Body::dims, Body::split, Body::operands, Body::instructions, Body::phases;
  using typename Body::L, typename Body::State;
  static constexpr LoopFacts facts{Code::value};  // g++ 12 does not find that of the base in a lambda
  template <int K>
  using memory_t = typename Body::template memory_t<K>;
  template <int I>
  using value_t = typename Body::template value_t<I>;
  static constexpr auto runs = Body::template all_runs<0>;
  static constexpr std::make_index_sequence<static_cast<std::size_t>(operands)> all_operands{};

  // What rows hand to one another, or the first finds. All is read before any is written: carries may change places.
  template <bool First, std::size_t... I>
  static DFDX_INLINE void carry(State& s, std::index_sequence<I...>) {
    detail::Cell next[instructions + 1];
    auto const read = [&](auto i) {
      constexpr int k = decltype(i)::value, from = facts.carried_from(k, First);
      if constexpr (from >= 0 && First)
        next[k].template set<value_t<k>>(*detail::element_at<memory_t<from>>(s.base[from], s.at[from]));
      else if constexpr (from >= 0) next[k].template set<value_t<k>>(Body::template row_value<from>(s));
    };
    auto const write = [&](auto i) {
      constexpr int k = decltype(i)::value;
      if constexpr (facts.carried_from(k, First) >= 0) s.cells[k] = next[k];
    };
    (read(std::integral_constant<int, static_cast<int>(I)>{}), ...);
    (write(std::integral_constant<int, static_cast<int>(I)>{}), ...);
  }

  template <int D>
  static DFDX_INLINE void outer(State& s) {
    constexpr bool backward = D == 0 && facts.is_backward();
    index_t const n = Body::template iterations<D>(s);
    if constexpr (backward) Body::template advance<D>(s, n - 1);
    for (index_t k = 0; k < n; ++k) {
      if constexpr (D + 1 == split) Body::template phase<0>(s);
      else outer<D + 1>(s);
      if constexpr (facts.is_sequential()) carry<false>(s, all_instructions);
      Body::template advance<D>(s, backward ? -1 : 1);
    }
    Body::template advance<D>(s, backward ? 1 : -n);
  }

  // Where an operand lies across the rows: some rows at a time, and of those the columns of a line after the other, so
  // that of a line of memory all is used while it is near. It is read in square tiles, transposed in registers.
  static constexpr index_t line = 64 / (Width == 0 ? 4 : Width);
  static constexpr int crossing = facts.crossing();
  // What is stored past the caches is not kept near, so that all rows can follow each other if nothing else is read:
  // the operand is then read in order.
  static DFDX_INLINE index_t rows_at_once([[maybe_unused]] State const& s, [[maybe_unused]] index_t rows) {
    if constexpr (facts.only_crosses())
      if (s.streams) return rows;
    return 64;
  }

  template <int K>
  static DFDX_INLINE void fill_tile([[maybe_unused]] State const& s, [[maybe_unused]] index_t i,
                                    [[maybe_unused]] std::byte* tiles) {
#if !defined(__CUDACC__)
    if constexpr (Body::template in_tiles<K>()) {
      constexpr index_t size = detail::known_size<L>;
      using E = std::conditional_t<Width == 4, float, double>;
      index_t const step = detail::resolved(Body::template lane_stride<K>, s.symbols);
      auto const* const from = detail::element_at<memory_t<K> const>(s.base[K], s.at[K]) + i * step;
      detail::transpose_square(reinterpret_cast<E const*>(from), step,
                               reinterpret_cast<E*>(tiles + Body::tiles_before(K) * Body::tile_bytes), size);
    }
#endif
  }
  template <std::size_t... K>
  static DFDX_INLINE void fill_tiles(State const& s, index_t i, std::byte* tiles, std::index_sequence<K...>) {
    (fill_tile<static_cast<int>(K)>(s, i, tiles), ...);
  }
  // As many rows as a lane is long, of the columns of a line.
  static DFDX_INLINE void tiles(State& s, index_t first) {
    constexpr index_t size = detail::known_size<L>, beside = size < line ? line / size : 1,
                      bytes = Body::tiles_before(operands) * Body::tile_bytes;
    alignas(64) std::byte room[beside * bytes];
    detail::Absent none;
    for (index_t h = 0; h < beside; ++h) fill_tiles(s, first + h * size, room + h * bytes, all_operands);
    for (s.tile_row = 0; s.tile_row < size; ++s.tile_row) {
      Body::template run_row<0>(s, Body::template of_row<0>);
      for (index_t h = 0; h < beside; ++h) {
        s.tiles = room + h * bytes;
        Body::template lanes<0, false>(s, first + h * size, static_cast<int>(size), none, none, none, none,
                                       runs);
      }
      Body::template advance<crossing>(s, 1);
    }
    s.tiles = nullptr;
  }
  static DFDX_INLINE void columns(State& s, index_t rows, index_t first, index_t last) {
    detail::Absent none;
    index_t const size = detail::lane_size_of<L>();
    index_t k = 0;
    if constexpr (Body::tiles_before(operands) > 0)
      if (last - first == (size < line ? line : size))
        for (; k + size <= rows; k += size) tiles(s, first);
    for (; k < rows; ++k) {
      Body::template run_row<0>(s, Body::template of_row<0>);
      index_t i = first;
      for (; i + size <= last; i += size)
        Body::template lanes<0, false>(s, i, static_cast<int>(size), none, none, none, none, runs);
      if constexpr (detail::known_size<L> != 1)
        if (i < last)
          Body::template lanes<0, true>(s, i, static_cast<int>(last - i), none, none, none, none, runs);
      Body::template advance<crossing>(s, 1);
    }
    Body::template advance<crossing>(s, -rows);
  }
  template <int D>
  static DFDX_INLINE void across(State& s) {
    if constexpr (D == dims - 1) {
      index_t const rows = Body::template iterations<crossing>(s), n = Body::template extent_of<D>(s.symbols);
      index_t const size = detail::lane_size_of<L>(), step = size > line ? size : line;
      index_t const block = rows_at_once(s, rows);
      for (index_t k = 0; k < rows; k += block) {
        index_t const some = rows - k < block ? rows - k : block;
        for (index_t i = 0; i < n; i += step) columns(s, some, i, n - i < step ? n : i + step);
        Body::template advance<crossing>(s, some);
      }
      Body::template advance<crossing>(s, -rows);
    } else if constexpr (D == crossing) {
      across<D + 1>(s);
    } else {
      index_t const n = Body::template iterations<D>(s);
      for (index_t k = 0; k < n; ++k) {
        across<D + 1>(s);
        Body::template advance<D>(s, 1);
      }
      Body::template advance<D>(s, -n);
    }
  }

  // Stores go past the caches unless a result lies where something is read, and so is in them.
  template <int K, std::size_t... Other>
  static DFDX_INLINE bool lies_apart(State const& s, std::index_sequence<Other...>) {
    if constexpr (!Body::template may_stream<K>()) return true;
    else return (true && ... && (!facts.loads(static_cast<int>(Other)) || s.base[Other] != s.base[K]));
  }
  template <std::size_t... K>
  static DFDX_INLINE void choose_stores(State& s, std::index_sequence<K...> all) {
    if constexpr ((false || ... || Body::template may_stream<static_cast<int>(K)>()))
      s.streams = (true && ... && lies_apart<static_cast<int>(K)>(s, all));
  }
  static DFDX_INLINE void end_stores([[maybe_unused]] State const& s) {
#if !defined(__CUDACC__)
    if (s.streams) detail::end_streams();
#endif
  }

  static DFDX_INLINE void nest(State& s) {
    if constexpr (facts.writes_large()) choose_stores(s, all_operands);
    if constexpr (crossing >= 0) across<0>(s);
    else if constexpr (split == 0) Body::template phase<0>(s);
    else outer<0>(s);
    if constexpr (facts.writes_large()) end_stores(s);
  }

  template <int K>
  static DFDX_INLINE void fill(State const& s) {
    constexpr index_t elements = facts.record(K, loop_code::fill);
    if constexpr (elements != 0)
      detail::fill_with_identity<facts.record(K, loop_code::combine), memory_t<K>>(
          s.base[K], extent::resolve(elements, s.symbols));
  }
  template <std::size_t... K>
  static DFDX_INLINE void fill(State const& s, std::index_sequence<K...>) {
    (fill<static_cast<int>(K)>(s), ...);
  }

  // For backends that divide the nest: goes to position `index` of the dims [First, Last), counted row by row.
  template <int First, int Last, class Index>
  static DFDX_INLINE void seek(State& s, Index index) {
    if constexpr (Last - First == 1) {
      Body::template advance<First>(s, static_cast<index_t>(index));
    } else if constexpr (Last > First) {
      auto const n = static_cast<Index>(Body::template extent_of<Last - 1>(s.symbols));
      Body::template advance<Last - 1>(s, static_cast<index_t>(index % n));
      seek<First, Last - 1>(s, static_cast<Index>(index / n));
    }
  }
  template <int First, int Last>
  static DFDX_INLINE constexpr index_t count(index_t const* symbols) {
    if constexpr (First == Last) return 1;
    else return Body::template extent_of<First>(symbols) * count<First + 1, Last>(symbols);
  }
  // Divisions in 32 bits are several times faster on GPUs.
  using position_t = std::conditional_t<facts.is_small(), std::uint32_t, index_t>;

  // The lines of operand K, if lanes of it are read.
  template <int K>
  static DFDX_INLINE void prefetch([[maybe_unused]] State const& s, [[maybe_unused]] index_t n,
                                   [[maybe_unused]] int rows, [[maybe_unused]] int columns) {
#if !defined(__CUDACC__)
    if constexpr (K != Given && facts.loads_lanes(K)) {
      index_t step = 0;
      if constexpr (split == 1) step = detail::resolved(Body::template stride<K, 0>, s.symbols);
      auto const* from = detail::element_at<memory_t<K> const>(s.base[K], s.at[K]) + n;
      int const bytes = columns * static_cast<int>(sizeof(memory_t<K>));
      for (int r = 0; r < rows; ++r, from += step)
        for (int b = 0; b < bytes; b += 64) detail::ask_to_write(reinterpret_cast<char const*>(from) + b);
    }
#endif
  }
  template <std::size_t... K>
  static DFDX_INLINE void prefetch(State const& s, index_t n, int rows, int columns,
                                   std::index_sequence<K...>) {
    (prefetch<static_cast<int>(K)>(s, n, rows, columns), ...);
  }

  template <int K>
  static constexpr index_t fill_of = facts.record(K, loop_code::fill);
  template <int K>
  static DFDX_INLINE void go_to_own(State& s, index_t worker) {
    if constexpr (facts.is_scratch(K) || facts.is_shared(K)) s.at[K] += worker * own_size<K>(s.symbols);
  }
  template <std::size_t... K>
  static DFDX_INLINE void go_to_own(State& s, index_t worker, std::index_sequence<K...>) {
    (go_to_own<static_cast<int>(K)>(s, worker), ...);
  }

 public:
  /// rows, row_size - iterations of the outer dims, and of the inner ones.
  static DFDX_INLINE constexpr index_t rows(index_t const* symbols) { return count<0, split>(symbols); }
  static DFDX_INLINE constexpr index_t row_size(index_t const* symbols) {
    return count<split, dims>(symbols);
  }
  /// own_size - elements of operand k that each worker has of its own: scratch, and memory that rows add to; else 0.
  template <int K>
  static DFDX_INLINE constexpr index_t own_size(index_t const* symbols) {
    if constexpr (facts.is_scratch(K)) return row_size(symbols);
    else return detail::resolved(fill_of<K>, symbols);
  }

  /// offsets - where row `index` of each operand begins, in elements.
  struct Offsets {
    index_t at[operands + 1];
  };
  static DFDX_INLINE Offsets offsets(void* const* base, index_t const* symbols, index_t index) {
    State s{base, symbols};
    seek<0, split>(s, static_cast<position_t>(index));
    Offsets r;
    for (int k = 0; k <= operands; ++k) r.at[k] = s.at[k];
    return r;
  }
  /// row - all phases of one row. Rows are independent of one another unless the loop is sequential; those of one
  /// `worker` share what own_size tells of and must follow one another.
  static DFDX_INLINE void row(void* const* base, index_t const* symbols, index_t index, index_t worker) {
    State s{base, symbols};
    seek<0, split>(s, static_cast<position_t>(index));
    go_to_own(s, worker, all_operands);
    Body::template phase<0>(s);
  }

  /// row_part - the same of a part of a row: iterations [begin, end) of Divided, the first dim that phases walk.
  static DFDX_INLINE void row_part(void* const* base, index_t const* symbols, index_t index, index_t begin,
                                   index_t end) {
    static_assert(Divided == split, "loop: rows are divided along the first of their dims");
    State s{base, symbols};
    seek<0, split>(s, static_cast<position_t>(index));
    s.part = end - begin;
    Body::template advance<split>(s, begin);
    Body::template phase<0>(s);
  }

  /// elements - those of a map from one on, counted over all dims row by row: `count` of the last dim, which are as
  /// many as there are lanes or, at its end, fewer.
  static DFDX_INLINE void elements(void* const* base, index_t const* symbols, index_t index, int count) {
    static_assert(facts.is_map(), "loop: only the elements of a map can be computed one by one");
    State s{base, symbols};
    auto const n = static_cast<position_t>(Body::template extent_of<dims - 1>(symbols));
    auto const at = static_cast<position_t>(index);
    seek<0, dims - 1>(s, static_cast<position_t>(at / n));
    Body::template run_row<0>(s, Body::template of_row<0>);
    detail::Absent none;
    auto const i = static_cast<index_t>(at % n);
    if (count == L::size) Body::template lanes<0, false>(s, i, L::size, none, none, none, none, runs);
    if constexpr (L::size > 1 && facts.lane_extent() % L::size != 0)
      if (count < L::size) Body::template lanes<0, true>(s, i, count, none, none, none, none, runs);
  }

  /// at - the loop's body at row m from column n on, for a sum of a matrix product; returns what to store.
  template <bool Tail, class V>
  static DFDX_INLINE V at(void* const* base, index_t const* symbols, V sum, index_t m, index_t n, int count) {
    static_assert(dims == split + 1 && split <= 1 && phases == 1);  // a matrix, or its only row
    State s{base, symbols};
    if constexpr (split == 1) Body::template advance<0>(s, m);
    Body::template run_row<0>(s, Body::template of_row<0>);
    V result = sum;
    detail::Absent none, none_either;
    Body::template lanes<0, Tail>(s, n, count, sum, result, none, none_either, runs);
    return result;
  }

  /// prefetch - asks for the lines that `at` will read, of `rows` rows from (m, n) on, `columns` elements of each.
  static DFDX_INLINE void prefetch(void* const* base, index_t const* symbols, index_t m, index_t n, int rows,
                                   int columns) {
    State s{base, symbols};
    if constexpr (split == 1) Body::template advance<0>(s, m);
    prefetch(s, n, rows, columns, all_operands);
  }

  /// run - the whole nest. base[k] is where operand k starts; symbols are the values of symbolic extents.
  static DFDX_DEVICE void run(void* const* base, void*, index_t const* symbols) {
    State s{base, symbols};
    if constexpr (facts.fills()) fill(s, all_operands);
    if constexpr (facts.is_sequential()) carry<true>(s, all_instructions);
    nest(s);
  }
};

}  // namespace dfdx::kernels::inline DFDX_TARGET
