// SPDX-License-Identifier: BSL-1.0
// Sums of products for a tile of a result, whatever its factors are: a block has the sums in registers, and goes
// through the factors piece by piece in shared memory, while what is needed next is on its way from the device's.
#pragma once

#include <utility>

#include <dfdx/kernels/cuda/threads.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::cuda {

/// FactorLines - which elements of a factor a thread brings to shared memory, each time: some pieces of Piece elements
/// that follow each other along k, of Size lines with Depth elements. Threads beside each other bring what lies side
/// by side.
template <class Factor, int Threads, int Size, int Depth, int Piece>
struct FactorLines {
  static constexpr int pieces = Depth / Piece, each = Size * pieces / Threads;
  Factor const& factor;
  decltype(std::declval<Factor const&>().at(0)) places[each];
  bool holds[each];
  DFDX_INLINE FactorLines(Factor const& f, index_t first, index_t count) : factor(f) {
    DFDX_UNROLL for (int i = 0; i < each; ++i) {
      index_t const m = first + line(i);
      holds[i] = m < count;
      places[i] = f.at(holds[i] ? m : first);
    }
  }
  DFDX_INLINE int line(int i) const {
    int const at = thread() + i * Threads;
    return factor.along_k ? at / pieces : at % Size;
  }
  DFDX_INLINE int step(int i) const {
    int const at = thread() + i * Threads;
    return Piece * (factor.along_k ? at % pieces : at / Size);
  }
};

/// Tile - c[m, n] = sum_k a[m, k] b[k, n] for 64 x 64 of the (m, n) of a product. Use has memory of its own.
///
/// A factor says where its rows (of b: its columns) are, `at(m)`, and what is there, `value(place, k)`; `along_k` if
/// elements beside each other are those of k, so that neighbours read neighbours.
template <class Use, class Sum>
struct Tile {
  // Each of 16 x 16 threads has 4 x 4 sums: four rows that follow each other, and two pairs of columns, so that it
  // reads several numbers at once, and those that threads beside each other read, or store, lie side by side.
  static constexpr int side = 16, each = 4, size = side * each, depth = 16, threads = side * side;

  /// run - store(m, n, sum) for each of them; k from `begin` to `end`.
  template <class A, class B, class Store>
  static DFDX_INLINE void run(A const& a, B const& b, index_t row0, index_t column0, index_t rows,
                              index_t columns, index_t begin, index_t end, Store const& store) {
    Sum* const of_a = shared<OfA, Some<each>, depth * pitch / each>()->x;
    Sum* const of_b = shared<OfB, Some<each>, depth * pitch / each>()->x;
    Loads<A> from_a(a, row0, rows);
    Loads<B> from_b(b, column0, columns);
    int const row = thread() / side, column = thread() % side;
    Sum sums[each][each] = {};
    Sum next_a[each], next_b[each];
    from_a.read(next_a, begin, end);
    from_b.read(next_b, begin, end);
    for (index_t k = begin; k < end; k += depth) {
      barrier();  // until all have used what lies there
      from_a.write(next_a, of_a);
      from_b.write(next_b, of_b);
      barrier();
      from_a.read(next_a, k + depth, end);
      from_b.read(next_b, k + depth, end);
      DFDX_UNROLL for (int p = 0; p < depth; ++p) {
        auto const left = *reinterpret_cast<Some<each> const*>(of_a + p * pitch + row * each);
        Some<2> right[2];
        DFDX_UNROLL for (int j = 0; j < 2; ++j) right[j] =
            *reinterpret_cast<Some<2> const*>(of_b + p * pitch + column * 2 + j * size / 2);
        DFDX_UNROLL for (int i = 0; i < each; ++i) {
          DFDX_UNROLL for (int j = 0; j < each; ++j) sums[i][j] =
              static_cast<Sum>(sums[i][j] + static_cast<Sum>(left.x[i] * right[j / 2].x[j % 2]));
        }
      }
    }
    DFDX_UNROLL for (int i = 0; i < each; ++i) {
      DFDX_UNROLL for (int j = 0; j < each; ++j) {
        index_t const m = row0 + row * each + i, n = column0 + column * 2 + j % 2 + j / 2 * (size / 2);
        if (m < rows && n < columns) store(m, n, sums[i][j]);
      }
    }
  }

 private:
  struct OfA;
  struct OfB;
  // Numbers that are read at once.
  template <int N>
  struct alignas(N * sizeof(Sum) < 16 ? N * sizeof(Sum) : 16) Some {
    Sum x[N];
  };
  // More columns, so that what is written down a column lies in other banks, and rows begin where Some may.
  static constexpr int pitch = size + each;

  // The four elements of a factor that a thread brings, each time.
  template <class Factor>
  struct Loads : FactorLines<Factor, threads, size, depth, 1> {
    using FactorLines<Factor, threads, size, depth, 1>::FactorLines, Loads::FactorLines::factor,
        Loads::FactorLines::places, Loads::FactorLines::holds, Loads::FactorLines::line,
        Loads::FactorLines::step;
    DFDX_INLINE void read(Sum (&to)[each], index_t k0, index_t end) const {
      DFDX_UNROLL for (int i = 0; i < each; ++i) {
        index_t const k = k0 + step(i);
        to[i] = holds[i] && k < end ? static_cast<Sum>(factor.value(places[i], k)) : Sum{};
      }
    }
    DFDX_INLINE void write(Sum const (&from)[each], Sum* to) const {
      DFDX_UNROLL for (int i = 0; i < each; ++i) to[step(i) * pitch + line(i)] = from[i];
    }
  };
};

}  // namespace dfdx::kernels::inline DFDX_TARGET::cuda
