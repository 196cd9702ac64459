// SPDX-License-Identifier: BSL-1.0
// Ops that are called one by one on a device and have kernels of their own, those of programs.
#pragma once

#include <dfdx/kernels/cuda/conv.hpp>
#include <dfdx/kernels/cuda/index.hpp>
#include <dfdx/kernels/cuda/order.hpp>
#include <dfdx/kernels/cuda/random.hpp>
#include <dfdx/kernels/cuda/scan.hpp>
#include <dfdx/kernels/cuda/sort.hpp>
#include <dfdx/kernels/cuda/window.hpp>
#include <dfdx/ops/conv.hpp>
#include <dfdx/ops/index.hpp>
#include <dfdx/ops/pool.hpp>
#include <dfdx/program/called_maps.hpp>
#include <dfdx/vocabulary/dense.hpp>

namespace dfdx::detail::inline DFDX_TARGET {

// Whether places in dense memory of its shape fit in 32 bits.
inline bool is_small(Array const& x) { return x.size() <= INT32_MAX; }

// Rows by an index, of any shapes: [N, R], [I], and [I, R] in `rows`; all dense, which slots [N, R, I] describe.
struct Rows {
  static constexpr index_t n = dfdx::kernels::detail::slot(0), r = dfdx::kernels::detail::slot(1),
                           i = dfdx::kernels::detail::slot(2);
  using TableFirst = dfdx::kernels::Numbers<2, n, r, r, 1, 1, i, 1, 2, i, r, r, 1>;
  /// Places fit in 32 bits: of 64 ptxas spills one.
  struct RowsFirst : dfdx::kernels::Numbers<2, i, r, r, 1, 1, i, 1, 2, n, r, r, 1> {
    static constexpr bool is_small = true;
  };
  Array table, index, rows;
  auto slots() const {
    return
        [this](index_t* to) { to[0] = table.shape()[0], to[1] = table.shape()[1], to[2] = index.shape()[0]; };
  }
};
inline Rows as_rows(CalledOp const& c, Array const& table, Array const& rows) {
  Array const index = as_i64(c, dense_there(c[1]));
  index_t const row = table.size() / table.shape()[0];
  return {as_shape(dense_there(table), make_shape(table.shape()[0], row)),
          as_shape(index, make_shape(index.size())),
          as_shape(dense_there(rows), make_shape(index.size(), row))};
}
inline bool take_on_device(CalledOp const& c) {
  if (!c.lies_there() || c[0].size() == 0) return false;
  Rows const r = as_rows(c, c[0], c.out);
  return for_bits(c.out.dtype(), [&](auto type) {
    using K = dfdx::kernels::cuda::TakeKernel<Rows::TableFirst, typename decltype(type)::type, std::int64_t>;
    return start_with<K>(c, op::detail::called(c.attrs, op::take::name), r.slots(), r.table, r.index, r.rows);
  });
}
// An op of two operands of 16 bits, or of such and an index, in f32.
inline bool in_f32_there(CalledOp const& c, bool (*run)(CalledOp const&)) {
  auto const widened = [&](Array const& x) { return is_half(x.dtype()) ? cast_there(c, x, DType::f32) : x; };
  Array const x = widened(c[0]), y = widened(c[1]), z(Meta{DType::f32, c.out.shape()}, c.device());
  Array const *const wide[] = {&x, &y}, *const result[] = {&z};
  return run({c.attrs, wide, 2, z, c.name}) && cast_on_device({c.attrs, result, 1, c.out, c.name});
}
inline bool rows_add_on_device(CalledOp const& c) {
  if (!c.lies_there() || c[0].size() == 0 || !is_small(c[0]) || !is_small(c.out)) return false;
  if (is_half(c.out.dtype())) return in_f32_there(c, rows_add_on_device);
  Rows const r = as_rows(c, c.out, c[0]);
  return for_one_of<float, double>(c.out.dtype(), [&](auto type) {
    using K =
        dfdx::kernels::cuda::RowsAddKernel<Rows::RowsFirst, typename decltype(type)::type, std::int64_t>;
    return start_with<K>(c, op::detail::called(c.attrs, op::take::name), r.slots(), r.rows, r.index, r.table);
  });
}
inline bool gather_on_device(CalledOp const& c) {
  if (!c.lies_there() || c.out.ndim() > 4) return false;
  auto const axis = static_cast<int>(c.attrs.i[0]);
  Array const index = from_axis(as_i64(c, c[1]), axis);
  return for_bits(c.out.dtype(), [&](auto type) {
    using K = dfdx::kernels::cuda::GatherKernel<dfdx::kernels::cuda::AnyWalks<4, 4, 4>,
                                                typename decltype(type)::type, std::int64_t, 0>;
    return start_called<K>(c, op::detail::called(c.attrs, op::gather::name), from_axis(c[0], axis), index,
                           from_axis(c.out, axis));
  });
}
inline bool scatter_on_device(CalledOp const& c) {
  if (!c.lies_there() || c.out.ndim() > 4) return false;
  if (is_half(c.out.dtype()) && c.attrs.i[1] == 0) return in_f32_there(c, scatter_on_device);
  auto const axis = static_cast<int>(c.attrs.i[0]);
  Array const index = from_axis(as_i64(c, c[1]), axis);
  return for_one_of<float, double, float16, bfloat16, std::int64_t>(c.out.dtype(), [&](auto type) {
    using K = dfdx::kernels::cuda::ScatterKernel<dfdx::kernels::cuda::AnyWalks<4, 4, 4>,
                                                 typename decltype(type)::type, std::int64_t, 0>;
    return start_called<K>(c, op::detail::called(c.attrs, op::gather::name), from_axis(c[0], axis), index,
                           from_axis(c.out, axis));
  });
}
inline bool check_label_on_device(CalledOp const& c) {
  if (!c.lies_there()) return false;
  Shape const line = make_shape(c.out.size());
  return for_one_of<std::int32_t, std::int64_t, std::uint8_t>(c.out.dtype(), [&](auto type) {
    using K =
        dfdx::kernels::cuda::LabelKernel<dfdx::kernels::cuda::AnyWalks<1, 1>, typename decltype(type)::type>;
    return start_called<K>(c, op::detail::called(c.attrs, op::check_label::name),
                           as_shape(dense_there(c[0]), line), as_shape(c.out, line));
  });
}
inline bool concat_on_device(CalledOp const& c) {
  auto const axis = static_cast<int>(c.attrs.i[0]);
  index_t const first = c[0].shape()[axis] * c.out.strides()[axis];
  copy_values(c[0], c.out.view(c[0].shape(), c.out.strides()));
  copy_values(c[1], c.out.view(c[1].shape(), c.out.strides(), first));
  return true;
}
// Of ops along an axis: Kernel<T, whether attrs.i[1] is set> for the dtypes T.
template <template <class, bool> class Kernel, class... T>
bool lines_on_device(CalledOp const& c) {
  auto const axis = static_cast<int>(c.attrs.i[0]);
  return for_one_of<T...>(c[0].dtype(), [&](auto type) {
    using E = typename decltype(type)::type;
    Array const x = as_lines(c[0], axis), y = as_lines(c.out, axis);
    if (c.attrs.i[1] != 0) return start_called<Kernel<E, true>>(c, c.name, x, y);
    return start_called<Kernel<E, false>>(c, c.name, x, y);
  });
}
using CalledLines = dfdx::kernels::cuda::AnyWalks<3, 3>;
template <class T, bool Backwards>
using CalledSums =
    dfdx::kernels::cuda::ScanKernel<CalledLines, dfdx::kernels::cuda::SumRule<T>, 1, Backwards>;
template <class T, bool Smallest>
using CalledArgmax = dfdx::kernels::cuda::ArgmaxKernel<CalledLines, T, 1, Smallest>;
template <class T, bool Descending>
using CalledSort = dfdx::kernels::cuda::SortKernel<CalledLines, T, 1, Descending>;
inline bool draw_on_device(CalledOp const& c) {
  namespace k = dfdx::kernels::cuda;
  Array const key = c[1].device().is_cpu() ? moved(c.device(), c[1]) : c[1];
  Array const y = as_shape(c.out, make_shape(c.out.size()));
  return for_one_of<float, double>(c.out.dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    using W = k::AnyWalks<1, 0, 1>;
    if (c.attrs.i[2] != 0) return start_called<k::DrawKernel<W, T, true>>(c, c.name, y, key, y);
    return start_called<k::DrawKernel<W, T, false>>(c, c.name, y, key, y);
  });
}
inline bool pad_on_device(CalledOp const& c) {
  int const axis = op::pad::axis(c.attrs);
  Array const constant = full_as(Array(), Meta{c.out.dtype(), {}}, c.attrs.f[0]);
  Array const* const number[] = {&constant};
  if (!cast_on_device({c.attrs, number, 1, c.out, c.name})) return false;
  Strides inner = c.out.strides();
  inner[axis] *= op::pad::gap(c.attrs) + 1;
  copy_values(c[0], c.out.view(c[0].shape(), inner, c.attrs.i[1] * c.out.strides()[axis]));
  return true;
}
inline bool flip_on_device(CalledOp const& c) {
  Strides back = c[0].strides();
  index_t last = 0;
  for (int d = 0; d < c.out.ndim(); ++d)
    if ((c.attrs.i[0] >> d & 1) != 0) {
      last += (c.out.shape()[d] - 1) * back[d];
      back[d] = -back[d];
    }
  copy_values(c[0].view(c.out.shape(), back, last), c.out);
  return true;
}

// Along one or two axes S; one is the second of two, beside one of a single element.
inline Array as_image(Array const& x, int before) {
  if (x.ndim() == before + 2) return x;
  Shape s = x.shape();
  Strides t = x.strides();
  s.push_back(s[before]), t.push_back(t[before]);
  s[before] = 1, t[before] = t[before] * x.shape()[before];
  return x.view(s, t);
}
// The windows of two axes are in slots from First on.
template <int First>
using CalledWindows =
    dfdx::kernels::Numbers<dfdx::kernels::detail::slot(First), dfdx::kernels::detail::slot(First + 1)>;
// By cuDNN, whatever the operands' strides.
template <dfdx::kernels::cuda::ConvDoes Does>
bool conv_by_cudnn(CalledOp const& c) {
  using cuda_runtime::Cudnn;
  using What = cuda_runtime::Convolution;
  if (Cudnn::version() == 0 || !is_floating(c.out.dtype())) return false;
  auto const walked = [](Array const& x) {
    What::Operand r;
    for (int d = 0; d < x.ndim(); ++d)
      r.extent[static_cast<std::size_t>(d)] = x.shape()[d],
      r.step[static_cast<std::size_t>(d)] = x.strides()[d];
    return r;
  };
  std::array<Window, 3> windows{};
  for (std::size_t a = 0; a < 3; ++a) windows[a] = Window::of(c.attrs.i[a]);
  What const what =
      What::of(Does, c.out.dtype(), c.out.ndim(), {walked(c[0]), walked(c[1]), walked(c.out)}, windows);
  void* const operands[] = {c[0].bytes(), c[1].bytes(), c.out.bytes()};
  std::int64_t const bytes = Cudnn::needed(what, operands, c.device());
  if (bytes < 0) return false;
  Array const workspace = bytes_on(c.device(), bytes);
  return Cudnn::convolve(what, operands, workspace.bytes(), c.stream());
}
// Of 16 bits in f32: tiles for tensor cores whose windows no compiler knows take more registers than there are.
template <dfdx::kernels::cuda::ConvDoes Does>
bool conv_on_device(CalledOp const& c) {
  namespace k = dfdx::kernels::cuda;
  int const axes = c.out.ndim() - 2;
  if (c.lies_there() && conv_by_cudnn<Does>(c)) return true;
  if (!c.lies_there() || axes > 2 || !is_small(c[0]) || !is_small(c[1]) || !is_small(c.out)) return false;
  DType const d = c.out.dtype();
  if (is_half(d)) return in_f32_there(c, conv_on_device<Does>);
  return for_one_of<float, double>(d, [&](auto type) {
    using W = k::ImageWalks;
    using K = k::ConvKernel<Does, W, typename decltype(type)::type, CalledWindows<W::slots>>;
    Array const x = as_image(dense_there(c[0]), 2), y = as_image(dense_there(c[1]), 2),
                z = as_image(c.out, 2);
    auto const put = [&](index_t* slots) {
      put_slots(slots, x, y, z);
      slots[W::slots] = axes == 2 ? c.attrs.i[0] : Window{}.packed();
      slots[W::slots + 1] = c.attrs.i[axes - 1];
    };
    return start_with<K>(c, c.name, put, x, y, z);
  });
}
inline bool window_argmax_on_device(CalledOp const& c) {
  namespace k = dfdx::kernels::cuda;
  int const axes = c.out.ndim() - 1;
  if (axes > 2) return false;
  return for_one_of<float, double, float16, bfloat16>(c[0].dtype(), [&](auto type) {
    return for_one_of<std::int32_t, std::int64_t, std::uint8_t>(c.out.dtype(), [&](auto place) {
      using W = k::AnyWalks<3, 3>;
      using Windows = CalledWindows<W::slots>;
      using K =
          k::WindowArgmaxKernel<W, typename decltype(type)::type, typename decltype(place)::type, Windows>;
      Array const x = as_image(c[0], 1), y = as_image(c.out, 1);
      auto const put = [&](index_t* slots) {
        put_slots(slots, x, y);
        slots[W::slots] = axes == 2 ? c.attrs.i[0] : 0;  // bins of equal size: of one element each
        slots[W::slots + 1] = c.attrs.i[axes - 1];
      };
      return start_with<K>(c, c.name, put, x, y);
    });
  });
}

}  // namespace dfdx::detail::inline DFDX_TARGET
