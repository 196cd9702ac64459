// SPDX-License-Identifier: BSL-1.0
// The threads of a CUDA block, or of the blocks of a cluster, as fibers of one thread of the CPU: each runs until it
// waits at a barrier, in an order that a test chooses. Kernels whose result depends on that order lack a barrier. A
// block runs for as long as it does not wait for others of its cluster, so that it is as far from them as it can be.
#pragma once

#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

#include <ucontext.h>

namespace cuda_fake {

/// In which order the threads of a block take their turns.
enum class Turns { forward, backward, shuffled };

struct Position {
  unsigned x = 0, y = 0, z = 0;
};

/// Fibers - runs the threads of one block, or one cluster, at a time.
class Fibers {
 public:
  static constexpr unsigned most = 1024, most_blocks = 8, warp = 32;

  Turns turns = Turns::forward;
  /// For tests of tests: barriers that do nothing.
  bool drop_barriers = false, drop_cluster_barriers = false;
  /// Barriers that blocks have passed.
  std::uint64_t barriers = 0;

  /// The thread that runs now, of all blocks of the cluster; which of its block, and which block.
  unsigned current = 0;
  unsigned thread() const { return current % threads_; }
  unsigned block() const { return current / threads_; }

  /// run - calls f(argument) in each of `threads` threads of each block.
  void run(unsigned threads, unsigned blocks, void (*f)(void*), void* argument) {
    if (threads == 0 || threads > most) throw std::logic_error("emulated: a block has 1 to 1024 threads");
    if (blocks == 0 || blocks > most_blocks || (blocks > 1 && threads % warp != 0))
      throw std::logic_error("emulated: a cluster has 1 to 8 blocks of whole warps");
    threads_ = threads;
    count_ = threads * blocks;
    while (fibers_.size() < count_) fibers_.push_back(std::make_unique<Fiber>());
    body_ = f;
    argument_ = argument;
    for (unsigned i = 0; i < count_; ++i) fibers_[i]->state = State::fresh, fibers_[i]->shows = 0;
    later_.clear();
    for (alive_ = count_;;) {
      bool moved = false;
      Order const order = next_order(blocks);
      for (unsigned k = 0; k < blocks; ++k) moved |= run_block(order(k) * threads);
      if (wrong_ != nullptr) stop(std::exchange(wrong_, nullptr));
      if (alive_ == 0) return;
      moved |= release(State::at_cluster_barrier, 0, count_);
      if (!moved) do_one_later();
      if (std::exchange(has_news_, false)) moved |= release_paused();
      if (!moved) stop("emulated: threads wait at a barrier that others never reach");
    }
  }

  void barrier() {
    if (!drop_barriers) wait(State::at_barrier);
  }
  void cluster_barrier() {
    if (!drop_cluster_barriers) wait(State::at_cluster_barrier);
  }
  /// What a block reaches into has to run: memory of one that has not begun, or has ended, may be another's.
  void require_running(unsigned block) {
    bool runs = false;
    for (unsigned i = block * threads_; i < (block + 1) * threads_ && i < count_; ++i)
      runs = runs || (fibers_[i]->state != State::fresh && fibers_[i]->state != State::done);
    if (!runs) wrong_ = "emulated: memory of a block that does not run";
  }

  /// Until something has happened that the thread may wait for.
  void pause() { wait(State::paused); }
  /// What threads may wait for has happened.
  void news() { has_news_ = true; }
  /// do_later - does what is no thread's work: at once if threads take their turns forward, else when none can go on.
  void do_later(std::function<void()> work) {
    if (turns == Turns::forward) return work();
    later_.push_back(std::move(work));
  }

  /// The value that the thread of the warp has whose lane differs in the bits of `mask`. Returns after a change of the
  /// thread are foreseen wrongly by the processor, so that there are to be few.
  template <class T>
  [[gnu::always_inline]] T exchange(T x, unsigned mask) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8);
    unsigned const me = current, other = me / warp * warp + ((me % warp) ^ mask);
    Slots const& slots = shown(x);
    T y;
    std::memcpy(&y, slots[other], sizeof y);
    return y;
  }

  /// What each thread of the warp has.
  template <class T>
  void all(T const& x, T (&of)[warp]) {
    unsigned const first = current / warp * warp;
    Slots const& slots = shown(x);
    for (unsigned i = 0; i < warp && first + i < count_; ++i) std::memcpy(&of[i], slots[first + i], sizeof x);
  }

  /// A bit for each thread of the warp.
  unsigned votes(bool yes) {
    unsigned const first = current / warp * warp;
    Slots const& slots = shown(static_cast<unsigned char>(yes));
    unsigned r = 0;
    for (unsigned i = 0; i < warp && first + i < count_; ++i)
      r |= static_cast<unsigned>(slots[first + i][0]) << i;
    return r;
  }

 private:
  enum class State { fresh, ready, at_barrier, at_cluster_barrier, at_warp, paused, done };
  struct Fiber {
    static constexpr std::size_t stack_size = 96 * 1024;
    std::unique_ptr<char[]> stack{new char[stack_size]};
    ucontext_t context;
    std::jmp_buf here;
    State state = State::fresh;
    bool begun = false;
    unsigned shows = 0;
  };

  using Slots = unsigned char[most * most_blocks][24];

  // What all threads of the warp show, once they have. The next time they use the other slots, and the time after that
  // all have read these: so they need not wait again until all have.
  template <class T>
  [[gnu::always_inline]] Slots const& shown(T const& x) {
    static_assert(sizeof(T) <= sizeof(slots_[0][0]));
    Slots& slots = slots_[fibers_[current]->shows++ % 2];
    std::memcpy(slots[current], &x, sizeof x);
    wait(State::at_warp);
    return slots;
  }

  // The k-th of n to have its turn. Shuffled: steps that have no factor with n visit each once.
  struct Order {
    unsigned n, first, step;
    unsigned operator()(unsigned k) const { return (first + step * k) % n; }
  };
  Order next_order(unsigned n) {
    if (turns == Turns::forward) return {n, 0, 1};
    if (turns == Turns::backward) return {n, n - 1, n - 1};
    random_ = random_ * 6364136223846793005u + 1442695040888963407u;
    unsigned step = static_cast<unsigned>(random_ >> 33) % n;
    while (std::gcd(step, n) != 1) ++step;
    return {n, static_cast<unsigned>(random_ >> 43) % n, step};
  }

  [[noreturn]] void stop(char const* why) {
    for (auto& f : fibers_) f->begun = f->begun && f->state == State::done;
    throw std::logic_error(why);
  }

  // Lets the threads of a block go on for as long as they wait for each other alone.
  bool run_block(unsigned from) {
    unsigned const warps = (threads_ + warp - 1) / warp;
    for (bool moved = false;; moved = true) {
      bool some = false;
      Order const order = next_order(warps);
      for (unsigned k = 0; k < warps; ++k) some |= run_warp(from + order(k) * warp);
      if (release(State::at_barrier, from, from + threads_)) ++barriers, some = true;
      if (!some) return moved;
    }
  }

  // Lets the threads of a warp go on for as long as they wait for each other alone: their stacks stay in the caches.
  // One hands on to the next; the scheduler has its turn when none can go on, or to begin one.
  bool run_warp(unsigned from) {
    round_ = {from, warp < count_ - from ? warp : count_ - from, 0, {}};
    round_.order = next_order(round_.threads);
    unsigned first;
    bool moved = false;
    while (next_thread(first)) {
      moved = true;
      resume(first);
    }
    return moved;
  }

  // The next thread of the warp that can go on.
  bool next_thread(unsigned& i) {
    for (;;) {
      for (; round_.turn < round_.threads; ++round_.turn) {
        i = round_.from + round_.order(round_.turn);
        if (fibers_[i]->state == State::fresh || fibers_[i]->state == State::ready)
          return ++round_.turn, true;
      }
      if (!release(State::at_warp, round_.from, round_.from + round_.threads)) return false;
      round_.turn = 0;
      round_.order = next_order(round_.threads);
    }
  }

  bool release(State waiting, unsigned from, unsigned to) {
    for (unsigned i = from; i < to; ++i)
      if (fibers_[i]->state != waiting) return false;
    for (unsigned i = from; i < to; ++i) fibers_[i]->state = State::ready;
    return true;
  }

  bool release_paused() {
    bool any = false;
    for (unsigned i = 0; i < count_; ++i)
      if (fibers_[i]->state == State::paused) fibers_[i]->state = State::ready, any = true;
    return any;
  }
  // The oldest, or backward the newest.
  void do_one_later() {
    if (later_.empty()) return;
    auto const one = turns == Turns::backward ? later_.end() - 1 : later_.begin();
    auto const work = std::move(*one);
    later_.erase(one);
    work();
    has_news_ = true;
  }

  // Contexts are made once; from then on long jumps change between them, which ask nothing of the system.
  [[noreturn]] void go_to(unsigned i) {
    current = i;
    fibers_[i]->state = State::ready;
    std::longjmp(fibers_[i]->here, 1);
  }
  [[gnu::noinline]] void resume(unsigned i) {
    if (_setjmp(scheduler_) != 0) return;
    if (fibers_[i]->begun) go_to(i);
    current = i;
    Fiber& f = *fibers_[i];
    f.state = State::ready;
    f.begun = true;
    getcontext(&f.context);
    f.context.uc_stack.ss_sp = f.stack.get();
    f.context.uc_stack.ss_size = Fiber::stack_size;
    f.context.uc_link = nullptr;
    active() = this;
    makecontext(&f.context, &Fibers::begin, 0);
    setcontext(&f.context);
  }
  [[gnu::noinline]] void wait(State why) {
    Fiber& f = *fibers_[current];
    f.state = why;
    if (why == State::done) --alive_;
    unsigned next;
    bool const any = next_thread(next);
    if (any && next == current) return void(f.state = State::ready);
    if (_setjmp(f.here) != 0) return;
    if (!any) std::longjmp(scheduler_, 1);
    if (!fibers_[next]->begun) --round_.turn, std::longjmp(scheduler_, 1);
    go_to(next);
  }
  static void begin() {
    Fibers& all = *active();
    for (;;) {
      all.body_(all.argument_);
      all.wait(State::done);
    }
  }
  static Fibers*& active() {
    static Fibers* p = nullptr;
    return p;
  }

  struct Round {
    unsigned from, threads, turn;
    Order order;
  };

  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<std::function<void()>> later_;
  bool has_news_ = false;
  std::jmp_buf scheduler_;
  void (*body_)(void*) = nullptr;
  void* argument_ = nullptr;
  char const* wrong_ = nullptr;
  unsigned threads_ = 1, count_ = 0, alive_ = 0;
  Round round_ = {};
  std::uint64_t random_ = 1;
  Slots slots_[2] = {};
};

}  // namespace cuda_fake
