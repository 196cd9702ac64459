// SPDX-License-Identifier: BSL-1.0
// What nodes of the tape hold: the values that a rule will read, a leaf's gradient, hooks; and the members of Array
// that reach them. (array.hpp includes both.)
#pragma once

#include <atomic>

#include <dfdx/core/config.hpp>
#include <dfdx/value/array_type.hpp>

namespace dfdx {

/// no_grad - while one lives, its thread records nothing on the tape.
class [[nodiscard]] no_grad {
 public:
  explicit no_grad(bool enabled = false) : before_(std::exchange(enabled_, enabled)) {}
  no_grad(no_grad const&) = delete;
  no_grad& operator=(no_grad const&) = delete;
  ~no_grad() { enabled_ = before_; }

  static bool is_enabled() { return enabled_; }

 private:
  static inline constinit DFDX_THREAD_LOCAL bool enabled_ = true;
  bool before_;
};
/// enable_grad - records again, inside of a no_grad.
class [[nodiscard]] enable_grad : no_grad {
 public:
  enable_grad() : no_grad(true) {}
};
/// is_grad_enabled - whether ops on values that require gradients are recorded now, on this thread.
inline bool is_grad_enabled() { return no_grad::is_enabled(); }

/// detect_anomaly - while one lives, its thread looks at all results on the tape, and at all gradients: the first that
/// makes a NaN of numbers is an error that names its op.
class [[nodiscard]] detect_anomaly {
 public:
  detect_anomaly() : before_(std::exchange(enabled_, true)) {}
  detect_anomaly(detect_anomaly const&) = delete;
  detect_anomaly& operator=(detect_anomaly const&) = delete;
  ~detect_anomaly() { enabled_ = before_; }

  static bool is_enabled() { return enabled_; }

 private:
  static inline constinit DFDX_THREAD_LOCAL bool enabled_ = false;
  bool before_;
};

namespace detail {

/// A value as a node keeps it: what its rule does not read has a shape but no memory. The extents follow, and the
/// strides unless it is dense.
struct PackedArray {
  Storage* storage;
  std::byte* data;
  std::uint32_t version;
  DType dtype;
  std::uint8_t rank;
  bool is_dense;

  index_t* extents() { return reinterpret_cast<index_t*>(this + 1); }
  std::size_t bytes() const { return sizeof(PackedArray) + sizeof(index_t) * rank * (is_dense ? 1u : 2u); }
  PackedArray* next() { return reinterpret_cast<PackedArray*>(reinterpret_cast<std::byte*>(this) + bytes()); }

  static PackedArray describe(Array const& x, bool is_read) {
    bool const has_memory = is_read && x.storage() != nullptr;
    return {has_memory ? x.storage() : nullptr,      has_memory ? x.bytes() : nullptr,
            has_memory ? x.storage()->version() : 0, x.dtype(),
            static_cast<std::uint8_t>(x.ndim()),     !has_memory || x.contiguous_memory()};
  }
  /// Writes the array behind its description.
  void pack(Array const& x) {
    if (storage != nullptr) storage->retain_saved();
    for (int i = 0; i < rank; ++i) extents()[i] = x.shape()[i];
    for (int i = 0; i < rank && !is_dense; ++i) extents()[rank + i] = x.strides()[i];
  }
  Array unpack() {
    index_t const* const strides = is_dense ? nullptr : extents() + rank;
    return Array::unpacked(storage, data, dtype, rank, extents(), strides);
  }
};
static_assert(sizeof(PackedArray) % alignof(PackedArray) == 0 &&
              sizeof(TapeNode) % alignof(PackedArray) == 0 && sizeof(TapeNode) <= 64);

/// The arrays that follow a node: its attributes first, then operands and result.
inline constexpr std::size_t bytes_before_arrays = TapeNode::far_bytes + sizeof(Attrs);
inline Attrs& attrs_of(TapeNode& n) {
  return *reinterpret_cast<Attrs*>(n.payload_memory() + TapeNode::far_bytes);
}
inline PackedArray* arrays_of(TapeNode& n) {
  return reinterpret_cast<PackedArray*>(n.payload_memory() + bytes_before_arrays);
}

/// What follows the node of x[i]: i, and the shape of x.
struct PackedPosition {
  index_t at;
  PackedArray whole;
};
inline PackedPosition& position_of(TapeNode& n) {
  return *reinterpret_cast<PackedPosition*>(n.payload_memory());
}

/// The operands of one op: room for as many as there may be, of which those that there are get made.
class Operands {
 public:
  Operands() = default;
  Operands(Operands const&) = delete;
  Operands& operator=(Operands const&) = delete;
  ~Operands() {
    for (int k = 0; k < size_; ++k) data()[k].~Array();
  }
  template <class F>
  Array& add(F const& make) {
    auto* const r = ::new (static_cast<void*>(data() + size_)) Array(make());
    ++size_;
    return *r;
  }
  Array* data() { return reinterpret_cast<Array*>(room_); }

 private:
  alignas(Array) std::byte room_[max_arity * sizeof(Array)];
  int size_ = 0;
};

/// What was done in place, on the tape, to memory that several arrays view: with it those that are recorded since take
/// their place behind the change (vocabulary/rebase.hpp). The memory owns it.
struct Changes {
  /// The part that was changed as it is since then. It does not hold the memory.
  struct Change {
    std::uint32_t version;
    bool whole;  // no element of the memory is what it was
    Array part;
  };
  /// Whose node is another now: nodes, as arrays without memory.
  struct Rebased {
    Array from, to;
  };
  /// The node of a value as it is now; null if nobody knows.
  using Current = TapeNode* (*)(Changes&, Array const&);

  Current current;
  Vec<Change> list{};
  Vec<Rebased> rebased{};
};

inline void discard(Changes* c) { delete c; }

/// The node that a value of the tape has now, after changes in place through other views; null if nobody knows.
inline TapeNode* current_node(Array const& x) {
  TapeNode* const n = x.tape();
  if (n->is_leaf() || n->version == x.storage()->version()) return n;
  Changes* const c = x.storage()->changes();
  return c != nullptr ? c->current(*c, x) : nullptr;
}

/// A function of a gradient, of any type.
struct TapeHook {
  TapeHook* next = nullptr;
  virtual Array call(Array const&) = 0;
  virtual ~TapeHook() = default;
};

struct TapeExtras {
  Array grad;
  TapeHook* hooks = nullptr;
  std::atomic_flag locked = ATOMIC_FLAG_INIT;

  /// Threads that share a model add to the gradients of its parameters one after another.
  class Lock {
   public:
    explicit Lock(TapeExtras& e) : extras_(e) {
      while (extras_.locked.test_and_set(std::memory_order_acquire)) extras_.locked.wait(true);
    }
    Lock(Lock const&) = delete;
    Lock& operator=(Lock const&) = delete;
    ~Lock() {
      extras_.locked.clear(std::memory_order_release);
      extras_.locked.notify_one();
    }

   private:
    TapeExtras& extras_;
  };
};

inline void discard(TapeExtras* e) {
  while (TapeHook* const h = e->hooks) {
    e->hooks = h->next;
    delete h;
  }
  delete e;
}

inline TapeExtras& extras_of(TapeNode& n) {
  if (n.extras == nullptr) n.extras = new TapeExtras;
  return *n.extras;
}

// The node that a value's hooks and gradient are with.
inline TapeNode& known_node(Array const& x) {
  TapeNode* const n = current_node(x);
  return n != nullptr ? *n : *x.tape();
}

[[noreturn]] inline void refuse_untaped(char const* what, Shape const& s) {
  raise(what, ": the value of shape ", s, " does not require a gradient");
}

}  // namespace detail

inline void TapeNode::drop_values() {
  if (payload == Payload::arrays) {
    detail::PackedArray* p = detail::arrays_of(*this);
    for (int k = 0; k <= arity; ++k, p = p->next())
      if (p->storage != nullptr) p->storage->release_saved();
  }
  payload = Payload::none;
}

inline Array& Array::requires_grad(bool on) {
  if (on && !is_floating(dtype())) raise("requires_grad: floating dtype required, got ", dtype());
  if (!is_leaf() && !on) raise("requires_grad: only a leaf can be switched off; use detach");
  if (on && recorded()) raise("requires_grad: the value is being recorded in a program");
  if (on && tape_ == nullptr) {
    put_on_tape(TapeNode::make(nullptr));
    tape_->device(device());
    if (ndim() == 0 && (dtype() == DType::f32 || dtype() == DType::f64) && device().is_cpu())
      tape_->number = dtype();
    detail::extras_of(*tape_);
  }
  if (tape_ != nullptr) tape_->requires_grad = on;
  if (storage_ != nullptr && is_leaf()) storage_->of_leaf(on);
  return *this;
}

inline Array Array::grad() const {
  if (tape_ == nullptr) return {};
  detail::TapeExtras* const extras = detail::known_node(*this).extras;
  if (extras == nullptr) return {};
  detail::TapeExtras::Lock const lock(*extras);
  return extras->grad;
}

inline void Array::zero_grad() const {
  if (tape_ == nullptr) return;
  detail::TapeExtras* const extras = detail::known_node(*this).extras;
  if (extras == nullptr) return;
  detail::TapeExtras::Lock const lock(*extras);
  extras->grad = {};
}

inline void Array::retain_grad() const {
  if (tape_ == nullptr) detail::refuse_untaped("retain_grad", shape());
  TapeNode& node = detail::known_node(*this);
  detail::extras_of(node);
  node.retains_grad = true;
}

template <class F>
void Array::register_hook(F f) const {
  struct Hook : detail::TapeHook {
    explicit Hook(F g) : function(std::move(g)) {}
    Array call(Array const& gradient) override {
      if constexpr (std::is_void_v<decltype(function(gradient))>) return function(gradient), gradient;
      else return function(gradient);
    }
    F function;
  };
  if (tape_ == nullptr) detail::refuse_untaped("register_hook", shape());
  detail::TapeHook** last = &detail::extras_of(detail::known_node(*this)).hooks;
  while (*last != nullptr) last = &(*last)->next;
  *last = new Hook(std::move(f));
}

}  // namespace dfdx
