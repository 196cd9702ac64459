// SPDX-License-Identifier: BSL-1.0
// Programs on several threads of OpenMP: the results of one thread but for the order of sums, the same to the last bit
// for the same number of threads, and those of one thread inside of a team of the caller's own. Compiled with a tiny
// part_work, so that all that can be divided is.
#include "../worse.hpp"

#include <dfdx/dfdx.hpp>

#include <omp.h>

#include <cassert>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <vector>

using namespace dfdx;

namespace {

// All bytes of a result, and its numbers.
struct Result {
  std::vector<std::byte> bytes;
  std::vector<double> numbers;
};
template <class T>
Result result_of(T const& tree) {
  Result r;
  visit(tree, [&](auto const& leaf) {
    auto const x = leaf.clone();
    auto const n = static_cast<std::size_t>(x.size()) * size_of(x.dtype());
    r.bytes.insert(r.bytes.end(), x.bytes(), x.bytes() + n);
    auto const wide = Array(x).to(DType::f64);
    double const* const p = wide.template data<double>();
    r.numbers.insert(r.numbers.end(), p, p + wide.size());
  });
  return r;
}

double difference(Result const& a, Result const& b) {
  assert(a.numbers.size() == b.numbers.size());
  double most = 0, scale = 1e-30;
  for (std::size_t i = 0; i < a.numbers.size(); ++i) {
    assert(std::isfinite(a.numbers[i]) && std::isfinite(b.numbers[i]));
    most = tests::worse(most, std::fabs(a.numbers[i] - b.numbers[i]));
    scale = std::fmax(scale, std::fabs(a.numbers[i]));
  }
  return most / scale;
}

// f compiled, on 1, 2, 3 and 7 threads; returns the largest difference.
template <class F, class... A>
double check(char const* name, F const& f, double tolerance, A const&... args) {
  omp_set_num_threads(1);
  auto alone = f;
  Result const one = result_of(alone(args...));
  double worst = 0;
  for (int threads : {2, 3, 7}) {
    omp_set_num_threads(threads);
    auto g = f;
    Result const first = result_of(g(args...)), again = result_of(g(args...));
    assert(first.bytes == again.bytes);
    double const d = difference(one, first);
    worst = tests::worse(worst, d);
    assert(d <= tolerance);
    Result inside;
#pragma omp parallel num_threads(2)
#pragma omp single
    inside = result_of(g(args...));
    assert(inside.bytes == one.bytes);
  }
  std::printf("%-12s %zu numbers, difference %.2g\n", name, one.numbers.size(), worst);
  return worst;
}

constexpr auto map = [](auto const& x, auto const& y) { return gelu(2.0f * x + y) / (1.0f + exp(-y)); };
constexpr auto rows = [](auto const& x, auto const& w, auto const& b) {
  return sum(square(layer_norm(softmax<-1>(x), w, b)));
};
constexpr auto columns = [](auto const& a, auto const& x, auto const& b) {
  return sum(square(tanh(a * x + b))) + max(x);
};
constexpr auto whole = [](auto const& x) { return log_softmax<0>(x) * mean(x); };
constexpr auto product = [](auto const& a, auto const& b, auto const& c) {
  return sum(square(gelu(matmul(a, b) + c)));
};
constexpr auto batches = [](auto const& a, auto const& b) { return matmul(a, transpose(b)); };
constexpr auto convolution = [](auto const& x, auto const& w) { return sum(square(relu(conv2d(x, w)))); };
constexpr auto layer = [](auto const& x, auto const& w) { return relu(conv2d(x, w)); };
constexpr auto attention = [](auto const& q, auto const& k, auto const& v) {
  return sum(square(scaled_dot_product_attention(q, k, v)));
};

struct Network {
  nn::Linear<32, 64> a;
  nn::Linear<64, 10> b;
  DFDX_FIELDS(a, b)
  constexpr auto operator()(auto const& x) const { return b(tanh(a(x))); }
};
constexpr auto loss = [](auto const& m, auto const& x, auto const& y) { return cross_entropy(m(x), y); };

Network trained(int threads) {
  omp_set_num_threads(threads);
  Network model = init<Network>(1);
  auto step = train_step(loss, optim::Adam{.lr = 0.01f});
  auto const x = randn<float, 48, 32>(Key{2});
  auto y = empty<std::int32_t, 48>();
  for (int i = 0; i < 48; ++i) y(i) = i % 10;
  for (int i = 0; i < 20; ++i) step(model, x, y);
  return model;
}

}  // namespace

int main() {
  // Lengths that are no multiple of a vector or of the parts' unit; one row, many rows, extents known at run time.
  check("map", compile(map), 0, randn<float, 12345>(Key{1}), randn<float, 12345>(Key{2}));
  double const of_rows =
      check("rows", value_and_grad(rows, wrt<0, 1, 2>), 1e-5, randn<float, 65, 130>(Key{1}),
            randn<float, 130>(Key{2}), randn<float, 130>(Key{3}));
  double const of_columns =
      check("columns", value_and_grad(columns, wrt<0, 1, 2>), 1e-13, randn<double, 90>(Key{1}),
            randn<double, 120, 90>(Key{2}), randn<double, 120, 90>(Key{3}));
  double const of_whole = check("whole", compile(whole), 1e-5, randn<float, 5001>(Key{1}));
  check("product", value_and_grad(product, wrt<0, 1, 2>), 1e-5,
        Tensor<float, dyn, 130>(randn({83, 130}, Key{1})), randn<float, 130, 150>(Key{2}),
        randn<float, 150>(Key{3}));
  check("batches", compile(batches), 1e-5, randn<float, 6, 33, 40>(Key{1}), randn<float, 6, 35, 40>(Key{2}));
  check("bytes", compile(batches), 0, randint<std::int8_t, 1, 90, 70>(Key{1}, -128, 128),
        randint<std::uint8_t, 1, 150, 70>(Key{2}, 0, 256));
  double const of_convolution = check("convolution", value_and_grad(convolution, wrt<0, 1>), 1e-5,
                                      randn<float, 5, 8, 14, 14>(Key{1}), randn<float, 24, 8, 3, 3>(Key{2}));
  check("one sample", compile(layer), 1e-5, randn<float, 1, 8, 14, 14>(Key{1}),
        randn<float, 40, 8, 3, 3>(Key{2}));
  check("attention", value_and_grad(attention, wrt<0, 1, 2>), 1e-5, randn<float, 2, 3, 80, 16>(Key{1}),
        randn<float, 2, 3, 80, 16>(Key{2}), randn<float, 2, 3, 80, 16>(Key{3}));
  // Sums in parts are others than sums in one go: or nothing was divided.
  assert(of_rows > 0 && of_columns > 0 && of_whole > 0 && of_convolution > 0);

  // Threads that help compute in the caller's mode, and go on in their own.
  omp_set_num_threads(3);
  auto halved = compile([](auto const& v) { return v * 0.5f; });
  auto const zeros_of = [](auto const& y) {
    int n = 0;
    for (float v : y.template to_vector<float>()) n += v == 0;
    return n;
  };
  auto const least = full<float, 3000>(2e-38f);
  int before = 0, within = 0, after = 0, of_threads = 0;
  before = zeros_of(halved(least));
  {
    FlushDenormals const guard;
    within = zeros_of(halved(least));
    float volatile const small = 2e-38f;
#pragma omp parallel num_threads(3) reduction(+ : of_threads)
    if (omp_get_thread_num() != 0) of_threads += small * 0.5f == 0;
  }
  after = zeros_of(halved(least));
  assert(before == 0 && after == 0 && of_threads == 0);
  assert(within == (FlushDenormals::is_supported ? 3000 : 0));

  // Single operations on arrays, dense and not, of several dtypes.
  auto const x = randn({103, 770}, Key{1}), row = randn({770}, Key{2}), other = randn({770, 103}, Key{3});
  auto const places = randint({50, 9}, Key{4}, 0, 103);
  auto const chosen = randint({90, 770}, Key{6}, 0, 103), few = randint({50, 1}, Key{7}, 0, 103);
  auto const given = randn({90, 770}, Key{8});
  auto const grad_of_table = [](Array const& table, Array const& index) {
    Array t = table + 0.0f;
    t.requires_grad(true);
    sum(square(embedding(index, t))).backward();
    return t.grad();
  };
  auto const operations = [&](int threads) {
    omp_set_num_threads(threads);
    return std::vector{
        tanh(x), x + row, exp(x.T()) * other, x.to(DType::f16) + x.T().to(DType::f64).T(),
        // Ops with kernels of their own: the same numbers whatever the threads.
        argsort(x, 1), argsort(x.T(), 0, true), cumsum(x, 0), cumsum(x.T(), 0), std::get<1>(cummax(x, 1)),
        embedding(places, x), embedding(places.T(), x.T()),
        max_pool2d(x.reshape({1, 10, 103, 77}), {.kernel = 3, .stride = 2}), grad_of_table(x, places),
        randint({3001}, Key{5}, -7, 99),
        // Places that meet, an index repeated along either axis, one of bytes.
        gather(x, 0, chosen), gather(x.T(), 1, chosen.T()), gather(x.to(DType::f16), 0, chosen),
        gather(x, 1, expand(few, {50, 770})), gather(x, 0, expand(few, {50, 770}).to(DType::u8)),
        scatter_add(x, 0, chosen, given), scatter(x.T() + 0.0f, 1, chosen.T(), given.T()),
        scatter_add(row, 0, places.reshape({450}), randn({450}, Key{9})),
        avg_pool2d(x.reshape({5, 2, 103, 77}), {.kernel = 3, .stride = 2}),
        interpolate(x.reshape({5, 2, 103, 77}), {.size = {60, 91}, .mode = InterpolateMode::bilinear})};
  };
  auto const alone_on = operations(1);
  for (int threads : {2, 3, 7}) {
    auto const together = operations(threads);
    for (std::size_t i = 0; i < together.size(); ++i) assert(array_equal(alone_on[i], together[i]));
  }
  omp_set_num_threads(3);
  auto const is_refused = [](auto const& f) {
    try {
      f();
    } catch (error const& e) {
      return std::string_view(e.what()).find("out of range") != std::string_view::npos;
    }
    return false;
  };
  assert(is_refused([&] { static_cast<void>(embedding(places + 100, x)); }));
  assert(is_refused([&] { static_cast<void>(gather(x, 0, chosen + 100)); }));
  assert(is_refused([&] { static_cast<void>(scatter_add(x, 0, chosen + 100, given)); }));

  Result const alone = result_of(trained(1)), three = result_of(trained(3)), again = result_of(trained(3));
  assert(three.bytes == again.bytes && difference(alone, three) < 1e-4);
  assert(kernels::parts_of(1 << 20, 100) == 3);  // or nothing of this was divided
}
