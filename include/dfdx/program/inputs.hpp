// SPDX-License-Identifier: BSL-1.0
// Arguments in memory as the inputs of a program.
#pragma once

#include <dfdx/program/literals.hpp>
#include <dfdx/value/unlisted.hpp>

namespace dfdx::detail::inline DFDX_TARGET {

/// InputList - what a program needs to know of its inputs at run time, beside their addresses. It knows no types: all
/// programs share its code.
template <class = void>
struct InputList {
  InputList(std::byte** to, int room) : addresses(to), most(room) {}
  InputList(InputList const&) = delete;
  InputList& operator=(InputList const&) = delete;

  std::byte** addresses;
  int most;
  index_t symbols[max_symbols] = {};
  int count = 0, known = 0;
  Device device{};    // of all of them: a program runs where its arguments are
  Vec<Array> packed;  // row-major copies of arguments that are not

  /// The leaves of an argument are the next inputs.
  template <class T>
  void add(T const& t) {
    require_values_of_type(t);
    visit(t, [&](auto const& leaf) { add(leaf, std::remove_cvref_t<decltype(leaf)>::static_shape); });
  }
  /// So is an array; `type` is the shape that its type says.
  [[gnu::noinline]] void add(Array const& x, Shape const& type) {
    if (count == most) raise("program: an optional in the arguments of a compiled function is not empty");
    if (x.bytes() == nullptr)
      raise("program: argument of shape ", x.shape(), " holds no memory; init, zeros or from give it some");
    if (count == 0) device = x.device();
    if (x.device() != device) raise("program: arguments on ", device, " and on ", x.device());
    for (int i = 0; i < type.rank; ++i)
      if (type[i] == extent::unknown) symbols[known++] = x.shape()[i];
    if (x.contiguous_memory()) {
      addresses[count++] = x.bytes();
      return;
    }
    if (!device.is_cpu()) raise("program: a view of shape ", x.shape(), " on ", device, " is not contiguous");
    packed.push_back(detail::packed(x));
    addresses[count++] = packed.back().bytes();
  }

  [[gnu::noinline]] void check(SameExtent const* rules, std::size_t n) const {
    for (std::size_t i = 0; i < n; ++i) {
      SameExtent const& r = rules[i];
      index_t const a = extent::resolve(r.a, symbols), b = extent::resolve(r.b, symbols);
      if (!r.holds(a, b)) raise(r.op, r.or_less ? ": extent too small: " : ": extents differ: ", a, " x ", b);
    }
  }
};

/// Inputs - the addresses of the inputs of program P, and what it needs to know of them.
template <class P>
struct Inputs : InputList<> {
  Inputs() : InputList<>(data, P::inputs - literals) {}
  Inputs(Inputs const& o) : Inputs() { *this = o; }
  Inputs& operator=(Inputs const& o) {
    for (int i = 0; i < o.count; ++i) data[i] = o.data[i];
    for (int i = 0; i < o.known; ++i) symbols[i] = o.symbols[i];
    count = o.count, known = o.known, device = o.device, packed = o.packed;
    return *this;
  }
  std::byte* data[P::inputs + 1] = {};

  /// After the last argument: checks them, and adds the program's literals.
  void complete() {
    if constexpr (P::plan.requirements.size() != 0)
      InputList<>::check(P::plan.requirements.data(), P::plan.requirements.size());
    if constexpr (literals != 0) {
      auto const& image = literals_of(std::type_identity<P>{});
      auto* from = const_cast<std::byte*>(image.bytes);
      if constexpr (has_devices)
        if (!device.is_cpu()) from = OnDevice<P>::literals(from, sizeof image.bytes, device);
      for (std::size_t const first : image.first) data[count++] = from + first;
    }
  }

 private:
  static constexpr int literals = P::plan.literal_inputs.count;
};

}  // namespace dfdx::detail::inline DFDX_TARGET
