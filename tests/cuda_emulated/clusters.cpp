// SPDX-License-Identifier: BSL-1.0
// Rows that the blocks of a cluster share, as none of them has room for two: against the CPU's, and as often read as
// there are rows.
#include "emulated.hpp"

#include <stdexcept>
#include <utility>

namespace tests::cuda_emulated_clusters {

using namespace emulated;

namespace {

// Of the size of 1, so that differences show.
struct Softmax {
  constexpr auto operator()(auto const& x) const { return softmax(x) * 50000; }
};
struct LogSoftmax {
  constexpr auto operator()(auto const& x) const { return log_softmax(x); }
};
struct Entropy {
  constexpr auto operator()(auto const& x, auto const& labels) const { return cross_entropy(x, labels); }
};
struct ManyEntropies {
  constexpr auto operator()(auto const& x, auto const& labels) const {
    return cross_entropy(x, labels) * 100000;
  }
};
struct Norm {
  constexpr auto operator()(auto const& x, auto const& weight, auto const& bias) const {
    return layer_norm(x, weight, bias, 1e-5f);
  }
};
constexpr auto norm_loss = [](auto const& weight, auto const& bias, auto const& x) {
  return sum(square(layer_norm(x, weight, bias, 1e-5f)));
};
using NormGradients = std::remove_const_t<decltype(grad(norm_loss, wrt<0, 1, 2>))>;
constexpr auto root_loss = [](auto const& weight, auto const& x) {
  return sum(square(rms_norm(x, weight, 1e-5f)));
};
// Single numbers of each row that are stored, of several reductions, and such as are added to by all.
struct Facts {
  constexpr auto operator()(auto const& x) const {
    auto const m = mean<1>(x, keepdim);
    auto const v = mean<1>(square(x - m), keepdim);
    return std::tuple(m, v, max<1>(abs(x - m)), sum(sqrt(v)), (x - m) / sqrt(v));
  }
};
// Rows of two axes.
struct Planes {
  constexpr auto operator()(auto const& x) const { return x / mean<1, 2>(exp(x), keepdim); }
};
template <index_t From, index_t To>
struct OfPart {
  constexpr auto operator()(auto const& x) const { return Softmax{}(slice<1, From, To>(x)); }
};
// Rows add to what is not laid out like a row.
struct Crossed {
  constexpr auto operator()(auto const& x) const {
    auto const p = softmax<2>(x);
    return std::pair(p, sum<0>(p));
  }
};

// A sum of elements of all rows, and no scratch.
struct Centred {
  constexpr auto operator()(auto const& x) const { return sum<0>(x - mean<1>(x, keepdim)); }
};

template <int Step, class F, class... A>
constexpr int blocks_of = kernels::cuda::blocks_of_row<step_code_t<program<F, A...>, Step>>;
template <int Blocks, class F, class... A>
constexpr int stages_of = kernels::cuda::StagedPlan<step_code_t<program<F, A...>, 0>, Blocks>::stages;

template <class T>
T labels_of(index_t below) {
  T x = T(Array(T::static_meta));
  for (index_t i = 0; i < x.size(); ++i) x.data()[i] = static_cast<std::int32_t>((i + 1) * 7919 % below);
  x.data()[x.size() - 1] = static_cast<std::int32_t>(below - 1);
  return x;
}

/// How far the device is from the CPU; infinite if no cluster has run.
template <class F, class... A>
double by_clusters(F const& f, A const&... args) {
  auto const before = machine().cluster_launches;
  double const far = apart(f, args...);
  return machine().cluster_launches > before ? far : INFINITY;
}

}  // namespace

TEST_CASE("how many blocks share a row", "[cuda]") {
  STATIC_REQUIRE(blocks_of<0, Softmax, Tensor<float, 5, 10000>> == 1);
  STATIC_REQUIRE(blocks_of<0, Softmax, Tensor<float, 5, 28000>> == 2);  // a block has room for one row
  STATIC_REQUIRE(stages_of<1, Softmax, Tensor<float, 5, 28000>> == 1 &&
                 stages_of<2, Softmax, Tensor<float, 5, 28000>> == 2);
  STATIC_REQUIRE(blocks_of<0, Softmax, Tensor<float, 5, 60000>> == 4);
  STATIC_REQUIRE(
      blocks_of<0, NormGradients, Tensor<float, 60000>, Tensor<float, 60000>, Tensor<float, 5, 60000>> == 8);
  STATIC_REQUIRE(blocks_of<0, Softmax, Tensor<float, 5, 200000>> == 8 &&
                 stages_of<8, Softmax, Tensor<float, 5, 200000>> == 1);  // all have room for one row
  STATIC_REQUIRE(blocks_of<0, Softmax, Tensor<float, 5, 400000>> == 1);
  STATIC_REQUIRE(blocks_of<0, Softmax, Tensor<float, 5, dyn>> == 1);
  STATIC_REQUIRE(blocks_of<0, Crossed, Tensor<float, 5, 2, 60000>> == 1);
  using Loss = std::remove_const_t<decltype(value_and_grad(Entropy{}))>;
  STATIC_REQUIRE(blocks_of<2, Loss, Tensor<float, 8, 32000>, Tensor<std::int32_t, 8>> == 2);
  STATIC_REQUIRE(blocks_of<2, Loss, Tensor<float, 8, 50257>, Tensor<std::int32_t, 8>> == 4);
  STATIC_REQUIRE(blocks_of<2, Loss, Tensor<float, 8, 128256>, Tensor<std::int32_t, 8>> == 8);
}
TEST_CASE("there is memory for what each cluster adds to", "[cuda]") {
  using Long = Tensor<float, 600, 26000>;
  STATIC_REQUIRE(stages_of<1, Centred, Long> == 1 && blocks_of<0, Centred, Long> == 2);
  // 512 clusters, where there would be 264 blocks.
  STATIC_REQUIRE(kernels::cuda::LoopStep<step_code_t<program<Centred, Long>, 0>>::workspace(nullptr) ==
                 512 * 26000 * 4);
  CHECK(by_clusters(Centred{}, filled<Tensor<float, 9, 26000>>(1)) < 1e-5);
}
TEST_CASE("rows that blocks share", "[cuda]") {
  CHECK(by_clusters(Softmax{}, filled<Tensor<float, 5, 28000>>(1)) < 1e-6);
  CHECK(by_clusters(Softmax{}, filled<Tensor<float, 7, 60000>>(1)) < 1e-6);
  CHECK(by_clusters(Softmax{}, filled<Tensor<float, 2, 200000>>(1)) < 2e-6);
  CHECK(by_clusters(Softmax{}, filled<Tensor<float, dyn, 60000>>(1, 3, 60000)) < 1e-6);
  CHECK(by_clusters(Softmax{}, filled<Tensor<float, dyn, 60000>>(1, 1, 60000)) < 1e-6);
  CHECK(apart(Softmax{}, filled<Tensor<float, dyn, 60000>>(1, 0, 60000)) == 0);
  CHECK(by_clusters(LogSoftmax{}, filled<Tensor<float, 3, 128256>>(1)) < 1e-6);
  CHECK(by_clusters(vjp(LogSoftmax{}), filled<Tensor<float, 3, 60000>>(1),
                    filled<Tensor<float, 3, 60000>>(2)) < 1e-6);
  CHECK(by_clusters(Norm{}, filled<Tensor<float, 3, 70000>>(1), filled<Tensor<float, 70000>>(2),
                    filled<Tensor<float, 70000>>(3)) < 1e-5);
  CHECK(by_clusters(Facts{}, filled<Tensor<float, 3, 60000>>(1)) < 1e-5);
  CHECK(by_clusters(Planes{}, filled<Tensor<float, 3, 2500, 28>>(1)) < 1e-6);
  CHECK(by_clusters(Planes{}, filled<Tensor<double, 3, 901, 71>>(1)) < 1e-12);
  CHECK(apart(Crossed{}, filled<Tensor<float, 3, 2, 60000>>(1)) < 1e-6);
}
TEST_CASE("rows of odd sizes, and of others than floats", "[cuda]") {
  CHECK(by_clusters(Softmax{}, filled<Tensor<float, 5, 60001>>(1)) < 1e-6);
  CHECK(by_clusters(Softmax{}, filled<Tensor<float, 5, 60002>>(1)) < 1e-6);
  CHECK(by_clusters(OfPart<1, 60001>{}, filled<Tensor<float, 5, 60004>>(1)) < 1e-6);
  CHECK(by_clusters(OfPart<3, 60005>{}, filled<Tensor<float, 5, 60006>>(1)) < 1e-6);
  CHECK(by_clusters(Softmax{}, filled<Tensor<bfloat16, 3, 120001>>(1)) < 1e-2);
  CHECK(by_clusters(Softmax{}, filled<Tensor<float16, 3, 120008>>(1)) < 4e-3);
  CHECK(by_clusters(Softmax{}, filled<Tensor<double, 3, 30001>>(1)) < 1e-12);
}
TEST_CASE("what rows add to, of blocks that share them", "[cuda]") {
  CHECK(by_clusters(NormGradients{}, filled<Tensor<float, 60000>>(1), filled<Tensor<float, 60000>>(2),
                    filled<Tensor<float, 7, 60000>>(3)) < 1e-4);
  CHECK(by_clusters(NormGradients{}, filled<Tensor<double, 20001>>(1), filled<Tensor<double, 20001>>(2),
                    filled<Tensor<double, 130, 20001>>(3)) < 1e-11);  // more rows than clusters
  CHECK(by_clusters(NormGradients{}, filled<Tensor<float, 60000>>(1), filled<Tensor<float, 60000>>(2),
                    filled<Tensor<float, dyn, 60000>>(3, 0, 60000)) == 0);
  CHECK(by_clusters(grad(root_loss, wrt<0, 1>), filled<Tensor<bfloat16, 60000>>(1),
                    filled<Tensor<bfloat16, 5, 60000>>(2)) < 2e-2);
  using Labels = Tensor<std::int32_t, 3>;
  auto const loss = value_and_grad(ManyEntropies{});
  CHECK(by_clusters(loss, filled<Tensor<float, 3, 32000>>(1), labels_of<Labels>(32000)) < 1e-6);
  CHECK(by_clusters(loss, filled<Tensor<float, 3, 50257>>(1), labels_of<Labels>(50257)) < 1e-6);
  CHECK(by_clusters(loss, filled<Tensor<float, 3, 128256>>(1), labels_of<Labels>(128256)) < 1e-6);
  CHECK(by_clusters(loss, filled<Tensor<bfloat16, 3, 128256>>(1), labels_of<Labels>(128256)) < 1e-2);
  CHECK(by_clusters(ManyEntropies{}, filled<Tensor<float, 3, 128256>>(1), labels_of<Labels>(128256)) < 1e-6);
  CHECK(apart(NormGradients{}, filled<Tensor<float, 4096>>(1), filled<Tensor<float, 4096>>(2),
              filled<Tensor<float, dyn, 4096>>(3, 0, 4096)) == 0);  // the same without clusters
}
TEST_CASE("each row is read once", "[cuda][emulated]") {
  auto const x = filled<Tensor<float, 5, 60000>>(1);
  auto f = compile(LogSoftmax{});
  auto const there = to(cuda(), x);
  auto const before = cuda_fake::wide_copies;
  static_cast<void>(numbers(f(there)));
  CHECK(cuda_fake::wide_copies == before + 5 * 60000 / 4);
}
TEST_CASE("devices without clusters, or with too little memory, have the other kernels", "[cuda][emulated]") {
  auto const launches = machine().cluster_launches;
  machine().has_warpgroups = false;
  // (Of programs that no other test has: whether there are clusters is asked once.)
  double const softmax_apart = apart(Softmax{}, filled<Tensor<float, 3, 61000>>(1)),
               norm_apart = apart(NormGradients{}, filled<Tensor<float, 61000>>(1),
                                  filled<Tensor<float, 61000>>(2), filled<Tensor<float, 3, 61000>>(3));
  machine().has_warpgroups = true;
  auto const limit = std::exchange(machine().dynamic_limit, 1000);
  double const little_apart = apart(Softmax{}, filled<Tensor<float, 3, 62000>>(1));
  machine().dynamic_limit = limit;
  CHECK(softmax_apart < 1e-6);
  CHECK(norm_apart < 1e-4);
  CHECK(little_apart < 1e-6);
  CHECK(machine().cluster_launches == launches);
}
TEST_CASE("a barrier that blocks lack shows", "[cuda][emulated]") {
  auto const x = filled<Tensor<float, 3, 60000>>(1);
  machine().fibers.drop_cluster_barriers = true;
  REQUIRE_THROWS_AS(apart(Softmax{}, x), std::logic_error);  // memory of a block that does not run
  machine().fibers.drop_cluster_barriers = false;
  REQUIRE(by_clusters(Softmax{}, x) < 1e-6);
}

}  // namespace tests::cuda_emulated_clusters
