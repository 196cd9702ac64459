// SPDX-License-Identifier: BSL-1.0
// Norms whose rows lie across samples, in pieces too short for loops along rows.
#pragma once

#include <dfdx/kernels/norm_rows.hpp>

namespace dfdx::kernels::inline DFDX_TARGET::detail {

// Pieces shorter than this are none for loops along rows.
inline constexpr index_t few_in_piece = 32;

/// ColumnsOf - rows of all samples in short pieces, side by side: so many channels at once, with what belongs to them
/// repeated for each column.
template <class T>
class ColumnsOf {
 public:
  static bool fits(op::NormRows const& r) { return r.across && r.inner < few_in_piece; }
  ColumnsOf(op::NormRows const& r, T const* x)
      : r_(r), x_(x), apart_(r.groups * r.inner), at_once_(std::max<index_t>(1, most / r.inner)) {}

  void forward(T const* weight, T const* bias, T* to, RowMoments<T> const& put) const {
    each_block(4, [&](Block b) {
      look(b);
      for (index_t c = 0; c < b.channels; ++c) put.put(b.first + c, b.mean[c], b.variance[c]);
      T w[room], shift[room];
      b.repeat(w, [&](index_t c) { return weight == nullptr ? T(1) : weight[b.first + c]; });
      b.repeat(shift, [&](index_t c) { return bias == nullptr ? T(-0.0) : bias[b.first + c]; });
      for (index_t n = 0; n < r_.samples; ++n) {
        T const* const x = x_ + n * apart_ + b.at();
        T* const y = to + n * apart_ + b.at();
        each_lanes<T>(b.width(), [&](index_t i, L const& lanes) DFDX_INLINE_LAMBDA {
          lanes.store(y + i, b.z(x, i, lanes) * lanes.load(w + i) + lanes.load(shift + i));
        });
      }
    });
  }
  void backward(T const* weight, T const* ct, T* dx, T* d_weight, T* d_bias) const {
    each_block(8, [&](Block b) {
      look(b);
      double sums[2][room];
      columns<2>(b, sums, [&](V(&s)[2], index_t n, index_t i, L const& lanes) DFDX_INLINE_LAMBDA {
        V const c = lanes.load(ct + n * apart_ + b.at() + i);
        s[0] = s[0] + c;
        s[1] = s[1] + c * b.z(x_ + n * apart_ + b.at(), i, lanes);
      });
      auto const count = static_cast<double>(r_.length());
      T w[room], less[room], along[room];
      b.repeat(w, [&](index_t c) { return weight == nullptr ? T(1) : weight[b.first + c]; });
      b.repeat(less, [&](index_t c) {
        return static_cast<T>(r_.centred ? static_cast<double>(w[c * r_.inner]) * sums[0][c] / count : 0);
      });
      b.repeat(along, [&](index_t c) {
        return static_cast<T>(static_cast<double>(w[c * r_.inner]) * sums[1][c] / count);
      });
      for (index_t c = 0; c < b.channels; ++c) {
        if (d_weight != nullptr) d_weight[b.first + c] = static_cast<T>(sums[1][c]);
        if (d_bias != nullptr) d_bias[b.first + c] = static_cast<T>(sums[0][c]);
      }
      for (index_t n = 0; n < r_.samples; ++n) {
        index_t const at = n * apart_ + b.at();
        each_lanes<T>(b.width(), [&](index_t i, L const& lanes) DFDX_INLINE_LAMBDA {
          V const h = lanes.load(ct + at + i) * lanes.load(w + i);
          V const rest = h - lanes.load(less + i) - b.z(x_ + at, i, lanes) * lanes.load(along + i);
          lanes.store(dx + at + i, rest * lanes.load(b.scales + i));
        });
      }
    });
  }

 private:
  using L = NormLanes<T>;
  using V = typename L::V;
  static constexpr index_t most = 256, room = most + few_in_piece;

  struct Block {
    index_t first, channels, inner;
    double mean[most], variance[most];
    T means[room], scales[room];  // of columns
    index_t at() const { return first * inner; }
    index_t width() const { return channels * inner; }
    template <class F>
    void repeat(T* to, F const& f) const {
      for (index_t c = 0; c < channels; ++c) std::fill_n(to + c * inner, inner, f(c));
    }
    DFDX_INLINE V z(T const* x, index_t i, L const& lanes) const {
      return (lanes.load(x + i) - lanes.load(means + i)) * lanes.load(scales + i);
    }
  };
  template <class F>
  void each_block(int cost, F const& f) const {
    int const parts = parts_of(cost * r_.length() * r_.groups, (r_.groups + at_once_ - 1) / at_once_);
    in_parallel(parts, [&](int i) {
      Part const p = part_of(r_.groups, i, parts, at_once_);
      Block b;
      b.inner = r_.inner;
      for (b.first = p.begin; b.first < p.end; b.first += at_once_) {
        b.channels = std::min(at_once_, p.end - b.first);
        f(b);
      }
    });
  }
  void look(Block& b) const {
    auto const count = static_cast<double>(r_.length());
    double sums[1][room] = {};
    if (r_.centred)
      fold_across<Code::reduce_sum, T>(sums[0], x_ + b.at(), {b.width(), r_.samples, apart_, 0});
    join(b, sums[0]);
    for (index_t c = 0; c < b.channels; ++c) b.mean[c] = sums[0][c] / count;
    auto const distance = [&](index_t n, index_t i, L const& lanes) DFDX_INLINE_LAMBDA {
      return lanes.load(x_ + n * apart_ + b.at() + i) - lanes.load(b.means + i);
    };
    auto const spread = [&] {
      bool hardly = false;
      b.repeat(b.means, [&](index_t c) { return static_cast<T>(b.mean[c]); });
      columns<1>(b, sums, [&](V(&s)[1], index_t n, index_t i, L const& lanes) DFDX_INLINE_LAMBDA {
        V const d = distance(n, i, lanes);
        s[0] = s[0] + d * d;
      });
      for (index_t c = 0; c < b.channels; ++c) {
        b.variance[c] = sums[0][c] / count;
        hardly = hardly || hardly_vary<T>(b.mean[c], b.variance[c]);
      }
      return hardly;
    };
    if (spread()) {
      columns<1>(b, sums, [&](V(&s)[1], index_t n, index_t i, L const& lanes) DFDX_INLINE_LAMBDA {
        s[0] = s[0] + distance(n, i, lanes);
      });
      for (index_t c = 0; c < b.channels; ++c)
        b.mean[c] = static_cast<double>(b.means[c * b.inner]) + sums[0][c] / count;
      spread();
    }
    b.repeat(b.scales, [&](index_t c) { return static_cast<T>(r_.scale(b.variance[c])); });
  }
  // Of columns the sums of channels.
  static void join(Block const& b, double* sums) {
    for (index_t c = 0; c < b.channels; ++c) {
      double total = 0;
      for (index_t i = 0; i < b.inner; ++i) total += sums[c * b.inner + i];
      sums[c] = total;
    }
  }
  // Sums that f(part, sample, i, lanes) adds to; of some samples in T, then in double.
  template <int Sums, class F>
  void columns(Block const& b, double (&sums)[Sums][room], F const& f) const {
    T own[Sums][room];
    for (auto& s : sums) std::fill_n(s, b.width(), 0.0);
    for (index_t n = 0; n < r_.samples;) {
      index_t const end = std::min(r_.samples, n + 64);
      for (auto& s : own) std::fill_n(s, b.width(), T(0));
      for (index_t k = 0; n < end; n += k) {
        k = end - n >= 4 ? 4 : 1;
        each_lanes<T>(b.width(), [&](index_t i, L const& lanes) DFDX_INLINE_LAMBDA {
          V part[Sums];
          DFDX_UNROLL for (int s = 0; s < Sums; ++s) part[s] = lanes.load(own[s] + i);
          if (k == 4) DFDX_UNROLL for (int m = 0; m < 4; ++m) f(part, n + m, i, lanes);
          else f(part, n, i, lanes);
          DFDX_UNROLL for (int s = 0; s < Sums; ++s) lanes.store(own[s] + i, part[s]);
        });
      }
      for (int s = 0; s < Sums; ++s)
        for (index_t i = 0; i < b.width(); ++i) sums[s][i] += static_cast<double>(own[s][i]);
    }
    for (auto& s : sums) join(b, s);
  }

  op::NormRows r_;
  T const* x_;
  index_t apart_, at_once_;
};

}  // namespace dfdx::kernels::inline DFDX_TARGET::detail
