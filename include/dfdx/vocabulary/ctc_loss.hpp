// SPDX-License-Identifier: BSL-1.0
// ctc_loss: connectionist temporal classification (Graves et al., ICML 2006), made of other ops: the forward variables
// in logarithms, a step for each frame. Its gradient is what the rules of those ops make of it.
#pragma once

#include <limits>

#include <dfdx/vocabulary/class_loss.hpp>
#include <dfdx/vocabulary/mathematics.hpp>
#include <dfdx/vocabulary/order.hpp>

namespace dfdx {

/// CtcLoss - options of ctc_loss. With zero_infinity targets that the frames are too few for cost nothing, and have no
/// gradient.
struct CtcLoss {
  int blank = 0;
  bool zero_infinity = false;
  Reduction reduction = Reduction::mean;
};

namespace detail {

constexpr Meta ctc_rule(Meta const& p, Meta const& targets, Meta const& frames, Meta const& sizes,
                        Text* why) {
  Shape const &s = p.shape, &t = targets.shape;
  bool const fit = s.rank == 3 && (t.rank == 1 || (t.rank == 2 && op::extents_agree(s[1], t[0]))) &&
                   frames.shape.rank == 1 && op::extents_agree(frames.shape[0], s[1]) &&
                   frames.shape == sizes.shape;
  if (!fit)
    return refuse(why, "ctc_loss: targets ", t, " with lengths ", frames.shape, " and ", sizes.shape,
                  " do not fit scores ", s);
  if (s[0] < 1 || t[t.rank - 1] < 0)
    return refuse(why, "ctc_loss: frames and labels of known number required, got ", s, " and ", t);
  if (!is_floating(p.dtype)) return refuse(why, "ctc_loss: floating dtype required, got ", p.dtype);
  for (DType d : {targets.dtype, frames.dtype, sizes.dtype})
    if (d != DType::i32 && d != DType::i64)
      return refuse(why, "ctc_loss: labels and lengths of dtype i32 or i64 required, got ", d);
  return Meta{p.dtype, make_shape(s[1])};
}
template <class X, class Y, class F, class L>
struct CtcRule {
  static constexpr Meta infer(Text* why) {
    return ctc_rule(X::static_meta, Y::static_meta, F::static_meta, L::static_meta, why);
  }
};

template <class X>
constexpr bool in_memory(X const& x) {
  if constexpr (std::is_base_of_v<Array, X>) return !DFDX_IN_CONSTANT_EXPRESSION && !x.recorded();
  else return false;
}
// Lengths and labels in memory that cannot be are refused.
template <class Y, class F, class L>
constexpr void require_lengths(Shape const& scores, Y const& targets, F const& frames, L const& sizes,
                               CtcLoss const& o) {
  if (o.blank < 0 || (scores[2] >= 0 && o.blank >= scores[2]))
    raise("ctc_loss: blank ", Position{o.blank}, " out of range for ", scores[2], " labels");
  auto const within = [](char const* what, auto const& values, index_t least, index_t most) {
    each_in_memory(values, [&](Operand const& v, index_t at) {
      index_t const i = read_index(v, at);
      if (i < least || i > most)
        raise("ctc_loss: ", what, Position{i}, ", from ", Position{least}, " to ", most, " required");
    });
  };
  within("a length of ", frames, 0, scores[0]);
  within("a target of size ", sizes, 0, targets.shape()[targets.shape().rank - 1]);
  if (targets.shape().rank == 1 && in_memory(sizes)) {
    index_t total = 0;
    each_in_memory(sizes, [&](Operand const& v, index_t at) { total += read_index(v, at); });
    if (total != targets.shape()[0])
      raise("ctc_loss: ", targets.shape()[0], " labels for sizes that sum to ", total);
  }
}

// Targets one after another as rows, [N, S], of which what lies behind the size of each does not matter.
template <class V>
constexpr V target_rows(V const& targets, V const& sizes) {
  if (targets.shape().rank == 2) return targets;
  index_t const n = sizes.shape()[0], total = targets.shape()[0];
  index_t most = in_memory(sizes) ? 0 : total;
  each_in_memory(sizes, [&](Operand const& v, index_t at) {
    index_t const size = read_index(v, at);
    most = size > most ? size : most;
  });
  if (most == 0)
    return reshape_to(full_as(targets, Meta{targets.dtype(), make_shape(n, 0)}, 0), make_shape(n, 0));
  V const each = cast_to(sizes, DType::i64), ends = cumsum<0>(each);
  V const place =
      iota_as(targets, Meta{DType::i64, make_shape(1, most)}, 1) + reshape_to(ends - each, make_shape(n, 1));
  return take(targets, where(place < total, place, 0));
}

// The losses of the sequences, [N].
template <class V>
constexpr V ctc_losses(V const& log_p, V const& given, V const& frames, V const& sizes, CtcLoss const& o) {
  V const targets = target_rows(given, sizes);
  constexpr double none = -std::numeric_limits<double>::infinity();
  index_t const steps = log_p.shape()[0], n = log_p.shape()[1], labels = targets.shape()[1];
  index_t const states = 2 * labels + 1;
  DType const integer = targets.dtype();
  auto const column = [&](V const& v) { return reshape_to(cast_to(v, integer), make_shape(n, 1)); };
  // blank label blank label ... blank
  V const blanks = full_as(targets, Meta{integer, make_shape(n, labels, 1)}, o.blank);
  V const pairs = bind<op::concat>(Attrs{{2}}, blanks, reshape_to(targets, make_shape(n, labels, 1)));
  V const end = full_as(targets, Meta{integer, make_shape(n, 1)}, o.blank);
  V const chain = bind<op::concat>(Attrs{{1}}, reshape_to(pairs, make_shape(n, states - 1)), end);
  V const position = iota_as(targets, Meta{integer, make_shape(1, states)}, 1);
  // A blank between two labels may be left out, unless they are the same.
  auto const before = [&](V const& v, index_t by, double value) {
    return slice_axis(pad_axis(v, 1, by, 0, 0, value), 1, 0, states);
  };
  V const may_skip =
      apply<op::logical_and>(chain != static_cast<double>(o.blank), chain != before(chain, 2, o.blank));
  V const starts = position < 2;
  auto const emitted = [&](index_t t) {
    V const frame = reshape_to(slice_axis(log_p, 0, t, 1), make_shape(n, log_p.shape()[2]));
    return bind<op::gather>(attrs_for(Caller::ctc_loss, 1), frame, chain);
  };
  // Of no frames only the target without labels can be read.
  V const first = emitted(0);
  V alpha =
      where(column(frames) > 0, where(starts, first, none), where(position == 0, zeros_as(first), none));
  for (index_t t = 1; t < steps; ++t) {
    V const stay = logaddexp(alpha, before(alpha, 1, none));
    V const skip = where(may_skip, before(alpha, 2, none), none);
    alpha = where(column(frames) > static_cast<double>(t), logaddexp(stay, skip) + emitted(t), alpha);
  }
  V const size = column(sizes) * 2;
  V const ends = apply<op::logical_or>(position == size, position == size - 1);
  V const read = where(ends, alpha, none);
  if (!o.zero_infinity) return -logsumexp<1>(read);
  // Targets that cannot be read are taken out before the logarithm, of whose gradient they would make NaN.
  V const possible = bind<op::max>(Attrs{{2}}, read) > none;
  return where(reshape_to(possible, make_shape(n)), -logsumexp<1>(where(possible, read, 0.0)), 0.0);
}

}  // namespace detail

/// ctc_loss(log_probabilities, targets, frames, sizes, options) - minus the logarithm of the probability of all ways to
/// read each target off its frames; in the mean each is divided by the size of its target, as in PyTorch. If targets
/// stand one after another, a program has room for one that has all the labels.
///
/// Shapes    log_probabilities: [T, N, C], targets: [N, S], or one after another: [sum of sizes],
///           frames (how many of T), sizes (how many of S): [N] -> []
/// Dtypes    log_probabilities: floating, the rest: i32 i64
/// Errors    "ctc_loss: targets [2, 3] with lengths [2] and [4] do not fit scores [5, 2, 6]"
/// Source    Graves et al., ICML 2006; PyTorch's ctc_loss
template <Reduction... R, operand X, operand Y, operand F, operand L>
constexpr auto ctc_loss(X const& log_probabilities, Y const& targets, F const& frames, L const& sizes,
                        CtcLoss const& options = {}) {
  auto const finish = [&](auto const& losses) {
    return detail::reduced_loss<R...>("ctc_loss", losses, options.reduction, [&] {
      auto const n = cast_to(detail::untyped(sizes), losses.dtype());
      auto const each = detail::untyped(losses) / where(n < 1, 1.0, n);
      if constexpr (typed<decltype(losses)>)
        return mean(detail::wrap<std::remove_cvref_t<decltype(losses)>>(each));
      else return mean(each);
    });
  };
  if constexpr (refused<X, Y, F, L>) {
    return Refused{};
  } else if constexpr (typed<X> && typed<Y> && typed<F> && typed<L>) {
    using Losses = typename decltype(detail::result_type<detail::CtcRule<X, Y, F, L>>())::type;
    if constexpr (refused<Losses>) return Refused{};
    else {
      detail::require_lengths(log_probabilities.shape(), targets, frames, sizes, options);
      return finish(detail::wrap<Losses>(
          detail::ctc_losses<Array>(log_probabilities, targets, frames, sizes, options)));
    }
  } else {
    Text why;
    if (!detail::ctc_rule(log_probabilities.meta(), targets.meta(), frames.meta(), sizes.meta(), &why)
             .valid())
      raise(why);
    detail::require_lengths(log_probabilities.shape(), targets, frames, sizes, options);
    using V = std::remove_cvref_t<decltype(detail::untyped(log_probabilities))>;
    return finish(detail::ctc_losses<V>(detail::untyped(log_probabilities), detail::untyped(targets),
                                        detail::untyped(frames), detail::untyped(sizes), options));
  }
}

}  // namespace dfdx
