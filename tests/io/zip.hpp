// SPDX-License-Identifier: BSL-1.0
// Zip files for tests.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tests {

/// The bytes of a number, the lowest first.
inline std::string little(std::uint64_t x, int bytes) {
  std::string r;
  for (int i = 0; i < bytes; ++i) r += static_cast<char>(x >> (8 * i) & 255);
  return r;
}

struct Entry {
  std::string name, content;
  bool packed = false, wide = false;
};
// `window` as zlib takes it: by itself, or with 16 added to a positive one in the format of gzip.
inline std::string deflated(std::string const& s, int window = -MAX_WBITS) {
  z_stream z{};
  deflateInit2(&z, 6, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY);
  std::string out(s.size() + 1000, '\0'), in = s;
  z.next_in = reinterpret_cast<unsigned char*>(in.data());
  z.avail_in = static_cast<unsigned>(in.size());
  z.next_out = reinterpret_cast<unsigned char*>(out.data());
  z.avail_out = static_cast<unsigned>(out.size());
  deflate(&z, Z_FINISH);
  out.resize(z.total_out);  // out.size() - z.avail_out makes g++ 12 warn of numbers below zero at -O1
  deflateEnd(&z);
  return out;
}
inline std::string zip(std::vector<Entry> const& entries, std::string const& comment = {},
                       bool wide_end = false) {
  std::string file, list;
  for (Entry const& e : entries) {
    std::string const data = e.packed ? deflated(e.content) : e.content;
    std::uint64_t const begin = file.size(), none = 0xffffffff;
    auto const checksum =
        crc32_z(0, reinterpret_cast<unsigned char const*>(e.content.data()), e.content.size());
    std::string const sizes =
        little(e.wide ? none : data.size(), 4) + little(e.wide ? none : e.content.size(), 4);
    std::string const common = little(20, 2) + little(0, 2) + little(e.packed ? 8 : 0, 2) + little(0, 4) +
                               little(checksum, 4) + sizes + little(e.name.size(), 2);
    std::string const wide = little(e.content.size(), 8) + little(data.size(), 8);
    std::string const extra = e.wide ? little(1, 2) + little(16, 2) + wide : "";
    std::string const with_place =
        e.wide ? "ab" + little(1, 2) + "x" + little(1, 2) + little(24, 2) + wide + little(begin, 8) : "";
    file += little(0x04034b50, 4) + common + little(extra.size(), 2) + e.name + extra + data;
    list += little(0x02014b50, 4) + little(20, 2) + common + little(with_place.size(), 2) + little(0, 2) +
            little(0, 8) + little(e.wide ? none : begin, 4) + e.name + with_place;
  }
  std::uint64_t const place = file.size(), end = place + list.size();
  file += list;
  if (wide_end)
    file += little(0x06064b50, 4) + little(44, 8) + little(45, 2) + little(45, 2) + little(0, 8) +
            little(entries.size(), 8) + little(entries.size(), 8) + little(list.size(), 8) +
            little(place, 8) + little(0x07064b50, 4) + little(0, 4) + little(end, 8) + little(1, 4);
  return file + little(0x06054b50, 4) + little(0, 4) + little(wide_end ? 0xffff : entries.size(), 2) +
         little(wide_end ? 0xffff : entries.size(), 2) + little(list.size(), 4) +
         little(wide_end ? 0xffffffff : place, 4) + little(comment.size(), 2) + comment;
}

}  // namespace tests
