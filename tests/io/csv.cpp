// SPDX-License-Identifier: BSL-1.0
// Tables as text: headers, quotes, line ends, labels, what is missing, and what is refused with its line.
#include "support.hpp"

#include <dfdx/dfdx.hpp>
#include <dfdx/io/csv.hpp>

#include <catch2/catch_test_macros.hpp>

#include <fstream>

namespace tests::io_csv {

#ifndef DFDX_SHARED_DIR
#define DFDX_SHARED_DIR ""
#endif

using namespace dfdx;
using data::Csv, data::read_csv;
using tests::error_of;

namespace {

Csv table(std::string const& text, data::CsvOptions const& options = {}) {
  return Csv(text, "t.csv", options);
}
std::string refusal(std::string const& text, data::CsvOptions const& options = {}) {
  return error_of([&] { table(text, options); });
}

}  // namespace

TEST_CASE("a table with a header", "[io]") {
  auto const t = table("name, height ,n\nann,1.5,3\nbob,+2e0,-4\n\ncy, 3.25 ,5\n");
  CHECK(t.rows() == 3);
  CHECK(t.size() == 3);
  CHECK(t.columns() == std::vector<std::string>{"name", "height", "n"});
  CHECK(t.text(1, 0) == "bob");
  CHECK(t.line(2) == 5);
  CHECK(array_equal(t.numbers<float>({"height", "n"}),
                    Tensor<float, 3, 2>::from({{1.5f, 3}, {2, -4}, {3.25f, 5}})));
  CHECK(array_equal(t.numbers<std::int32_t>(2), Tensor<std::int32_t, 3>::from({3, -4, 5})));
  Tensor<float, dyn, 2> const two = t.numbers<float, 2>({"height", "n"});
  CHECK(array_equal(two, t.numbers<float>({"height", "n"})));
  CHECK(error_of([&] { t.numbers<float, 2>({"n"}); }) ==
        "data: t.csv gives 1 columns of numbers, 2 expected");
  CHECK(array_equal(t.numbers<float16>(t.column("n")),
                    Tensor<float16, 3>::from({float16(3.f), float16(-4.f), float16(5.f)})));
  CHECK(error_of([&] { t.column("weight"); }) == "data: t.csv has no column weight but name, height, n");
  CHECK(error_of([&] { t.text(3, 0); }) == "csv: row 3, column 0 of a table of 3 by 3");
}

TEST_CASE("quotes, separators and line ends", "[io]") {
  auto const t =
      table("\xef\xbb\xbf\"a;b\";\"c\"\"d\"\r\n\"1\n2\";\"\"\r\n \t\r\n;\"x\"\r", {.separator = ';'});
  CHECK(t.columns() == std::vector<std::string>{"a;b", "c\"d"});
  CHECK(t.rows() == 2);
  CHECK(t.text(0, 0) == "1\n2");
  CHECK(t.text(0, 1) == "");
  CHECK(t.text(1, 0) == "");
  CHECK(t.text(1, 1) == "x");
  CHECK(t.line(1) == 5);
  auto const one = table("x\n\"\"\n\ny", {});  // one column: "" is a row, nothing is none
  CHECK(one.rows() == 2);
  auto const bare = table("1,2\n3,4", {.header = false});
  CHECK(bare.columns() == std::vector<std::string>{"0", "1"});
  CHECK(array_equal(bare.numbers<double, 2>(), bare.numbers<double>()));
  CHECK(array_equal(bare.numbers<double>(), Tensor<double, 2, 2>::from({{1, 2}, {3, 4}})));
  auto const skipped = table("about\nx y\n1 2\n", {.separator = ' ', .skip = 1});
  CHECK(skipped.number<int>(0, skipped.column("y")) == 2);
}

TEST_CASE("classes are numbered by name, numbers by value", "[io]") {
  auto const t = table("a,b\n10,dog\n9,cat\n1e1,cat\n-1,dog\nx,eel\n");
  auto const a = t.labels("a"), b = t.labels("b");
  CHECK(a.classes == std::vector<std::string>{"-1", "9", "10", "x"});
  CHECK(array_equal(a.numbers, Tensor<std::int32_t, 5>::from({2, 1, 2, 0, 3})));
  CHECK(b.classes == std::vector<std::string>{"cat", "dog", "eel"});
  CHECK(array_equal(b.numbers, Tensor<std::int32_t, 5>::from({1, 0, 0, 1, 2})));
  CHECK(error_of([&] { table("a,b\n1,2\n3, \n").labels("b"); }) == "data: t.csv:3: column b is empty");
}

TEST_CASE("other tables are refused with the line", "[io]") {
  CHECK(refusal("") == "data: t.csv has no rows");
  CHECK(refusal("a,b\n") == "data: t.csv has no rows");
  CHECK(refusal("a\n", {.skip = 9}) == "data: t.csv has no rows");
  CHECK(refusal("a,b\n1,2\n\n3\n") == "data: t.csv:4: 1 fields, there are 2 columns");
  CHECK(refusal("a,b\n\"1\n\n2\",2\n3,4,5\n") == "data: t.csv:5: 3 fields, there are 2 columns");
  CHECK(refusal("a,b\n1,\"2\n3,4\n") == "data: t.csv:2: a quote is not closed");
  CHECK(refusal("a,b\n1,\"2\"x\n") == "data: t.csv:2: text behind a closing quote");
  CHECK(refusal(std::string("a,b\n1,\0002\n", 8)) == "data: t.csv is no text: it has a byte of 0");
  for (char const* bad : {"abc", "1.5x", "0x10", "1,5", "--1", "+-1", "1 2", "+", "1e"})
    CHECK(error_of([&] { table("x\n\n\"" + std::string(bad) + "\"\n").numbers<float>(0); }) ==
          "data: t.csv:3: '" + std::string(bad) + "' in column x is no number");
  auto const one = [](auto type, std::string const& field) {
    using T = decltype(type);
    return error_of([&] { table("x\n" + field + "\n").numbers<T>(0); });
  };
  CHECK(one(1, "1.5") == "data: t.csv:2: '1.5' in column x is no whole number");
  CHECK(one(std::uint8_t{}, "256") == "data: t.csv:2: '256' in column x is out of range");
  CHECK(one(std::uint8_t{}, "-1") == "data: t.csv:2: '-1' in column x is out of range");
  CHECK(one(std::int64_t{}, "9223372036854775808").ends_with("is out of range"));
  CHECK(one(std::int64_t{}, "9223372036854775807") == "");
  CHECK(one(1.0f, "1e39").ends_with("is out of range"));
  CHECK(one(1.0, "1e39") == "");
  CHECK(one(1.0, "1e999").ends_with("is out of range"));
  CHECK(one(1.0, "1e-999") == "");
  CHECK(one(1.0, "inf") == "");
  CHECK(one(1.0, "\"\"") == "data: t.csv:2: column x is empty");
  auto const holes = table("a,b\n,2\n", {.missing = std::numeric_limits<double>::quiet_NaN()});
  CHECK(std::isnan(holes.number<float>(0, 0)));
  CHECK(error_of([&] { holes.number<int>(0, 0); }) == "data: t.csv:2: column a is empty");
}

TEST_CASE("packed tables; every beginning of a table is read or refused", "[io]") {
  tests::TemporaryFolder const folder;
  std::string const text = "a,\"b\"\n1.5,\"x\"\"\ny\"\n\n-2, z\r\n";
  auto const packed = [&](std::string const& s) {
    std::string const file = (folder / "p.gz").string();
    gzFile const out = gzopen(file.c_str(), "wb");
    gzwrite(out, s.data(), static_cast<unsigned>(s.size()));
    gzclose(out);
    std::ifstream in(file, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  };
  std::string const whole = packed(text);
  for (std::string const& content : {text, whole, packed(text.substr(0, 9)) + packed(text.substr(9))}) {
    auto const t = read_csv(folder.write("t.csv", content));
    CHECK(t.rows() == 2);
    CHECK(t.text(0, 1) == "x\"\ny");
  }
  for (std::size_t n = 0; n < text.size(); ++n) {
    auto const said = refusal(text.substr(0, n));
    if (!said.empty()) CHECK(said.starts_with("data: t.csv"));
  }
  for (std::size_t n = 0; n < whole.size(); ++n) {
    auto const file = folder.write("cut.gz", whole.substr(0, n));
    CHECK(error_of([&] { read_csv(file); }).starts_with("data: " + file.string()));
  }
  auto const behind = folder.write("behind.gz", whole + "x");
  CHECK(error_of([&] { read_csv(behind); }) ==
        "data: " + behind.string() + " has bytes behind the end of what is packed");
  CHECK(error_of([&] { read_csv(folder / "none"); }) ==
        "data: cannot read " + (folder / "none").string() + ": No such file or directory");
}

TEST_CASE("the tables of scikit-learn", "[io]") {
  std::filesystem::path const shared = std::filesystem::path(DFDX_SHARED_DIR) / "data/tabular";
  if (std::string(DFDX_SHARED_DIR).empty() || !std::filesystem::exists(shared))
    SKIP("no tables: DFDX_SHARED_DIR is '" DFDX_SHARED_DIR "'");
  auto const digits = read_csv(shared / "digits.csv.gz", {.header = false});
  CHECK(digits.rows() == 1797);
  CHECK(digits.size() == 65);
  CHECK(digits.labels(index_t{64}).classes.size() == 10);
  CHECK(sum(digits.numbers<std::int64_t>()).item() > 0);
  auto const cancer = read_csv(shared / "breast_cancer.csv", {.header = false, .skip = 1});
  CHECK(cancer.rows() == 569);
  CHECK(cancer.size() == 31);
  CHECK(cancer.number<double>(0, 0) == 17.99);
  auto const diabetes = read_csv(shared / "diabetes_data_raw.csv.gz", {.header = false, .separator = ' '});
  CHECK(diabetes.size() == 10);
  CHECK(read_csv(shared / "diabetes_target.csv.gz", {.header = false}).number<double>(0, 0) == 151);
}

}  // namespace tests::io_csv
