// SPDX-License-Identifier: BSL-1.0
// Ops that are called one by one on a device and have kernels of their own, those of programs.
#pragma once

#include <dfdx/kernels/cuda/conv.hpp>
#include <dfdx/kernels/cuda/index.hpp>
#include <dfdx/kernels/cuda/move.hpp>
#include <dfdx/kernels/cuda/order.hpp>
#include <dfdx/kernels/cuda/random.hpp>
#include <dfdx/kernels/cuda/recurrence.hpp>
#include <dfdx/kernels/cuda/scan.hpp>
#include <dfdx/kernels/cuda/sort.hpp>
#include <dfdx/kernels/cuda/window.hpp>
#include <dfdx/ops/conv.hpp>
#include <dfdx/ops/index.hpp>
#include <dfdx/ops/index_copy.hpp>
#include <dfdx/ops/onto.hpp>
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
  struct Onto : dfdx::kernels::Numbers<2, n, r, r, 1, 1, i, 1, 2, i, r, r, 1, 2, n, r, r, 1> {
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
  return dispatch_bits(c.out.dtype(), [&](auto type) {
    using K = dfdx::kernels::cuda::TakeKernel<Rows::TableFirst, typename decltype(type)::type, std::int64_t>;
    return start_with<K>(c, op::detail::called(c.attrs, op::take::name), r.slots(), r.table, r.index, r.rows);
  });
}
inline bool rows_add_on_device(CalledOp const& c) {
  if (!c.lies_there() || !is_small(c[0]) || !is_small(c.out)) return false;
  if (is_narrow(c.out.dtype())) return in_wider_there(c, rows_add_on_device, sum_dtype(c.out.dtype()));
  Rows const r = as_rows(c, c.out, c[0]);
  return for_one_of<float, double, std::int64_t>(c.out.dtype(), [&](auto type) {
    using K =
        dfdx::kernels::cuda::RowsAddKernel<Rows::RowsFirst, typename decltype(type)::type, std::int64_t>;
    return start_with<K>(c, op::detail::called(c.attrs, op::take::name), r.slots(), r.rows, r.index, r.table);
  });
}
inline bool rows_onto_on_device(CalledOp const& c) {
  if (!c.lies_there() || !is_small(c[2]) || !is_small(c.out)) return false;
  if (is_narrow(c.out.dtype())) return in_wider_there(c, rows_onto_on_device, sum_dtype(c.out.dtype()));
  copy_values(c[0], c.out);
  Rows const r = as_rows(c, c.out, c[2]);
  return for_one_of<float, double, std::int64_t>(c.out.dtype(), [&](auto type) {
    using K =
        dfdx::kernels::cuda::RowsAddKernel<Rows::Onto, typename decltype(type)::type, std::int64_t, true>;
    return start_with<K>(c, op::detail::called(c.attrs, c.name), r.slots(), r.table, r.index, r.rows,
                         r.table);
  });
}
// The operands of gather and of its transpose, all of one rank: those before the axis and those behind it are one each
// where there are more than these kernels walk. `places` has the shape of the index.
inline Array around_axis(Array const& x, int axis, Shape places) {
  if (x.ndim() <= 4) return from_axis(x, axis);
  places[axis] = x.shape()[axis];
  return from_axis(as_lines(x.view(places, x.strides()), axis), 1);
}
inline bool gather_on_device(CalledOp const& c) {
  if (!c.lies_there()) return false;
  auto const axis = static_cast<int>(c.attrs.i[0]);
  Shape const places = c[1].shape();
  Array const index = around_axis(as_i64(c, c[1]), axis, places);
  return dispatch_bits(c.out.dtype(), [&](auto type) {
    using K = dfdx::kernels::cuda::GatherKernel<dfdx::kernels::cuda::AnyWalks<4, 4, 4>,
                                                typename decltype(type)::type, std::int64_t, 0>;
    return start_called<K>(c, op::detail::called(c.attrs, op::gather::name), around_axis(c[0], axis, places),
                           index, around_axis(c.out, axis, places));
  });
}
// What replaces elements is moved, what is added up is so in a wide dtype.
inline bool scatter_on_device(CalledOp const& c) {
  if (!c.lies_there()) return false;
  DType const d = c.out.dtype();
  auto const axis = static_cast<int>(c.attrs.i[0]);
  bool const replaces = c.attrs.i[1] != 0;
  if (!replaces && is_narrow(d)) return in_wider_there(c, scatter_on_device, sum_dtype(d));
  Shape places = c[1].shape();
  if (c.out.ndim() > 4 && c.out.size() / c.out.shape()[axis] * places[axis] != c[1].size()) {
    places[axis] = c.out.shape()[axis];  // all that indices reach of many axes
    Array const reached(Meta{d, places}, c.device());
    device_memory->zero(c.out.bytes(), static_cast<std::size_t>(c.out.size()) * size_of(d), c.device());
    if (!scatter_on_device({c.attrs, c.x, c.n, reached, c.name})) return false;
    copy_values(reached, c.out.view(places, c.out.strides()));
    return true;
  }
  Array const index = around_axis(as_i64(c, c[1]), axis, places);
  auto const run = [&](auto type) {
    using K = dfdx::kernels::cuda::ScatterKernel<dfdx::kernels::cuda::AnyWalks<4, 4, 4>,
                                                 typename decltype(type)::type, std::int64_t, 0>;
    return start_called<K>(c, op::detail::called(c.attrs, op::gather::name), around_axis(c[0], axis, places),
                           index, around_axis(c.out, axis, places));
  };
  return replaces ? dispatch_bits(d, run) : for_one_of<float, double, std::int64_t>(d, run);
}
inline bool scatter_onto_on_device(CalledOp const& c) {
  if (!c.lies_there()) return false;
  DType const d = c.out.dtype();
  auto const axis = static_cast<int>(c.attrs.i[0]);
  bool const replaces = c.attrs.i[1] != 0;
  if (!replaces && is_narrow(d)) return in_wider_there(c, scatter_onto_on_device, sum_dtype(d));
  copy_values(c[0], c.out);
  Shape reached = c[1].shape();
  reached[axis] = c.out.shape()[axis];
  bool const in_part = c.out.ndim() > 4 && !(reached == c.out.shape());
  Array const part = in_part ? moved(c.device(), c.out.view(reached, c.out.strides())) : c.out,
              index = around_axis(as_i64(c, c[1]), axis, reached), src = around_axis(c[2], axis, reached),
              y = around_axis(part, axis, reached);
  auto const run = [&](auto type) {
    using K = dfdx::kernels::cuda::ScatterKernel<dfdx::kernels::cuda::AnyWalks<4, 4, 4, 4>,
                                                 typename decltype(type)::type, std::int64_t, 0, true>;
    return start_called<K>(c, op::detail::called(c.attrs, c.name), y, index, src, y);
  };
  if (!(replaces ? dispatch_bits(d, run) : for_one_of<float, double, std::int64_t>(d, run))) return false;
  if (in_part) copy_values(part, c.out.view(reached, c.out.strides()));
  return true;
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
// Numbers that are compared and nothing else, in one of these dtypes or in a wider one that has them all.
template <class... T>
Array compared_there(CalledOp const& c, Array const& x) {
  if ((... || (x.dtype() == dtype_v<T>))) return x;
  return cast_there(c, x, size_of(x.dtype()) < 4 ? DType::f32 : DType::i64);
}
// Of ops along an axis: Kernel<T, whether attrs.i[1] is set> for the dtypes T.
template <template <class, bool> class Kernel, class... T>
bool lines_of(CalledOp const& c, Array const& of) {
  auto const axis = static_cast<int>(c.attrs.i[0]);
  return for_one_of<T...>(of.dtype(), [&](auto type) {
    using E = typename decltype(type)::type;
    Array const x = as_lines(of, axis), y = as_lines(c.out, axis);
    if (c.attrs.i[1] != 0) return start_called<Kernel<E, true>>(c, c.name, x, y);
    return start_called<Kernel<E, false>>(c, c.name, x, y);
  });
}
template <template <class, bool> class Kernel, class... T>
bool places_in_lines(CalledOp const& c) {
  return lines_of<Kernel, T...>(c, compared_there<T...>(c, c[0]));
}
using CalledLines = dfdx::kernels::cuda::AnyWalks<3, 3>;
template <class T, bool Backwards>
using CalledSums =
    dfdx::kernels::cuda::ScanKernel<CalledLines, dfdx::kernels::cuda::SumRule<T>, 1, Backwards>;
template <class T, bool Smallest>
using CalledLargest =
    dfdx::kernels::cuda::ScanKernel<CalledLines, dfdx::kernels::cuda::LargestRule<T, Smallest>, 1, false>;
template <class T, bool Smallest>
using CalledArgmax = dfdx::kernels::cuda::ArgmaxKernel<CalledLines, T, 1, Smallest>;
template <class T, bool Descending>
using CalledSort = dfdx::kernels::cuda::SortKernel<CalledLines, T, 1, Descending>;
inline bool cumsum_on_device(CalledOp const& c) {
  if (DType const d = c.out.dtype(); is_narrow(d))  // rounded once
    return in_wider_there(c, cumsum_on_device, is_half(d) ? DType::f64 : DType::i64);
  return lines_of<CalledSums, float, double, std::int64_t>(c, c[0]);
}
inline bool recurrence_on_device(CalledOp const& c) {
  if (DType const d = c.out.dtype(); is_narrow(d))
    return in_wider_there(c, recurrence_on_device, is_half(d) ? DType::f64 : DType::i64);
  auto const axis = static_cast<int>(c.attrs.i[0]);
  return for_one_of<float, double, std::int64_t>(c.out.dtype(), [&](auto type) {
    using K = dfdx::kernels::cuda::RecurrenceKernel<dfdx::kernels::cuda::AnyWalks<3, 3, 3>,
                                                    typename decltype(type)::type, 1>;
    return start_called<K>(c, c.name, as_lines(brought_there(c, c[0]), axis),
                           as_lines(brought_there(c, c[1]), axis), as_lines(c.out, axis));
  });
}
// Lists [B, N] and values [B, M]: the axes before the last are one. One list is for all values.
template <class... T>
bool searchsorted_among(CalledOp const& c) {
  namespace k = dfdx::kernels::cuda;
  int const last = c[0].ndim() - 1;
  index_t const n = c[0].shape()[last], m = last == 0 ? c.out.size() : c.out.shape()[last];
  auto const rows = [&](Array const& x, index_t row) {
    return run_reshape(make_shape(c.out.size() / m, row), x);
  };
  Array const list = rows(compared_there<T...>(c, brought_there(c, c[0])), n),
              x = rows(compared_there<T...>(c, brought_there(c, c[1])), m), y = rows(c.out, m);
  return for_one_of<T...>(x.dtype(), [&](auto type) {
    using E = typename decltype(type)::type;
    using W = k::AnyWalks<2, 2, 2>;
    if (c.attrs.i[0] != 0) return start_called<k::SearchKernel<W, E, true>>(c, c.name, list, x, y);
    return start_called<k::SearchKernel<W, E, false>>(c, c.name, list, x, y);
  });
}
inline bool searchsorted_on_device(CalledOp const& c) {
  return searchsorted_among<float, double, float16, bfloat16, std::int32_t, std::int64_t>(c);
}
// Parts along an axis, of any shapes: [O, N, R], [I] and [O, I, R], all dense, which slots [O, N, R, I, N R, I R]
// describe: of more slots, as AnyWalks has them, ptxas spills one.
struct Parts {
  template <int K>
  static constexpr index_t slot = dfdx::kernels::detail::slot(K);
  using Walks = dfdx::kernels::Numbers<3, slot<0>, slot<1>, slot<2>, slot<4>, slot<2>, 1, 1, slot<3>, 1, 3,
                                       slot<0>, slot<3>, slot<2>, slot<5>, slot<2>, 1, 3, slot<0>, slot<1>,
                                       slot<2>, slot<4>, slot<2>, 1>;
};
// The result is filled first, as if it were a state that keeps its place.
inline bool index_copy_on_device(CalledOp const& c) {
  auto const axis = static_cast<int>(c.attrs.i[0]);
  copy_values(brought_there(c, c[0]), c.out);
  if (c[1].size() == 0) return true;
  Array const index = dense_there(as_i64(c, brought_there(c, c[1]))),
              from = as_lines(brought_there(c, c[2]), axis), to = as_lines(c.out, axis);
  auto const put = [&](index_t* slots) {
    for (int d = 0; d < 3; ++d) slots[d] = to.shape()[d];
    slots[3] = index.size();
    slots[4] = to.strides()[0], slots[5] = from.strides()[0];
  };
  return dispatch_bits(c.out.dtype(), [&](auto type) {
    using K =
        dfdx::kernels::cuda::IndexCopyKernel<Parts::Walks, typename decltype(type)::type, std::int64_t, 1>;
    return start_with<K>(c, c.name, put, to, index, from, to);
  });
}
template <bool Transposed, class... T>
bool resample_with(CalledOp const& c) {
  namespace k = dfdx::kernels::cuda;
  auto const axis = static_cast<int>(c.attrs.i[0] & 15);
  return for_one_of<T...>(c.out.dtype(), [&](auto type) {
    using K = k::ResampleKernel<CalledLines, typename decltype(type)::type, 1, Transposed, k::GivenSampling>;
    return start_called<K>(c, c.name, as_lines(c[0], axis), as_lines(c.out, axis));
  });
}
inline bool resample_on_device(CalledOp const& c) {
  if ((c.attrs.i[0] & 16) != 0) return resample_with<true, float, double, float16, bfloat16>(c);
  return resample_with<false, float, double, float16, bfloat16, std::int8_t, std::uint8_t, std::int32_t,
                       std::int64_t>(c);
}
inline bool draw_on_device(CalledOp const& c) {
  namespace k = dfdx::kernels::cuda;
  Array const key = brought_there(c, c[1]);
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

// Along as many axes S; those that are missing are before the others, of a single element.
inline Array as_image(Array const& x, int before, int axes = 2) {
  int const missing = before + axes - x.ndim();
  Shape s;
  Strides t;
  for (int d = 0; d < before; ++d) s.push_back(x.shape()[d]), t.push_back(x.strides()[d]);
  for (int d = 0; d < missing; ++d) s.push_back(1), t.push_back(x.strides()[before] * x.shape()[before]);
  for (int d = before; d < x.ndim(); ++d) s.push_back(x.shape()[d]), t.push_back(x.strides()[d]);
  return x.view(s, t);
}
// The windows of axes are in slots from First on.
template <int First, int... Axis>
dfdx::kernels::Numbers<dfdx::kernels::detail::slot(First + Axis)...> windows_from(
    std::integer_sequence<int, Axis...>);
template <int First, int Axes = 2>
using CalledWindows = decltype(windows_from<First>(std::make_integer_sequence<int, Axes>{}));
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
  if (is_half(d)) return in_wider_there(c, conv_on_device<Does>, DType::f32);
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
template <int Axes, class... T>
bool window_argmax_along(CalledOp const& c) {
  namespace k = dfdx::kernels::cuda;
  Array const of = compared_there<T...>(c, c[0]);
  return for_one_of<T...>(of.dtype(), [&](auto type) {
    return for_one_of<std::int32_t, std::int64_t, std::uint8_t>(c.out.dtype(), [&](auto place) {
      using W = k::AnyWalks<Axes + 1, Axes + 1>;
      using K = k::WindowArgmaxKernel<W, typename decltype(type)::type, typename decltype(place)::type,
                                      CalledWindows<W::slots, Axes>>;
      Array const x = as_image(of, 1, Axes), y = as_image(c.out, 1, Axes);
      int const missing = Axes - (c.out.ndim() - 1);
      auto const put = [&](index_t* slots) {
        put_slots(slots, x, y);
        for (int a = 0; a < Axes; ++a)  // bins of equal size where there is no axis: of one element each
          slots[W::slots + a] = a < missing ? 0 : c.attrs.i[a - missing];
      };
      return start_with<K>(c, c.name, put, x, y);
    });
  });
}
inline bool window_argmax_on_device(CalledOp const& c) {
  if (c.out.ndim() - 1 <= 2) return window_argmax_along<2, float, double, float16, bfloat16, std::int64_t>(c);
  return window_argmax_along<3, float, double, float16, bfloat16, std::int64_t>(c);
}

}  // namespace dfdx::detail::inline DFDX_TARGET
