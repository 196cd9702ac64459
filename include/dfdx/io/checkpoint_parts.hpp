// SPDX-License-Identifier: BSL-1.0
// What a training run consists of, for io/checkpoint.hpp: going through models, training steps, loaders and any other
// state by name; numbers, texts and lists of numbers as tensors.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstring>
#include <string_view>
#include <vector>

#include <boost/hana/unpack.hpp>

#include <dfdx/core/random.hpp>
#include <dfdx/core/type_name.hpp>
#include <dfdx/value/fields.hpp>
#include <dfdx/value/tensor.hpp>

namespace dfdx {

/// MustEqual - a part of a checkpoint that is compared and not loaded.
template <class T>
struct MustEqual {
  T value;
};
/// must_equal(x) - saved, and compared with what is here when the file is loaded: what a run is about, as the number of
/// its examples, of which another value makes it another run. A number or a std::string.
template <class T>
MustEqual<std::decay_t<T>> must_equal(T const& x) {
  return {x};
}
inline MustEqual<std::string> must_equal(char const* x) { return {x}; }

namespace detail {

template <class T>
concept plain_number = std::is_arithmetic_v<T> || std::is_enum_v<T>;
template <class T>
inline constexpr bool is_vector = false;
template <class T>
inline constexpr bool is_vector<std::vector<T>> = true;
template <class T>
inline constexpr bool is_number_list = false;
template <class T>
inline constexpr bool is_number_list<std::vector<T>> = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;
template <class T>
inline constexpr bool is_must_equal = false;
template <class T>
inline constexpr bool is_must_equal<MustEqual<T>> = true;
// A part that is one tensor of the file.
template <class T>
concept checkpoint_item =
    plain_number<T> || std::is_same_v<T, Key> || std::is_same_v<T, std::string> || is_number_list<T>;

// How a number is stored: whole ones in 64 bits.
template <class T>
auto stored(T x) {
  if constexpr (std::is_same_v<T, Key>) return static_cast<std::int64_t>(x.seed);
  else if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, float> || std::is_same_v<T, double>)
    return x;
  else if constexpr (std::is_floating_point_v<T>) return static_cast<double>(x);
  else return static_cast<std::int64_t>(x);
}
template <class T>
T restored(decltype(stored(T{})) x) {
  return static_cast<T>(x);
}

template <class T>
Array as_array(T const& x) {
  if constexpr (std::is_same_v<T, std::string>) {
    auto r = Tensor<std::uint8_t, dyn>::uninitialized(make_shape(x.size()));
    std::copy(x.begin(), x.end(), r.data());
    return r;
  } else if constexpr (is_number_list<T>) {
    using S = decltype(stored(typename T::value_type{}));
    auto r = Tensor<S, dyn>::uninitialized(make_shape(x.size()));
    for (std::size_t i = 0; i < x.size(); ++i) r.data()[i] = stored(x[i]);
    return r;
  } else {
    using S = decltype(stored(x));
    auto r = Tensor<S>::uninitialized();
    *r.data() = stored(x);
    return r;
  }
}
template <class T>
T from_array(Array const& a) {
  if constexpr (std::is_same_v<T, std::string>) {
    return T(a.data<std::uint8_t>(), a.data<std::uint8_t>() + a.size());
  } else if constexpr (is_number_list<T>) {
    using E = typename T::value_type;
    T r;
    for (index_t i = 0; i < a.size(); ++i) r.push_back(restored<E>(a.data<decltype(stored(E{}))>()[i]));
    return r;
  } else {
    return restored<T>(*a.data<decltype(stored(T{}))>());
  }
}
// For messages.
template <class T>
std::string shown(T const& x) {
  if constexpr (std::is_same_v<T, std::string>) {
    std::string r(1, '"');  // "..." + x is a false alarm of gcc 12
    r += x.substr(0, 60);
    return r += x.size() > 60 ? "...\"" : "\"";
  } else if constexpr (std::is_same_v<T, bool>) return x ? "true" : "false";
  else return std::to_string(stored(x));
}

template <class T>
concept is_rule = requires {
  T::slots;
  T::scalars;
};

struct NoModel {};
template <class T, class F, class Model>
concept trained_with =
    requires(T& t, F const& f, Model& m) { std::remove_const_t<T>::visit_checkpoint(t, m, f); };
template <class T, class F>
concept knows_its_parts = requires(T& t, F const& f) { std::remove_const_t<T>::visit_checkpoint(t, f); };

template <class T>
struct NamedPart {
  std::string name;
  T& part;
};
template <class T>
NamedPart(std::string, T&) -> NamedPart<T>;

/// CheckpointVisitor - goes through a part of a run at a path; what it meets goes to `To`, which saves, compares or
/// loads. A type takes part by DFDX_FIELDS, DFDX_STATE, or a static function visit_checkpoint(self, f), which calls f
/// with the names of its parts and these; what is trained with a model by visit_checkpoint(self, model, f). They are
/// called with a self that is not constant while loading.
template <class To>
class CheckpointVisitor {
 public:
  CheckpointVisitor(To& to, std::string path, std::string model = {})
      : to_(to), path_(std::move(path)), model_(std::move(model)) {}

  template <class T>
  void operator()(std::string const& name, T& part) const {
    each(NamedPart{name, part});
  }
  /// Members, with their names in one text: what DFDX_STATE calls.
  template <class... T>
  void members(std::string_view names, T&... all) const {
    auto const next = [&] {
      auto const end = std::min(names.find(','), names.size());
      std::string const name(names.substr(0, end));
      names.remove_prefix(std::min(names.size(), end + 2));
      return name;
    };
    in_order(std::tuple{NamedPart<T>{next(), all}...});
  }
  /// A number or text that is compared.
  template <class T>
  void must_equal(std::string const& name, T const& x) const {
    to_.must_equal(at(name), x);
  }
  /// A count below a limit.
  template <class T, class Limit>
  void below(std::string const& name, T& x, Limit limit) const {
    to_.item(at(name), x, static_cast<std::int64_t>(limit));
  }
  /// A tensor that files which were written before there was this part lack: it stays as it is.
  void newer(std::string const& name, Array& x) const { to_.newer(at(name), x); }
  /// The k-th state of a parameter of a model; null for zeros.
  template <class Leaf>
  void slot(std::size_t k, std::string const& name, Leaf const& leaf, Array* held) const {
    if (is_buffer<Leaf> || !is_floating(leaf.dtype())) return;
    std::string const ending = name.empty() ? "" : "." + name;
    to_.slot(at("slots." + std::to_string(k) + ending), leaf, held, model_ + ending);
  }

  /// Parts one after another; what is trained follows its model.
  void each() const {}
  template <class T, class... Rest>
  void each(NamedPart<T> first, NamedPart<Rest>... rest) const {
    static_assert(!trained_with<T, CheckpointVisitor, NoModel>,
                  "checkpoint: a training step must stand right behind its model");
    CheckpointVisitor(to_, at(first.name)).all_of(first.part);
    if constexpr (sizeof...(Rest) > 0) behind(first, rest...);
  }

 private:
  std::string at(std::string const& name) const { return path_below(path_, name.c_str()); }

  template <class T>
  void all_of(T& part) const {
    using U = std::remove_const_t<T>;
    if constexpr (is_rule<U>) to_.must_equal(at("kind"), short_type_name<U>());
    if constexpr (leaf<U>) to_.leaf(path_, part);
    else if constexpr (checkpoint_item<U>) to_.item(path_, part);
    else if constexpr (is_must_equal<U>) to_.must_equal(path_, part.value);
    else if constexpr (is_vector<U>) {
      static_assert(!std::is_same_v<U, std::vector<bool>>, "checkpoint: std::vector<bool> is not supported");
      std::size_t i = 0;
      to_.list(at("size"), part, [&](auto& e) { (*this)(std::to_string(i++), e); });
    } else if constexpr (is_optional<U>) {
      to_.must_equal(at("there"), part.has_value());
      if (part.has_value()) all_of(*part);
    } else if constexpr (knows_its_parts<T, CheckpointVisitor>) U::visit_checkpoint(part, *this);
    else if constexpr (keeps_leaves<U>)
      visit_state(part, [&](std::string const& name, auto& leaf) { to_.leaf(name, leaf); }, path_);
    else if constexpr (is_std_array<U>) {
      std::size_t i = 0;
      for (auto& e : part) (*this)(std::to_string(i++), e);
    } else if constexpr (is_std_tuple<U>) {
      std::size_t i = 0;
      std::apply([&](auto&... e) { in_order(std::tuple{NamedPart{std::to_string(i++), e}...}); }, part);
    } else if constexpr (has_fields<U>) {
      boost::hana::unpack(boost::hana::accessors<U>(), [&](auto... a) {
        each(NamedPart{std::string(boost::hana::first(a).c_str()), boost::hana::second(a)(part)}...);
      });
    } else {
      static_assert(std::is_empty_v<U>,
                    "checkpoint: a part that cannot be saved: it needs DFDX_FIELDS or DFDX_STATE, or must be "
                    "a tensor, a number, a "
                    "std::string, a Key, a list of these, or a training step right behind its model");
    }
  }
  // (A list in braces is evaluated from left to right, arguments are not.)
  template <class... Parts>
  void in_order(std::tuple<Parts...> const& parts) const {
    std::apply([&](auto const&... part) { each(part...); }, parts);
  }
  // What follows a part, which may be its model.
  template <class Before, class T, class... Rest>
  void behind(NamedPart<Before> before, NamedPart<T> next, NamedPart<Rest>... rest) const {
    if constexpr (trained_with<T, CheckpointVisitor, Before>) {
      std::remove_const_t<T>::visit_checkpoint(next.part, before.part,
                                               CheckpointVisitor(to_, at(next.name), at(before.name)));
      each(rest...);
    } else {
      each(next, rest...);
    }
  }

  To& to_;
  std::string path_, model_;
};

}  // namespace detail

}  // namespace dfdx
