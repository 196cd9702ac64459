// SPDX-License-Identifier: BSL-1.0
// Threads that share models and values, built with ThreadSanitizer: parameters are read by all, gradients are added to
// the same leaves, memory made by one thread is freed by another.
#include <dfdx/dfdx.hpp>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

using namespace dfdx;

namespace {

void require(bool holds, char const* what) {
  if (holds) return;
  std::fprintf(stderr, "threads: %s\n", what);
  std::exit(1);
}

template <class F>
void in_threads(int n, F const& f) {
  std::vector<std::thread> pool;
  for (int t = 0; t < n; ++t) pool.emplace_back([&f, t] { f(t); });
  for (std::thread& t : pool) t.join();
}

struct Net {
  nn::Linear<4, 8> in;
  nn::Linear<8, 3> out;
  DFDX_FIELDS(in, out)
  constexpr auto operator()(auto const& x) const { return out(tanh(in(x))); }
};

void shared_model() {
  constexpr int threads = 4, rounds = 40;
  Net net = init<Net>(1);
  watch(net);
  Net const& shared = net;
  Array const x = randn({5, 4}, Key{2});
  sum(square(shared(x))).backward();
  Array const alone = shared.in.weight.grad();
  zero_grad(shared);
  std::vector<double> differences(threads);
  in_threads(threads, [&](int t) {
    for (int i = 0; i < rounds; ++i) {
      Array const loss = sum(square(shared(x)));
      loss.backward();
      no_grad const guard;  // of this thread alone
      differences[static_cast<std::size_t>(t)] += std::fabs(loss.item() - sum(square(shared(x))).item());
    }
    require(is_grad_enabled(), "another thread's no_grad is seen");
  });
  for (double d : differences) require(d == 0, "results differ between threads");
  Array const together = shared.in.weight.grad();
  for (index_t i = 0; i < together.size(); ++i) {
    double const want = threads * rounds * read_real(alone.operand(), i);
    require(std::fabs(read_real(together.operand(), i) - want) <= 1e-4 * std::fabs(want) + 1e-4,
            "gradients of several threads do not add up");
  }
}

// What a thread recorded is handed on when it has ended, and memory returns to another thread's pool.
void handed_on() {
  Array x = full({3}, 2, DType::f64);
  x.requires_grad(true);
  std::vector<Array> made(4);
  in_threads(4, [&](int t) { made[static_cast<std::size_t>(t)] = sum(x * static_cast<double>(t + 1)); });
  Array total = full({}, 0, DType::f64);
  for (Array const& m : made) total = total + m;
  made.clear();
  total.backward();
  require(x.grad().data<double>()[0] == 10, "a value of an ended thread has lost its gradient");
  in_threads(4, [&](int) {
    std::vector<Array> many;
    for (int i = 0; i < 500; ++i) many.push_back(Array::number(1.0 * i));
    for (int i = 0; i < 500; ++i) many.push_back(many[static_cast<std::size_t>(i)] + x[0]);
  });
}

}  // namespace

int main() {
  shared_model();
  handed_on();
  std::puts("threads: ok");
}
