// SPDX-License-Identifier: BSL-1.0
// Vec: the growing array of the passes. It does what std::vector does, in a fraction of the steps of a constant
// expression: a push is a handful of them instead of a hundred, and programs of a thousand nodes stay cheap to
// compile.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <type_traits>
#include <utility>

namespace dfdx {

class Graph;

/// Vec - a growing array of default-constructible elements, for constant expressions and run time alike.
///
/// Errors    none are checked: indices are the passes' own
template <class T>
class Vec {
 public:
  using value_type = T;

  constexpr Vec() = default;
  constexpr explicit Vec(std::size_t n) : data_(n != 0 ? new T[n]{} : nullptr), size_(n), capacity_(n) {}
  constexpr Vec(std::size_t n, T const& value) { assign(n, value); }
  constexpr Vec(std::initializer_list<T> values) { assign(values.begin(), values.end()); }
  constexpr Vec(Vec const& o) { assign(o.begin(), o.end()); }
  constexpr Vec(Vec&& o) noexcept : data_(o.data_), size_(o.size_), capacity_(o.capacity_) { o.forget(); }
  constexpr Vec& operator=(Vec const& o) {
    if (this != &o) assign(o.begin(), o.end());
    return *this;
  }
  constexpr Vec& operator=(Vec&& o) noexcept {
    if (this == &o) return *this;
    delete[] data_;
    data_ = o.data_, size_ = o.size_, capacity_ = o.capacity_;
    o.forget();
    return *this;
  }
  constexpr ~Vec() { delete[] data_; }

  constexpr void push_back(T const& value) {
    if (size_ == capacity_) {
      T const kept = value;  // it may be one of our own
      reserve(capacity_ == 0 ? 8 : 2 * capacity_);
      data_[size_++] = kept;
      return;
    }
    data_[size_++] = value;
  }
  constexpr void push_back(T&& value) {
    if (size_ == capacity_) return push_back(static_cast<T const&>(value));
    data_[size_++] = static_cast<T&&>(value);
  }
  constexpr void reserve(std::size_t n) {
    if (n <= capacity_) return;
    T* const more = allocate(n);
    for (std::size_t i = 0; i < size_; ++i)
      more[i] = static_cast<T&&>(data_[i]);  // a call of std::move is a call in constant expressions
    delete[] data_;
    data_ = more;
    capacity_ = n;
  }
  constexpr void resize(std::size_t n) {
    if (n > capacity_) reserve(n > 2 * capacity_ ? n : 2 * capacity_);
    for (std::size_t i = size_; i < n; ++i) data_[i] = T{};
    size_ = n;
  }
  constexpr void assign(std::size_t n, T const& value) {
    reserve(n);
    for (std::size_t i = 0; i < n; ++i) data_[i] = value;
    size_ = n;
  }
  constexpr void assign(T const* first, T const* last) {
    reserve(static_cast<std::size_t>(last - first));
    size_ = 0;
    for (; first != last; ++first) data_[size_++] = *first;
  }

  /// Of another array, not of this one.
  constexpr void append(T const* first, T const* last) {
    std::size_t const n = size_ + static_cast<std::size_t>(last - first);
    if (n > capacity_) reserve(n > 2 * capacity_ ? n : 2 * capacity_);
    for (T* to = data_ + size_; first != last; ++first, ++to) *to = *first;
    size_ = n;
  }

  constexpr std::size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  // Any integer: passes number nodes by int, and in constant expressions each call, of a conversion too, takes time.
  template <class I>
  constexpr T& operator[](I i) {
    return data_[i];
  }
  template <class I>
  constexpr T const& operator[](I i) const {
    return data_[i];
  }
  constexpr T& back() { return data_[size_ - 1]; }
  constexpr T const& back() const { return data_[size_ - 1]; }
  constexpr T* data() { return data_; }
  constexpr T const* data() const { return data_; }
  constexpr T* begin() { return data_; }
  constexpr T* end() { return data_ + size_; }
  constexpr T const* begin() const { return data_; }
  constexpr T const* end() const { return data_ + size_; }

 private:
  friend class Graph;  // for its nodes: passes ask for them more often than for all else, and save a call

  // Numbers are left as they are. Objects are asked to be empty, all alike: in a constant expression that takes half
  // the time of calling the constructor of each.
  static constexpr T* allocate(std::size_t n) {
    if constexpr (std::is_trivially_default_constructible_v<T>) return new T[n];
    else return new T[n]{};
  }
  constexpr void forget() { data_ = nullptr, size_ = 0, capacity_ = 0; }

  T* data_ = nullptr;
  std::size_t size_ = 0, capacity_ = 0;
};

}  // namespace dfdx
