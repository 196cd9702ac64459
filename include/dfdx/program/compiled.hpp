// SPDX-License-Identifier: BSL-1.0
// Compiled<F>: a function object that runs programs. It owns the arenas, binds arguments to inputs and hands out
// results as views. Transforms (program/transforms.hpp) are built on it.
#pragma once

#include <atomic>

#include <dfdx/core/config.hpp>
#include <dfdx/program/fixed.hpp>
#include <dfdx/program/scalar.hpp>

namespace dfdx::detail::inline DFDX_TARGET {

template <class P>
inline constexpr char program_tag = 0;

/// Arenas - memory that programs of one function object run in, kept for the next call. Results are views that hold
/// their arena: one that is still looked at is not written again, the next call takes another.
class Arenas {
 public:
  Arenas() = default;
  // A copy of a function object starts without memory of its own.
  Arenas(Arenas const&) {}
  Arenas(Arenas&& o) noexcept : entries_(std::move(o.entries_)) {}
  Arenas& operator=(Arenas const&) { return *this; }
  ~Arenas() {
    for (Entry& e : entries_) e.storage->release();
  }

  struct Entry {
    void const* tag;
    Storage* storage;
  };

  /// InUse - marks that a call writes the arenas. Two threads that share a function object are told when one sees the
  /// other: soon, not at once, for nothing waits.
  class InUse {
   public:
    explicit InUse(Arenas& a) : busy_(a.busy_) {
      if (busy_.load(std::memory_order_relaxed)) refuse();
      busy_.store(true, std::memory_order_relaxed);
    }
    InUse(InUse const&) = delete;
    InUse& operator=(InUse const&) = delete;
    ~InUse() { busy_.store(false, std::memory_order_relaxed); }

   private:
    [[noreturn, gnu::noinline]] static void refuse() {
      raise(
          "program: two calls at a time of one function object, whose memory is its own; each thread needs a "
          "copy");
    }
    std::atomic<bool>& busy_;
  };

  /// An arena of at least `bytes` on a device for the program named by `tag` that no result looks at.
  Storage* take(void const* tag, std::size_t bytes, Device device) {
    std::size_t mine = 0;
    for (Entry& e : entries_) {
      if (e.tag != tag || e.storage->device() != device) continue;
      ++mine;
      if (e.storage->shared()) continue;
      if (e.storage->bytes() < bytes) {
        e.storage->release();
        e.storage = Storage::allocate_few(0);  // in its place, for there may be no memory
        Storage* const larger = Storage::allocate(bytes, device);
        e.storage->release();
        e.storage = larger;
      }
      return e.storage;
    }
    Storage* fresh = Storage::allocate(bytes, device);
    // Callers that keep many results keep their arenas too; we remember the last few only.
    if (mine < 4) entries_.push_back(Entry{tag, fresh});
    else
      for (Entry& e : entries_)
        if (e.tag == tag && e.storage->device() == device) {
          std::swap(e.storage, fresh);
          fresh->release();
          fresh = e.storage;
          break;
        }
    return fresh;
  }

 private:
  Vec<Entry> entries_;
  std::atomic<bool> busy_ = false;
};

/// OwnArenas - Arenas made when first needed. A literal type, so that function objects can be constants; a copy
/// has its own.
class OwnArenas {
 public:
  constexpr OwnArenas() = default;
  constexpr OwnArenas(OwnArenas const&) {}
  constexpr OwnArenas& operator=(OwnArenas const&) { return *this; }
  constexpr ~OwnArenas() { delete arenas_; }
  Arenas& get() {
    if (arenas_ == nullptr) arenas_ = new Arenas;
    return *arenas_;
  }

 private:
  Arenas* arenas_ = nullptr;
};

constexpr Shape resolved(Shape s, index_t const* symbols) {
  for (int i = 0; i < s.rank; ++i) s[i] = extent::resolve(s[i], symbols);
  return s;
}

/// A number that a program has made.
template <class P, class T>
T read_number(graph::Result const& r, typename P::Frame const& frame) {
  std::byte const* const at = P::address(r.memory, frame);
  if constexpr (has_devices)
    if (!frame.device.is_cpu()) {
      T x;
      device_memory->copy(&x, Device{}, at, frame.device, sizeof x);
      return x;
    }
  return *reinterpret_cast<T const*>(at);
}

/// Runs program P on arguments in memory, then calls take(storage of the arena, frame).
template <class P, class Take, class... A>
auto run_and_take(Arenas& arenas, Take take, A const&... args) {
  Inputs<P> inputs;
  (inputs.add(args), ...);
  typename P::Frame frame;
  frame.inputs = inputs.data;
  frame.symbols = inputs.symbols;
  frame.device = inputs.device;
  detail::require_kernels(frame.device);
  Arenas::InUse const in_use(arenas);
  auto const run = [&](std::size_t bytes) {
    Storage* const storage = arenas.take(&program_tag<P>, bytes, inputs.device);
    frame.arena = storage->data();
    P::run(frame);
    return take(storage, frame);
  };
  inputs.complete();  // dyn dims may be required to be numbers that make the program static
  if constexpr (P::is_static) {
    return run(static_cast<std::size_t>(P::arena_on(frame.device, nullptr, nullptr)));
  } else {
    auto const layout = P::layout(inputs.symbols);
    frame.layout = &layout;
    return run(static_cast<std::size_t>(P::arena_on(frame.device, &layout, inputs.symbols)));
  }
}

// A result that lies at an address of an arena.
template <class = void>
[[gnu::noinline]] Array result_view(graph::Result const& r, Storage* storage, std::byte* at,
                                    index_t const* symbols) {
  return Array(storage, at, Meta{r.meta.dtype, resolved(r.meta.shape, symbols)},
               resolved(r.strides, symbols));
}

// The first results, as many as a tree has leaves for. It knows no program, but how one tells where an argument is: all
// programs with results of a type share it.
template <class T>
void view_leaves(T& out, graph::Result const* results, Storage* storage, index_t const* symbols,
                 std::byte* (*address)(graph::Argument const&, void const* frame), void const* frame) {
  visit(out, [&](auto& leaf) {
    using Leaf = std::remove_cvref_t<decltype(leaf)>;
    graph::Result const& r = *results++;
    leaf = Leaf(typename Leaf::Unchecked{}, result_view(r, storage, address(r.memory, frame), symbols));
  });
}
/// The first results of program P, as views of its arena: those that a tree has leaves for.
template <class P, class T>
void view_results(T& out, Storage* storage, typename P::Frame const& frame) {
  view_leaves(
      out, P::plan.results.data(), storage, frame.symbols,
      [](graph::Argument const& a, void const* f) {
        return P::address(a, *static_cast<typename P::Frame const*>(f));
      },
      &frame);
}
template <class P>
typename P::result result_views(Storage* storage, typename P::Frame const& frame) {
  typename P::result out{};
  view_results<P>(out, storage, frame);
  return out;
}

/// Calls program P; the result's leaves view the arena.
template <class P, class... A>
typename P::result run_program(Arenas& arenas, A const&... args) {
  auto const views = [](Storage* storage, typename P::Frame const& frame) {
    return result_views<P>(storage, frame);
  };
  return run_and_take<P>(arenas, views, args...);
}

/// Calls program P for the first of its results, a scalar of type T; the others are written in place.
template <class P, class T, class... A>
T run_for_first(Arenas& arenas, A const&... args) {
  auto const number = [](Storage*, typename P::Frame const& frame) {
    return read_number<P, T>(P::plan.results[0], frame);
  };
  return run_and_take<P>(arenas, number, args...);
}

// What F does with arguments that no program can be made for, Arrays: it runs as it is. Transforms say more in
// transforms/eager.hpp.
template <class F>
struct Eager {
  template <class... A>
  static auto call(A const&... args) {
    static_assert(std::is_invocable_v<F, A const&...>,
                  "program: an Array is an argument; include <dfdx/transforms/eager.hpp>");
    return F{}(args...);
  }
};

// What is computed by a program is not on the tape: a gradient that would be lost without a word is refused.
template <class T>
void require_off_tape(T const& t) {
  if constexpr (tree<T>)
    visit(t, [](auto const& leaf) {
      if (leaf.requires_grad())
        raise("program: an argument of shape ", leaf.shape(),
              " requires a gradient, but programs are not recorded on the tape: detach it, or use no_grad");
    });
}

template <class A>
constexpr argument_t<A> const as_argument(A const& a) {
  return argument_t<A>(a);
}
template <tree A>
constexpr A const& as_argument(A const& a) {
  return a;
}

}  // namespace dfdx::detail::inline DFDX_TARGET

namespace dfdx::inline DFDX_TARGET {

/// Bound - a program tied to its arguments and its arena: calling it runs the kernels and nothing else. It reads
/// the arguments' memory as it is at the call; its results are the same views each time. It can be moved, into a
/// std::vector for instance, and is then to be called where it is; each has an arena of its own, so that there are no
/// copies.
///
/// Cost      no allocation, no look-up: for small functions in inner loops
/// Threading one object, one thread
template <class P, class... A>
class Bound {
 public:
  explicit Bound(A const&... args) : arguments_(args...) {
    std::apply([&](auto const&... a) { (inputs_.add(a), ...); }, arguments_);
    if (!inputs_.packed.empty()) raise("bind: arguments must be contiguous");
    inputs_.complete();
    detail::require_kernels(inputs_.device);
    kept_.add_to(inputs_, args...);
    if constexpr (!P::is_static) {
      layout_ = P::layout(inputs_.symbols);
    } else {
      layout_ = P::layout(nullptr);
    }
    storage_ = Storage::allocate(
        static_cast<std::size_t>(P::arena_on(inputs_.device, &layout_, inputs_.symbols)), inputs_.device);
    result_ = detail::result_views<P>(storage_, frame());
  }
  Bound(Bound&& o) noexcept
      : arguments_(std::move(o.arguments_)),
        inputs_(o.inputs_),
        kept_(std::move(o.kept_)),
        layout_(o.layout_),
        storage_(std::exchange(o.storage_, nullptr)),
        result_(std::move(o.result_)) {}
  Bound& operator=(Bound&& o) noexcept {
    std::swap(arguments_, o.arguments_);
    std::swap(inputs_, o.inputs_);
    std::swap(kept_, o.kept_);
    std::swap(layout_, o.layout_);
    std::swap(storage_, o.storage_);
    std::swap(result_, o.result_);
    return *this;
  }
  ~Bound() {
    if (storage_ != nullptr) storage_->release();
  }

  typename P::result const& operator()() {
    P::run(frame());
    return result_;
  }

 private:
  typename P::Frame frame() const {
    return {storage_->data(), inputs_.data, inputs_.symbols, &layout_, inputs_.device};
  }

  std::tuple<A...> arguments_;
  detail::Inputs<P> inputs_;
  [[no_unique_address]] detail::Kept<P> kept_;
  typename P::Layout layout_{};
  Storage* storage_ = nullptr;
  typename P::result result_{};
};

/// Compiled - F as a compiled function: each set of argument types has a program of its own, made when the file is
/// compiled. Called with recorded arguments (inside another transform) it is recorded in turn.
///
/// Cost      after the first call with given types no allocation, unless earlier results are still held
/// Threading one object, one thread; copies are independent
/// Errors    "program: an argument of shape [3] requires a gradient, but programs are not recorded on the tape: detach
///           it, or use no_grad"
///           "program: two calls at a time of one function object, whose memory is its own; each thread needs a copy",
///           where one sees the other
template <class F>
class Compiled {
 public:
  constexpr Compiled() = default;
  constexpr Compiled(Compiled const&) {}
  constexpr Compiled& operator=(Compiled const&) { return *this; }

  template <class... A>
  using program_for =
      program<detail::bound_function<F, std::remove_cvref_t<A>...>, std::remove_cvref_t<A>...>;

  template <class... A>
  constexpr auto operator()(A const&... args) {
    return call(&arenas_, args...);
  }
  /// A constant function object keeps its memory with the thread.
  template <class... A>
  constexpr auto operator()(A const&... args) const {
    return call(nullptr, args...);
  }

  /// bind(args...) - this function tied to these arguments, for calls that cost no more than their kernels. Arguments
  /// that do not change meanwhile may be given as fixed(x): what depends on them alone is computed here.
  template <class... A>
  auto bind(A const&... args) const {
    return Bound<program_for<A...>, argument_t<A>...>(detail::as_argument(args)...);
  }

 private:
  template <class... A>
  static constexpr auto call(detail::OwnArenas* own, A const&... args) {
    static_assert(((tree<A> || std::is_arithmetic_v<A>) && ...),
                  "program: arguments are Tensors, Arrays, numbers, or structs with DFDX_FIELDS, arrays and "
                  "tuples of these");
    static_assert(!(is_fixed_argument<A> || ...), "fixed: only for arguments of bind");
    if constexpr (!(detail::has_static_leaves<A>() && ...)) return detail::Eager<F>::call(args...);
    else return call_program(own, args...);
  }

  template <class... A>
  static constexpr auto call_program(detail::OwnArenas* own, A const&... args) {
    if constexpr (requires { F::template check<A...>(); })
      static_cast<void>(std::bool_constant<F::template check<A...>()>{});
    using R = result_t<F, A...>;
    if constexpr (refused<R>) {
      return R{};
    } else if constexpr (!detail::returns_tensors<R, "program", F, A...>()) {
      return Refused{};
    } else if constexpr (!detail::is_recorded<program_for<A...>>) {
      return Refused{};
    } else if constexpr ((std::is_arithmetic_v<A> && ...)) {
      // Numbers in, numbers out: interpreted in a constant expression, else run like any program.
      if (DFDX_IN_CONSTANT_EXPRESSION) {
        double const in[] = {static_cast<double>(args)...};
        return detail::interpret<program_for<A...>>(in);
      }
      return detail::as_numbers(run<program_for<A...>>(own, args...));
    } else {
      // Recording happens in constant expressions only: so that a program's text holds no second, eager version of
      // F.
      if (DFDX_IN_CONSTANT_EXPRESSION) {
        return call_recorded(argument_t<A>(detail::as_argument(args))...);
      }
      return run<program_for<A...>>(own, args...);
    }
  }

  template <class... A>
  static constexpr auto call_recorded(A const&... args) {
    Graph* const g = detail::graph_of(args...);
    return detail::record_call<F>(detail::apart(g, args)...);
  }
  template <class P, class... A>
  static result_t<F, A...> run(detail::OwnArenas* own, A const&... args) {
    if (is_grad_enabled()) (detail::require_off_tape(args), ...);
    if (own != nullptr) return detail::run_program<P>(own->get(), detail::as_argument(args)...);
    static DFDX_THREAD_LOCAL detail::OwnArenas of_thread;
    return detail::run_program<P>(of_thread.get(), detail::as_argument(args)...);
  }

  detail::OwnArenas arenas_;
};

}  // namespace dfdx::inline DFDX_TARGET
