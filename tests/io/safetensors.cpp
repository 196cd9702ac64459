// SPDX-License-Identifier: BSL-1.0
// Models saved and loaded: equal afterwards, and untouched by whatever goes wrong.
#include "io/models.hpp"
#include "support.hpp"

#include <catch2/catch_test_macros.hpp>

#include <dfdx/nn/linear.hpp>
#include <dfdx/nn/norm.hpp>
#include <dfdx/nn/repeat.hpp>
#include <dfdx/vocabulary/compare.hpp>
#include <dfdx/vocabulary/draw.hpp>
#include <dfdx/vocabulary/shape.hpp>

namespace tests::io_safetensors {

using namespace tests;

TEST_CASE("a model is read back as it was saved", "[io]") {
  TemporaryFolder const folder;
  auto const saved = model(1);
  save_safetensors(folder / "m.safetensors", saved, {{"step", "12"}});
  CHECK(folder.files() == 1);

  auto loaded = model(2);
  CHECK(!equal(saved, loaded));
  CHECK(load_safetensors(folder / "m.safetensors", loaded).at("step") == "12");
  CHECK(equal(saved, loaded));

  Model empty;
  load_safetensors(folder / "m.safetensors", empty);
  CHECK(equal(saved, empty));
}

TEST_CASE("names are paths, the header is padded, tensors are aligned to their elements", "[io]") {
  TemporaryFolder const folder;
  save_safetensors(folder / "m.safetensors", model(1));
  auto const bytes = read_file(folder / "m.safetensors", "test");
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  CHECK(length % 8 == 0);
  auto const file = SafetensorsFile::from(bytes);
  std::set<std::string> names;
  for (auto const& e : file.entries()) {
    names.insert(e.name);
    CHECK((e.bytes.data() - bytes.data() - 8 - static_cast<std::ptrdiff_t>(length)) %
              static_cast<std::ptrdiff_t>(size_of(*e.dtype)) ==
          0);
  }
  CHECK(names == std::set<std::string>{"fc1.weight", "fc1.bias", "layers.0.weight", "layers.1.weight",
                                       "steps", "mask", "scale"});
}

TEST_CASE("tensors of any strides are saved by rows and loaded in place", "[io]") {
  TemporaryFolder const folder;
  auto const base = randn<float, 4, 3>(Key{1});
  auto const turned = transpose(base);
  auto const repeated = expand<2, 4>(ones<float, 4>());
  auto const rows = randn<float, 2, 4>(Key{2});
  save_safetensors(folder / "t.safetensors", std::tuple(turned, repeated, rows));

  auto target = zeros<float, 4, 3>();
  auto const none = zeros<float, 4>();
  auto into = std::tuple(transpose(target), expand<2, 4>(none), expand<2, 4>(none));
  load_safetensors(folder / "t.safetensors", into);
  CHECK(array_equal(target, base));
  CHECK(array_equal(std::get<1>(into), ones({2, 4})));
  CHECK(
      array_equal(std::get<2>(into), rows));  // in memory of its own, for each element has a place of its own
}

TEST_CASE("dyn dims and untyped arrays take the file's shape", "[io]") {
  TemporaryFolder const folder;
  save_safetensors(folder / "t.safetensors", std::pair(randn<float, 5, 3>(Key{1}), arange(4)));
  std::pair<Tensor<float, dyn, 3>, Array> p;
  load_safetensors(folder / "t.safetensors", p);
  CHECK(p.first.shape() == make_shape(5, 3));
  CHECK(array_equal(p.second, arange(4)));
  std::pair<Tensor<float, dyn, 4>, Array> q;
  CHECK(error_of([&] {
          load_safetensors(folder / "t.safetensors", q);
        }).find("[5, 3] in the file, [dyn, 4]") != std::string::npos);
}

namespace {

struct Other {
  nn::Linear<3, 5> fc1;
  Tensor<std::int32_t, 2> steps;
  Tensor<float, 7> extra;
  Tensor<bool, 3> mask;
  DFDX_FIELDS(fc1, steps, extra, mask)
};

}  // namespace

TEST_CASE("every mismatch is reported at once and nothing is loaded", "[io]") {
  TemporaryFolder const folder;
  save_safetensors(folder / "m.safetensors", model(1));
  auto other = init<Other>(3);
  auto const before = init<Other>(3);
  std::string const what = error_of([&] { load_safetensors(folder / "m.safetensors", other); });
  CHECK(
      what ==
      "load_safetensors: " + (folder / "m.safetensors").string() +
          " does not fit the model: fc1.weight: shape [4, 3] in the file, [5, 3] in the model; fc1.bias: "
          "shape [4] in the file, [5] in the model; steps: dtype I64 in the file, I32 in the model; extra is "
          "missing; layers.0.weight is not in the model; layers.1.weight is not in the model; scale is not "
          "in "
          "the model");
  CHECK(equal(other, before));
}

TEST_CASE("PyTorch's count of the batches of a norm is passed over, and nothing else", "[io]") {
  struct Normed {
    nn::BatchNorm2d<3> bn;
    nn::Linear<3, 2> fc;
    DFDX_FIELDS(bn, fc)
  };
  TemporaryFolder const folder;
  auto const file = folder / "m.safetensors";
  auto const saved = init<Normed>(1);
  std::map<std::string, Array> theirs{{"bn.num_batches_tracked", Tensor<std::int64_t>(7)}};
  visit_state(saved, [&](std::string const& name, Array const& x) { theirs[name] = x; });
  save_safetensors(file, theirs);
  auto loaded = init<Normed>(2);
  load_safetensors(file, loaded);
  CHECK(equal(loaded, saved));
  nn::BatchNorm2d<3> alone;  // without a path before the names
  save_safetensors(file, std::map<std::string, Array>{{"weight", saved.bn.weight},
                                                      {"bias", saved.bn.bias},
                                                      {"running_mean", saved.bn.running_mean},
                                                      {"running_var", saved.bn.running_var},
                                                      {"num_batches_tracked", Tensor<std::int64_t>(7)}});
  load_safetensors(file, alone);
  CHECK(equal(alone, saved.bn));
  theirs["fc.num_batches_tracked"] = theirs["bn.xnum_batches_tracked"] = theirs["bn.num_batches_tracked"];
  save_safetensors(file, theirs);
  CHECK(error_of([&] { load_safetensors(file, loaded); }) ==
        "load_safetensors: " + file.string() +
            " does not fit the model: bn.xnum_batches_tracked is not in the model; fc.num_batches_tracked is "
            "not "
            "in the model");
}

TEST_CASE("a damaged or missing file leaves the model as it was", "[io]") {
  TemporaryFolder const folder;
  auto m = model(1);
  save_safetensors(folder / "m.safetensors", m);
  std::filesystem::resize_file(folder / "m.safetensors", 300);
  auto n = model(2);
  CHECK(error_of([&] { load_safetensors(folder / "m.safetensors", n); }) != "");
  CHECK(error_of([&] { load_safetensors(folder / "none", n); }) ==
        "safetensors: cannot read " + (folder / "none").string() + ": No such file or directory");
  CHECK(error_of([&] { load_safetensors(folder / "", n); }).find("Is a directory") != std::string::npos);
  CHECK(equal(n, model(2)));
}

TEST_CASE("a file that cannot be written leaves the old one", "[io]") {
  TemporaryFolder const folder;
  auto const old = model(1);
  save_safetensors(folder / "m.safetensors", old);
  Model half = model(2);
  half.scale = {};
  CHECK(error_of([&] { save_safetensors(folder / "m.safetensors", half); }) ==
        "save_safetensors: scale holds no memory");
  CHECK(error_of([&] { save_safetensors(folder / "m.safetensors", old, {{"k", "\xff"}}); }) ==
        "save_safetensors: a name or the metadata is not UTF-8");
  CHECK(error_of([&] { save_safetensors(folder / "no/m.safetensors", old); }) ==
        "save_safetensors: cannot write " + (folder / "no/m.safetensors").string() +
            ": No such file or directory");
  // A folder of the temporary file's name stands for a full disk.
  std::filesystem::create_directory(folder / "m.safetensors.partial");
  CHECK(error_of([&] { save_safetensors(folder / "m.safetensors", model(3)); }) != "");
  auto read = model(4);
  load_safetensors(folder / "m.safetensors", read);
  CHECK(equal(read, old));
  CHECK(folder.files() == 1);
  if (std::filesystem::exists("/dev/null"))
    CHECK(error_of([&] { save_safetensors("/dev/null", old); }) ==
          "save_safetensors: cannot write /dev/null: not a regular file");
}

namespace {

struct Cell {
  nn::Linear<3, 3> inner;
  DFDX_FIELDS(inner)
};
struct Chain {
  nn::Repeat<Cell, 3> cells;
  DFDX_FIELDS(cells)
};
struct Row {
  std::array<Cell, 3> cells;
  DFDX_FIELDS(cells)
};

}  // namespace

TEST_CASE("a repeated block and an array of blocks have the same files", "[io]") {
  auto const path = std::filesystem::temp_directory_path() / "dfdx_repeat.safetensors";
  auto const row = init<Row>(7);
  save_safetensors(path, row);
  Chain chain{};
  load_safetensors(path, chain);
  for (index_t i = 0; i < 3; ++i)
    REQUIRE(array_equal(chain.cells[i].inner.weight, row.cells[static_cast<std::size_t>(i)].inner.weight));
  save_safetensors(path, chain);
  Row again{};
  load_safetensors(path, again);
  REQUIRE(array_equal(again.cells[2].inner.bias, row.cells[2].inner.bias));

  // What does not fit changes nothing.
  save_safetensors(path, std::map<std::string, Array>{{"cells.0.inner.bias", zeros({3})}});
  Chain empty{};
  REQUIRE_THROWS_AS(load_safetensors(path, empty), dfdx::error);
  REQUIRE(empty.cells.empty());
  std::filesystem::remove(path);
}

}  // namespace tests::io_safetensors
