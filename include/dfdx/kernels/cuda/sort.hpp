// SPDX-License-Identifier: BSL-1.0
// Device kernels of argsort: places of the elements of lines in order.
#pragma once

#include <algorithm>
#include <bit>
#include <limits>

#include <dfdx/core/order.hpp>
#include <dfdx/kernels/cuda/lines.hpp>
#include <dfdx/kernels/cuda/scan.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// CountRule - sums of counts, for scans (kernels/cuda/scan.hpp).
struct CountRule {
  static DFDX_INLINE std::uint32_t nothing() { return 0; }
  static DFDX_INLINE std::uint32_t join(std::uint32_t a, std::uint32_t b) { return a + b; }
  static DFDX_INLINE std::uint32_t exchanged(std::uint32_t v, int mask) { return cuda::exchanged(v, mask); }
};

/// SortKernel - places of the elements of each line in order; equal elements stay in theirs. Those that attrs.i[2] asks
/// for are stored (ops/order.hpp). A block merges a short line in shared memory. Of long ones keys are sorted with
/// their places digit by digit, the least significant first (Knuth, The Art of Computer Programming 3, 5.2.5): each
/// pass moves a tile of a line by one block, which knows how many of each digit are in the tiles before.
template <class Code, class T, int Axis, bool Descending>
struct SortKernel {
  using At = AxisLines<Code, 0, Axis>;
  using Key = decltype(op::detail::sort_key(T{}));
  /// Places in lines, and counts of their elements; longer ones are refused.
  using Place = std::uint32_t;
  static constexpr index_t short_line = 1024, longest_line = std::numeric_limits<Place>::max();

  static constexpr int digits = 256, threads = 512, warps = threads / warp_size,
                       each = 64 / static_cast<int>(sizeof(Key)), tile = threads * each;
  /// Bits of keys from first_bit on differ: numbers of 16 bits have keys of f32, whose last digits are all 0, or all 1
  /// if they are negative.
  static constexpr int first_bit = std::is_same_v<T, bfloat16>  ? 16
                                   : std::is_same_v<T, float16> ? 8
                                                                : 0,
                       passes = sizeof(T) == 1 ? 1 : (8 * static_cast<int>(sizeof(Key)) - first_bit) / 8,
                       lists = passes < 3 ? passes - 1 : 2;

  struct Arguments {
    OwnArguments own;
    /// What a pass moves: no keys are those of operand 0; to no keys: it is the last.
    Key const* keys;
    Place const* places;
    Key* to_keys;
    Place* to_places;
    /// How many of each digit of each line the tiles before have; and all of them. None: lines are of one tile.
    std::uint32_t *counts, *totals;
    int shift;
  };

  static constexpr index_t elements(index_t const* s) { return At::lines(s) * At::length(s); }
  static constexpr index_t tiles(index_t const* s) { return (At::length(s) + tile - 1) / tile; }
  static constexpr index_t list_bytes(index_t const* s) {
    return elements(s) * static_cast<index_t>(sizeof(Key) + sizeof(Place));
  }
  static constexpr index_t workspace(index_t const* s) {
    if (At::length(s) <= short_line) return 0;
    index_t const counts = tiles(s) == 1 ? 0 : At::lines(s) * digits * (tiles(s) + 1);
    return lists * (list_bytes(s) + 8) + counts * static_cast<index_t>(sizeof(std::uint32_t));
  }

  /// Where the places of a line go that are asked for.
  struct Order {
    std::int64_t* to;
    index_t step, first, end;
    DFDX_INLINE Order(OwnArguments const& x, index_t line)
        : to(static_cast<std::int64_t*>(x.base[1]) + At::template begin<1>(line, x.symbols)),
          step(At::template step<1>(x.symbols)) {
      index_t const wanted = x.attrs.i[2];
      first = wanted < 0 ? -wanted - 1 : 0;
      end = wanted == 0 ? At::length(x.symbols) : wanted < 0 ? -wanted : wanted;
    }
    DFDX_INLINE void store(index_t i, std::int64_t place) const {
      if (i >= first && i < end) to[(i - first) * step] = place;
    }
  };
  /// A number of Bits bits for each element of a thread, in as few registers as hold them.
  template <int Bits>
  class Small {
    static constexpr int in_word = 32 / Bits;
    std::uint32_t words_[each / in_word] = {};

   public:
    DFDX_INLINE int operator[](int j) const {
      return static_cast<int>(words_[j / in_word] >> j % in_word * Bits & ((1u << Bits) - 1));
    }
    DFDX_INLINE void add(int j, int x) {
      words_[j / in_word] += static_cast<std::uint32_t>(x) << j % in_word * Bits;
    }
  };
  /// A tile of a line.
  struct Tile {
    Arguments const& a;
    index_t n, line, part;
    int size;
    DFDX_INLINE Tile(Arguments const& x, index_t t)
        : a(x), n(At::length(x.own.symbols)), line(t / tiles(x.own.symbols)), part(t % tiles(x.own.symbols)) {
      size = static_cast<int>(n - first() < tile ? n - first() : tile);
    }
    DFDX_INLINE index_t first() const { return part * tile; }
    // Where the count of a digit is.
    DFDX_INLINE index_t count_of(int d) const { return (line * digits + d) * tiles(a.own.symbols) + part; }
    // f(i, key) for the elements of operand 0 that are this thread's, and from the end on keys that stay behind all.
    template <class F>
    DFDX_INLINE void for_numbers(F const& f) const {
      index_t const* const s = a.own.symbols;
      index_t const by = At::template step<0>(s);
      T const* const x = static_cast<T const*>(a.own.base[0]) + At::template begin<0>(line, s) + first() * by;
      for (int i = thread(); i < tile; i += threads) f(i, i < size ? key_of(x[i * by]) : ~Key(0));
    }
    // The same of the keys that a pass before has moved: from, from + step, ...
    DFDX_INLINE void load(Key (&key)[each], int from, int step) const {
      Key const* const x = a.keys + line * n + first();
      DFDX_UNROLL for (int j = 0; j < each; ++j) {
        int const i = from + j * step;
        key[j] = i < size ? x[i] : ~Key(0);
      }
    }
    DFDX_INLINE void load_places(Place (&place)[each], int from) const {
      if (a.keys == nullptr) {
        DFDX_UNROLL for (int j = 0; j < each; ++j) place[j] =
            static_cast<Place>(first() + from + j * warp_size);
        return;
      }
      Place const* const x = a.places + line * n + first();
      DFDX_UNROLL for (int j = 0; j < each; ++j) {
        int const i = from + j * warp_size;
        place[j] = i < size ? x[i] : 0;
      }
    }
  };

  /// A short line by a block.
  struct Merge {
    static constexpr int threads = own_threads;
    struct Keyed {
      Key key, place;
    };
    static DFDX_INLINE void run(OwnArguments const& x) {
      index_t const* const s = x.symbols;
      index_t const n = At::length(s), all = At::lines(s);
      Keyed* const room = shared<Merge, Keyed, 2 * static_cast<int>(short_line)>();
      for (index_t line = block(); line < all; line += blocks()) {
        T const* const from = static_cast<T const*>(x.base[0]) + At::template begin<0>(line, s);
        barrier();  // until all have read what the last line left
        for (index_t i = thread(); i < n; i += threads)
          room[i] = {key_of(from[i * At::template step<0>(s)]), static_cast<Key>(i)};
        barrier();
        index_t half = 0;
        for (index_t width = 1; width < n; width *= 2, half = short_line - half) {
          for (index_t i = thread(); i < n; i += threads)
            room[short_line - half + merged_place(room + half, n, i, width)] = room[half + i];
          barrier();
        }
        Order const order(x, line);
        for (index_t i = thread(); i < n; i += threads)
          order.store(i, static_cast<std::int64_t>(room[half + i].place));
      }
    }

   private:
    // The place that element i of one of two sorted runs has among both, found by bisection; runs begin at multiples of
    // 2 width.
    static DFDX_INLINE index_t merged_place(Keyed const* x, index_t n, index_t i, index_t width) {
      index_t const begin = i / (2 * width) * (2 * width), middle = begin + width < n ? begin + width : n,
                    end = middle + width < n ? middle + width : n;
      bool const first = i < middle;
      Key const key = x[i].key;
      index_t low = first ? middle : begin, high = first ? end : middle;
      index_t const other = low;
      while (low < high) {
        index_t const m = low + (high - low) / 2;
        if (first ? x[m].key < key : x[m].key <= key) low = m + 1;
        else high = m;
      }
      return begin + (i - (first ? begin : middle)) + (low - other);
    }
  };

  /// How many elements of each tile have each digit.
  struct Count {
    static constexpr int threads = SortKernel::threads;
    static DFDX_INLINE void run(Arguments const& a) {
      std::uint32_t* const count = shared<Count, std::uint32_t, digits>();
      index_t const all = At::lines(a.own.symbols) * tiles(a.own.symbols);
      for (index_t t = block(); t < all; t += blocks()) {
        Tile const part(a, t);
        barrier();  // until all have read what the last tile left
        if (thread() < digits) count[thread()] = 0;
        barrier();
        auto const add = [&](int i, Key key) {
          if (i < part.size) count_one(count + digit(key, a.shift));
        };
        if (a.keys == nullptr) {
          part.for_numbers(add);
        } else {
          Key key[each];
          part.load(key, thread(), threads);
          DFDX_UNROLL for (int j = 0; j < each; ++j) add(thread() + j * threads, key[j]);
        }
        barrier();
        if (thread() < digits) a.counts[part.count_of(thread())] = count[thread()];
      }
    }
  };
  /// How many have it in the tiles before: a warp for each digit of each line.
  struct Offsets {
    static constexpr int threads = own_threads, rows = 8;
    static constexpr index_t work(index_t const* s) { return At::lines(s) * digits * warp_size; }
    static DFDX_INLINE void run(Arguments const& a) {
      index_t const n = tiles(a.own.symbols), all = work(a.own.symbols);
      for (index_t t = block() * threads + thread(); t < all; t += blocks() * threads) {
        std::uint32_t* const count = a.counts + t / warp_size * n;
        std::uint32_t before = 0;
        for (index_t first = t % warp_size; first - t % warp_size < n; first += rows * warp_size) {
          std::uint32_t of_row[rows];
          DFDX_UNROLL for (int r = 0; r < rows; ++r) of_row[r] =
              first + r * warp_size < n ? count[first + r * warp_size] : 0;
          DFDX_UNROLL for (int r = 0; r < rows; ++r) {
            std::uint32_t const mine = before + scan_warp<CountRule>(of_row[r]);
            if (first + r * warp_size < n) count[first + r * warp_size] = mine;
            before += of_row[r];
          }
        }
        if (t % warp_size == 0) a.totals[t / warp_size] = before;
      }
    }
  };
  /// Moves the elements of each tile to where they belong by their digits. They are put in order in shared memory
  /// first, so that neighbours are written by neighbours.
  struct Move {
    static constexpr int threads = SortKernel::threads, least_blocks = 2;
    static DFDX_INLINE void run(Arguments const& a) {
      Key* const room = shared<Move, Key, tile>();
      std::uint16_t* const of_warps = shared<Move, std::uint16_t, warps * digits>();
      std::uint32_t* const base = shared<Move, std::uint32_t, digits>();
      std::uint32_t* const joined = shared<Move, std::uint32_t, 2 * warps>();
      int half = 0;
      int const lane = thread() % warp_size, mine = thread() / warp_size * warp_size * each + lane;
      std::uint16_t* const of_warp = of_warps + thread() / warp_size * digits;
      index_t const all = At::lines(a.own.symbols) * tiles(a.own.symbols);
      for (index_t t = block(); t < all; t += blocks()) {
        Tile const part(a, t);
        Key key[each];
        Small<16> at;
        if (a.keys == nullptr) {
          barrier();  // until all have read what the last tile left
          part.for_numbers([&](int i, Key k) { room[i] = k; });
          barrier();
          DFDX_UNROLL for (int j = 0; j < each; ++j) key[j] = room[mine + j * warp_size];
        } else {
          part.load(key, mine, warp_size);
        }
        for (int d = lane; d < digits; d += warp_size) of_warp[d] = 0;
        warp_barrier();
        DFDX_UNROLL for (int j = 0; j < each; ++j) at.add(j, place_in_warp(digit(key[j], a.shift), of_warp));
        barrier();
        place_warps(part, of_warps, base, joined, half);
        barrier();
        DFDX_UNROLL for (int j = 0; j < each; ++j) {
          at.add(j, of_warp[digit(key[j], a.shift)]);
          room[at[j]] = key[j];
        }
        barrier();
        auto const to = [&](int d, int i) { return base[d] + static_cast<std::uint32_t>(i); };
        Key* const to_keys = a.to_keys + part.line * part.n;
        Place* const to_places = a.to_places + part.line * part.n;
        Small<8> of_digit;
        DFDX_UNROLL for (int j = 0; j < each; ++j) {
          int const i = j * threads + thread();
          Key const k = room[i];
          of_digit.add(j, digit(k, a.shift));
          if (a.to_keys != nullptr && i < part.size) to_keys[to(digit(k, a.shift), i)] = k;
        }
        Place place[each];
        part.load_places(place, mine);
        barrier();
        DFDX_UNROLL for (int j = 0; j < each; ++j) room[at[j]] = static_cast<Key>(place[j]);
        barrier();
        if (a.to_keys != nullptr) {
          DFDX_UNROLL for (int j = 0; j < each; ++j) {
            int const i = j * threads + thread();
            if (i < part.size) to_places[to(of_digit[j], i)] = static_cast<Place>(room[i]);
          }
        } else {
          Order const order(a.own, part.line);
          DFDX_UNROLL for (int j = 0; j < each; ++j) {
            int const i = j * threads + thread();
            if (i < part.size) order.store(to(of_digit[j], i), static_cast<std::int64_t>(room[i]));
          }
        }
      }
    }

   private:
    // How many elements of the warp with this digit are before this thread's, in the order of lanes; counts those of
    // all.
    static DFDX_INLINE int place_in_warp(int d, std::uint16_t* of_warp) {
      unsigned const same = alike<8>(d);
      int const before = std::popcount(same & ((1u << thread() % warp_size) - 1)), others = of_warp[d];
      warp_barrier();
      if (before == 0) of_warp[d] = static_cast<std::uint16_t>(others + std::popcount(same));
      warp_barrier();
      return others + before;
    }
    // Counts of warps become the places in the tile where their elements begin, by a thread for each digit; `base` is
    // how far from there they go.
    static DFDX_INLINE void place_warps(Tile const& part, std::uint16_t* of_warps, std::uint32_t* base,
                                        std::uint32_t* joined, int& half) {
      int const d = thread();
      std::uint32_t all = 0;
      DFDX_UNROLL for (int w = 0; w < warps; ++w) all += d < digits ? of_warps[w * digits + d] : 0u;
      std::uint32_t first = scan_warp<CountRule>(all);
      first += join_warps<CountRule, warps>(all, joined, half);
      std::uint32_t of_line = 0;
      if (part.a.counts != nullptr) {
        std::uint32_t in_line = d < digits ? part.a.totals[part.line * digits + d] : 0;
        of_line = scan_warp<CountRule>(in_line);
        of_line += join_warps<CountRule, warps>(in_line, joined, half);
      }
      if (d >= digits) return;
      base[d] = part.a.counts == nullptr ? 0 : of_line + part.a.counts[part.count_of(d)] - first;
      DFDX_UNROLL for (int w = 0; w < warps; ++w) {
        std::uint32_t const count = of_warps[w * digits + d];
        of_warps[w * digits + d] = static_cast<std::uint16_t>(first);
        first += count;
      }
    }
  };

  static cudaError_t start_all(OwnArguments const& x, cudaStream_t stream) {
    index_t const* const s = x.symbols;
    index_t const lines = At::lines(s), all = elements(s), of_line = tiles(s);
    if (all == 0) return cudaSuccess;
    if (At::length(s) > longest_line) return cudaErrorInvalidValue;
    if (At::length(s) <= short_line) return start<Merge>(x, blocks_for(lines, 1), stream);
    Key* keys[3] = {};
    Place* places[3] = {};
    auto* room = static_cast<std::byte*>(x.workspace);
    for (int i = 0; i < lists; ++i) {
      keys[i] = reinterpret_cast<Key*>(room);
      places[i] = reinterpret_cast<Place*>(keys[i] + all);
      room += (list_bytes(s) + 7) / 8 * 8;
    }
    auto* const totals = of_line == 1 ? nullptr : reinterpret_cast<std::uint32_t*>(room);
    auto* const counts = of_line == 1 ? nullptr : totals + lines * digits;
    for (int pass = 0; pass < passes; ++pass) {
      int const from = pass == 0 ? 2 : (pass - 1) % 2, to = pass == passes - 1 ? 2 : pass % 2;
      Arguments const a{x,          keys[from], places[from], keys[to],
                        places[to], counts,     totals,       first_bit + 8 * pass};
      index_t const blocks = blocks_for(lines * of_line, 1);
      if (counts != nullptr) {
        if (auto const said = start<Count>(a, blocks, stream); said != cudaSuccess) return said;
        auto const said = start<Offsets>(a, blocks_for(Offsets::work(s), Offsets::threads), stream);
        if (said != cudaSuccess) return said;
      }
      if (auto const said = start<Move>(a, blocks, stream); said != cudaSuccess) return said;
    }
    return cudaSuccess;
  }

 private:
  static DFDX_INLINE Key key_of(T x) {
    Key key = op::detail::sort_key(x);
    if constexpr (sizeof(T) == 1 && std::is_signed_v<T>) key ^= 0x80;  // as one digit
    return Descending ? static_cast<Key>(~key) : key;
  }
  static DFDX_INLINE int digit(Key key, int shift) { return static_cast<int>(key >> shift & 255); }
};

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
