// SPDX-License-Identifier: BSL-1.0
// Batches made ready by a thread of their own while the program computes with those before. Not part of
// <dfdx/dfdx.hpp>: a program with threads needs their library (CMake: Threads::Threads).
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>

#include <dfdx/data/loader.hpp>

namespace dfdx::data {

namespace detail {

// A copy in memory of its own.
template <class Batch>
Batch copied(Batch batch) {
  std::apply(
      [](auto&... x) {
        auto const one = [](auto& t) {
          auto fresh = std::remove_cvref_t<decltype(t)>::uninitialized(t.shape());
          copy_elements(t.operand(), fresh.operand());
          t = fresh;
        };
        (one(x), ...);
      },
      batch);
  return batch;
}
struct AsItIs {
  template <class Batch>
  Batch operator()(Batch const& batch, std::uint64_t) const {
    return batch;
  }
};

}  // namespace detail

/// Prefetch - a loader whose batches a thread makes ready, up to `ahead` of them, with what is to be done to each:
///
///     auto batches = data::prefetch(std::move(loader), [](auto const& batch, std::uint64_t number) {
///       auto const& [x, y] = batch;
///       return std::tuple(data::random_flip(x, fold_in(Key{1}, number)), y);
///     });
///     auto const& [x, y] = batches.next();
///
/// The batches are those that the loader gives, in its order, whatever the timing; `number` counts them from 0 over all
/// passes. A batch stays as it is until the next is asked for. In a checkpoint it is the loader as far as batches were
/// given out. The function runs on the thread; what it throws, next() throws, again each time.
///
/// Threading next() by one thread; copies are not possible
template <class L, class F = detail::AsItIs>
class Prefetch {
 public:
  using Batch = std::remove_cvref_t<std::invoke_result_t<F&, typename L::Batch const&, std::uint64_t>>;

  explicit Prefetch(L loader, F f = {}, std::size_t ahead = 2)
      : loader_(std::move(loader)),
        f_(std::move(f)),
        ahead_(ahead < 1 ? 1 : ahead),
        given_(loader_.position()) {}
  Prefetch(Prefetch const&) = delete;
  Prefetch& operator=(Prefetch const&) = delete;
  ~Prefetch() { stop(); }

  /// Batches in a pass; passes that are over; both as the loader has them.
  index_t size() const { return loader_.size(); }
  std::uint64_t epoch() const { return given_.pass - (given_.batches_done != 0 ? 1 : 0); }

  Batch const& next() {
    if (!worker_.joinable()) start();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !ready_.empty() || failed_; });
    if (ready_.empty()) std::rethrow_exception(failed_);
    current_ = std::move(ready_.front().first);
    given_ = ready_.front().second;
    ready_.pop_front();
    lock.unlock();
    changed_.notify_all();
    return current_;
  }

  /// What a checkpoint holds (io/checkpoint.hpp): the loader's part, as if there were no thread.
  template <class Self, class V>
  static void visit_checkpoint(Self& self, V const& v) {
    self.stop();
    self.loader_.seek(self.given_);
    if constexpr (std::is_const_v<Self>) L::visit_checkpoint(std::as_const(self.loader_), v);
    else {
      L::visit_checkpoint(self.loader_, v);
      self.given_ = self.loader_.position();
    }
  }

 private:
  void start() {
    stopping_ = false;
    failed_ = nullptr;
    worker_ = std::thread([this] { work(); });
  }
  // What was ready is made again later, the same.
  void stop() const {
    {
      std::lock_guard const lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    if (worker_.joinable()) worker_.join();
    ready_.clear();
  }
  void work() {
    auto const failed = dfdx::detail::caught([&] {
      for (;;) {
        auto const before = loader_.position();
        std::uint64_t const done = before.pass - (before.batches_done != 0 ? 1 : 0);
        std::uint64_t const number = done * static_cast<std::uint64_t>(loader_.size()) +
                                     static_cast<std::uint64_t>(before.batches_done);
        Batch batch = detail::copied(Batch(f_(loader_.next(), number)));
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return stopping_ || ready_.size() < ahead_; });
        if (stopping_) return;
        ready_.emplace_back(std::move(batch), loader_.position());
        lock.unlock();
        changed_.notify_all();
      }
    });
    if (failed == nullptr) return;
    std::lock_guard const lock(mutex_);
    failed_ = failed;
    changed_.notify_all();
  }

  // (Mutable: a checkpoint of a constant one stops the thread and winds the loader back.)
  mutable L loader_;
  F f_;
  std::size_t ahead_;
  typename L::Position given_;
  Batch current_{};
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  mutable std::deque<std::pair<Batch, typename L::Position>> ready_;
  mutable bool stopping_ = false;
  std::exception_ptr failed_;
  mutable std::thread worker_;
};

/// prefetch(loader, f, ahead) - a Prefetch of a loader.
template <class L, class F = detail::AsItIs>
Prefetch<L, F> prefetch(L loader, F f = {}, std::size_t ahead = 2) {
  return Prefetch<L, F>(std::move(loader), std::move(f), ahead);
}

}  // namespace dfdx::data
