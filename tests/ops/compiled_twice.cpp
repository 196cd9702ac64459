// SPDX-License-Identifier: BSL-1.0
// Every op of the library is in two compiled programs at least: asked of a run of all files compiled_*.cpp together, in
// which DFDX_EVERY_OP_COMPILED is set (CMakeLists.txt).
#include "ops/compiled.hpp"

#include <catch2/reporters/catch_reporter_event_listener.hpp>
#include <catch2/reporters/catch_reporter_registrars.hpp>

#include <cstdio>
#include <cstdlib>

namespace tests::ops_compiled_twice {

namespace {

class EveryOpTwice : public Catch::EventListenerBase {
 public:
  using EventListenerBase::EventListenerBase;
  void testRunEnded(Catch::TestRunStats const&) override {
    if (std::getenv("DFDX_EVERY_OP_COMPILED") == nullptr) return;
    int few = 0, ops = 0;
    dfdx::testing::LibraryOps::for_each([&](auto type) {
      char const* const name = decltype(type)::type::name;
      int const n = compiled::uses()[name];
      ++ops;
      if (n >= 2) return;
      ++few;
      std::fprintf(stderr, "%s is in %d compiled programs, 2 are asked for\n", name, n);
    });
    std::printf("%d ops, %d of them in fewer than two compiled programs\n", ops, few);
    if (few > 0) std::exit(1);
  }
};
CATCH_REGISTER_LISTENER(EveryOpTwice)

}  // namespace

}  // namespace tests::ops_compiled_twice
