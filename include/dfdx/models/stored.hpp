// SPDX-License-Identifier: BSL-1.0
// StoredMatrix - a matrix of a model left as its file has it: blocks of small integers, numbers of 16 bits or of f32.
// And the products with such matrices, for all that runs a model.
#pragma once

#include <memory>

#include <dfdx/core/parallel.hpp>
#include <dfdx/core/quantized_planes.hpp>
#include <dfdx/kernels/quantized.hpp>
#include <dfdx/kernels/simd/gemv.hpp>
#include <dfdx/kernels/simd/panel.hpp>
#include <dfdx/models/matrix_rows.hpp>
#include <dfdx/value/array.hpp>
#include <dfdx/value/device_ops.hpp>

namespace dfdx::models {

namespace detail {

inline void row_as_floats(MatrixRows const& w, index_t i, float* out) {
  if (Quant const* const q = std::get_if<Quant>(&w.encoding))
    return dequantize_row(*q, w.row(i), w.columns, out);
  DType const d = std::get<DType>(w.encoding);
  if (d == DType::f16) kernels::widen(out, reinterpret_cast<float16 const*>(w.row(i)), w.columns);
  else if (d == DType::bf16) kernels::widen(out, reinterpret_cast<bfloat16 const*>(w.row(i)), w.columns);
  else std::memcpy(out, w.row(i), static_cast<std::size_t>(w.columns) * 4);
}

/// Rows of floats as a factor of products, quantized when a matrix first asks for it. The room is taken by `reserve`.
class Factor {
 public:
  void reserve(index_t numbers) {
    small_.resize(static_cast<std::size_t>((numbers + 31) / 32));
    large_.resize(static_cast<std::size_t>((numbers + 255) / 256));
  }
  /// m rows of n numbers, which stay where they are.
  void set(float const* x, index_t m, index_t n) {
    x_ = x, m_ = m, n_ = n;
    has_small_ = has_large_ = false;
  }
  float const* floats() const { return x_; }
  index_t rows() const { return m_; }
  void prepare(Encoding const& e) {
    Quant const* const q = std::get_if<Quant>(&e);
    if (q == nullptr) return;
    bool& has = q8_length(*q) == 32 ? has_small_ : has_large_;
    if (!has) prepare_rows(e, 0, m_);
    has = true;
  }
  /// Some of the rows; several threads may do so, each with other rows. What is not said of all is not remembered.
  void prepare_rows(Encoding const& e, index_t first, index_t last) {
    Quant const* const q = std::get_if<Quant>(&e);
    if (q == nullptr || first >= last) return;
    auto const of = [&]<int N>(std::vector<Q8Block<N>>& to) {
      kernels::to_q8<N>(x_ + first * n_, (last - first) * n_, to.data() + first * (n_ / N));
    };
    if (q8_length(*q) == 32) of(small_);
    else of(large_);
  }
  template <Quant F>
  auto const* q8() const {
    if constexpr (q8_length(F) == 32) return small_.data();
    else return large_.data();
  }

 private:
  float const* x_ = nullptr;
  index_t m_ = 0, n_ = 0;
  bool has_small_ = false, has_large_ = false;
  std::vector<Q8Block<32>> small_;
  std::vector<Q8Block<256>> large_;
};

/// y[i, j] = x[i] . w[j] for all rows of x and rows `first` to `last` of w; x is prepared. Which rows of w are computed
/// together changes nothing in the sums; how many rows of x there are may change their last bits.
inline void multiply_rows(MatrixRows const& w, Factor const& x, index_t first, index_t last, float* y,
                          index_t y_row) {
  if (first >= last) return;
  index_t const n = last - first, k = w.columns;
  y += first;
  bool const many = x.rows() >= kernels::panel_rows_from;
  if (Quant const* const q = std::get_if<Quant>(&w.encoding)) {
    dispatch(*q, [&](auto f) {
      constexpr Quant F = decltype(f)::value;
      if (many && kernels::quantized_panels<F>(x.rows(), n, k, x.template q8<F>(), w.row(first),
                                               w.row_bytes(), y, y_row))
        return;
      kernels::multiply_quantized<F>(x.rows(), n, k, x.template q8<F>(), w.row(first), w.row_bytes(), y,
                                     y_row);
    });
    return;
  }
  if (many) {
    DType const d = std::get<DType>(w.encoding);
    kernels::panel_product(
        x.rows(), n, k, x.floats(), k,
        [&](index_t j, index_t from, index_t count, float* to) {
          std::byte const* const at = w.row(first + j) + static_cast<std::size_t>(from) * size_of(d);
          if (d == DType::f32) return reinterpret_cast<float const*>(at);
          if (d == DType::f16) kernels::widen(to, reinterpret_cast<float16 const*>(at), count);
          else kernels::widen(to, reinterpret_cast<bfloat16 const*>(at), count);
          return static_cast<float const*>(to);
        },
        y, y_row);
    return;
  }
  auto const dot = [&]<class B>(B const* rows) {
    kernels::store_sum const as_is;
    using Put = kernels::detail::along_row<float, kernels::store_sum>;
    kernels::detail::gemm_dot(x.rows(), n, k, x.floats(), k, rows, k, Put{y, y_row, as_is});
  };
  DType const d = std::get<DType>(w.encoding);
  if (d == DType::f16) dot(reinterpret_cast<float16 const*>(w.row(first)));
  else if (d == DType::bf16) dot(reinterpret_cast<bfloat16 const*>(w.row(first)));
  else dot(reinterpret_cast<float const*>(w.row(first)));
}

/// Rows first to last of `rows` for one of `threads`, by tiles of so many.
inline std::pair<index_t, index_t> share_of(index_t rows, int thread, int threads, index_t tile = 16) {
  index_t const tiles = (rows + tile - 1) / tile;
  return {std::min(rows, tiles * thread / threads * tile),
          std::min(rows, tiles * (thread + 1) / threads * tile)};
}

}  // namespace detail

/// StoredMatrix - a matrix as its file has it. It is no leaf of a model: it cannot be trained.
///
/// Shapes    [rows, columns]
struct StoredMatrix {
  detail::MatrixRows data;
  std::shared_ptr<void const> owner;  // of the bytes
  /// What `moved` has brought to a device; empty if nothing. Products and rows that are asked for one by one are those
  /// of `data`.
  Array there{};

  /// moved - the same matrix, for decoders that run on a device.
  ///
  /// Errors    "storage: no memory on a CUDA device in this build"; "cuda: out of memory on cuda:0: ..."
  template <int = 0>
  std::shared_ptr<StoredMatrix const> moved(Device device) const {
    StoredMatrix r{data, owner, {}};
    if (!device.is_cpu()) {
      Quant const* const q = std::get_if<Quant>(&data.encoding);
      index_t const blocks = q != nullptr ? data.rows * (data.columns / block_length(*q)) : 0;
      index_t const bytes =
          q != nullptr ? planes_bytes(*q, blocks) : data.rows * static_cast<index_t>(data.row_bytes());
      Array const here(Meta{DType::u8, make_shape(bytes)});
      if (q != nullptr) to_planes(*q, data.bytes, blocks, here.bytes());
      else std::memcpy(here.bytes(), data.bytes, static_cast<std::size_t>(bytes));
      r.there = dfdx::detail::moved(device, here);
    }
    return std::make_shared<StoredMatrix const>(std::move(r));
  }

  /// product - x W'. The other factor is quantized to 8 bits where W is quantized. Where x lies on a device, the
  /// product is computed on the CPU, on copies.
  ///
  /// Shapes    x: [..., columns] -> [..., rows]
  /// Errors    "llama: a matrix as it is stored cannot be trained: load the model with a dtype"; "llama: [..., 288]
  ///           required for a matrix [768, 288], got [5, 3]"
  Array product(Array const& x) const {
    if (dfdx::detail::is_elsewhere(x) && !(x.requires_grad() && is_grad_enabled()))
      return dfdx::detail::moved(x.device(), product(dfdx::detail::here(x.detach())));
    Shape s = x.shape();
    if (s.rank < 1 || s[s.rank - 1] != data.columns)
      raise("llama: [..., ", data.columns, "] required for a matrix ", make_shape(data.rows, data.columns),
            ", got ", s);
    if (x.requires_grad() && is_grad_enabled())
      raise("llama: a matrix as it is stored cannot be trained: load the model with a dtype");
    Array const dense = x.detach().to(DType::f32).contiguous();
    s[s.rank - 1] = data.rows;
    Array y(Meta{DType::f32, s});
    detail::Factor factor;
    index_t const m = dense.size() / std::max<index_t>(data.columns, 1);
    factor.reserve(dense.size());
    factor.set(dense.data<float>(), m, data.columns);
    factor.prepare(data.encoding);
    float* const out = y.data<float>();
    // By pieces of rows that stay in the second cache while all of x passes.
    index_t const piece = 64, pieces = (data.rows + piece - 1) / piece;
    int const parts = kernels::parts_of(kernels::work_of_products(m * data.rows * data.columns), pieces);
    kernels::in_parallel(parts, [&](int part) {
      auto const [begin, end] = kernels::part_of(pieces, part, parts);
      for (index_t i = begin; i < end; ++i)
        detail::multiply_rows(data, factor, i * piece, std::min(data.rows, (i + 1) * piece), out, data.rows);
    });
    return x.dtype() == DType::f32 ? y : y.to(x.dtype());
  }

  /// rows_at - rows of the matrix, as embedding(index, weight) gives them.
  ///
  /// Shapes    index: [I], integer -> [I, columns]
  /// Errors    "llama: token 600, there are 512"
  Array rows_at(Array const& index) const {
    if (dfdx::detail::is_elsewhere(index))
      return dfdx::detail::moved(index.device(), rows_at(dfdx::detail::here(index)));
    Array const at = index.to(DType::i64).contiguous();
    Shape s = index.shape();
    s.push_back(data.columns);
    Array y(Meta{DType::f32, s});
    std::int64_t const* const i = at.data<std::int64_t>();
    for (index_t k = 0; k < at.size(); ++k) {
      if (i[k] < 0 || i[k] >= data.rows) raise("llama: token ", Position{i[k]}, ", there are ", data.rows);
      detail::row_as_floats(data, i[k], y.data<float>() + k * data.columns);
    }
    return y;
  }
};

}  // namespace dfdx::models
