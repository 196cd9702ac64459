// SPDX-License-Identifier: BSL-1.0
// The kernels of a device for ops that are called one by one, by name: so that files without CUDA find them too. Ops
// that have none run on the CPU, on copies (vocabulary/bind.hpp).
#pragma once

#include <string_view>
#include <unordered_map>

#include <dfdx/kernels/cuda/any_reduce.hpp>
#include <dfdx/kernels/cuda/matmul.hpp>
#include <dfdx/program/own_step.hpp>
#include <dfdx/value/device_ops.hpp>
#include <dfdx/vocabulary/to_device.hpp>

namespace dfdx::detail::inline DFDX_TARGET {

/// CalledOp - one call: what the kernel of an op is given, and where it is started.
struct CalledOp {
  Attrs const& attrs;
  Array const* const* x;
  int n;
  Array const& out;
  char const* name;

  Device device() const { return out.device(); }
  cudaStream_t stream() const { return cuda_runtime::stream(device()); }
  Array const& operator[](int k) const { return *x[k]; }
  /// Whether all operands lie on the device: kernels that were written for programs take no numbers of the CPU.
  bool lies_there() const {
    for (int k = 0; k < n; ++k)
      if (x[k]->device().is_cpu()) return false;
    return true;
  }
  bool started(cudaError_t said) const {
    cuda_runtime::check(name, said);
    return true;
  }
};
using CalledKernel = bool (*)(CalledOp const&);

// f(a value of the type) for the dtype among these; false if it is none of them.
template <class... T, class F>
bool for_one_of(DType d, F const& f) {
  bool r = false;
  static_cast<void>((... || (d == dtype_v<T> ? (r = f(std::type_identity<T>{}), true) : false)));
  return r;
}
// The same for integers of the size of an element: what only moves elements asks no more of them.
template <class F>
bool for_bits(DType d, F const& f) {
  switch (size_of(d)) {
    case 1: return f(std::type_identity<std::uint8_t>{});
    case 2: return f(std::type_identity<std::uint16_t>{});
    case 4: return f(std::type_identity<std::uint32_t>{});
    default: return f(std::type_identity<std::uint64_t>{});
  }
}

// Elementwise ops, casts, copies
// -------------------------------------------------------------------------------------------------------------

template <class Op, class E, std::size_t... K>
bool map_on_device(CalledOp const& c, std::index_sequence<K...> operands) {
  namespace k = dfdx::kernels::cuda;
  constexpr Meta made = result_of_computed<Op, E>();
  if constexpr (made.valid()) {
    return c.started(
        k::start_any<
            k::AnyMap<Op, element_t<made.dtype>,
                      std::conditional_t<Op::operand_dtype(static_cast<int>(K), dtype_v<E>) == DType::boolean,
                                         bool, E>...>>(c.x, c.out, c.stream()));
  } else if constexpr (!std::is_same_v<E, bool>) {
    return map_on_device<Op, bool>(c, operands);
  } else {
    return false;
  }
}
template <class Op>
bool map_on_device(CalledOp const& c) {
  constexpr auto operands = std::make_index_sequence<static_cast<std::size_t>(Op::arity)>{};
  DType const as = dfdx::kernels::computed_as(c[c.n - 1].dtype());  // the last operand has the common dtype
  if (as == DType::f64) return map_on_device<Op, double>(c, operands);
  if (as == DType::f32) return map_on_device<Op, float>(c, operands);
  return map_on_device<Op, std::int64_t>(c, operands);
}

inline bool copy_on_device(CalledOp const& c) {
  if (c[0].device().is_cpu()) return false;
  return for_bits(c.out.dtype(), [&](auto type) {
    return c.started(kernels::cuda::start_any<kernels::cuda::AnyCopy<typename decltype(type)::type>>(
        c.x, c.out, c.stream()));
  });
}
inline bool cast_on_device(CalledOp const& c) {
  namespace k = dfdx::kernels::cuda;
  switch (dfdx::kernels::computed_as(c[0].dtype())) {
    case DType::f64: return c.started(k::start_any<k::AnyCast<double>>(c.x, c.out, c.stream()));
    case DType::f32: return c.started(k::start_any<k::AnyCast<float>>(c.x, c.out, c.stream()));
    default: return c.started(k::start_any<k::AnyCast<std::int64_t>>(c.x, c.out, c.stream()));
  }
}

// Reductions, products
// -------------------------------------------------------------------------------------------------------------

template <index_t Do>
bool reduce_on_device(CalledOp const& c) {
  namespace k = dfdx::kernels::cuda;
  Array const& x = c[0];
  if (x.size() == 0) return false;
  switch (dfdx::kernels::computed_as(x.dtype())) {
    case DType::f64: return c.started(k::reduce_any<Do, double>(x, c.out, c.device(), c.stream()));
    case DType::f32: return c.started(k::reduce_any<Do, float>(x, c.out, c.device(), c.stream()));
    default: return c.started(k::reduce_any<Do, std::int64_t>(x, c.out, c.device(), c.stream()));
  }
}

// Extents and strides of operands, one after another, for a kernel that is described by AnyWalks.
template <class... A>
void put_slots(index_t* to, A const&... x) {
  auto const put = [&](Array const& v) {
    for (int d = 0; d < v.ndim(); ++d) *to++ = v.shape()[d];
    for (int d = 0; d < v.ndim(); ++d) *to++ = v.strides()[d];
  };
  (put(x), ...);
}
inline Array bytes_on(Device device, index_t n) {
  return n == 0 ? Array() : Array(Meta{DType::u8, make_shape(n)}, device);
}

// With at least one axis of stacks.
inline Array as_stacks(Array const& x, int axes) {
  Shape s;
  Strides t;
  for (int d = x.ndim() - 2; d < axes; ++d) s.push_back(1), t.push_back(0);
  for (int d = 0; d < x.ndim(); ++d) s.push_back(x.shape()[d]), t.push_back(x.strides()[d]);
  return x.view(s, t);
}
template <class T, int Stacks>
bool product_on_device(CalledOp const& c) {
  constexpr int rank = Stacks + 2;
  using Step = dfdx::kernels::cuda::MatmulStep<
      dfdx::kernels::Matmul<T, dfdx::kernels::cuda::AnyWalks<rank, rank, rank>, dfdx::kernels::store_sum>>;
  index_t slots[6 * rank];
  put_slots(slots, as_stacks(c[0], Stacks), as_stacks(c[1], Stacks), as_stacks(c.out, Stacks));
  Array const workspace = bytes_on(c.device(), Step::workspace(slots));
  void* const base[] = {c[0].bytes(), c[1].bytes(), c.out.bytes()};
  return c.started(Step::run(base, workspace.bytes(), slots, c.device(), c.stream()));
}
// Matrices, or stacks of them along two axes at most.
inline bool matmul_on_device(CalledOp const& c) {
  if (!c.lies_there() || c[0].dtype() != c.out.dtype() || c[1].dtype() != c.out.dtype()) return false;
  return for_one_of<float, double, float16, bfloat16, std::int32_t, std::int64_t>(
      c.out.dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        if (c.out.ndim() <= 3) return product_on_device<T, 1>(c);
        return c.out.ndim() == 4 && product_on_device<T, 2>(c);
      });
}

// Ops with kernels of their own
// -------------------------------------------------------------------------------------------------------------

// Starts a kernel (kernels/cuda/own.hpp) on these operands, the last of which is the result. `put` fills its slots.
template <class Kernel, class Put, class... A>
bool start_with(CalledOp const& c, char const* by, Put const& put, A const&... operands) {
  dfdx::kernels::cuda::OwnArguments x;
  static_assert(sizeof...(A) <= std::size(decltype(x.base){}));
  int k = 0;
  ((x.base[k++] = operands.bytes()), ...);
  put(x.symbols);
  x.attrs = c.attrs;
  x.by = by;
  x.fault = cuda_runtime::fault(c.device());
  Array const workspace = bytes_on(c.device(), dfdx::kernels::cuda::workspace_of<Kernel>(x.symbols));
  x.workspace = workspace.bytes();
  if constexpr (requires { Kernel::into_zeros; })
    cuda_runtime::zero(c.out.bytes(), static_cast<std::size_t>(c.out.size()) * size_of(c.out.dtype()),
                       c.device());
  return c.started(dfdx::kernels::cuda::start_own<Kernel>(x, c.stream()));
}
// The same for views that AnyWalks describes.
template <class Kernel, class... A>
bool start_called(CalledOp const& c, char const* by, A const&... views) {
  return start_with<Kernel>(c, by, [&](index_t* slots) { put_slots(slots, views...); }, views...);
}

inline Array dense_there(Array const& x) { return x.contiguous_memory() ? x : moved(x.device(), x); }
inline Array as_i64(CalledOp const& c, Array const& index) {
  if (index.dtype() == DType::i64) return index;
  Array const wide(Meta{DType::i64, index.shape()}, c.device());
  Array const* const from[] = {&index};
  cast_on_device({c.attrs, from, 1, wide, "cast"});
  return wide;
}
inline Array as_shape(Array const& dense, Shape const& s) { return dense.view(s, contiguous(s)); }
// [.., N, ..] as [outer, N, inner].
inline Array as_lines(Array const& x, int axis) {
  Shape s = make_shape(1, x.shape()[axis], 1);
  for (int d = 0; d < x.ndim(); ++d)
    if (d != axis) s[d < axis ? 0 : 2] *= x.shape()[d];
  return as_shape(dense_there(x), s);
}
// Four axes, the given one first.
inline Array from_axis(Array const& x, int axis) {
  Shape s = make_shape(x.shape()[axis]);
  Strides t = make_shape(x.strides()[axis]);
  for (int d = 0; d < x.ndim(); ++d)
    if (d != axis) s.push_back(x.shape()[d]), t.push_back(x.strides()[d]);
  while (s.rank < 4) s.push_back(1), t.push_back(0);
  return x.view(s, t);
}

// Rows by an index, of any shapes: [N, R], [I], and [I, R] in `rows`; all dense, which slots [N, R, I] describe.
struct Rows {
  static constexpr index_t n = dfdx::kernels::detail::slot(0), r = dfdx::kernels::detail::slot(1),
                           i = dfdx::kernels::detail::slot(2);
  using TableFirst = dfdx::kernels::Numbers<2, n, r, r, 1, 1, i, 1, 2, i, r, r, 1>;
  using RowsFirst = dfdx::kernels::Numbers<2, i, r, r, 1, 1, i, 1, 2, n, r, r, 1>;
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
inline bool rows_add_on_device(CalledOp const& c) {
  if (!c.lies_there() || c[0].size() == 0) return false;
  Rows const r = as_rows(c, c.out, c[0]);
  return for_one_of<float, double, float16, bfloat16>(c.out.dtype(), [&](auto type) {
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
inline bool cumsum_on_device(CalledOp const& c) {
  namespace k = dfdx::kernels::cuda;
  auto const axis = static_cast<int>(c.attrs.i[0]);
  return for_one_of<float, double, std::int64_t>(c.out.dtype(), [&](auto type) {
    using Rule = k::SumRule<typename decltype(type)::type>;
    using W = k::AnyWalks<3, 3>;
    Array const x = as_lines(c[0], axis), y = as_lines(c.out, axis);
    if (c.attrs.i[1] != 0) return start_called<k::ScanKernel<W, Rule, 1, true>>(c, c.name, x, y);
    return start_called<k::ScanKernel<W, Rule, 1, false>>(c, c.name, x, y);
  });
}
inline bool argmax_on_device(CalledOp const& c) {
  namespace k = dfdx::kernels::cuda;
  auto const axis = static_cast<int>(c.attrs.i[0]);
  return for_one_of<float, double, float16, bfloat16, std::int32_t, std::int64_t>(
      c[0].dtype(), [&](auto type) {
        using T = typename decltype(type)::type;
        using W = k::AnyWalks<3, 3>;
        Array const x = as_lines(c[0], axis), y = as_lines(c.out, axis);
        if (c.attrs.i[1] != 0) return start_called<k::ArgmaxKernel<W, T, 1, true>>(c, c.name, x, y);
        return start_called<k::ArgmaxKernel<W, T, 1, false>>(c, c.name, x, y);
      });
}
inline bool argsort_on_device(CalledOp const& c) {
  namespace k = dfdx::kernels::cuda;
  auto const axis = static_cast<int>(c.attrs.i[0]);
  return for_one_of<float, double, std::int32_t, std::int64_t>(c[0].dtype(), [&](auto type) {
    using T = typename decltype(type)::type;
    using W = k::AnyWalks<3, 3>;
    Array const x = as_lines(c[0], axis), y = as_lines(c.out, axis);
    if (c.attrs.i[1] != 0) return start_called<k::SortKernel<W, T, 1, true>>(c, c.name, x, y);
    return start_called<k::SortKernel<W, T, 1, false>>(c, c.name, x, y);
  });
}
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

// All of them
// -------------------------------------------------------------------------------------------------------------

class CalledKernels {
 public:
  static CalledKernel find(char const* name) {
    static CalledKernels const all;
    auto const at = all.by_name_.find(name);
    return at == all.by_name_.end() ? nullptr : at->second;
  }

 private:
  CalledKernels() {
    add_maps(std::make_index_sequence<256>{});
    by_name_["copy"] = &copy_on_device;
    by_name_["cast"] = &cast_on_device;
    by_name_["sum"] = &reduce_on_device<loop_code::reduce_sum>;
    by_name_["prod"] = &reduce_on_device<loop_code::reduce_prod>;
    by_name_["max"] = &reduce_on_device<loop_code::reduce_max>;
    by_name_["min"] = &reduce_on_device<loop_code::reduce_min>;
    by_name_["matmul"] = &matmul_on_device;
    by_name_["take"] = &take_on_device;
    by_name_["rows_add"] = &rows_add_on_device;
    by_name_["gather"] = &gather_on_device;
    by_name_["scatter"] = &scatter_on_device;
    by_name_["check_label"] = &check_label_on_device;
    by_name_["concat"] = &concat_on_device;
    by_name_["cumsum"] = &cumsum_on_device;
    by_name_["argmax"] = &argmax_on_device;
    by_name_["argsort"] = &argsort_on_device;
    by_name_["draw"] = &draw_on_device;
  }
  // Elementwise ops of the library, which are numbered.
  template <std::size_t N>
  void add_map() {
    if constexpr (requires { typename op::fused<static_cast<int>(N)>::type; }) {
      using Op = typename op::fused<static_cast<int>(N)>::type;
      by_name_[Op::name] = &map_on_device<Op>;
    }
  }
  template <std::size_t... N>
  void add_maps(std::index_sequence<N...>) {
    (add_map<N>(), ...);
  }

  std::unordered_map<std::string_view, CalledKernel> by_name_;
};

inline bool run_called(char const* name, Attrs const& attrs, Array const* const* x, int n, Array const& out) {
  CalledKernel const kernel = CalledKernels::find(name);
  if (kernel == nullptr) return false;
  cuda_runtime::Current const current(out.device());
  cuda_runtime::Range const range(name);
  return kernel({attrs, x, n, out, name});
}
inline constexpr DeviceOps called_ops{&run_called};
/// Says at the start of the process that there are such kernels.
inline bool const called_ops_registered = (device_ops = &called_ops, true);

}  // namespace dfdx::detail::inline DFDX_TARGET
