// SPDX-License-Identifier: BSL-1.0
// Weights: nn::init fills one tensor, by the names of torch.nn.init; dfdx::init makes a whole model, each module
// by its own rule. Deterministic: a number depends on the seed and on where its tensor stands in the model, on
// nothing else.
#pragma once

#include <cmath>

#include <dfdx/core/random.hpp>
#include <dfdx/value/element.hpp>
#include <dfdx/value/fields.hpp>
#include <dfdx/value/walk.hpp>

namespace dfdx {

namespace nn::init {

/// Fan - what keeps its variance: the forward pass (in) or the backward pass (out).
///
/// Math      fan in = in * receptive field, fan out = out * receptive field
/// Shapes    of a weight [Out, In, receptive field...]
/// Dtypes    floating
/// Errors    "kaiming_normal: a weight has at least 2 axes, got [3]"
/// Source    He et al., "Delving deep into rectifiers", ICCV 2015
enum class Fan { in, out };

/// Nonlinearity - what follows a layer, for calculate_gain.
enum class Nonlinearity { linear, sigmoid, tanh, relu, leaky_relu, selu };

/// calculate_gain - the factor that makes up for what a nonlinearity does to the variance (PyTorch's table).
/// `slope` is leaky_relu's.
inline double calculate_gain(Nonlinearity f, double slope = 0.01) {
  switch (f) {
    case Nonlinearity::tanh: return 5.0 / 3.0;
    case Nonlinearity::relu: return std::sqrt(2.0);
    case Nonlinearity::leaky_relu: return std::sqrt(2.0 / (1.0 + slope * slope));
    case Nonlinearity::selu: return 0.75;
    default: return 1.0;
  }
}

namespace detail {

// Element i in row-major order becomes f(i); an empty tensor gets memory first. In place, so that views follow.
template <class F>
void fill(Array& w, F const& f) {
  if (w.empty()) {
    if (!w.shape().is_static()) raise("init: sizes needed for the dyn dims of ", w.shape());
    w = Array(w.meta());
  }
  Operand const out = w.operand();
  Strides const strides[1] = {out.strides};
  std::uint64_t i = 0;
  walk<1>(out.meta.shape, strides, [&](index_t const(&o)[1]) { write_real(out, o[0], f(i++)); });
}

struct Fans {
  double in, out;
};

inline Fans fans(char const* name, Shape const& s) {
  if (s.rank < 2) raise(name, ": a weight has at least 2 axes, got ", s);
  double field = 1;
  for (int i = 2; i < s.rank; ++i) field *= static_cast<double>(s[i]);
  return {static_cast<double>(s[1]) * field, static_cast<double>(s[0]) * field};
}

}  // namespace detail

/// constant, zeros, ones - one value everywhere.
inline void constant(Array& w, double value) {
  detail::fill(w, [value](std::uint64_t) { return value; });
}
inline void zeros(Array& w) { constant(w, 0); }
inline void ones(Array& w) { constant(w, 1); }

/// uniform - U(low, high).
inline void uniform(Array& w, Key key, double low = 0, double high = 1) {
  detail::fill(w, [=](std::uint64_t i) { return low + (high - low) * uniform_at(key, i); });
}

/// normal - N(mean, std^2).
inline void normal(Array& w, Key key, double mean = 0, double std = 1) {
  detail::fill(w, [=](std::uint64_t i) { return mean + std * normal_at(key, i); });
}

/// kaiming_uniform, kaiming_normal - standard deviation gain / sqrt(fan), so that a deep stack of layers neither
/// fades nor explodes; U(-b, b) with b = sqrt(3) gain / sqrt(fan), or normal. The gain is relu's unless given.
inline void kaiming_uniform(Array& w, Key key, double gain = std::sqrt(2.0), Fan mode = Fan::in) {
  auto const f = detail::fans("kaiming_uniform", w.shape());
  double const bound = std::sqrt(3.0) * gain / std::sqrt(mode == Fan::in ? f.in : f.out);
  uniform(w, key, -bound, bound);
}
inline void kaiming_normal(Array& w, Key key, double gain = std::sqrt(2.0), Fan mode = Fan::in) {
  auto const f = detail::fans("kaiming_normal", w.shape());
  normal(w, key, 0, gain / std::sqrt(mode == Fan::in ? f.in : f.out));
}

/// xavier_uniform, xavier_normal - standard deviation gain sqrt(2 / (fan in + fan out)), between what the two
/// passes ask for (Glorot and Bengio, AISTATS 2010).
inline void xavier_uniform(Array& w, Key key, double gain = 1) {
  auto const f = detail::fans("xavier_uniform", w.shape());
  double const bound = gain * std::sqrt(6.0 / (f.in + f.out));
  uniform(w, key, -bound, bound);
}
inline void xavier_normal(Array& w, Key key, double gain = 1) {
  auto const f = detail::fans("xavier_normal", w.shape());
  normal(w, key, 0, gain * std::sqrt(2.0 / (f.in + f.out)));
}

/// lecun_uniform, lecun_normal - standard deviation 1 / sqrt(fan in), for linear layers and selu (LeCun et al., 1998).
inline void lecun_uniform(Array& w, Key key) { kaiming_uniform(w, key, 1); }
inline void lecun_normal(Array& w, Key key) { kaiming_normal(w, key, 1); }

}  // namespace nn::init

namespace detail {

template <class M>
concept resettable = requires(M& m, Key key) { m.reset(key); };

// One for all Tensors of a model, which are of many types.
template <class = void>
[[gnu::noinline]] void initialize_leaf(Array& m, Array const& begin) {
  if (!begin.empty()) {
    if (!(m.meta() == begin.meta()) || m.bytes() == nullptr || m.bytes() == begin.bytes())
      m = Array(begin.meta());
    copy_elements(begin.operand(), m.operand());
  } else if (m.shape().is_static() && m.ndim() >= 0) {
    nn::init::zeros(m);
  }
}

// Parts before the whole, so that a module's own rule can refine those of its parts. Every rule draws from a key of
// its own. `begin` has the values that types give their members.
template <class M>
void initialize(M& m, M const& begin, Key key, std::uint64_t& count) {
  if constexpr (leaf<M>) initialize_leaf(m, begin);
  else if constexpr (keeps_leaves<M>) {
    m.allocate();
    for (std::size_t i = 0; i < m.size(); ++i) {
      auto part = m[static_cast<index_t>(i)];
      initialize(part, typename M::part_type{}, key, count);
      m.set(static_cast<index_t>(i), part);
    }
  } else if constexpr (is_std_array<M>) {
    for (std::size_t i = 0; i < m.size(); ++i) initialize(m[i], begin[i], key, count);
  } else if constexpr (is_list<M>) {
    for (auto& part : m) initialize(part, typename M::value_type{}, key, count);
  } else if constexpr (is_optional<M>) {
    if (m.has_value()) initialize(*m, typename M::value_type{}, key, count);
  } else if constexpr (is_std_tuple<M>) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (initialize(std::get<I>(m), std::get<I>(begin), key, count), ...);
    }(part_indices<M>);
  } else if constexpr (!has_fields<M>) {
    visit(m, [](auto&) {});  // which says what a field may be
  } else {
    with_parts(m, [&](auto&... part) {
      with_parts(begin, [&](auto const&... from) { (initialize(part, from, key, count), ...); });
    });
    if constexpr (resettable<M>) m.reset(fold_in(key, count++));
  }
}

}  // namespace detail

/// init - gives every tensor of a model memory and numbers. Modules follow PyTorch's defaults (see each); a tensor
/// that is a field of a user's struct has the value that the struct gives it, `Tensor<float> scale = 2.6f;`, and is
/// zero where it gives none. A struct says otherwise with a member `void reset(Key)`: it is called when its parts are
/// done.
///
/// Errors    "init: sizes needed for the dyn dims of [dyn, 3]" where a rule meets such a tensor
/// Example   examples/04_model.cpp
template <tree M>
void init(M& model, Key key) {
  std::uint64_t count = 0;
  detail::initialize(model, M{}, key, count);
}
template <class M>
M init(std::uint64_t seed = 0) {
  static_assert(tree<M>,
                "init: a model is a Tensor, a struct with DFDX_FIELDS(...), or an array or tuple of these");
  M model{};
  if constexpr (tree<M>) init(model, Key{seed});
  return model;
}

}  // namespace dfdx
