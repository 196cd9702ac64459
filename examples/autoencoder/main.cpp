// SPDX-License-Identifier: BSL-1.0
// autoencoder: learns to write pictures with a few numbers each, and to draw them again from these.
#include "../common/output.hpp"
#include "../common/tables.hpp"
#include "models.hpp"

#include <dfdx/data/split.hpp>

namespace autoencoder {

namespace {

Data<28> read_folder(common::PictureOptions const& o) {
  Data<28> r{{}, common::read_examples(o.data, "t10k", o.limit), {}};
  if (o.load.empty()) r.training = common::read_examples(o.data, "train", o.limit);
  for (std::size_t c = 0; c < common::classes; ++c) r.classes.push_back(std::to_string(c));
  return r;
}

// The rows of a table: points, and a class at the end. A quarter of them are to test on, the same ones whatever the
// seed: a model that is loaded has not seen them.
template <std::size_t Side>
Data<Side> data_of(dfdx::data::Csv const& table, std::string const& file, dfdx::index_t limit) {
  std::vector<dfdx::index_t> columns;
  for (dfdx::index_t c = 0; c + 1 < table.size(); ++c) columns.push_back(c);
  auto const points = table.numbers<float>(std::span<dfdx::index_t const>(columns));
  float brightest = 0;
  for (dfdx::index_t i = 0; i < points.size(); ++i) {
    float const v = points.data()[i];
    if (!(v >= 0 && std::isfinite(v)))
      throw dfdx::error("data: " + file + ":" + std::to_string(table.line(i / points.shape()[1])) + ": " +
                        std::to_string(v) + " is no brightness");
    brightest = std::max(brightest, v);
  }
  if (brightest == 0) throw dfdx::error("data: " + file + ": all pictures are black");
  auto pictures = common::PicturesOf<Side>::uninitialized(dfdx::make_shape(table.rows(), Side, Side));
  for (dfdx::index_t i = 0; i < points.size(); ++i)
    pictures.data()[i] = static_cast<std::uint8_t>(std::lround(255 * points.data()[i] / brightest));
  auto const labels = table.labels(table.size() - 1);
  auto const [training, test] =
      dfdx::data::train_test_split(dfdx::Key{0}, 0.25, pictures, common::Labels(labels.numbers));
  auto const part = [&](auto const& of) {
    return common::ExamplesOf<Side>{std::get<0>(of), std::get<1>(of)}.first(limit, file);
  };
  return {part(training), part(test), labels.classes};
}

void run(common::PictureOptions const& o) {
  common::prepare_folder(o.output);
  if (std::filesystem::is_directory(o.data)) return run_on(o, read_folder(o));
  auto const found = common::find_table(o.data, {.header = false});
  auto const table = dfdx::data::read_csv(found.path, found.how);
  if (table.size() == 8 * 8 + 1) return run_on(o, data_of<8>(table, found.path, o.limit));
  if (table.size() == 28 * 28 + 1) return run_on(o, data_of<28>(table, found.path, o.limit));
  throw dfdx::error("data: " + found.path + " has " + std::to_string(table.size()) +
                    " columns; the points of a picture and its class are 65, or 785 for 28 x 28 points");
}

}  // namespace

}  // namespace autoencoder

int main(int argc, char** argv) {
  return common::guarded("autoencoder", [&] {
    auto const options = common::parse_options(
        argc, argv, "autoencoder",
        "Learns to write pictures with a few numbers each, 2 for 8 x 8 points and 32 for 28 x 28, and to "
        "draw them again from these.",
        {.data = "digits",
         .output = "autoencoder-output",
         .epochs = 0,
         .lr = 2e-3,
         .other_data = "digits (8 x 8, scikit-learn's), or a CSV file without a header, packed by gzip or "
                       "not, of 8 x 8 or 28 x 28 points by rows, then the class; else: "});
    if (options) autoencoder::run(*options);
  });
}
