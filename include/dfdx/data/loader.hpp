// SPDX-License-Identifier: BSL-1.0
// Batches of a data set that is in memory: seeded shuffling, static batch shapes, no allocation per batch.
// Not for data that does not fit into memory.
#pragma once

#include <numeric>
#include <tuple>
#include <vector>

#include <dfdx/core/random.hpp>
#include <dfdx/data/split.hpp>
#include <dfdx/value/device_ops.hpp>
#include <dfdx/value/tensor.hpp>
#include <dfdx/value/walk.hpp>

namespace dfdx::data {

namespace detail {

// A batch of B rows of a data tensor.
template <std::size_t B, class X>
struct BatchOf;
template <std::size_t B, class T, std::size_t N, std::size_t... Rest>
struct BatchOf<B, Tensor<T, N, Rest...>> : std::type_identity<Tensor<T, B, Rest...>> {};

}  // namespace detail

/// Loader - batches of B rows, the same rows of each of the given tensors, in an order that is new in each pass and
/// settled by (key, pass). Rows left over at the end of a pass are dropped, so that every batch has the same shape.
///
///     data::Loader<64, Tensor<float, dyn, 784>, Tensor<std::int32_t, dyn>> loader(Key{1}, images, labels);
///     for (auto const& [x, y] : loader) ...                 // one pass; x: Tensor<float, 64, 784>
///     auto const& [x, y] = loader.next();                   // or endlessly
///
/// A batch is memory of the loader's that the next batch overwrites: clone what must last.
/// Errors    "loader: 10 rows do not fill a batch of 64"; "loader: 100 and 99 rows" when the tensors differ
template <std::size_t B, typed... X>
  requires(sizeof...(X) > 0 && B > 0)
class Loader {
 public:
  using Batch = std::tuple<typename detail::BatchOf<B, X>::type...>;

  /// Shuffled.
  explicit Loader(Key key, X const&... data) : Loader(data...) {
    key_ = key;
    shuffle_ = true;
  }
  /// In order.
  explicit Loader(X const&... data) : data_(row_major(data)...) {
    rows_ = std::get<0>(data_).shape()[0];
    ((rows_ == data.shape()[0] ? void() : raise("loader: ", rows_, " and ", data.shape()[0], " rows")), ...);
    if (rows_ < batch_size) raise("loader: ", rows_, " rows do not fill a batch of ", batch_size);
    order_.resize(static_cast<std::size_t>(rows_));
    std::iota(order_.begin(), order_.end(), index_t{0});
    each([](auto const& from, auto& to) {
      Shape s = from.shape();
      s[0] = batch_size;
      to = std::remove_cvref_t<decltype(to)>::uninitialized(s);
    });
  }

  /// Batches in a pass.
  index_t size() const { return rows_ / batch_size; }

  /// The next batch; after the last of a pass the first of another.
  Batch const& next() {
    if (at_ == 0) ++pass_;
    if (shuffle_ && ordered_ != pass_) shuffle();
    index_t const* rows = order_.data() + at_ * batch_size;
    each([rows](auto const& from, auto& to) {
      auto const bytes = static_cast<std::size_t>(to.size() / batch_size) * size_of(to.dtype());
      if (bytes == 0) return;
      if (dfdx::detail::is_elsewhere(from, to)) {
        for (index_t i = 0; i < batch_size; ++i) dfdx::detail::copy_values(from.part(rows[i]), to.part(i));
        return;
      }
      for (index_t i = 0; i < batch_size; ++i)
        std::memcpy(to.bytes() + static_cast<std::size_t>(i) * bytes,
                    from.bytes() + static_cast<std::size_t>(rows[i]) * bytes, bytes);
    });
    at_ = (at_ + 1) % size();
    return batch_;
  }

  /// Passes that are over.
  std::uint64_t epoch() const { return pass_ - (at_ != 0 ? 1 : 0); }

  /// Where it is: passes begun, and how many batches of the last it has given out; seek goes there.
  struct Position {
    std::uint64_t pass = 0;
    index_t batches_done = 0;
  };
  Position position() const { return {pass_, at_}; }
  void seek(Position const& p) {
    if (p.batches_done < 0 || p.batches_done >= size())
      raise("loader: batch ", dfdx::Position{p.batches_done}, " of ", size());
    pass_ = p.pass;
    at_ = p.batches_done;
  }

  /// One pass: begin() starts a new one, whatever was left of the last. Only what load_checkpoint has found is gone on
  /// with: the first loop after it sees the rest of that pass.
  class iterator {
   public:
    iterator(Loader* loader, index_t left) : loader_(loader), left_(left) {
      if (left_ > 0) loader_->next();
    }
    Batch const& operator*() const { return loader_->batch_; }
    iterator& operator++() {
      if (--left_ > 0) loader_->next();
      return *this;
    }
    bool operator==(iterator const& o) const { return left_ == o.left_; }

   private:
    Loader* loader_;
    index_t left_;
  };
  iterator begin() {
    if (!goes_on_) at_ = 0;
    goes_on_ = false;
    return {this, size() - at_};
  }
  iterator end() { return {this, 0}; }

  /// What a checkpoint holds (io/checkpoint.hpp).
  template <class Self, class F>
  static void visit_checkpoint(Self& self, F const& f) {
    f.must_equal("rows", self.rows_);
    f.must_equal("batch", batch_size);
    f.must_equal("shuffled", self.shuffle_);
    f("key", self.key_);
    f("pass", self.pass_);
    f.below("batches_done", self.at_, self.size());
    if constexpr (!std::is_const_v<Self>) {
      self.ordered_ = 0;
      self.goes_on_ = true;
    }
  }

 private:
  static constexpr auto batch_size = static_cast<index_t>(B);

  template <class T>
  static T row_major(T const& x) {
    if (x.contiguous_memory()) return x;
    T y = T::uninitialized(x.shape());
    copy_elements(x.operand(), y.operand());
    return y;
  }

  template <class F>
  void each(F const& f) {
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      (f(std::get<I>(data_), std::get<I>(batch_)), ...);
    }(std::index_sequence_for<X...>{});
  }

  // From the same start each time: the order of a pass depends on its number, not on how the others were used.
  void shuffle() {
    ordered_ = pass_;
    order_ = permutation<0>(fold_in(key_, pass_ - 1), rows_);
  }

  std::tuple<X...> data_;
  Batch batch_{};
  std::vector<index_t> order_;
  Key key_{};
  bool shuffle_ = false, goes_on_ = false;
  index_t rows_ = 0, at_ = 0;             // at_: batches of this pass that were given out
  std::uint64_t pass_ = 0, ordered_ = 0;  // passes begun, and the one that order_ is of
};

/// loader<B>(key, x, y...) - a Loader of these tensors; without a key in their order.
template <std::size_t B, typed... X>
auto loader(Key key, X const&... data) {
  return Loader<B, X...>(key, data...);
}
template <std::size_t B, typed... X>
auto loader(X const&... data) {
  return Loader<B, X...>(data...);
}

}  // namespace dfdx::data
