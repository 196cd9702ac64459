// SPDX-License-Identifier: BSL-1.0
// What is done with the rows of large tables: embedding_bag joins them, sparse_rows has gradients of those alone that
// are used.
#pragma once

#include <limits>

#include <dfdx/vocabulary/choose.hpp>
#include <dfdx/vocabulary/in_place.hpp>
#include <dfdx/vocabulary/index_copy.hpp>
#include <dfdx/vocabulary/order.hpp>

namespace dfdx {

namespace detail {

// Rows summed by their bags, of which there are as many as offsets.
struct BagSum {
  static constexpr Meta infer(Meta const* in, Text* why) {
    Meta const &rows = in[0], &bags = in[1], &offsets = in[2];
    if (rows.shape.rank != 2 || bags.shape.rank != 1 || offsets.shape.rank != 1)
      return refuse(why, "embedding_bag: an index [L] and offsets [B] required, got rows ", rows.shape,
                    " and offsets ", offsets.shape);
    return Meta{rows.dtype, make_shape(offsets.shape[0], rows.shape[1])};
  }
  template <class, class V>
  static constexpr V run(Meta const& y, V const& rows, V const& bags, V const&) {
    return bind_as<op::rows_add>(y, Attrs{{y.shape[0]}}, rows, bags);
  }
};

// The least that a dtype holds.
constexpr double lowest_of(DType d) {
  if (is_floating(d)) return -std::numeric_limits<double>::infinity();
  if (d == DType::i64) return -0x1p63;
  if (d == DType::i32) return -0x1p31;
  return d == DType::i8 ? -128 : 0;
}

// Rows of each bag, of which there may be none, joined over axis -2.
template <operand R, class Join>
constexpr auto joined_rows(R const& rows, Join const& join) {
  if constexpr (refused<R>) return Refused{};
  else if constexpr (typed<R>) {
    constexpr index_t n =
        R::static_rank < 2 ? 1 : R::static_shape[R::static_rank < 2 ? 0 : R::static_rank - 2];
    if constexpr (n == 0) {
      return sum<-2>(rows);
    } else {
      using Joined = decltype(join(rows));
      if (n < 0 && rows.shape()[R::static_rank - 2] == 0)
        return Joined(cast<typename Joined::value_type>(sum<-2>(rows)));
      return join(rows);
    }
  } else {
    int const rank = rows.shape().rank;
    if (rank >= 2 && rows.shape()[rank - 2] == 0) return sum<-2>(rows);
    return join(rows);
  }
}

// Offsets in memory that do not ascend from 0 to the end of the index are refused.
template <class O, class I>
constexpr void require_offsets(O const& offsets, I const& index) {
  if constexpr (!refused<O> && !refused<I>) {
    index_t const n = index.shape().rank == 1 ? index.shape()[0] : -1;
    if (!op::detail::is_index(offsets.dtype()) || n < 0) return;  // which the rules refuse, or do not know
    index_t before = -1;
    each_in_memory(offsets, [&](Operand const& o, index_t at) {
      index_t const i = read_index(o, at);
      if (before < 0 ? i != 0 : i < before || i > n)
        raise("embedding_bag: offsets that ascend from 0 to at most ", n, " required, got ", Position{i});
      before = i;
    });
  }
}

}  // namespace detail

/// Bag - how embedding_bag joins the rows of a bag.
enum class Bag { mean, sum, max };

/// embedding_bag<how>(index, weight) - the rows of each bag, joined. embedding_bag<how>(index, weight, offsets) - bags
/// of different lengths, one after another in the index: offsets say where each begins, the first at 0. An empty bag
/// is 0.
///
/// Shapes    index: [B, L], weight: [N, D]; or index: [L], offsets: [B] -> [B, D]
/// Dtypes    index, offsets: i32 i64 u8, weight: all but bool
/// Errors    "embedding_bag: an index [L] and offsets [B] required, got rows [2, 3, 4] and offsets [2]"; of offsets in
///           memory "embedding_bag: offsets that ascend from 0 to at most 5 required, got 7"
/// Source    PyTorch's embedding_bag
template <Bag How = Bag::mean, operand I, operand W>
constexpr auto embedding_bag(I const& index, W const& weight) {
  auto const rows = detail::take_for<detail::Caller::embedding_bag>(weight, index);
  return detail::joined_rows(rows, [](auto const& r) {
    if constexpr (How == Bag::mean) return mean<-2>(r);
    else if constexpr (How == Bag::sum) return sum<-2>(r);
    else return max<-2>(r);
  });
}
template <Bag How = Bag::mean, operand I, operand W, operand O>
constexpr auto embedding_bag(I const& index, W const& weight, O const& offsets) {
  detail::require_offsets(offsets, index);
  auto const rows = detail::take_for<detail::Caller::embedding_bag>(weight, index);
  auto const place = detail::call(detail::Fixed<detail::PositionsIn{0}>{}, offsets, index);
  auto const bag = searchsorted(offsets, place, true) - 1;
  constexpr detail::Fixed<detail::BagSum{}> by_bag{};
  if constexpr (How == Bag::sum) {
    return detail::call(by_bag, rows, bag, offsets);
  } else if constexpr (How == Bag::mean) {
    auto const number = detail::call(by_bag, ones_as(rows), bag, offsets);
    return detail::call(by_bag, rows, bag, offsets) / where(number == 0, ones_as(number), number);
  } else {
    auto const of = unsqueeze<0>(bag);  // [1, L] against [B, 1]
    auto const hit = unsqueeze<-1>(of == detail::call(detail::Fixed<detail::PositionsIn{0}>{}, of, offsets));
    auto const all = unsqueeze<0>(rows);
    auto const most = detail::joined_rows(
        where(hit, all, full_as(all, detail::lowest_of(rows.dtype()))), [](auto const& r) {
          return detail::reduce<op::max>(r, detail::Fixed<detail::Over{Axes{-2}, false}>{});
        });
    return where(any<1>(hit), most, zeros_as(most));
  }
}

/// index_add_(a, axis, index, src, alpha) - adds alpha times the parts of src to the places of an axis, in place: the
/// others are not touched, unless the tape records it.
///
/// Shapes    a: [S...], index: [I], src: [S...] with I on the axis -> a
/// Dtypes    a, src: one, all but bool; index: i32 i64 u8
/// Errors    those of index_add
/// Source    PyTorch's index_add_
template <class A>
  requires leaf<A>
A& index_add_(A& a, int axis, Array const& index, Array const& src, double alpha = 1) {
  detail::IndexSum const rule{axis};
  Meta const in[] = {a.meta(), index.meta(), src.meta()};
  Text why;
  if (!rule.infer(in, &why).valid()) raise(why);
  if (a.recorded() || (is_grad_enabled() && (a.requires_grad() || src.requires_grad()))) {
    detail::change("index_add_", a,
                   [&](auto const& v) { return index_add(detail::untyped(v), axis, index, src, alpha); });
    return a;
  }
  detail::check_target("index_add_", a);
  int const at = normalize_axis(axis, a.ndim());
  Array const list = detail::packed(cast_to(detail::lazy<sizeof(A)>(index), DType::i64));
  auto const* const to = list.template data<std::int64_t>();
  bool ascends = true;
  for (index_t i = 0; i < list.size(); ++i) {
    op::detail::checked_index("index_add_", to[i], a.shape()[at], at, a.shape());
    ascends = ascends && (i == 0 || to[i - 1] < to[i]);
  }
  // What is added has memory of its own where src is a part of a.
  Array const added = alpha == 1 && src.storage() != a.storage()
                          ? src
                          : detail::lazy<sizeof(A)>(src) * full_as(detail::lazy<sizeof(A)>(src), alpha);
  auto const part_of = [at](auto const& x, index_t i) { return select(detail::lazy<sizeof(A)>(x), at, i); };
  if (ascends) {
    for (index_t i = 0; i < list.size(); ++i) {
      Array part = part_of(a, to[i]);
      part += part_of(added, i);
    }
    return a;
  }
  // Parts for one place are rounded once, as they are where this is recorded.
  Unique const u = unique_all(detail::lazy<sizeof(A)>(list));
  Array const before = index_select(detail::lazy<sizeof(A)>(Array(a)), at, u.values),
              sums = detail::call(rule, detail::lazy<sizeof(A)>(before), u.inverse, added);
  for (index_t i = 0; i < u.values.size(); ++i)
    detail::copy_values(part_of(sums, i), part_of(a, u.values.template data<std::int64_t>()[i]));
  a.storage()->changed();
  return a;
}

/// SparseRows - the rows of a table that an index names: `indices` in ascending order, the `rows` there, which are a
/// leaf of the tape, and at which of them each index is, `places`.
struct SparseRows {
  Array indices, rows, places;
};

/// sparse_rows(table, index) - for an embedding of few rows of a large table. embedding(used.places, used.rows) is
/// embedding(index, table), but its gradient, used.rows.grad(), has no more rows than are used, and so has the step:
///
///   SparseRows const used = sparse_rows(table, index);
///   loss(embedding(used.places, used.rows)).backward();
///   index_add_(table, 0, used.indices, used.rows.grad(), -lr);
///
/// Shapes    table: [N, R...], index: [I...] -> indices: [K], rows: [K, R...], places: [I...]
/// Dtypes    table: floating, index: i32 i64 u8; indices as index, places i64
/// Errors    "sparse_rows: index 30 out of range for axis 0 of [27, 10]"
/// Source    PyTorch's sparse gradients of embedding
template <class W, class I>
  requires(std::is_base_of_v<Array, W> && std::is_base_of_v<Array, I>)
SparseRows sparse_rows(W const& table, I const& index) {
  SparseRows r;
  r.indices = unique(index);
  r.places = searchsorted(r.indices, detail::untyped(index));
  r.rows = detail::take_for<op::Caller::sparse_rows>(detail::lazy<sizeof(W)>(table).detach(), r.indices);
  r.rows.requires_grad(true);
  return r;
}

}  // namespace dfdx
