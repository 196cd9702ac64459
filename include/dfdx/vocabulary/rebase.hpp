// SPDX-License-Identifier: BSL-1.0
// After y[1] += 5 the recorded y is another value, and so is every view of it. Its memory remembers which part was
// changed and what that part is since; a value that is used later gets a node for itself with that part put in.
#pragma once

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include <dfdx/vocabulary/elementwise.hpp>
#include <dfdx/vocabulary/index.hpp>

namespace dfdx {

namespace detail {

// x with a part of its memory replaced. Operands: x, the part, which elements of x that has replaced, and for each of
// its elements the place in x, or -1.
//
// ct_x = ct where nothing was replaced, else 0;  ct_part = ct at the places, 0 where there is none
template <class V>
V vjp_of_put(V const& ct, Site<V> const& s, int which) {
  if (which == 0) return where(s.x[2], zeros_as(ct), ct);
  V const& places = s.x[3];
  V const there = places >= 0;
  V const part = take(reshape_to(ct, make_shape(ct.shape().numel())), where(there, places, zeros_as(places)));
  return where(there, part, zeros_as(part));
}
inline unsigned reads_of_put(int which) { return which == 0 ? 4u : which == 1 ? 8u : PlainNumber::nothing; }
template <class V>
inline constinit TapeRule const put_rule{"put", 4, &vjp_of_put<V>, nullptr, &reads_of_put, nullptr};

// The same for an x that names elements of the memory several times, as what was expanded does. Operands: x, the part,
// and for each element of x the place in the part, or -1.
//
// ct_x = ct where there is no place, else 0;  ct_part = the sums of ct over the elements of each place
template <class V>
V vjp_of_repeated_put(V const& ct, Site<V> const& s, int which) {
  V const& places = s.x[2];
  V const there = places >= 0, zero = zeros_as(ct);
  if (which == 0) return where(there, zero, ct);
  Shape const &part = s.x[1].shape(), all = make_shape(ct.shape().numel());
  V const sums = bind<op::rows_add>(Attrs{{part.numel()}}, reshape_to(where(there, ct, zero), all),
                                    reshape_to(where(there, places, zeros_as(places)), all));
  return reshape_to(sums, part);
}
inline unsigned reads_of_repeated_put(int) { return 4; }
template <class V>
inline constinit TapeRule const repeated_put_rule{
    "put", 3, &vjp_of_repeated_put<V>, nullptr, &reads_of_repeated_put, nullptr};

// Where the elements of a part lie in x, a view of the same memory: positions in row-major order, or -1. (Place is a
// parameter so that programs without it compile no sort.)
template <int Lazy, class Place = std::pair<index_t, index_t>>
Array places_in(Array const& x, Array const& part) {
  index_t const from = (part.bytes() - x.bytes()) / static_cast<index_t>(size_of(x.dtype())), n = x.size();
  bool const dense = x.contiguous_memory();
  std::vector<Place> known;
  Strides const strides[1] = {x.strides()}, steps[1] = {part.strides()};
  if (!dense) {
    walk<1>(x.shape(), strides,
            [&](index_t const(&at)[1]) { known.emplace_back(at[0], static_cast<index_t>(known.size())); });
    std::sort(known.begin(), known.end());
  }
  Array places(Meta{DType::i64, part.shape()});
  auto* to = reinterpret_cast<std::int64_t*>(places.bytes());
  walk<1>(part.shape(), steps, [&](index_t const(&at)[1]) {
    index_t const address = from + at[0];
    if (dense) {
      *to++ = address >= 0 && address < n ? address : -1;
    } else {
      auto const i = std::lower_bound(known.begin(), known.end(), Place{address, 0});
      *to++ = i != known.end() && i->first == address ? i->second : -1;
    }
  });
  return places;
}

// The node of x, which was `before`, behind a change; the same if that did not touch x.
template <int Lazy>
TapeNode* node_behind(Changes::Change const& change, Array const& x, TapeNode* before) {
  bool const repeats = overlaps_itself(x.shape(), x.strides());
  Array places = repeats ? places_in<Lazy>(change.part, x) : places_in<Lazy>(x, change.part);
  Array replaced(Meta{DType::boolean, repeats ? make_shape(0) : x.shape()});
  op::detail::set_zero(replaced.operand());
  index_t hits = 0;
  auto const* const place = reinterpret_cast<std::int64_t const*>(places.bytes());
  for (index_t i = 0; i < places.size(); ++i)
    if (place[i] >= 0) {
      if (!repeats) reinterpret_cast<bool*>(replaced.bytes())[place[i]] = true;
      ++hits;
    }
  if (hits == 0) {
    before->version = change.version;
    return before;
  }
  if (is_elsewhere(x)) {
    places = moved(x.device(), places);
    replaced = moved(x.device(), replaced);
  }
  TapeRule const* const rule = repeats ? &repeated_put_rule<Array> : &put_rule<Array>;
  Array const* const put[] = {&x, &change.part, &replaced, &places, &x};
  Array const* const repeated[] = {&x, &change.part, &places, &x};
  Array const* const* const operands = repeats ? repeated : put;
  int const arity = rule->arity;
  PackedArray values[5] = {};
  std::size_t bytes = bytes_before_arrays;
  for (int k = 0; k <= arity; ++k) {
    values[k] = PackedArray::describe(*operands[k], k >= 2 && k < arity);
    bytes += values[k].bytes();
  }
  TapeNode* const node = TapeNode::make(rule, TapeNode::Payload::arrays, bytes);
  ::new (&attrs_of(*node)) Attrs();
  PackedArray* to = arrays_of(*node);
  for (int k = 0; k <= arity; ++k, to = to->next()) {
    std::memcpy(to, &values[k], sizeof(PackedArray));  // (nvcc does not read a new-expression here)
    to->pack(*operands[k]);
  }
  node->arity = static_cast<std::uint8_t>(arity);
  node->in(0) = hits < x.size() ? before : nullptr;
  node->in(1) = change.part.tape();
  for (int k = 0; k < 2; ++k)
    if (node->in(k) != nullptr) node->in(k)->retain();
  node->version = change.version;
  node->number = before->number;
  node->cuda_index = before->cuda_index;
  if (before->retains_grad) {
    extras_of(*node);
    node->retains_grad = true;
  }
  return node;
}

// What a recorded value that others view becomes when plain numbers take its place: nothing flows through it, but it
// follows what is done to these numbers later.
inline constinit TapeRule const plain_rule{"plain numbers", 0, nullptr, nullptr, nullptr, nullptr};
template <int Lazy>
TapeNode* node_of_plain(Array const& x) {
  PackedArray const value = PackedArray::describe(x, false);
  TapeNode* const node =
      TapeNode::make(&plain_rule, TapeNode::Payload::arrays, bytes_before_arrays + value.bytes());
  ::new (&attrs_of(*node)) Attrs();
  std::memcpy(arrays_of(*node), &value, sizeof(PackedArray));
  arrays_of(*node)->pack(x);
  node->version = x.storage()->version();
  node->number = x.tape()->number;
  node->cuda_index = x.tape()->cuda_index;
  return node;
}

// Changes::Current: goes through the changes since x was recorded, if none is unknown.
template <int Lazy>
TapeNode* node_after(Changes& c, Array const& x) {
  Changes::Rebased* known = nullptr;
  for (Changes::Rebased& r : c.rebased)
    if (r.from.tape() == x.tape()) known = &r;
  TapeNode* node = known != nullptr ? known->to.tape() : x.tape();
  // From the last that changed all, or the first that the node has not seen.
  std::size_t first = c.list.size();
  for (std::uint32_t v = x.storage()->version(); v != node->version; --v) {
    if (first == 0 || c.list[first - 1].version != v) return nullptr;
    if (c.list[--first].whole) break;
  }
  for (; first < c.list.size(); ++first) {
    TapeNode* const next = node_behind<Lazy>(c.list[first], x, node);
    if (next == node) continue;
    if (known == nullptr) {
      x.tape()->retain();
      c.rebased.push_back({});
      known = c.rebased.begin() + (c.rebased.size() - 1);
      known->from.put_on_tape(x.tape());
    }
    known->to.put_on_tape(next);
    node = next;
  }
  return node;
}

/// Remembers that a target was changed, for the other arrays that view its memory.
// (A template, so that programs without changes in place do not compile it.)
template <int Lazy>
void remember_change(Array const& target) {
  Storage& memory = *target.storage();
  bool const alone = memory.handles() == 1;
  bool const whole = static_cast<std::size_t>(target.size()) * size_of(target.dtype()) == memory.bytes();
  if (memory.changes() != nullptr && (alone || whole)) memory.forget_changes();
  if (alone || memory.is_adopted()) return;
  if (memory.changes() == nullptr) memory.changes(new Changes{&node_after<Lazy>});
  Array part = Array::unpacked(nullptr, target.bytes(), target.dtype(), target.ndim(), target.shape().dims,
                               target.strides().dims);
  if (target.tape() != nullptr) target.tape()->retain();
  part.put_on_tape(target.tape());
  memory.changes()->list.push_back({memory.version(), whole, std::move(part)});
}

}  // namespace detail

}  // namespace dfdx
