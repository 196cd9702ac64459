// SPDX-License-Identifier: BSL-1.0
// Array, the untyped value: dtype and shape, with either memory (a strided view of counted storage) or a handle
// into a graph that is being recorded. A literal type: its storage pointer is null in a constant expression.
#pragma once

#include <initializer_list>
#include <utility>

#include <dfdx/core/random.hpp>
#include <dfdx/value/array_methods.hpp>
#include <dfdx/value/literal.hpp>
#include <dfdx/value/storage.hpp>
#include <dfdx/value/tape_node.hpp>

namespace dfdx {

/// Array - a value whose dtype and shape are known at run time.
///
/// Copies are shallow: they view the same memory. Three states: empty, in memory, recorded (a node of a graph).
/// Errors    at, item and data throw dfdx::error when there is no memory or the dtype is another
class Array : public ArrayMethods {
 public:
  constexpr Array() = default;

  /// A recorded value.
  constexpr Array(Graph* graph, int id, Meta const& meta) : graph_(graph), id_(id), meta_(meta) { hold(); }
  constexpr explicit Array(Sym const& s) : Array(s.graph, s.id, s.meta()) {}

  /// Fresh, uninitialised, row-major memory.
  explicit Array(Meta const& meta, Device device = {}) : meta_(meta), strides_(dfdx::contiguous(meta.shape)) {
    index_t const n = meta.shape.numel();
    constexpr index_t most = index_t{1} << (sizeof(std::size_t) < 8 ? 27 : 56);
    if (n < 0 || n > most) raise("array: size overflows: ", meta.shape);
    storage_ = detail::caught<std::bad_alloc>(
        [&] { return Storage::allocate(static_cast<std::size_t>(n) * size_of(meta.dtype), device); },
        [&](std::bad_alloc const&) -> Storage* {
          raise("array: no memory for ", meta.dtype, " ", meta.shape);
        });
    data_ = storage_->data();
  }

  /// A scalar in memory.
  struct Scalar {};
  template <element T>
  constexpr Array(Scalar, T value)
      : storage_(DFDX_IN_CONSTANT_EXPRESSION ? nullptr : Storage::allocate_few(sizeof(T))),
        data_(DFDX_IN_CONSTANT_EXPRESSION ? nullptr : storage_->data()) {
    meta_.dtype = dtype_v<T>;
    if (DFDX_IN_CONSTANT_EXPRESSION) *this = literal(meta_, {detail::word_of(value)});
    else *reinterpret_cast<T*>(data_) = value;
  }
  template <element T>
  static Array number(T value) {
    return Array(Scalar{}, value);
  }

  /// literal - numbers in a constant expression, where there is no memory (value/literal.hpp): the bits of each
  /// element, or of all of them in one word.
  static constexpr Array literal(Meta const& meta, Vec<std::uint64_t> words) {
    return Array(detail::literal_graph(meta, std::move(words)), 0, meta);
  }

  /// A view of bytes that `storage` keeps alive (retained here).
  Array(Storage* storage, std::byte* data, Meta const& meta, Strides const& strides)
      : storage_(storage), data_(data), meta_(meta), strides_(strides) {
    if (storage_ != nullptr) storage_->retain();
  }

  /// The same from lists of `rank` extents and strides; row-major without strides.
  static Array unpacked(Storage* storage, std::byte* data, DType dtype, int rank, index_t const* extents,
                        index_t const* strides) {
    Array r;
    r.storage_ = storage;
    if (storage != nullptr) storage->retain();
    r.data_ = data;
    r.meta_.dtype = dtype;
    r.meta_.shape.rank = r.strides_.rank = rank;
    index_t step = 1;
    for (int i = rank - 1; i >= 0; --i) {
      r.meta_.shape[i] = extents[i];
      r.strides_[i] = strides != nullptr ? strides[i] : step;
      step *= extents[i];
    }
    return r;
  }

  /// borrow - a row-major view of memory that the caller owns and that must outlive all views of it, or that
  /// `give_back(data)` frees after the last one. Nothing is copied.
  static Array borrow(void* data, Meta const& meta, Device device = {}, void (*give_back)(void*) = nullptr) {
    auto const bytes = static_cast<std::size_t>(meta.shape.numel()) * size_of(meta.dtype);
    Storage* const storage = Storage::adopt(data, bytes, device, give_back);
    Array r(storage, storage->data(), meta, dfdx::contiguous(meta.shape));
    storage->release();
    return r;
  }

  constexpr Array(Array const& o) : storage_(o.storage_), data_(o.data_), graph_(o.graph_), tape_(o.tape_) {
    if (storage_ != nullptr) storage_->retain();
    if (tape_ != nullptr) tape_->retain();
    take_layout(o);
    hold();
  }
  constexpr Array(Array&& o) noexcept
      : storage_(o.storage_), data_(o.data_), graph_(o.graph_), tape_(o.tape_) {
    o.storage_ = nullptr, o.data_ = nullptr, o.graph_ = nullptr, o.tape_ = nullptr;
    take_layout(o);
  }
  constexpr Array& operator=(Array const& o) & noexcept { return *this = Array(o); }
  constexpr Array& operator=(Array&& o) & noexcept {
    Storage* const storage = o.storage_;
    TapeNode* const tape = o.tape_;
    std::byte* const data = o.data_;
    Graph* const graph = o.graph_;
    o.storage_ = nullptr, o.data_ = nullptr, o.graph_ = nullptr, o.tape_ = nullptr;
    Storage* const old_storage = storage_;  // null if o is *this
    TapeNode* const old_tape = tape_;
    Graph* const old_graph = graph_;
    storage_ = storage, data_ = data, graph_ = graph, tape_ = tape;
    take_layout(o);
    if (old_storage != nullptr) old_storage->release();
    if (old_tape != nullptr) old_tape->release();
    if (DFDX_IN_CONSTANT_EXPRESSION) let_go(old_graph);
    return *this;
  }
  // The numbers would not be changed: what a(0) gives is a view, which is gone at the end of the line.
  Array& operator=(Array const&) && = delete;  // of a part: a(0).copy_(x), or index_put_(a, x, 0)
  constexpr ~Array() {
    if (storage_ != nullptr) storage_->release();
    if (tape_ != nullptr) tape_->release();
    if (DFDX_IN_CONSTANT_EXPRESSION) let_go(graph_);
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
    if (dtype_v<T> != meta_.dtype) [[unlikely]]
      refuse_dtype("data", dtype_v<T>);
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

  /// item - the one element of an array of size 1, copied if it lies on a device.
  template <element T>
  T item() const {
    if (size() != 1) raise("item: one element required, got shape ", shape());
    if (device().is_cpu()) return *data<T>();
    if (dtype_v<T> != meta_.dtype) refuse_dtype("item", dtype_v<T>);
    T copy{};
    detail::device_memory->copy(&copy, Device{}, data_, device(), sizeof copy);
    return copy;
  }

  /// a[i] - the array at position i of the first axis, from the end if negative: a view, recorded on the tape.
  ///
  /// Errors    "at: index 3 out of range for axis 0 of [3, 2]"
  template <int = 0>
  constexpr Array operator[](index_t i) const;
  /// What a Tensor calls for the same.
  template <int = 0>
  Array at_on_tape(index_t i) const;

  /// a(i, range(1, 4), all(), newaxis, index) - parts, in NumPy's manner (vocabulary/indexing.hpp).
  template <class... I>
  Array operator()(I const&... items) const;

  /// len - the extent of the first axis, over which begin and end go.
  index_t len() const {
    if (ndim() == 0) raise("len: a scalar has no axes");
    return shape()[0];
  }
  template <int>
  class Iterator;
  template <int Lazy = 0>
  Iterator<Lazy> begin() const {
    return {this, 0};
  }
  template <int Lazy = 0>
  Iterator<Lazy> end() const {
    return {this, len()};
  }

  /// item() - the one element of an array of size 1 as a double, whatever its dtype.
  double item() const;

  /// part - the array at position i of the first axis: a view. The position is not checked.
  Array part(index_t i) const {
    Array r;
    r.storage_ = storage_;
    if (storage_ != nullptr) storage_->retain();
    r.data_ = data_ + i * strides_[0] * static_cast<index_t>(size_of(dtype()));
    r.meta_.dtype = meta_.dtype;
    for (int a = 1; a < ndim(); ++a) r.meta_.shape.push_back(shape()[a]), r.strides_.push_back(strides_[a]);
    return r;
  }

  using ArrayMethods::view;
  /// view - the same memory, walked another way; what a tape knows of it is left behind. `offset` counts elements.
  constexpr Array view(Shape const& shape, Strides const& strides, index_t offset = 0) const {
    Array r;
    r.storage_ = storage_;
    if (storage_ != nullptr) storage_->retain();
    r.data_ = offset == 0 ? data_ : data_ + offset * static_cast<index_t>(size_of(dtype()));
    r.graph_ = graph_;
    r.id_ = id_;
    r.hold();
    r.meta_.dtype = meta_.dtype;
    r.meta_.shape = shape;
    r.strides_ = strides;
    return r;
  }

  /// The node that a run-time tape has for it, null for most values. See tape/backward.hpp for what users call.
  constexpr TapeNode* tape() const { return tape_; }
  /// The same value described by another node (null for none), which is taken over, not retained.
  Array& put_on_tape(TapeNode* node) {
    if (tape_ != nullptr) tape_->release();
    tape_ = node;
    return *this;
  }

  /// add_, sub_, mul_, div_ - the operation in place, as += and its kin; copy_ takes over numbers (broadcast,
  /// converted);
  /// fill_, uniform_ (from [low, high)) and normal_ set new ones. See vocabulary/in_place.hpp.
  template <class X>
  Array& add_(X const& x);
  template <class X>
  Array& sub_(X const& x);
  template <class X>
  Array& mul_(X const& x);
  template <class X>
  Array& div_(X const& x);
  template <class N>
  Array& fill_(N value);
  template <int = 0>
  Array& copy_(Array const& x);
  template <int = 0>
  Array& uniform_(Key key, double low = 0, double high = 1);
  template <int = 0>
  Array& normal_(Key key, double mean = 0, double deviation = 1);

  /// requires_grad - whether gradients flow to this value: it was asked to, or made of one that was.
  bool requires_grad() const { return tape_ != nullptr && tape_->requires_grad; }
  /// requires_grad(on) - makes a value a leaf of the tape, whose gradient backward() sums up; or stops that. Copies
  /// made earlier do not take part.
  ///
  /// Errors    "requires_grad: floating dtype required, got i32"; "requires_grad: only a leaf can be switched off"
  Array& requires_grad(bool on);
  /// is_leaf - not made by a recorded op.
  bool is_leaf() const { return tape_ == nullptr || tape_->is_leaf(); }
  /// detach - the same memory, unknown to the tape.
  Array detach() const { return view(shape(), strides()); }
  /// grad - what backward passes have summed up for it; empty before the first.
  Array grad() const;
  /// zero_grad - forgets it.
  void zero_grad() const;
  /// retain_grad - has backward() keep the gradient of a value that is not a leaf, too.
  void retain_grad() const;
  /// register_hook - calls f(gradient) in every backward pass when the gradient of this value is known; what f returns,
  /// if anything, replaces it.
  template <class F>
  void register_hook(F f) const;
  /// backward - adds the gradients of this value to the `grad` of all leaves that it was made of (tape/backward.hpp).
  template <int = 0>
  void backward(BackwardOptions options = {}) const;
  template <int = 0>
  void backward(Array const& end_gradient, BackwardOptions options = {}) const;

 private:
  // A graph of literals lives as long as a value of it.
  constexpr void hold() const {
    if (DFDX_IN_CONSTANT_EXPRESSION)
      if (graph_ != nullptr && graph_->holders >= 0) ++graph_->holders;
  }
  static constexpr void let_go(Graph* g) {
    if (g != nullptr && g->holders >= 0 && --g->holders == 0) delete g;
  }
  // Only the axes that there are (and two, which need no loop): to copy all eight, just written one by one, would cost
  // more than an op on a scalar.
  constexpr void take_layout(Array const& o) {
    id_ = o.id_;
    meta_.dtype = o.meta_.dtype;
    meta_.shape.rank = o.meta_.shape.rank;
    strides_.rank = o.strides_.rank;
    index_t *const shape = meta_.shape.dims, *const strides = strides_.dims;
    for (int i = 0; i < 2; ++i) shape[i] = o.meta_.shape.dims[i], strides[i] = o.strides_.dims[i];
    for (int i = 2; i < meta_.shape.rank; ++i)
      shape[i] = o.meta_.shape.dims[i], strides[i] = o.strides_.dims[i];
  }
  // Each sample that a small network is asked about comes this way: what is seldom needed stays out of the caller.
  void require_memory(char const* op) const {
    if (data_ == nullptr || !device().is_cpu()) [[unlikely]]
      refuse_memory(op);
  }
  [[gnu::noinline, gnu::cold]] void refuse_memory(char const* op) const {
    if (data_ == nullptr && size() != 0) raise(op, ": the value of shape ", shape(), " holds no memory");
    if (!device().is_cpu())
      raise(op, ": the value of shape ", shape(), " lies on ", device(), ", not on the CPU");
  }
  [[noreturn, gnu::noinline, gnu::cold]] void refuse_dtype(char const* op, DType wanted) const {
    raise(op, ": dtype is ", meta_.dtype, ", not ", wanted);
  }

  Storage* storage_ = nullptr;
  std::byte* data_ = nullptr;
  Graph* graph_ = nullptr;
  TapeNode* tape_ = nullptr;
  int id_ = -1;
  Meta meta_{};
  Strides strides_{};
};

inline Array const& ArrayMethods::self() const { return static_cast<Array const&>(*this); }

/// Iteration over the first axis, a[0], a[1], ... (A template, so that a program that does not iterate needs no
/// vocabulary.)
template <int Lazy>
class Array::Iterator {
 public:
  using difference_type = index_t;
  using value_type = Array;
  Iterator() = default;
  Iterator(Array const* a, index_t i) : array_(a), i_(i) {}
  Array operator*() const { return array_->template operator[]<Lazy>(i_); }
  Iterator& operator++() {
    ++i_;
    return *this;
  }
  Iterator operator++(int) { return {array_, i_++}; }
  bool operator==(Iterator const& o) const { return i_ == o.i_; }

 private:
  Array const* array_ = nullptr;
  index_t i_ = 0;
};

}  // namespace dfdx
