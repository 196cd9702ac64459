// SPDX-License-Identifier: BSL-1.0
// Lesson 13: from a table to a model in a file. Columns of a CSV file become Tensors; a network with dropout learns
// from them and is measured on rows that it has not seen; the best that it was is kept, saved and read back. What is
// saved holds all that its reader needs, the scales of the columns too.
#include <cassert>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include <dfdx/dfdx.hpp>
#include <dfdx/io.hpp>
#include <dfdx/io/csv.hpp>  // needs zlib

using namespace dfdx;

// [readme:prices]
struct Prices {
  Buffer<float, 3> mean, scale;  // of the columns: saved, but not learnt
  Buffer<float> mean_price, scale_price;
  nn::Linear<3, 32> fc1;
  nn::Dropout<0.05> drop;
  nn::Linear<32, 1> fc2;
  DFDX_FIELDS(mean, scale, mean_price, scale_price, fc1, drop, fc2)

  constexpr auto hidden(auto const& x) const { return relu(fc1((x - mean) / scale)); }
  constexpr auto price(auto const& h) const { return squeeze<1>(fc2(h)) * scale_price + mean_price; }
  // To use it, and to train it: the key settles what is dropped.
  constexpr auto operator()(auto const& x) const { return price(hidden(x)); }
  constexpr auto train(auto const& x, auto const& key) const { return price(drop.train(hidden(x), key)); }
};
// [/readme:prices]

constexpr auto loss = [](auto const& model, auto const& x, auto const& y, auto const& key) {
  return mse_loss(model.train(x, key), y);
};
constexpr auto absolute_error = [](auto const& model, auto const& x, auto const& y) {
  return l1_loss(model(x), y);
};
constexpr auto predict = [](auto const& model, auto const& x) { return model(x); };

// What a reader of this lesson has already: areas, rooms and years of flats, and prices in thousands.
void write_table(std::filesystem::path const& path) {
  constexpr std::size_t flats = 1200;
  auto const area = uniform<float, flats>(Key{1}, 30, 200), year = uniform<float, flats>(Key{2}, 1920, 2020);
  auto const noise = randn<float, flats>(Key{3});
  std::ofstream out(path);
  out << "area,rooms,year,price\n";
  for (index_t i = 0; i < static_cast<index_t>(flats); ++i) {
    float const rooms = 1 + std::floor(area(i) / 35), age = (year(i) - 1920) / 25;
    float const price = 40 + 2.5f * area(i) * (1 + 0.3f * std::sin(age)) + 10 * rooms + 8 * noise(i);
    out << area(i) << ',' << rooms << ',' << std::floor(year(i)) << ',' << price << '\n';
  }
}

int main() {
  auto const folder = std::filesystem::temp_directory_path() / "dfdx_lesson_13";
  std::filesystem::create_directories(folder);
  write_table(folder / "flats.csv");

  // [readme:train]
  auto const table = data::read_csv(folder / "flats.csv");
  auto const [train, test] =
      data::train_test_split(Key{1}, 0.25, table.numbers<float, 3>({"area", "rooms", "year"}),
                             table.numbers<float>(table.column("price")));
  auto const& [x, y] = train;
  auto const& [test_x, test_y] = test;

  auto model = init<Prices>(1);
  model.mean = mean<0>(x), model.scale = dfdx::std<0>(x);
  model.mean_price = mean(y), model.scale_price = dfdx::std(y);

  auto step = train_step(loss, optim::AdamW{.lr = 1e-2f, .weight_decay = 0});
  auto measure = compile(absolute_error);
  auto best = clone(model);  // `best = model` would share its numbers
  float least = measure(best, test_x, test_y).item();
  float const untrained = least;
  data::Loader<30, Tensor<float, dyn, 3>, Tensor<float, dyn>> batches(Key{2}, x, y);
  for (int epoch = 0; epoch < 60; ++epoch) {
    for (auto const& [some_x, some_y] : batches)
      step(model, some_x, some_y, Tensor<std::int64_t>(step.steps()));
    if (float const now = measure(model, test_x, test_y).item(); now < least) {
      least = now;
      copy_(best, model);
    }
  }
  save_safetensors(folder / "prices.safetensors", best);
  // [/readme:train]
  std::printf("prices are off by %.1f thousand in the mean, before training by %.1f\n",
              static_cast<double>(least), static_cast<double>(untrained));

  // Another program knows the struct and the file.
  auto read = init<Prices>(2);
  load_safetensors(folder / "prices.safetensors", read);
  auto const flat = Tensor<float, 1, 3>::from({{120, 4, 1985}});
  float const told = compile(predict)(read, flat)(0);
  std::printf("120 square metres in 4 rooms of 1985: %.0f thousand\n", static_cast<double>(told));
  std::filesystem::remove_all(folder);

  double const truth = 40 + 2.5 * 120 * (1 + 0.3 * std::sin(65 / 25.0)) + 10 * 4;
  assert(least < 10 && untrained > 80);
  assert(measure(read, test_x, test_y).item() == least);
  assert(std::abs(static_cast<double>(told) - truth) < 15);
}
