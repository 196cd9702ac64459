// SPDX-License-Identifier: BSL-1.0
// The problems of ADBench (Srajer, Kukelova, Fitzgibbon, Optimization Methods and Software 33, 2018) as files: those in
// the folder that DFDX_ADBENCH names (of larger problems, say), else those beside the checkout.
#pragma once

#include <dfdx/dfdx.hpp>

#include <catch2/catch_test_macros.hpp>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace tests::adbench {

using namespace dfdx;
namespace fs = std::filesystem;

inline fs::path folder() {
  if (char const* dir = std::getenv("DFDX_ADBENCH")) return dir;
  fs::path const shared = DFDX_SHARED_DIR;
  return shared.empty() ? shared : shared / "data" / "adbench";
}

// The problems of a kind (gmm, lstm, ba) whose results are known, the names of which end in `ending`.
inline std::vector<std::string> problems(char const* kind, char const* ending = ".grad.txt") {
  std::vector<std::string> r;
  fs::path const dir = folder();
  if (!dir.empty() && fs::is_directory(dir / kind))
    for (auto const& f : fs::directory_iterator(dir / kind))
      if (std::string const name = f.path().stem().string(); fs::exists(dir / "expected" / (name + ending)))
        r.push_back(name);
  if (r.empty())
    SKIP("no ADBench files: set DFDX_ADBENCH to a folder with " << kind << "/*.txt and expected/*" << ending);
  return r;
}
inline fs::path file_of(char const* kind, std::string const& name) {
  return folder() / kind / (name + ".txt");
}

inline Array numbers(std::istream& in, Extents const& shape) {
  Array a = empty(shape, DType::f64);
  for (index_t i = 0; i < a.size(); ++i) in >> a.data<double>()[i];
  return a;
}

struct Expected {
  double objective = 0;
  std::vector<double> gradient;
};
inline Expected expected(std::string const& name) {
  std::ifstream in(folder() / "expected" / (name + ".grad.txt"));
  Expected e;
  std::size_t n = 0;
  in >> e.objective >> n;
  for (double g = 0; e.gradient.size() < n && in >> g;) e.gradient.push_back(g);
  INFO(name);
  REQUIRE((in && e.gradient.size() == n));
  return e;
}

// The largest difference, as a part of the largest expected value.
inline double error_of(std::vector<double> const& found, std::vector<double> const& want) {
  REQUIRE(found.size() == want.size());
  double largest = 0, error = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    largest = std::fmax(largest, std::fabs(want[i]));
    double const e = std::fabs(found[i] - want[i]);
    error = std::isnan(e) ? e : std::fmax(error, e);  // fmax forgets a NaN
    if (std::isnan(error)) break;
  }
  return error / largest;
}
inline void check(double objective, std::vector<double> const& gradient, Expected const& want) {
  CHECK(error_of({objective}, {want.objective}) <= 1e-12);
  CHECK(error_of(gradient, want.gradient) <= 1e-12);
}
inline void append(std::vector<double>& to, Array const& x) {
  for (index_t i = 0; i < x.size(); ++i) to.push_back(read_real(x.operand(), i));
}

// Weights [2 L, 4 B], the weights of input and output [3, B], the first state [2 L, B], the bits of characters [C, B].
struct Lstm {
  index_t layers = 0, steps = 0, bits = 0;
  Array main, extra, state, sequence;

  explicit Lstm(std::string const& name) {
    std::ifstream in(file_of("lstm", name));
    in >> layers >> steps >> bits;
    main = numbers(in, {2 * layers, 4 * bits});
    extra = numbers(in, {3, bits});
    state = numbers(in, {2 * layers, bits});
    // The bits of a character stand together, without blanks between them.
    sequence = empty({steps, bits}, DType::f64);
    for (index_t i = 0; i < sequence.size(); ++i) {
      char bit = 0;
      in >> bit;
      sequence.data<double>()[i] = bit - '0';
    }
    INFO(name);
    REQUIRE(in);
  }
};

}  // namespace tests::adbench
