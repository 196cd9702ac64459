// SPDX-License-Identifier: BSL-1.0
// Rows of floats on a CUDA device that a decoder multiplies with matrices, in every form that these ask for.
#pragma once

#include <dfdx/kernels/cuda/cublas.hpp>
#include <dfdx/kernels/cuda/one_row.hpp>
#include <dfdx/kernels/cuda/own.hpp>
#include <dfdx/models/decoder_model.hpp>

namespace dfdx::models::detail::inline DFDX_TARGET {

namespace gpu = kernels::cuda;

/// Memory of a device that grows when more is asked for.
class DeviceRoom {
 public:
  /// Room for n numbers T.
  template <class T>
  T* take(index_t n, Device device) {
    index_t const bytes = n * static_cast<index_t>(sizeof(T));
    if (memory_.bytes() == nullptr || memory_.size() < bytes)
      memory_ = Array(Meta{DType::u8, make_shape(std::max<index_t>(bytes, 1))}, device);
    return reinterpret_cast<T*>(memory_.bytes());
  }
  void const* bytes() const { return memory_.bytes(); }

 private:
  Array memory_;
};

/// DeviceFactor - rows of floats as a factor of products, in the forms that matrices ask for (models/stored.hpp has the
/// one of the CPU).
///
/// Numerics: products are summed in f32. Of few rows (gpu::many_rows_from) the floats are multiplied as they are with
/// matrices of f32 and of 16 bits. Of many rows, products that are large enough for cuBLASLt (CudaOptions) and of
/// matrices of 16 bits are of floats rounded to the type of the matrix, as in PyTorch; others of two such numbers for
/// each float, which is as good as 17 bits at least.
///
/// Norms and activations are computed when a product asks for them, in the form that it takes: some have them inside.
class DeviceFactor {
 public:
  void set(float const* x, index_t rows, index_t columns) {
    x_ = x, rows_ = rows, columns_ = columns;
    for (bool& h : has_) h = false;
    is_norm_ = is_activation_ = false;
  }
  /// Norms of rows, into x.y if they are asked for as floats.
  void set(gpu::NormRowsArguments const& x) {
    set(x.y, x.rows, x.columns);
    norm_ = x, is_norm_ = true;
  }
  /// Rows of activations, in place.
  void set(gpu::ActivateArguments const& x, index_t rows) {
    set(x.x, rows, x.size / rows);
    activation_ = x, is_activation_ = true;
  }
  /// Where its forms lie now.
  void add_to(std::vector<std::uintptr_t>& key) const {
    for (DeviceRoom const& r : room_) key.push_back(reinterpret_cast<std::uintptr_t>(r.bytes()));
  }
  /// Products of many rows by cuBLASLt, as far as it takes them; the matrices that are left stay in p.
  void multiply_many(Encoding const& e, gpu::RowProduct& p, Device device, cudaStream_t stream) {
    using namespace cuda_runtime;
    p.rows = rows_, p.columns = columns_;
    DType const* const type = std::get_if<DType>(&e);
    if (!has_cublas || type == nullptr || rows_ < gpu::many_rows_from) return;
    // A factor of the host's and one of the device would be two.
    if (*type == DType::f16 && p.factor != 1) return;
    int left = 0;
    for (int i = 0; i < p.matrices; ++i)
      if (!multiplied(*type, p, p.of[i], device, stream)) p.of[left++] = p.of[i];
    p.matrices = left;
  }
  /// The product of one row with matrices of numbers, if the kernel for that takes it; with `function` activations of
  /// what one matrix gives, times what another one does if there are two.
  bool multiply_one(Encoding const& e, gpu::RowProduct const& p, Device device, cudaStream_t stream,
                    int function = -1) {
    DType const* const type = std::get_if<DType>(&e);
    if (type == nullptr) return false;
    auto const by = [&]<class E>(std::type_identity<E>) {
      using K = gpu::OneRow<E>;
      gpu::OneRowArguments x{p};
      x.of.rows = rows_, x.of.columns = columns_;
      if (!K::takes(x.of)) return false;
      if (is_norm_ && norm_.bias == nullptr) x.of.x = norm_.x, x.norm = norm_.weight, x.eps = norm_.eps;
      else x.of.x = floats(stream);
      x.function = function;
      check(gpu::start_early<K>(x, K::blocks_for(x, cuda_runtime::multiprocessors(device)), device, stream));
      return true;
    };
    if (*type == DType::f16) return by(std::type_identity<float16>{});
    if (*type == DType::bf16) return by(std::type_identity<bfloat16>{});
    return by(std::type_identity<float>{});
  }
  /// Puts into p what a matrix of that encoding is multiplied with by kernels of dfdx.
  void give(Encoding const& e, gpu::RowProduct& p, Device device, cudaStream_t stream) {
    p.x = floats(stream);
    if (Quant const* const q = std::get_if<Quant>(&e)) {
      if (*q < Quant::q4_k) p.bytes = bytes<32>(0, device, stream);
      else p.bytes = bytes<256>(1, device, stream);
    } else if (rows_ >= gpu::many_rows_from) {
      if (e == Encoding(DType::f16)) split<float16>(2, p, device, stream);
      if (e == Encoding(DType::bf16)) split<bfloat16>(3, p, device, stream);
    }
  }

 private:
  // By columns the result is its own transpose: the matrix comes first, and its rows are the columns of that.
  bool multiplied(DType type, gpu::RowProduct const& p, gpu::RowProduct::Matrix const& w, Device device,
                  cudaStream_t stream) {
    using namespace cuda_runtime;
    index_t const n = rows_ * w.rows * columns_;
    if (n == 0 || n < cuda_options.cublas_from) return false;
    FactorOf const left = as_factor(w.rows, columns_, columns_, 1),
                   right = as_factor(columns_, rows_, 1, columns_);
    Product x{type, w.rows, rows_, columns_, 1, left.factor, right.factor, p.y_row};
    x.has_bias = w.bias != nullptr, x.addend_step = p.adds ? p.y_row : 0;
    x.into_f32 = true, x.factor_there = type == DType::f16;
    Memory at{w.numbers, nullptr, w.y, w.bias, p.adds ? w.y : nullptr};
    at.factor = p.factor;
    if (type == DType::f32) at.b = floats(stream);
    if (type == DType::f16) round<float16>(4, at, device, stream);
    if (type == DType::bf16) round<bfloat16>(5, at, device, stream);
    if (x.factor_there) at.addend_there = at.factor_there + (p.adds ? 2 : 1);
    std::byte* const room = work_.take<std::byte>(cublas_bytes, device);
    return Cublas::multiply(x, at, room, static_cast<std::size_t>(cublas_bytes), device, stream);
  }
  // Norms and activations are there from now on.
  float const* floats(cudaStream_t stream) {
    if (is_norm_) check(gpu::start<gpu::NormRows>(norm_, rows_, stream));
    if (is_activation_) activate(stream);
    is_norm_ = is_activation_ = false;
    return x_;
  }
  void activate(cudaStream_t stream) {
    using K = gpu::Activate;
    check(gpu::start<K>(activation_, gpu::blocks_for((activation_.size + 3) / 4, K::threads), stream));
  }
  static void check(cudaError_t said) { cuda_runtime::check("decoder, rows of a product", said); }
  template <int Span>
  gpu::ByteRows bytes(std::size_t form, Device device, cudaStream_t stream) {
    index_t const n = rows_ * columns_, groups = n / 32;
    // The integers, and behind them scales and sums of each 32.
    std::byte* const q = room_[form].template take<std::byte>(n + 8 * groups, device);
    auto* const scales = reinterpret_cast<float*>(q + n);
    auto* const sums = reinterpret_cast<std::int32_t*>(scales + groups);
    if (!has_[form]) {
      using K = gpu::ToBytes<Span>;
      gpu::ToBytesArguments const x{x_, reinterpret_cast<std::int8_t*>(q), scales, sums, n / Span};
      check(gpu::start<K>(x, gpu::blocks_for(x.spans * warp, K::threads), stream));
      has_[form] = true;
    }
    return {reinterpret_cast<std::uint32_t const*>(q), scales, sums};
  }
  // Numbers E, and for f16 behind them what products are to be multiplied with.
  template <class E>
  void round(std::size_t form, cuda_runtime::Memory& at, Device device, cudaStream_t stream) {
    constexpr bool is_scaled = std::is_same_v<E, float16>;
    index_t const n = rows_ * columns_, numbers = (n + 7) / 8 * 8;  // 16-byte words
    E* const to = room_[form].template take<E>(numbers + (is_scaled ? 2 * (4 + rows_) : 0), device);
    gpu::RoundArguments x{nullptr, to, n};
    if (is_scaled) x.scale = reinterpret_cast<float*>(to + numbers), x.largest = x.scale + 4, x.rows = rows_;
    if constexpr (!is_scaled) {
      if (!has_[form] && (is_norm_ || is_activation_)) {
        norm_.narrow = activation_.narrow = to;
        if (is_norm_) check(gpu::start<gpu::NormRows>(norm_, rows_, stream));
        else activate(stream);
        norm_.narrow = activation_.narrow = nullptr;
        has_[form] = true;
      }
    }
    if (!has_[form]) {
      x.x = floats(stream);
      if (is_scaled)
        check(gpu::start<gpu::LargestOfRows>(gpu::LargestArguments{x_, x.scale + 4, rows_, columns_}, rows_,
                                             stream));
      using K = gpu::RoundRows<E>;
      check(gpu::start<K>(x, gpu::blocks_for((n + 7) / 8, K::threads), stream));
      has_[form] = true;
    }
    at.b = to, at.factor_there = x.scale;
  }
  template <class E>
  void split(std::size_t form, gpu::RowProduct& p, Device device, cudaStream_t stream) {
    index_t const n = rows_ * columns_;
    auto* const scales = room_[form].template take<float>(rows_ + 4 + n, device);
    E* const numbers = reinterpret_cast<E*>(scales + (rows_ + 3) / 4 * 4);  // 16-byte words
    if (!has_[form]) {
      check(gpu::start<gpu::SplitRows<E>>(gpu::SplitArguments{x_, numbers, scales, rows_, columns_}, rows_,
                                          stream));
      has_[form] = true;
    }
    p.x = numbers, p.row_scales = scales;
  }

  static constexpr index_t warp = gpu::warp_size;
  float const* x_ = nullptr;
  index_t rows_ = 0, columns_ = 0;
  bool has_[6] = {};
  gpu::NormRowsArguments norm_{};
  gpu::ActivateArguments activation_{};
  bool is_norm_ = false, is_activation_ = false;
  DeviceRoom room_[6], work_;
};

}  // namespace dfdx::models::detail::inline DFDX_TARGET
