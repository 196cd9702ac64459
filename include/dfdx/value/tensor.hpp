// SPDX-License-Identifier: BSL-1.0
// Tensor<T, Dims...>, the typed value: an Array whose dtype and dims the compiler knows and checks. It adds no
// data.
#pragma once

#include <array>
#include <initializer_list>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

#include <dfdx/value/array.hpp>
#include <dfdx/value/tensor_methods.hpp>

namespace dfdx {

namespace detail {
// That an Array is what a Tensor of this meta holds.
constexpr void require_meta(Meta const& want, Array const& x) {
  Shape const& have = x.shape();
  bool ok = x.dtype() == want.dtype && have.rank == want.shape.rank;
  for (int i = 0; ok && i < have.rank; ++i) ok = want.shape[i] < 0 || have[i] == want.shape[i];
  if (!ok) raise("tensor: ", want.dtype, " ", want.shape, " required, got ", x.dtype(), " ", have);
}
// The same value, but a compiler that reads a template does not know it yet, and so does not compile what is called
// with it in programs that do not.
template <std::size_t>
constexpr Array const& lazy(Array const& a) {
  return a;
}
// The same for a class: a 0 that it does not know yet, C<lazily<A...>> for C<0>.
template <class...>
inline constexpr int lazily = 0;
// On the tape this is an op like others; else a view is made here.
template <int Lazy = 0>
constexpr Array at_first(Array const& x, index_t i) {
  if (x.recorded()) return x.template operator[]<Lazy>(i);
  return x.tape() == nullptr ? x.part(i) : x.at_on_tape<Lazy>(i);
}
// An element of what has no numbers yet, in a function that is compiled. (In a branch of its own: of a
// function that is no constant expression in any way the compiler says that, in place of this text.)
template <class E>
constexpr E& refused_element(E* none, bool compiled = true) {
  if (compiled)
    raise("item: no number while a function is compiled; use where, cond, scan, unbind(x)[0], index_copy");
  return *none;
}
}  // namespace detail

/// Tensor - a value of element type T and shape [Dims...]; a dim may be `dyn`, known at run time only.
///
/// Shapes    [Dims...]; Tensor<T> is a scalar
/// Errors    "tensor: shape [2, 3] required, got [4]" when an Array of another shape or dtype is made a Tensor
/// Example   examples/01_values.cpp
template <element E, std::size_t... Dims>
class Tensor : public TensorMethods<Tensor<E, Dims...>, Array> {
  using Base = TensorMethods<Tensor, Array>;

 public:
  using value_type = E;
  static constexpr int static_rank = static_cast<int>(sizeof...(Dims));
  /// The shape as the type knows it; dyn dims are extent::unknown.
  static constexpr Shape static_shape = make_shape(Dims...);
  static constexpr Meta static_meta{dtype_v<E>, static_shape};

  /// No memory yet: reading it is an error. Use zeros(), from(), ... for one that holds numbers.
  constexpr Tensor() : Base(nullptr, -1, static_meta) {}

  constexpr Tensor(Tensor const&) = default;
  constexpr Tensor(Tensor&&) = default;
  constexpr Tensor& operator=(Tensor const&) & = default;
  constexpr Tensor& operator=(Tensor&&) & = default;
  Tensor& operator=(Tensor const&) && = delete;  // of a part: select<0, 0>(a).copy_(x)

  /// A value that the caller has shown to have this dtype and shape.
  struct Unchecked {};
  constexpr Tensor(Unchecked, Array a) : Base(std::move(a)) {}

  /// Checked view of an untyped value.
  constexpr explicit Tensor(Array a) : Base(std::move(a)) { detail::require_meta(static_meta, *this); }

  constexpr Tensor(E value)
    requires(sizeof...(Dims) == 0)
      : Base(typename Array::Scalar{}, value) {}

  /// Tensor<float, 3> v{1, 2, 3}, Tensor<float, 2, 2> m{{1, 2}, {3, 4}} - from(...): as many levels as axes. In a
  /// function that is compiled, and as what a model's type gives its members, a constant of the program.
  constexpr Tensor(std::initializer_list<E> values)
    requires(sizeof...(Dims) == 1)
      : Tensor(from(values)) {}
  constexpr Tensor(std::initializer_list<std::initializer_list<E>> rows)
    requires(sizeof...(Dims) == 2)
      : Tensor(from(rows)) {}
  constexpr Tensor(std::initializer_list<std::initializer_list<std::initializer_list<E>>> matrices)
    requires(sizeof...(Dims) == 3)
      : Tensor(from(matrices)) {}

  /// borrow - a row-major view of numbers that the caller owns and that must outlive it: nothing is copied. With dyn
  /// dims give the shape too.
  static Tensor borrow(E* data, Shape const& shape = static_shape) {
    if (!shape.is_static()) raise("tensor: sizes needed for the dyn dims of ", static_shape);
    return Tensor(Array::borrow(data, Meta{dtype_v<E>, shape}));
  }

  static Tensor uninitialized(Shape const& shape = static_shape) {
    if (!shape.is_static()) raise("tensor: sizes needed for the dyn dims of ", static_shape);
    return Tensor(Array(Meta{dtype_v<E>, shape}));
  }

  /// from - elements in row-major order, or rows of them, or matrices. With dyn dims give the shape too.
  static constexpr Tensor from(std::span<E const> values, Shape const& shape = static_shape) {
    return written(shape, [&](auto* out, index_t n) {
      if (static_cast<index_t>(values.size()) != n)
        raise("from: ", static_cast<index_t>(values.size()), " elements for shape ", shape);
      write_row(values, out);
    });
  }
  // A template, so that it yields to those below where {1} is an element as well as a row.
  template <class U = E>
  static constexpr Tensor from(std::initializer_list<std::type_identity_t<U>> values) {
    return from(std::span<E const>(values.begin(), values.size()), one_dyn_shape(values.size()));
  }
  static constexpr Tensor from(std::initializer_list<std::initializer_list<E>> rows)
    requires(sizeof...(Dims) == 2)
  {
    std::size_t const columns = first_size(rows);
    return written(make_shape(rows.size(), columns),
                   [&](auto* out, index_t) { write_rows(rows, columns, out); });
  }
  static constexpr Tensor from(
      std::initializer_list<std::initializer_list<std::initializer_list<E>>> matrices)
    requires(sizeof...(Dims) == 3)
  {
    std::size_t const rows = first_size(matrices), columns = rows == 0 ? 0 : first_size(*matrices.begin());
    return written(make_shape(matrices.size(), rows, columns), [&](auto* out, index_t) {
      for (auto const& matrix : matrices) {
        if (matrix.size() != rows) raise("from: matrices of different numbers of rows");
        out = write_rows(matrix, columns, out);
      }
    });
  }

  using Array::data;
  E* data() const { return Array::template data<E>(); }
  constexpr E item() const {
    if (DFDX_IN_CONSTANT_EXPRESSION) return detail::refused_element<E>(nullptr);
    else return Array::template item<E>();
  }

  /// A scalar tensor reads as its number.
  constexpr operator E() const
    requires(sizeof...(Dims) == 0)
  {
    return item();
  }

  /// x(i, j) - the element, by reference: a number of C++, which the tape and programs do not follow (what
  /// select<0, 0>(x) gives they do).
  template <std::convertible_to<index_t>... I>
    requires(sizeof...(I) == sizeof...(Dims))
  constexpr E& operator()(I... i) const {
    if (DFDX_IN_CONSTANT_EXPRESSION) return detail::refused_element<E>(nullptr);
    else return Array::template at<E>({static_cast<index_t>(i)...});
  }

  /// x[i] - the subtensor at i of the first axis; if there is but one axis the element, a plain number that the tape
  /// does not follow (Array(x)[i] is one that it does).
  constexpr decltype(auto) operator[](index_t i) const
    requires(sizeof...(Dims) > 0)
  {
    if (!this->recorded() && (i < 0 || i >= this->shape()[0]))
      raise("at: index ", Position{i}, " out of range for axis 0 of ", this->shape());
    if constexpr (sizeof...(Dims) == 1) {
      if (DFDX_IN_CONSTANT_EXPRESSION) return detail::refused_element<E>(nullptr);
      else return data()[i * this->strides()[0]];
    } else {
      return drop_first(std::make_index_sequence<sizeof...(Dims) - 1>{}, detail::at_first(*this, i));
    }
  }

  /// Iteration over the first axis.
  class iterator {
   public:
    using difference_type = index_t;
    using value_type = std::remove_cvref_t<decltype(std::declval<Tensor const&>()[0])>;
    iterator() = default;
    iterator(Tensor const* t, index_t i) : tensor_(t), i_(i) {}
    decltype(auto) operator*() const { return (*tensor_)[i_]; }
    iterator& operator++() {
      ++i_;
      return *this;
    }
    iterator operator++(int) { return {tensor_, i_++}; }
    bool operator==(iterator const& o) const { return i_ == o.i_; }

   private:
    Tensor const* tensor_ = nullptr;
    index_t i_ = 0;
  };
  iterator begin() const
    requires(sizeof...(Dims) > 0)
  {
    return {this, 0};
  }
  iterator end() const
    requires(sizeof...(Dims) > 0)
  {
    return {this, this->shape()[0]};
  }

 private:
  template <std::size_t... I>
  static constexpr auto drop_first(std::index_sequence<I...>, Array a) {
    constexpr std::size_t all[] = {Dims...};
    return Tensor<E, all[I + 1]...>(std::move(a));
  }

  static constexpr std::size_t first_size(auto const& list) {
    return list.size() == 0 ? 0 : list.begin()->size();
  }
  // The Tensor whose elements write(to, how many) writes: into memory, or as the words of a literal.
  template <class Write>
  static constexpr Tensor written(Shape const& shape, Write const& write) {
    if (!shape.is_static()) raise("tensor: sizes needed for the dyn dims of ", static_shape);
    Meta const meta{dtype_v<E>, shape};
    if (DFDX_IN_CONSTANT_EXPRESSION) {
      Vec<std::uint64_t> words(static_cast<std::size_t>(shape.numel()));
      write(words.data(), shape.numel());
      return Tensor(Array::literal(meta, std::move(words)));
    }
    Tensor r{Array(meta)};
    write(reinterpret_cast<E*>(r.bytes()), shape.numel());
    return r;
  }
  template <class T>
  static constexpr T* write_row(auto const& row, T* out) {
    for (E const& x : row)
      if constexpr (std::is_same_v<T, E>) *out++ = x;
      else *out++ = detail::word_of(x);
    return out;
  }
  template <class T>
  static constexpr T* write_rows(std::initializer_list<std::initializer_list<E>> rows, std::size_t columns,
                                 T* out) {
    for (auto const& row : rows) {
      if (row.size() != columns) raise("from: rows of different lengths");
      out = write_row(row, out);
    }
    return out;
  }

  // The shape, if at most one dim is dyn and the number of elements settles it.
  static constexpr Shape one_dyn_shape(std::size_t count) {
    Shape s = static_shape;
    index_t known = 1;
    int open = -1;
    for (int i = 0; i < s.rank; ++i)
      if (s[i] >= 0) known *= s[i];
      else open = open == -1 ? i : -2;
    if (open >= 0 && known > 0) s[open] = static_cast<index_t>(count) / known;
    return s;
  }
};

namespace detail {

template <class T, std::size_t... D>
std::type_identity<Tensor<T, D...>> as_tensor(Tensor<T, D...> const*);
void as_tensor(void const*);

template <class X>
using tensor_base = decltype(as_tensor(static_cast<std::remove_cvref_t<X> const*>(nullptr)));

// From a list of numbers, not from what they are computed by: nvcc's front end spells a type as it has met it first.
template <class T, class Dims>
struct TensorOf;
template <class T, std::size_t... D>
struct TensorOf<T, std::index_sequence<D...>> {
  using type = Tensor<T, D...>;
};
// The meta of a result, as a type.
template <class M, std::size_t... I>
auto tensor_of(std::index_sequence<I...>) -> typename TensorOf<
    element_t<M::value.dtype>,
    std::index_sequence<static_cast<std::size_t>(M::value.shape[static_cast<int>(I)])...>>::type;

}  // namespace detail

/// typed - a Tensor, or a class derived from one.
template <class X>
concept typed = !std::is_void_v<detail::tensor_base<X>>;

/// tensor_for - Tensor<...> with the dtype and shape of M::value, a Meta.
template <class M>
using tensor_for =
    decltype(detail::tensor_of<M>(std::make_index_sequence<static_cast<std::size_t>(M::value.shape.rank)>{}));

/// Refused - what an expression is that the compiler has refused: ops on it are refused in turn without a word,
/// and it converts to anything, so that one mistake is one message. No program that compiles holds one.
struct Refused : Array {
  template <class T>
  constexpr operator T() const {
    raise("refused by the compiler");
  }
  constexpr Refused item() const { return {}; }
  constexpr Refused operator()(auto const&...) const { return {}; }
  constexpr Refused operator[](index_t) const { return {}; }
};

/// refused - whether any of these is Refused, or a pair or tuple with one in it.
template <class... X>
inline constexpr bool refused = (refused<X> || ...);
template <class X>
inline constexpr bool refused<X> = std::is_same_v<std::remove_cvref_t<X>, Refused>;
template <class A, class B>
inline constexpr bool refused<std::pair<A, B>> = refused<A> || refused<B>;
template <class... X>
inline constexpr bool refused<std::tuple<X...>> = (refused<X> || ...);

/// operand - what ops take: a Tensor, an Array, a Sym or a PlainNumber.
template <class X>
concept operand =
    std::is_same_v<std::remove_cvref_t<X>, Sym> || std::is_base_of_v<Array, std::remove_cvref_t<X>> ||
    std::is_same_v<std::remove_cvref_t<X>, PlainNumber>;

}  // namespace dfdx
