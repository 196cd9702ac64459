// SPDX-License-Identifier: BSL-1.0
// Batches from a thread are those of the loader, in its order; a checkpoint counts what was given out.
#include "support.hpp"

#include <dfdx/data/prefetch.hpp>
#include <dfdx/dfdx.hpp>
#include <dfdx/io/checkpoint.hpp>

#include <catch2/catch_test_macros.hpp>

namespace tests::data_prefetch {

using namespace dfdx;

namespace {

auto const x = arange<Tensor<std::int32_t, dyn>>(0, 1, {11});
auto shuffled(std::uint64_t seed) { return data::loader<3>(Key{seed}, x); }
constexpr auto changed = [](auto const& batch, std::uint64_t number) {
  return std::tuple(std::get<0>(batch) * 100 + static_cast<std::int32_t>(number), std::get<0>(batch));
};

}  // namespace

TEST_CASE("a thread's batches are the loader's", "[data]") {
  for (std::size_t ahead : {0, 1, 2, 7}) {
    auto plain = shuffled(1);
    auto batches = data::prefetch(shuffled(1), changed, ahead);
    CHECK(batches.size() == 3);
    for (std::int32_t i = 0; i < 20; ++i) {
      auto const& [y, same] = batches.next();
      auto const& [want] = plain.next();
      CHECK(array_equal(same, want));
      CHECK(array_equal(y, want * 100 + i));
      CHECK(batches.epoch() == plain.epoch());
    }
  }
  data::prefetch(shuffled(1));  // never asked
  auto once = data::prefetch(shuffled(1));
  once.next();
}

TEST_CASE("a checkpoint of a thread's batches is one of the loader", "[data]") {
  tests::TemporaryFolder const folder;
  for (int stop = 0; stop < 8; ++stop) {
    auto whole = data::prefetch(shuffled(1), changed, 3), resumed = data::prefetch(shuffled(2), changed);
    auto plain = shuffled(3);
    for (int i = 0; i < stop; ++i) whole.next();
    save_checkpoint(folder / "c", "loader", whole);
    resumed.next();
    load_checkpoint(folder / "c", "loader", resumed);
    load_checkpoint(folder / "c", "loader", plain);
    for (int i = 0; i < 7; ++i) {
      auto const& [y, same] = whole.next();
      auto const& [again, there] = resumed.next();
      CHECK(array_equal(y, again));
      CHECK(array_equal(std::get<0>(plain.next()), same));
    }
  }
}

TEST_CASE("what the function throws is thrown by next, behind the good batches", "[data]") {
  auto batches = data::prefetch(shuffled(1), [](auto const& batch, std::uint64_t number) {
    if (number == 2) raise("bad batch");
    return batch;
  });
  batches.next();
  batches.next();
  for (int i = 0; i < 2; ++i) CHECK(tests::error_of([&] { batches.next(); }) == "bad batch");
}

TEST_CASE("a loader goes where it is told", "[data]") {
  auto a = shuffled(1), b = shuffled(1);
  for (int i = 0; i < 5; ++i) a.next();
  auto const at = a.position();
  auto const want = std::get<0>(a.next()).clone();
  b.next();
  b.seek(at);
  CHECK(array_equal(std::get<0>(b.next()), want));
  CHECK(tests::error_of([&] { b.seek({1, 3}); }) == "loader: batch 3 of 3");
}

}  // namespace tests::data_prefetch
