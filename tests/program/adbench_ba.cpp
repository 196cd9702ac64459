// SPDX-License-Identifier: BSL-1.0
// Bundle adjustment of ADBench: the blocks of the sparse Jacobian, one per observation, as vmap(jacobian), compiled,
// against its hand-written ones and, for cameras and points that differ, against one block at a time.
#include <adbench.hpp>

#include <fstream>

namespace tests::program_adbench_ba {

namespace {

using namespace tests::adbench;

constexpr auto cross = [](auto const& a, auto const& b) {
  return roll<-1>(a) * roll<-2>(b) - roll<-2>(a) * roll<-1>(b);
};

// x turned by a rotation vector (Rodrigues); to first order where that is zero, for it has no direction there.
constexpr auto turned = [](auto const& rotation, auto const& x) {
  auto const squared = sum(square(rotation));
  auto const still = squared == 0.0;
  auto const angle = sqrt(where(still, squared + 1.0, squared));
  auto const axis = rotation / angle;
  auto const far = x * cos(angle) + cross(axis, x) * sin(angle) + axis * (dot(axis, x) * (1.0 - cos(angle)));
  return where(still, x + cross(rotation, x), far);
};

// How far a point [3] lies in the picture from where it was seen [2]. A camera [11] is a rotation [3], its centre [3],
// the focal length, the principal point [2] and the radial distortion [2].
using Camera = Tensor<double, 11>;
using Point = Tensor<double, 3>;
using Feature = Tensor<double, 2>;
using Weight = Tensor<double>;
constexpr auto reprojection = [](Camera const& camera, Point const& point, Weight const& weight,
                                 Feature const& feature) {
  auto const seen = turned(slice<0, 0, 3>(camera), point - slice<0, 3, 6>(camera));
  auto const flat = slice<0, 0, 2>(seen) / select<0, 2>(seen);
  auto const squared = sum(square(flat));
  auto const distortion = 1.0 + select<0, 9>(camera) * squared + select<0, 10>(camera) * square(squared);
  auto const projected = flat * distortion * select<0, 6>(camera) + slice<0, 7, 9>(camera);
  return weight * (projected - feature);
};
constexpr auto weight_error = [](Weight const& w) { return 1.0 - square(w); };

constexpr auto errors = vmap(reprojection);
constexpr auto blocks = vmap(jacobian(reprojection, wrt<0, 1, 2>));
constexpr auto weight_errors = vmap(weight_error);
constexpr auto weight_slopes = vmap(jacobian(weight_error));

using Cameras = Tensor<double, dyn, 11>;
using Points = Tensor<double, dyn, 3>;
using Features = Tensor<double, dyn, 2>;
using Weights = Tensor<double, dyn>;

// What belongs to each observation.
struct Observations {
  Cameras cameras;
  Points points;
  Weights weights;
  Features features;
  index_t size() const { return weights.size(); }
};

// The file has one camera, point, weight and feature, repeated; observation i is by camera i % n of point i % m.
Observations observations(std::string const& name) {
  std::ifstream in(file_of("ba", name));
  index_t n = 0, m = 0, p = 0;
  in >> n >> m >> p;
  auto const repeated = [&](index_t width, index_t times) {
    return broadcast_to(numbers(in, {1, width}), make_shape(times, width)).contiguous();
  };
  Array const cameras = repeated(11, n), points = repeated(3, m);
  Array const weights = repeated(1, p), features = repeated(2, p);
  INFO(name);
  REQUIRE(in);
  Array camera_of = empty(p, DType::i64), point_of = empty(p, DType::i64);
  for (index_t i = 0; i < p; ++i) {
    camera_of.data<std::int64_t>()[i] = i % n;
    point_of.data<std::int64_t>()[i] = i % m;
  }
  return {Cameras(take(cameras, camera_of)), Points(take(points, point_of)), Weights(weights.reshape(p)),
          Features(features)};
}

// Errors of the two coordinates, error of the weight and its derivative, the block [2, 15] column by column.
struct Block {
  std::vector<double> errors, weight, derivatives;
};
Block expected_block(std::string const& name) {
  std::ifstream in(folder() / "expected" / (name + ".jac.txt"));
  std::size_t n = 0;
  Block r{std::vector<double>(2), std::vector<double>(2), std::vector<double>(30)};
  for (double& e : r.errors) in >> e;
  for (double& e : r.weight) in >> e;
  in >> n;
  for (double& e : r.derivatives) in >> e;
  INFO(name);
  REQUIRE((in && n == 30));
  return r;
}

std::vector<Block> solved(Observations const& o) {
  Array const e = errors(o.cameras, o.points, o.weights, o.features);
  Array const we = weight_errors(o.weights), dw = weight_slopes(o.weights);
  auto const [camera, point, weight] = blocks(o.cameras, o.points, o.weights, o.features);
  static_assert(std::is_same_v<decltype(camera), Tensor<double, dyn, 2, 11> const>);
  Array const rows = concat<2>(Array(camera), Array(point), unsqueeze<2>(Array(weight)));
  Array const columns = movedim(rows, 1, 2).contiguous();
  std::vector<Block> r(static_cast<std::size_t>(o.size()));
  for (index_t i = 0; i < o.size(); ++i) {
    Block& b = r[static_cast<std::size_t>(i)];
    append(b.errors, e.part(i));
    append(b.weight, we.part(i));
    append(b.weight, dw.part(i));
    append(b.derivatives, columns.part(i));
  }
  return r;
}

}  // namespace

TEST_CASE("ADBench: bundle adjustment, compiled", "[program][vmap]") {
  for (std::string const& name : problems("ba", ".jac.txt")) {
    INFO(name);
    Block const want = expected_block(name);
    for (Block const& b : solved(observations(name))) {
      REQUIRE(error_of(b.errors, want.errors) <= 1e-12);
      REQUIRE(error_of(b.weight, want.weight) <= 1e-12);
      REQUIRE(error_of(b.derivatives, want.derivatives) <= 1e-12);
    }
  }
}

// What is repeated hides a block at the wrong place.
TEST_CASE("ADBench: bundle adjustment of cameras and points that differ, one without a rotation",
          "[program][vmap]") {
  constexpr index_t count = 5;
  Array cameras = randn({count, 11}, Key{1}, DType::f64) * 0.3,
        points = randn({count, 3}, Key{2}, DType::f64);
  Array const weights = randn(count, Key{3}, DType::f64), features = randn({count, 2}, Key{4}, DType::f64);
  for (index_t i = 0; i < count; ++i) {
    points.at<double>({i, 2}) += 8;  // in front of the camera
    cameras.at<double>({i, 6}) += 90;
    for (index_t k = 0; k < 3 && i == 2; ++k) cameras.at<double>({i, k}) = 0;
  }
  std::vector<Block> const found =
      solved({Cameras(cameras), Points(points), Weights(weights), Features(features)});
  for (index_t i = 0; i < count; ++i) {
    INFO("observation " << i);
    auto const row = [&](Array const& all) { return slice(all, 0, i, i + 1).contiguous(); };
    Observations const o{Cameras(row(cameras)), Points(row(points)), Weights(row(weights)),
                         Features(row(features))};
    Block const &b = found[static_cast<std::size_t>(i)], alone = solved(o)[0];
    REQUIRE(error_of(b.errors, alone.errors) <= 1e-12);
    REQUIRE(error_of(b.weight, alone.weight) <= 1e-12);
    REQUIRE(error_of(b.derivatives, alone.derivatives) <= 1e-12);
    std::vector<double> differences;
    for (Array const& x : {Array(o.cameras), Array(o.points), Array(o.weights)})
      for (index_t k = 0; k < x.size(); ++k) {
        double& value = x.data<double>()[k];
        double const was = value, h = 1e-5 * std::fmax(1, std::fabs(was));
        value = was + h;
        std::vector<double> const up = solved(o)[0].errors;
        value = was - h;
        std::vector<double> const down = solved(o)[0].errors;
        value = was;
        for (std::size_t c = 0; c < 2; ++c) differences.push_back((up[c] - down[c]) / (2 * h));
      }
    REQUIRE(error_of(b.derivatives, differences) <= 1e-8);
  }
}

}  // namespace tests::program_adbench_ba
