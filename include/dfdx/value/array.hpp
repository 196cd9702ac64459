// SPDX-License-Identifier: BSL-1.0
// Array, the untyped value: dtype and shape, with either memory (a strided view of counted storage) or a handle
// into a graph that is being recorded. A literal type: its storage pointer is null in a constant expression.
#pragma once

#include <initializer_list>
#include <utility>

#include <dfdx/value/node.hpp>
#include <dfdx/value/storage.hpp>

namespace dfdx {

/// Array - a value whose dtype and shape are known at run time.
///
/// Copies are shallow: they view the same memory. Three states: empty, in memory, recorded (a node of a graph).
/// Errors    at, item and data throw dfdx::error when there is no memory or the dtype is another
class Array {
 public:
  constexpr Array() = default;

  /// A recorded value.
  constexpr Array(Graph* graph, int id, Meta const& meta) : graph_(graph), id_(id), meta_(meta) {}
  constexpr explicit Array(Sym const& s) : Array(s.graph, s.id, s.meta()) {}

  /// Fresh, uninitialised, row-major memory.
  explicit Array(Meta const& meta, Device device = {}) : meta_(meta), strides_(contiguous(meta.shape)) {
    index_t const n = meta.shape.numel();
    if (n < 0 || n > (index_t{1} << 56)) raise("array: size overflows: ", meta.shape);
    storage_ = Storage::allocate(static_cast<std::size_t>(n) * size_of(meta.dtype), device);
    data_ = storage_->data();
  }

  /// A view of bytes that `storage` keeps alive (retained here).
  Array(Storage* storage, std::byte* data, Meta const& meta, Strides const& strides)
      : storage_(storage), data_(data), meta_(meta), strides_(strides) {
    if (storage_ != nullptr) storage_->retain();
  }

  /// borrow - a row-major view of memory that the caller owns and that must outlive all views of it, or that
  /// `give_back(data)` frees after the last one. Nothing is copied.
  static Array borrow(void* data, Meta const& meta, Device device = {}, void (*give_back)(void*) = nullptr) {
    auto const bytes = static_cast<std::size_t>(meta.shape.numel()) * size_of(meta.dtype);
    Storage* const storage = Storage::adopt(data, bytes, device, give_back);
    Array r(storage, storage->data(), meta, contiguous(meta.shape));
    storage->release();
    return r;
  }

  constexpr Array(Array const& o)
      : storage_(o.storage_),
        data_(o.data_),
        graph_(o.graph_),
        id_(o.id_),
        meta_(o.meta_),
        strides_(o.strides_) {
    if (storage_ != nullptr) storage_->retain();
  }
  constexpr Array(Array&& o) noexcept
      : storage_(std::exchange(o.storage_, nullptr)),
        data_(std::exchange(o.data_, nullptr)),
        graph_(std::exchange(o.graph_, nullptr)),
        id_(o.id_),
        meta_(o.meta_),
        strides_(o.strides_) {}
  constexpr Array& operator=(Array o) noexcept {
    std::swap(storage_, o.storage_);
    std::swap(data_, o.data_);
    std::swap(graph_, o.graph_);
    id_ = o.id_;
    meta_ = o.meta_;
    strides_ = o.strides_;
    return *this;
  }
  constexpr ~Array() {
    if (storage_ != nullptr) storage_->release();
  }

  constexpr Meta const& meta() const { return meta_; }
  constexpr Shape const& shape() const { return meta_.shape; }
  constexpr DType dtype() const { return meta_.dtype; }
  constexpr Strides const& strides() const { return strides_; }
  constexpr int ndim() const { return meta_.shape.rank; }
  constexpr index_t size() const { return meta_.shape.numel(); }

  constexpr bool empty() const { return data_ == nullptr && graph_ == nullptr; }
  constexpr bool recorded() const { return graph_ != nullptr; }
  constexpr Graph* graph() const { return graph_; }
  constexpr int id() const { return id_; }
  constexpr Sym sym() const { return {graph_, id_}; }

  Storage* storage() const { return storage_; }
  std::byte* bytes() const { return data_; }
  Device device() const { return storage_ != nullptr ? storage_->device() : Device{}; }
  bool contiguous_memory() const { return is_contiguous(meta_.shape, strides_); }
  Operand operand() const {
    require_memory("operand");
    return {data_, meta_, strides_};
  }

  /// data - the first element; valid while any view of the memory lives.
  template <element T>
  T* data() const {
    require_memory("data");
    if (dtype_v<T> != meta_.dtype) raise("data: dtype is ", meta_.dtype, ", not ", dtype_v<T>);
    return reinterpret_cast<T*>(data_);
  }

  /// at - the element at an index for each axis.
  template <element T>
  T& at(std::initializer_list<index_t> index) const {
    T* p = data<T>();
    if (static_cast<int>(index.size()) != ndim())
      raise("at: ", static_cast<int>(index.size()), " indices for shape ", shape());
    int axis = 0;
    for (index_t i : index) {
      if (i < 0 || i >= shape()[axis])
        raise("at: index ", Position{i}, " out of range for axis ", axis, " of ", shape());
      p += i * strides_[axis++];
    }
    return *p;
  }

  /// item - the one element of an array of size 1.
  template <element T>
  T item() const {
    if (size() != 1) raise("item: one element required, got shape ", shape());
    return *data<T>();
  }

  /// part - the array at position i of the first axis: a view. The position is not checked.
  Array part(index_t i) const {
    Shape s, t;
    for (int a = 1; a < ndim(); ++a) s.push_back(shape()[a]), t.push_back(strides()[a]);
    return view(s, t, i * strides()[0]);
  }

  /// view - the same memory, walked another way. `offset` counts elements.
  constexpr Array view(Shape const& shape, Strides const& strides, index_t offset = 0) const {
    Array r(*this);
    r.meta_.shape = shape;
    r.strides_ = strides;
    if (offset != 0) r.data_ += offset * static_cast<index_t>(size_of(dtype()));
    return r;
  }

 private:
  void require_memory(char const* op) const {
    if (data_ == nullptr && size() != 0) raise(op, ": the value of shape ", shape(), " holds no memory");
    if (!device().is_cpu())
      raise(op, ": the value of shape ", shape(), " lies on ", device(), ", not on the CPU");
  }

  Storage* storage_ = nullptr;
  std::byte* data_ = nullptr;
  Graph* graph_ = nullptr;
  int id_ = -1;
  Meta meta_{};
  Strides strides_{};
};

}  // namespace dfdx
