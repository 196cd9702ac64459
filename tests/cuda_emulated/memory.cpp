// SPDX-License-Identifier: BSL-1.0
// Memory of the emulated device, values on it, graphs, and what goes wrong.
#include "emulated.hpp"
#include "support.hpp"

#include <dfdx/optim/adam.hpp>

#include <numeric>

namespace tests::cuda_emulated_memory {

using namespace emulated;
using tests::error_of;

namespace {

constexpr auto twice = [](auto const& x) { return x * 2.0f; };
constexpr auto both = [](auto const& x, auto const& y) { return x + y; };
using Three = Tensor<float, 3>;

struct Mlp {
  nn::Linear<12, 20> fc1;
  nn::Linear<20, 5> fc2;
  DFDX_FIELDS(fc1, fc2)
  constexpr auto operator()(auto const& x) const { return fc2(relu(fc1(x))); }
};
constexpr auto loss = [](auto const& model, auto const& x, auto const& labels) {
  return cross_entropy(model(x), labels);
};

// What the device reports from now on, as long as it lives.
struct Lost {
  Lost() { machine().lost = cudaErrorIllegalAddress; }
  Lost(Lost const&) = delete;
  ~Lost() {
    machine().lost = cudaSuccess;
    machine().last = cudaSuccess;
  }
};

}  // namespace

TEST_CASE("values and models go to the device and back", "[cuda]") {
  std::size_t const before = machine().live();
  {
    auto const model = init<Mlp>(3);
    auto const there = to(cuda(), model);
    REQUIRE(there.fc1.weight.device() == cuda());
    REQUIRE(machine().live() == before + 4);
    REQUIRE(numbers(there) == numbers(model));
    auto const large = filled<Tensor<double, 1000, 700>>(1);  // more than one pinned block
    REQUIRE(numbers(to(cuda(), large)) == numbers(large));
    auto const view = transpose(filled<Tensor<float, 5, 7>>(2));
    REQUIRE(numbers(to(cuda(), view)) == numbers(view));
    REQUIRE(numbers(to(cuda(), Tensor<float, dyn>(Array(Meta{DType::f32, make_shape(0)})))).empty());
    REQUIRE(to(cuda(), Three{}).bytes() == nullptr);
    auto const copy = to(cuda(), there);
    REQUIRE(copy.fc1.weight.bytes() != there.fc1.weight.bytes());
    REQUIRE(numbers(copy) == numbers(model));
  }
  REQUIRE(machine().live() == before);
}

TEST_CASE("a copy between two devices is waited for on both sides", "[cuda]") {
  machine().devices = 8;
  auto const x = to(cuda(), Three::from({1, 2, 3}));
  int const before = machine().waits;
  auto const y = to(cuda(7), x);
  REQUIRE(machine().waits == before + 2);
  REQUIRE(y.device() == cuda(7));
  REQUIRE(numbers(y) == std::vector<double>{1, 2, 3});
  int const after = machine().waits;
  static_cast<void>(to(cuda(), x));
  REQUIRE(machine().waits == after);
  machine().devices = 1;
}

TEST_CASE("what takes addresses of the CPU refuses memory of the device", "[cuda]") {
  auto const x = to(cuda(), Three::from({1, 2, 3}));
  Array const a = x;
  auto const refused = [](auto const& f) { return !error_of(f).empty(); };
  REQUIRE(refused([&] { static_cast<void>(x(0)); }));
  REQUIRE(refused([&] { static_cast<void>(a.data<float>()); }));
  REQUIRE(refused([&] { static_cast<void>(a.operand()); }));
  REQUIRE(refused([&] { static_cast<void>(a.item<float>()); }));
}

TEST_CASE("arguments on two devices are refused, as are views that are not contiguous", "[cuda]") {
  auto const x = Three::from({1, 2, 3});
  auto f = compile(both);
  REQUIRE(error_of([&] { f(x, to(cuda(), x)); }) == "program: arguments on cpu and on cuda:0");
  REQUIRE(numbers(f(to(cuda(), x), to(cuda(), x))) == std::vector<double>{2, 4, 6});
  REQUIRE(numbers(f(x, x)) == std::vector<double>{2, 4, 6});
  REQUIRE(error_of([&] { static_cast<void>(to(cuda(3), x)); }) == "cuda: no device 3, there are 1");
  auto const m = to(cuda(), filled<Tensor<float, 3, 4>>(1));
  auto g = compile(twice);
  REQUIRE(error_of([&] { static_cast<void>(g(Tensor<float, 4, 3>(transpose(m)))); }) ==
          "program: a view of shape [4, 3] on cuda:0 is not contiguous");
}

TEST_CASE("results keep their arena, and it is used again", "[cuda]") {
  auto const x = to(cuda(), Three::from({1, 2, 3}));
  auto f = compile(twice);
  auto const one = f(x);
  std::size_t const held = machine().live();
  std::byte* first = nullptr;
  for (int k = 0; k < 5; ++k) {
    auto const again = f(x);
    if (first == nullptr) first = again.bytes();
    REQUIRE(again.bytes() == first);
    REQUIRE(again.bytes() != one.bytes());
    REQUIRE(machine().live() == held + 1);
  }
  REQUIRE(numbers(one) == std::vector<double>{2, 4, 6});
}

TEST_CASE("a program is captured when it is called again with the same memory", "[cuda]") {
  constexpr auto three = [](auto const& x) { return std::pair(softmax(sum<0>(x)), sum<1>(x)); };
  auto const x = to(cuda(), filled<Tensor<float, 6, 40>>(1)), y = to(cuda(), filled<Tensor<float, 6, 40>>(2));
  auto f = compile(three);
  auto& m = machine();
  int const captures = m.captures, replays = m.replays, graphs = m.graphs;
  auto const one = numbers(f(x));
  REQUIRE(m.captures == captures);
  for (int k = 1; k < 4; ++k) {
    REQUIRE(numbers(f(x)) == one);
    REQUIRE(m.captures == captures + 1);
    REQUIRE(m.replays == replays + k);
  }
  auto const other = numbers(f(y));  // other memory is no replay of the first
  REQUIRE(other != one);
  REQUIRE(m.replays == replays + 3);
  REQUIRE(m.graphs <= graphs + 1);
  REQUIRE(numbers(f(y)) == other);
  REQUIRE(m.captures == captures + 2);
}

TEST_CASE("work that failed is done once before it is captured", "[cuda]") {
  auto& m = machine();
  cuda_runtime::Replay replay;
  Array memory;
  bool fails = true;
  auto const run = [&] {
    replay.run({7}, cuda_runtime::stream(cuda()), [&] {
      if (fails) raise("too soon");
      if (memory.bytes() == nullptr) memory = Array(Meta{DType::f32, make_shape(3)}, cuda());
    });
  };
  int const captures = m.captures;
  REQUIRE(error_of(run) == "too soon");
  fails = false;
  run();
  REQUIRE(m.captures == captures);
  run();
  REQUIRE(m.captures == captures + 1);
}

TEST_CASE("pinned memory that was borrowed has been read when a copy returns", "[cuda]") {
  void* memory = nullptr;
  REQUIRE(cudaHostAlloc(&memory, sizeof(float) * 3, 0) == cudaSuccess);
  auto* const x = static_cast<float*>(memory);
  std::iota(x, x + 3, 1.0f);
  auto const there = to(cuda(), Three::borrow(x));
  std::iota(x, x + 3, 7.0f);
  REQUIRE(numbers(there) == std::vector<double>{1, 2, 3});
  REQUIRE(cudaFreeHost(memory) == cudaSuccess);
}

TEST_CASE("bound programs run on the device", "[cuda]") {
  auto const x = to(cuda(), Three::from({1, 2, 3}));
  auto f = compile(twice);
  auto bound = f.bind(x);
  REQUIRE(numbers(bound()) == std::vector<double>{2, 4, 6});
  REQUIRE(numbers(bound()) == std::vector<double>{2, 4, 6});
  REQUIRE(numbers(bound()) == std::vector<double>{2, 4, 6});
}

TEST_CASE("out of memory: sizes are said, nothing is lost, less works", "[cuda]") {
  auto& m = machine();
  auto model = to(cuda(), init<Mlp>(3));
  auto step = train_step(loss, optim::Adam{.lr = 1e-2f});
  auto const small = to(cuda(), filled<Tensor<float, dyn, 12>>(1, 4, 12));
  auto const large = to(cuda(), filled<Tensor<float, dyn, 12>>(1, 4000, 12));
  auto const labels = [](index_t n) {
    auto y = Tensor<std::int32_t, dyn>(Array(Meta{DType::i32, make_shape(n)}));
    for (index_t i = 0; i < n; ++i) y.data()[i] = static_cast<std::int32_t>(i % 5);
    return to(cuda(), y);
  };
  auto const few = labels(4), many = labels(4000);
  step(model, small, few);
  auto const before = numbers(model);
  std::size_t const total = m.total_bytes, live = m.live();
  m.total_bytes = m.used_bytes + 4096;
  auto const said = error_of([&] { step(model, large, many); });
  m.total_bytes = total;
  REQUIRE(said.starts_with("cuda: out of memory on cuda:0: "));
  REQUIRE(said.ends_with(" free"));
  REQUIRE(said.find(" bytes asked, ") != std::string::npos);
  REQUIRE(numbers(model) == before);
  REQUIRE(m.live() <= live);
  REQUIRE(std::isfinite(static_cast<double>(step(model, small, few))));
  REQUIRE(numbers(model) != before);
  REQUIRE(std::isfinite(static_cast<double>(step(model, large, many))));
}

TEST_CASE("errors say which step, and whether the device is lost", "[cuda]") {
  auto const x = to(cuda(), filled<Tensor<float, 6, 40>>(1));
  constexpr auto f = [](auto const& v) { return softmax(matmul(v, transpose(v))); };
  auto g = compile(f);
  machine().next_launch = cudaErrorInvalidValue;
  REQUIRE(error_of([&] { g(x); }) ==
          "cuda: step 1 of 2, matmul [6, 6]: invalid argument (cudaErrorInvalidValue)");
  REQUIRE(numbers(g(x)).size() == 36);
  {
    Lost const lost;
    auto const said = error_of([&] { g(x); });
    REQUIRE(
        said.find(
            "an illegal memory access was encountered (cudaErrorIllegalAddress); the device is lost to this "
            "process, which has to be started again") != std::string::npos);
    REQUIRE(!error_of([&] { static_cast<void>(to(Device{}, x)); }).empty());
  }
  REQUIRE(numbers(g(x)).size() == 36);
  // While steps are captured: the stream is usable after it.
  machine().next_launch = cudaErrorInvalidValue;
  auto h = compile(f);
  REQUIRE(!error_of([&] { h(x); }).empty());
  REQUIRE(numbers(h(x)).size() == 36);
  machine().next_launch = cudaErrorInvalidValue;
  REQUIRE(error_of([&] { h(x); }) ==
          "cuda: step 1 of 2, matmul [6, 6]: invalid argument (cudaErrorInvalidValue)");
  REQUIRE(numbers(h(x)).size() == 36);
  REQUIRE(numbers(h(x)).size() == 36);
}

TEST_CASE("a machine without a device says so", "[cuda]") {
  machine().devices = 0;
  // A device that is in use already is not asked for again: another one is.
  auto const said = error_of([&] { static_cast<void>(to(cuda(1), Three::from({1, 2, 3}))); });
  machine().devices = 1;
  REQUIRE(said == "cuda: devices: no CUDA-capable device is detected (cudaErrorNoDevice)");
  // An old driver answers everything with the same error, and there was no device to be lost.
  machine().lost = cudaErrorInsufficientDriver;
  auto const old = error_of([&] { cuda_runtime::check("devices", machine().lost); });
  machine().lost = machine().last = cudaSuccess;
  REQUIRE(old == "cuda: devices: invalid argument (cudaErrorInvalidValue)");
}

}  // namespace tests::cuda_emulated_memory
