// SPDX-License-Identifier: BSL-1.0
// Models and training runs on the emulated device, saved and loaded.
#include "emulated.hpp"

#include <dfdx/io/checkpoint.hpp>
#include <dfdx/io/safetensors.hpp>
#include <dfdx/optim/adam.hpp>

#include <filesystem>

namespace tests::cuda_emulated_saved {

using namespace emulated;

namespace {

struct Model {
  nn::Linear<8, 5> hidden;
  nn::Linear<5, 2> out;
  DFDX_FIELDS(hidden, out)
};
constexpr auto loss = [](auto const& model, auto const& x) {
  return mean(square(model.out(tanh(model.hidden(x)))));
};
constexpr auto turned = [](auto const& x) { return transpose(x); };

struct File {
  std::string path = (std::filesystem::temp_directory_path() / "dfdx_device.safetensors").string();
  File() = default;
  File(File const&) = delete;
  ~File() { std::filesystem::remove(path); }
};

}  // namespace

TEST_CASE("a model on a device is saved, and loaded where it lies", "[cuda]") {
  File const file;
  auto const model = to(cuda(), init<Model>(1));
  save_safetensors(file.path, model);
  auto here = init<Model>(2);
  load_safetensors(file.path, here);
  REQUIRE(numbers(here) == numbers(model));
  auto there = to(cuda(), init<Model>(3));
  auto const* const memory = there.out.bias.bytes();
  load_safetensors(file.path, there);
  REQUIRE(numbers(there) == numbers(model));
  REQUIRE(there.out.bias.bytes() == memory);
  REQUIRE(there.hidden.weight.device() == cuda());
}
TEST_CASE("a training run on a device goes on as if it had not stopped", "[cuda]") {
  File const file;
  auto const x = to(cuda(), filled<Tensor<float, 6, 8>>(1));
  auto model = to(cuda(), init<Model>(1));
  auto step = train_step(loss, optim::AdamW{.lr = 1e-2f});
  for (int k = 0; k < 3; ++k) step(model, x);
  save_checkpoint(file.path, "model", model, "optimizer", step);
  for (int k = 0; k < 3; ++k) step(model, x);

  auto other = to(cuda(), init<Model>(2));
  auto again = train_step(loss, optim::AdamW{.lr = 1e-2f});
  load_checkpoint(file.path, "model", other, "optimizer", again);
  for (int k = 0; k < 3; ++k) again(other, x);
  REQUIRE(numbers(other) == numbers(model));
}
TEST_CASE("views of a device's memory come back as they are", "[cuda]") {
  auto const x = filled<Tensor<float, 3, 5>>(1);
  auto const y = compile(turned)(to(cuda(), x));
  REQUIRE(numbers(y) == numbers(Tensor<float, 5, 3>(transpose(x))));
  auto const again = to(cuda(), y);
  REQUIRE(again.device() == cuda());
  REQUIRE(numbers(again) == numbers(y));
}

}  // namespace tests::cuda_emulated_saved
