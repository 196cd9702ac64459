// SPDX-License-Identifier: BSL-1.0
// Logs that other programs read, what progress bars print, charts that are well-formed.
#include <dfdx/report.hpp>

#include <catch2/catch_test_macros.hpp>

#include <memory>

#include "support.hpp"

namespace tests::report_report {

using namespace dfdx;

namespace {

std::string text_of(std::filesystem::path const& path) {
  auto const bytes = read_file(path, "test");
  return {reinterpret_cast<char const*>(bytes.data()), bytes.size()};
}
int count(std::string const& text, std::string const& part) {
  int n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}
// Every element that is opened is closed, as far as text without comments shows.
bool well_formed(std::string const& svg) {
  std::vector<std::string> open;
  for (std::size_t at = svg.find('<'); at != std::string::npos; at = svg.find('<', at + 1)) {
    std::size_t const end = svg.find('>', at);
    if (end == std::string::npos) return false;
    bool const closes = svg[at + 1] == '/', empty = svg[end - 1] == '/';
    std::size_t const from = at + (closes ? 2 : 1);
    std::string const name = svg.substr(from, svg.find_first_of(" >/", from) - from);
    if (closes) {
      if (open.empty() || open.back() != name) return false;
      open.pop_back();
    } else if (!empty) {
      open.push_back(name);
    }
  }
  return open.empty();
}

}  // namespace

TEST_CASE("a CSV log has a header, quotes what needs it and is written row by row", "[report]") {
  tests::TemporaryFolder const folder;
  report::Log log(folder / "log.csv");
  log.row({{"step", 1}, {"loss, nats", 0.1}, {"note", "a \"b\""}});
  CHECK(text_of(folder / "log.csv") == "step,\"loss, nats\",note\n1,0.1,\"a \"\"b\"\"\"\n");
  log.row({{"step", 9007199254740993}, {"loss, nats", NAN}, {"note", ""}});
  CHECK(text_of(folder / "log.csv") ==
        "step,\"loss, nats\",note\n1,0.1,\"a \"\"b\"\"\"\n9007199254740993,,\n");
  CHECK(tests::error_of([&] { log.row({{"step", 1}}); }).ends_with("log.csv has other columns than the row"));
  CHECK(count(text_of(folder / "log.csv"), "\n") == 3);
}

TEST_CASE("a log of JSON lines reads back equal", "[report]") {
  tests::TemporaryFolder const folder;
  report::Log log(folder / "log.jsonl");
  log.row({{"z", 1.0 / 3}, {"a", -7}, {"note", "x\ny\xff"}});
  log.row({{"other", HUGE_VAL}});
  std::string const text = text_of(folder / "log.jsonl");
  REQUIRE(count(text, "\n") == 2);
  CHECK(text.starts_with("{\"z\":"));  // in the order given
  auto const first = nlohmann::json::parse(text.substr(0, text.find('\n')));
  CHECK(first["z"].get<double>() == 1.0 / 3);
  CHECK(first["a"].get<int>() == -7);
  CHECK(first["note"].get<std::string>() == "x\ny\xef\xbf\xbd");
  CHECK(nlohmann::json::parse(text.substr(text.find('\n') + 1))["other"].is_null());
}

TEST_CASE("a log says what is wrong with its file", "[report]") {
  tests::TemporaryFolder const folder;
  CHECK(tests::error_of([&] {
          report::Log log(folder / "log.txt");
        }).ends_with("log.txt ends neither in .csv nor in .jsonl"));
  CHECK(tests::error_of([&] {
          report::Log log(folder / "none" / "log.csv");
        }).ends_with("log.csv: No such file or directory"));
  if (std::filesystem::exists("/dev/full")) {
    std::filesystem::create_symlink("/dev/full", folder / "full.csv");
    report::Log log(folder / "full.csv");
    CHECK(tests::error_of([&] { log.row({{"a", 1}}); }).ends_with("full.csv: No space left on device"));
  }
}

TEST_CASE("a progress bar prints some lines where it cannot redraw one", "[report]") {
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> const file(std::tmpfile(), std::fclose);
  REQUIRE(file != nullptr);
  {
    report::Progress progress(1000, file.get());
    for (int i = 1; i <= 1000; ++i) progress.show(i, {{"loss", 2.0 / i}, {"accuracy", 0.5}});
  }
  std::string text(static_cast<std::size_t>(std::ftell(file.get())), '\0');
  std::rewind(file.get());
  REQUIRE(std::fread(text.data(), 1, text.size(), file.get()) == text.size());
  CHECK(count(text, "\n") == 10);
  CHECK(count(text, "\r") == 0);
  CHECK(count(text, "  [###...........................]  10%  loss 0.020  accuracy 0.500  ") == 1);
  CHECK(count(text, "  [##############################] 100%  loss 0.002  accuracy 0.500  ") == 1);
  CHECK(count(text, "took 0:00") == 1);
  CHECK(count(text, " left\n") == 9);
}

TEST_CASE("numbers on axes are round", "[report]") {
  CHECK(report::ticks(0, 10) == std::vector<double>{0, 2, 4, 6, 8, 10});
  CHECK(report::ticks(-1, 1).size() >= 4);
  CHECK(report::ticks(3, 3).empty());
  CHECK(report::ticks(0, HUGE_VAL).empty());
  CHECK(report::thousands(0) == "0");
  CHECK(report::thousands(999) == "999");
  CHECK(report::thousands(1000) == "1,000");
  CHECK(report::thousands(-123456) == "-123,456");
  CHECK(report::thousands(1234567890) == "1,234,567,890");
}

TEST_CASE("buckets hold all values once", "[report]") {
  CHECK(report::buckets_of({}).empty());
  for (std::size_t n : {1u, 7u, 16u, 1000u, 4001u}) {
    std::vector<float> values;
    for (std::size_t i = 0; i < n; ++i) values.push_back(static_cast<float>(i));
    auto const buckets = report::buckets_of(values);
    CHECK(buckets.size() == std::min<std::size_t>(250, std::max<std::size_t>(n / 8, 1)));
    double sum = 0, end = 0;
    for (auto const& b : buckets) {
      double const size = 2 * (b.at - end);
      CHECK(b.low <= b.mean);
      CHECK(b.mean <= b.high);
      sum += size * b.mean;
      end += size;
    }
    CHECK(end == static_cast<double>(n));
    CHECK(std::fabs(sum - static_cast<double>(n) * static_cast<double>(n - 1) / 2) <= 1e-9 * (sum + 1));
  }
}

TEST_CASE("charts are whole SVG files whatever their numbers", "[report]") {
  tests::TemporaryFolder const folder;
  std::string const path = folder / "x.svg";
  std::vector<float> noisy;
  for (int i = 0; i < 500; ++i) noisy.push_back(1 / (1 + 0.1f * static_cast<float>(i)));
  report::LineChart chart{.title = "a < b & c", .subtitle = "", .x_label = "steps", .steps = 500};
  chart.curves = {
      report::Curve::of("train", report::blue, noisy),
      {.name = "test", .color = report::orange, .points = {{0, 0.9}, {500, 0.1}}, .circles = true}};
  chart.baselines = {{0.5, "here"}, {100, "far away"}};
  chart.save(path);
  std::string text = text_of(path);
  CHECK(well_formed(text));
  CHECK(count(text, "a &lt; b &amp; c") == 1);
  CHECK(count(text, "<circle") == 2);
  CHECK(count(text, "here") == 1);
  CHECK(count(text, "far away") == 0);
  CHECK(count(text, "nan") + count(text, "inf") == 0);

  report::LineChart{.title = "nothing", .subtitle = "", .x_label = "", .steps = 1}.save(path);
  CHECK(well_formed(text_of(path)));
  CHECK(count(text_of(path), "nan") == 0);

  std::vector<std::int64_t> const counts{3, 1, 0, 0};
  report::draw_matrix(path, "matrix", "", counts, {"yes", "no"});
  text = text_of(path);
  CHECK(well_formed(text));
  CHECK(count(text, "fill-opacity=\"0.866025\"") == 1);
  CHECK(count(text, "nan") == 0);
  CHECK(tests::error_of([&] { report::draw_matrix(path, "", "", counts, {"one"}); }) ==
        "draw_matrix: 4 counts, 1 names");

  report::draw_images(path, "images", "", {{2, 3, {0, 0, 1, NAN, 2, -1}}, {1, 1, {0.5f}}}, 2, 4);
  text = text_of(path);
  CHECK(well_formed(text));
  CHECK(count(text, "#808080") == 1);
  // The white background and two runs of 1 of 0 0 1 / 0 1 0; the 0s are three.
  CHECK(count(text, "#ffffff") == 2);
  CHECK(count(text, "#000000") == 3);
  CHECK(tests::error_of([&] { report::draw_images(path, "", "", {{2, 2, {0}}}, 1, 1); }) ==
        "draw_images: 1 values for 2 x 2 points");
}

}  // namespace tests::report_report
