// SPDX-License-Identifier: BSL-1.0
// Learning rates at the points where their formulas are easy to read.
#include <dfdx/optim/schedule.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cmath>

using namespace dfdx::optim;

namespace {
bool near(float a, float b) { return std::fabs(a - b) <= 1e-6f; }
}  // namespace

TEST_CASE("schedules follow their formulas", "[optim]") {
  CHECK(ConstantSchedule{0.5f}(1000000) == 0.5f);

  StepSchedule const step{.lr = 1, .every = 10, .gamma = 0.5f};
  CHECK(near(step(9), 1));
  CHECK(near(step(10), 0.5f));
  CHECK(near(step(35), 0.125f));
  CHECK(near(StepSchedule{.lr = 1, .every = 0}(2), 0.01f));

  CosineSchedule const cosine{.lr = 1, .steps = 100, .lr_end = 0.2f};
  CHECK(near(cosine(0), 1));
  CHECK(near(cosine(50), 0.6f));
  CHECK(near(cosine(100), 0.2f));
  CHECK(near(cosine(1000), 0.2f));
  CHECK(near(CosineSchedule{.lr = 1, .steps = 0, .lr_end = 0.2f}(0), 0.2f));

  WarmupSchedule const warm{4, cosine};
  CHECK(near(warm(0), 0.2f));
  CHECK(near(warm(3), 0.8f));
  CHECK(near(warm(4), 1));
  CHECK(near(warm(54), 0.6f));
}
