// SPDX-License-Identifier: BSL-1.0
// Text files as lines, and the sentences for what is none.
#include "support.hpp"

#include <dfdx/data/text_lines.hpp>

#include <catch2/catch_test_macros.hpp>

namespace tests::data_text_lines {

using dfdx::data::read_lines, dfdx::data::read_text;
using tests::error_of;

TEST_CASE("lines keep their numbers and lose blanks at their ends", "[data]") {
  tests::TemporaryFolder const folder;
  using Lines = std::vector<std::string>;
  CHECK(read_lines(folder.write("a", "one\n  two \t\n\nthree")) == Lines{"one", "two", "", "three"});
  CHECK(read_lines(folder.write("b", "one\r\ntwo\r\n")) == Lines{"one", "two"});
  CHECK(read_lines(folder.write("c", "caf\xc3\xa9\nna\xc3\xafve\n")) == Lines{"caf\xc3\xa9", "na\xc3\xafve"});
  std::string const line(200000, 'x');  // longer than the buffer
  CHECK(read_lines(folder.write("d", line + "\n" + line)) == Lines{line, line});
}

TEST_CASE("what is no list of lines is refused in a sentence", "[data]") {
  tests::TemporaryFolder const folder;
  auto const refusal = [&](std::filesystem::path const& path) { return error_of([&] { read_lines(path); }); };
  std::string const at = "data: " + (folder / "").string();
  CHECK(refusal(folder / "none") ==
        "data: cannot read " + (folder / "none").string() + ": No such file or directory");
  CHECK(refusal(folder / "") == "data: cannot read " + (folder / "").string() + ": Is a directory");
  CHECK(refusal(folder.write("empty", "")) == at + "empty is empty");
  CHECK(refusal(folder.write("binary", std::string("ab\ncd\0ef\n", 9))) ==
        at + "binary is not a text file (byte 0x00 in line 2)");
  CHECK(refusal(folder.write("escape", "ab\ncd\x1b[31m\n")) ==
        at + "escape is not a text file (byte 0x1b in line 2)");
  CHECK(refusal(folder.write("one", "only\n")) == at + "one has fewer than 2 lines with text");
  CHECK(refusal(folder.write("blank", "\n\n  \nx\n")) == at + "blank has fewer than 2 lines with text");
}

TEST_CASE("a text keeps every character", "[data]") {
  tests::TemporaryFolder const folder;
  std::string const text = "one\n  two \t\r\n\nthree";
  CHECK(read_text(folder.write("a", text)) == text);
  std::string const wide(200000, 'x');  // longer than the buffer
  CHECK(read_text(folder.write("b", wide + "\n")) == wide + "\n");
  CHECK(error_of([&] { read_text(folder.write("c", "")); }) ==
        "data: " + (folder / "c").string() + " is empty");
}

}  // namespace tests::data_text_lines
