// SPDX-License-Identifier: BSL-1.0
// UTF-8, categories and canonical forms.
#include <catch2/catch_test_macros.hpp>

#include <dfdx/text/normal_form.hpp>

namespace tests::text_unicode {

using namespace dfdx::text;

TEST_CASE("every code point survives UTF-8, and nothing else is UTF-8", "[text]") {
  bool all = true;
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string const s = utf8(c);
    Character const back = decode_at(s, 0);
    all = all && back.valid && back.code == c && back.size == s.size();
    for (std::size_t n = 1; n < s.size(); ++n)
      all = all && incomplete_tail(s.substr(0, n)) == n && !decode_at(s.substr(0, n), 0).valid;
    all = all && incomplete_tail(s) == 0 && incomplete_tail("x" + s) == 0;
  }
  CHECK(all);
  for (std::string const bad :
       {"\x80", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x80\x80\x80",
        "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF"}) {
    CHECK_FALSE(dfdx::is_utf8(bad));
    CHECK(incomplete_tail(bad) == 0);
  }
  CHECK(incomplete_tail("\xED\xA0") == 0);
  CHECK(incomplete_tail("\xF4\x8F\xBF") == 3);
  CHECK(with_replacements("a\xFFz") == "a\xEF\xBF\xBDz");
}

TEST_CASE("categories, white space and small letters", "[text]") {
  CHECK(category('A') == Category::Lu);
  CHECK(category('a') == Category::Ll);
  CHECK(category(0x100) == Category::Lu);
  CHECK(category(0x101) == Category::Ll);
  CHECK(category(0x4E2D) == Category::Lo);
  CHECK(category(0x17D2) == Category::Mn);
  CHECK(category(0x17E1) == Category::Nd);
  CHECK(category(0x1F999) == Category::So);
  CHECK(category(0x10FFFF) == Category::Cn);
  CHECK(category(0) == Category::Cc);
  int spaces = 0;
  for (char32_t c = 0; c < 0x110000; ++c) spaces += is_space(c);
  CHECK(spaces == 25);
  CHECK(lower("ABC xyz \xC3\x89 \xCE\xA3 \xC4\xB0") == "abc xyz \xC3\xA9 \xCF\x83 i\xCC\x87");
}

TEST_CASE("canonical forms", "[text]") {
  CHECK(nfd("\xC3\xA9") == "e\xCC\x81");
  CHECK(nfc("e\xCC\x81") == "\xC3\xA9");
  CHECK(nfd("\xED\x95\x9C") == "\xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB");  // a Hangul syllable of three
  CHECK(nfc("\xE1\x84\x92\xE1\x85\xA1\xE1\x86\xAB") == "\xED\x95\x9C");
  CHECK(nfc("a\xCC\xA3\xCC\x84") == nfc("a\xCC\x84\xCC\xA3"));  // marks of different classes have one order
  CHECK(nfc("\xE0\xA5\x98") == "\xE0\xA4\x95\xE0\xA4\xBC");     // excluded from composition
  CHECK(nfc("a\xFF\xCC\x81") == "a\xFF\xCC\x81");
}

}  // namespace tests::text_unicode
