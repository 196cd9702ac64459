// SPDX-License-Identifier: BSL-1.0
// Runs attention block by block (ops/attention.hpp) on the CPU, head by head.
#pragma once

#include <algorithm>
#include <optional>

#include <dfdx/core/parallel.hpp>
#include <dfdx/core/scratch.hpp>
#include <dfdx/kernels/attention.hpp>
#include <dfdx/kernels/convert.hpp>
#include <dfdx/ops/attention.hpp>
#include <dfdx/vocabulary/conv.hpp>

namespace dfdx::op::detail {

// The matrices of some operands, one thread's: where they lie, if they are numbers T in rows without gaps, else copies,
// of each operand the last that was asked for.
template <class T>
class MatricesAs {
 public:
  explicit MatricesAs(Operand const* x) : x_(x) {}

  /// Matrix `index` of operand k.
  kernels::MatrixRows<T const> operator()(int k, index_t index) {
    Operand one = x_[k];
    int const r = one.meta.shape.rank;
    index_t at = 0, rest = index;
    for (int i = r - 3; i >= 0; --i) {
      at += rest % one.meta.shape[i] * one.strides[i];
      rest /= one.meta.shape[i];
    }
    index_t const rows = one.meta.shape[r - 2], n = one.meta.shape[r - 1];
    one.data = static_cast<std::byte*>(one.data) + at * static_cast<index_t>(size_of(one.meta.dtype));
    if (one.meta.dtype == dtype_v<T> && (one.strides[r - 1] == 1 || n == 1))
      return {static_cast<T const*>(one.data), one.strides[r - 2]};
    Copy& mine = copies_[k];
    if (mine.index != index) {
      if (!mine.data) mine.data.emplace(static_cast<std::size_t>(rows * n));
      mine.index = index;
      Shape const shape = make_shape(rows, n);
      Strides strides;
      strides.rank = 2;
      strides[0] = one.strides[r - 2], strides[1] = one.strides[r - 1];
      kernels::convert({one.data, {one.meta.dtype, shape}, strides},
                       {mine.data->get(), {dtype_v<T>, shape}, contiguous(shape)});
    }
    return {mine.data->get(), n};
  }

 private:
  struct Copy {
    index_t index = -1;
    std::optional<kernels::Scratch<T>> data;
  };
  Operand const* x_;
  Copy copies_[4];
};

// Parts of a dense result while they are computed as numbers T, one thread's: the result's own memory, or other, from
// which they are converted; of a result that is missing, only that.
template <class T>
class PartsAs {
 public:
  explicit PartsAs(Operand const* to) : to_(to) {}

  /// Memory for n elements from the first on; no later part has more.
  T* begin(index_t first, index_t n) {
    first_ = first, n_ = n;
    if (to_ != nullptr && to_->meta.dtype == dtype_v<T>) return static_cast<T*>(to_->data) + first;
    if (!other_) other_.emplace(static_cast<std::size_t>(n));
    return other_->get();
  }
  void end() const {
    if (to_ == nullptr || !other_) return;
    Shape const shape = make_shape(n_);
    auto* const at =
        static_cast<std::byte*>(to_->data) + first_ * static_cast<index_t>(size_of(to_->meta.dtype));
    kernels::convert({other_->get(), {dtype_v<T>, shape}, contiguous(shape)},
                     {at, {to_->meta.dtype, shape}, contiguous(shape)});
  }

 private:
  Operand const* to_;
  index_t first_ = 0, n_ = 0;
  std::optional<kernels::Scratch<T>> other_;
};

// What all heads have in common, and which there are: each key_heads has `sharing` heads of queries.
template <class T>
struct AttentionHeads {
  kernels::AttentionHead head{};
  index_t key_heads = 0, sharing = 0, rows = 0;

  AttentionHeads(Attrs const& a, Operand const* in) {
    Shape const &qs = in[0].meta.shape, &ks = in[1].meta.shape, &vs = in[2].meta.shape;
    int const r = qs.rank;
    AttentionOptions const o = AttentionOptions::of(a);
    head = {qs[r - 2], ks[r - 2], qs[r - 1], vs[r - 1], o.scale, o.causal, o.offset};
    index_t const heads = qs.numel() / (head.queries * head.size);
    key_heads = ks.numel() / (head.keys * head.size);
    rows = heads * head.queries, sharing = key_heads == 0 ? 0 : heads / key_heads;
  }
  /// make() for each thread, and what that gives, f, for each of its heads of keys: f(kernel, head).
  template <class Make>
  void each(int passes, Make const& make) const {
#if defined(__CUDACC__)
    using Kernel = kernels::reference::Attention<T>;
#else
    using Kernel = kernels::BlockedAttention<T>;
#endif
    index_t const work = kernels::work_of_products(rows * head.keys * (head.size + head.width));
    int const parts = kernels::parts_of(passes * work, key_heads);
    kernels::in_parallel(parts, [&](int part) {
      Kernel const kernel(head);
      auto f = make();
      auto const [begin, end] = kernels::part_of(key_heads, part, parts);
      for (index_t j = begin; j < end; ++j) f(kernel, j);
    });
  }
};

template <class T>
void run_attend_as(Attrs const& a, Operand const* in, Operand const* y, Operand const* log_sums) {
  AttentionHeads<T> const heads(a, in);
  kernels::AttentionHead const& h = heads.head;
  heads.each(1, [&] {
    return [&, x = MatricesAs<T>(in), to = PartsAs<T>(y), sums = PartsAs<T>(log_sums)](auto const& kernel,
                                                                                       index_t j) mutable {
      for (index_t i = j * heads.sharing; i < (j + 1) * heads.sharing; ++i) {
        index_t const n = h.queries * h.width;
        kernel.forward(x(0, i), x(1, j), x(2, j), {to.begin(i * n, n), h.width},
                       sums.begin(i * h.queries, h.queries));
        to.end();
        sums.end();
      }
    };
  });
}

template <class T>
void run_attend_back_as(Attrs const& a, Operand const* in, Operand const& out) {
  AttentionHeads<T> const heads(a, in);
  kernels::AttentionHead const& h = heads.head;
  Array const copy = dense_as<T>(in[4]);
  T const* const sums = copy.empty() ? static_cast<T const*>(in[4].data) : copy.template data<T>();
  index_t const of_q = in[0].meta.shape.numel(), of_k = in[1].meta.shape.numel();
  heads.each(3, [&] {
    return [&, x = MatricesAs<T>(in), q = PartsAs<T>(&out), k = PartsAs<T>(&out), v = PartsAs<T>(&out)](
               auto const& kernel, index_t j) mutable {
      auto const zeros = [](PartsAs<T>& part, index_t first, index_t n) {
        return std::fill_n(part.begin(first, n), n, T(0)) - n;
      };
      index_t const n_q = h.queries * h.size, n_k = h.keys * h.size, n_v = h.keys * h.width;
      T *const dk = zeros(k, of_q + j * n_k, n_k), *const dv = zeros(v, of_q + of_k + j * n_v, n_v);
      for (index_t i = j * heads.sharing; i < (j + 1) * heads.sharing; ++i) {
        kernel.backward(x(0, i), x(1, j), x(2, j), x(3, i), sums + i * h.queries,
                        sums + heads.rows + i * h.queries, {zeros(q, i * n_q, n_q), h.size}, {dk, h.size},
                        {dv, h.width});
        q.end();
      }
      k.end();
      v.end();
    };
  });
}

template <class Op, class T>
void run_attention_as(Attrs const& a, Operand const* in, Operand const& out) {
  if constexpr (std::is_same_v<Op, attend_back>) run_attend_back_as<T>(a, in, out);
  else if constexpr (std::is_same_v<Op, attend>) run_attend_as<T>(a, in, &out, nullptr);
  else run_attend_as<T>(a, in, nullptr, &out);
}
template <class Op>
void run_attention(Attrs const& a, Operand const* in, Operand const& out) {
  if (in[0].meta.dtype == DType::f64) run_attention_as<Op, double>(a, in, out);
  else run_attention_as<Op, float>(a, in, out);
}
template <int>
void run_attend(Attrs const& a, Operand const* in, Operand const* y, Operand const* log_sums) {
  if (in[0].meta.dtype == DType::f64) run_attend_as<double>(a, in, y, log_sums);
  else run_attend_as<float>(a, in, y, log_sums);
}

}  // namespace dfdx::op::detail
