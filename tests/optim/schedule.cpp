// SPDX-License-Identifier: BSL-1.0
// Learning rates at the points where their formulas are easy to read.
#include <dfdx/optim/schedule.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cmath>

namespace tests::optim_schedule {

using namespace dfdx::optim;

namespace {
bool near(double a, double b) { return std::fabs(a - b) <= 1e-12; }
}  // namespace

TEST_CASE("schedules follow their formulas", "[optim]") {
  CHECK(ConstantSchedule{0.5}(1000000) == 0.5);

  StepSchedule const step{.lr = 1, .every = 10, .gamma = 0.5};
  CHECK(near(step(9), 1));
  CHECK(near(step(10), 0.5));
  CHECK(near(step(35), 0.125));
  CHECK(near(StepSchedule{.lr = 1, .every = 0}(2), 0.01));

  CosineSchedule const cosine{.lr = 1, .steps = 100, .lr_end = 0.2};
  CHECK(near(cosine(0), 1));
  CHECK(near(cosine(50), 0.6));
  CHECK(near(cosine(100), 0.2));
  CHECK(near(cosine(1000), 0.2));
  CHECK(near(CosineSchedule{.lr = 1, .steps = 0, .lr_end = 0.2}(0), 0.2));

  WarmupSchedule const warm{4, cosine};
  CHECK(near(warm(0), 0.2));
  CHECK(near(warm(3), 0.8));
  CHECK(near(warm(4), 1));
  CHECK(near(warm(54), 0.6));
}

TEST_CASE("schedules with several parts", "[optim]") {
  ConstantSchedule const damped{.lr = 3, .factor = 1.0 / 3, .steps = 5};
  CHECK(damped(4) == 1);
  CHECK(damped(5) == 3);

  MultiStepSchedule<2> const two{.lr = 1, .milestones = {30, 80}, .gamma = 0.5};
  CHECK(two(29) == 1);
  CHECK(two(30) == 0.5);
  CHECK(two(79) == 0.5);
  CHECK(two(80) == 0.25);

  ExponentialSchedule const exponential{.lr = 2, .gamma = 0.5};
  CHECK(exponential(0) == 2);
  CHECK(near(exponential(3), 0.25));

  CosineRestartsSchedule const waves{.lr = 1, .period = 4, .growth = 1, .lr_end = 0.2};
  for (int k : {0, 4, 8, 400}) CHECK(near(waves(k), 1));
  for (int k : {2, 6}) CHECK(near(waves(k), 0.6));
  CosineRestartsSchedule const longer{.lr = 1, .period = 4, .growth = 2};
  for (int k : {0, 4, 12, 28}) CHECK(near(longer(k), 1));
  CHECK(near(longer(2), 0.5));
  CHECK(near(longer(8), 0.5));
  CHECK(near(longer(20), 0.5));
  CHECK(near(longer(11), 0.5 * (1 + std::cos(3.141592653589793 * 7 / 8))));

  LinearSchedule const line{.lr = 3, .steps = 4};
  CHECK(near(line(0), 1));
  CHECK(near(line(2), 2));
  CHECK(near(line(4), 3));
  CHECK(near(line(9), 3));

  PolynomialSchedule const square{.lr = 2, .steps = 4, .power = 2};
  CHECK(near(square(0), 2));
  CHECK(near(square(2), 0.5));
  CHECK(near(square(4), 0));
  CHECK(near(square(7), 0));

  SequentialSchedule const both{3, line, square};
  CHECK(near(both(2), 2));
  CHECK(near(both(3), 2));
  CHECK(near(both(5), 0.5));
}

TEST_CASE("one cycle", "[optim]") {
  OneCycleSchedule const cosine{.lr = 1, .steps = 20, .rise = 0.25, .divisor = 10, .last_divisor = 100};
  CHECK(near(cosine(0), 0.1));
  CHECK(near(cosine(2), 0.55));
  CHECK(near(cosine(4), 1));
  CHECK(near(cosine(19), 0.001));
  CHECK(near(cosine(100), 0.001));
  CHECK(near(cosine(9), 0.001 + 0.999 * 0.5 * (1 + std::cos(3.141592653589793 / 3))));
  OneCycleSchedule line = cosine;
  line.linear = true;
  CHECK(near(line(1), 0.325));
  CHECK(near(line(9), 1 - 0.999 / 3));
  line.three_phases = true;
  CHECK(near(line(4), 1));
  CHECK(near(line(6), 0.55));
  CHECK(near(line(8), 0.1));
  CHECK(near(line(19), 0.001));
  CHECK(near(line(12), 0.1 - 0.099 * 4 / 11));
  // A rise of one step begins at its end.
  CHECK(OneCycleSchedule{.lr = 0.1, .steps = 10, .rise = 0.1}(0) == 0.1);
  CHECK(OneCycleSchedule{.lr = 0.1, .steps = 10, .rise = 0.1, .three_phases = true}(0) == 0.1 / 25);
}

TEST_CASE("the rate falls when nothing improves", "[optim]") {
  ReduceOnPlateau plateau{
      .lr = 1, .factor = 0.5, .patience = 2, .threshold = 0.1, .cooldown = 2, .lr_end = 0.2};
  CHECK(plateau(10) == 1);
  CHECK(plateau(9.5) == 1);  // not enough: bad 1
  CHECK(plateau(8.9) == 1);  // better
  CHECK(plateau(9) == 1);    // bad 1
  CHECK(plateau(NAN) == 1);  // bad 2
  CHECK(plateau(9) == 0.5);  // bad 3
  CHECK(plateau(9) == 0.5);  // two do not count
  CHECK(plateau(9) == 0.5);
  CHECK(plateau(9) == 0.5);   // bad 1
  CHECK(plateau(9) == 0.5);   // bad 2
  CHECK(plateau(9) == 0.25);  // bad 3
  for (int k = 0; k < 5; ++k) plateau(9);
  CHECK(plateau.lr == 0.2);  // no lower than lr_end

  ReduceOnPlateau up{
      .lr = 1, .factor = 0.5, .patience = 0, .threshold = 0.1, .largest = true, .absolute = true};
  CHECK(up(-5) == 1);
  CHECK(up(-4.95) == 0.5);
  CHECK(up(-4.85) == 0.5);
  CHECK(up(-4.8) == 0.25);
  ReduceOnPlateau down{.lr = 1, .factor = 0.5, .patience = 0, .threshold = 0.1, .absolute = true};
  CHECK(down(5) == 1);
  CHECK(down(4.85) == 1);
  CHECK(down(4.8) == 0.5);
  ReduceOnPlateau relative{.lr = 1, .factor = 0.5, .patience = 0, .threshold = 0.1, .largest = true};
  CHECK(relative(5) == 1);
  CHECK(relative(5.6) == 1);
  CHECK(relative(6.1) == 0.5);
  // An infinite measure is not better than none, as in PyTorch 2.11.
  ReduceOnPlateau endless{.lr = 1, .factor = 0.5, .patience = 0};
  CHECK(endless(INFINITY) == 0.5);
  CHECK(endless(3) == 0.5);
  // A fall of no consequence is none.
  ReduceOnPlateau tiny{.lr = 1e-8, .factor = 0.5, .patience = 0};
  tiny(1);
  CHECK(tiny(1) == 1e-8);
}

}  // namespace tests::optim_schedule
