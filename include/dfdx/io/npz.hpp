// SPDX-License-Identifier: BSL-1.0
// NumPy's files of several arrays (.npz): zip files of .npy files, packed or not. Not part of <dfdx/io.hpp>: it needs
// zlib (zlib1g-dev; link with -lz, in CMake ZLIB::ZLIB).
#pragma once

#include <map>

#include <zlib.h>

#include <dfdx/io/npy.hpp>

namespace dfdx::data {

namespace detail {

/// ZipFile - the members of a zip file in memory, by the list at its end. Sizes of 64 bits; no encryption, no parts on
/// other disks, methods 0 and 8.
///
/// Errors    "data: x.npz is no zip file"; "data: x.npz is damaged: ..."; "data: x.npz:a.npy ..."
/// Source    PKWARE, .ZIP File Format Specification 6.3
class ZipFile {
 public:
  struct Member {
    std::string name;
    std::uint32_t checksum;
    unsigned method;
    std::uint64_t packed, size, begin;  // begin: of its own header
  };

  ZipFile(std::span<std::byte const> bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {
    read_list();
  }

  std::vector<Member> const& members() const { return members_; }

  /// The bytes of a member as the file has them; of method 0 they are the member, and its checksum is not looked at.
  std::span<std::byte const> stored(Member const& m) const {
    auto const damaged = [&](std::string const& what) { fail(":" + m.name + " is damaged: " + what); };
    std::uint64_t const head = m.begin + 30;
    if (m.begin > list_ || head > list_ || word(m.begin, 4) != 0x04034b50)
      damaged("no header where it should begin");
    std::uint64_t const begin = head + word(m.begin + 26, 2) + word(m.begin + 28, 2);
    if (begin > list_ || m.packed > list_ - begin) damaged("it ends behind the list of members");
    // Packed bytes become at most 1032 each, so that no more memory is asked for than may be needed.
    if (m.method == 0 ? m.size != m.packed : m.size / 1032 > m.packed + 64)
      damaged("its size is not possible");
    return bytes_.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(m.packed));
  }

  /// The bytes of a member.
  std::vector<std::byte> read(Member const& m) const {
    auto const damaged = [&](std::string const& what) { fail(":" + m.name + " is damaged: " + what); };
    auto const packed = stored(m);
    std::vector<std::byte> r(static_cast<std::size_t>(m.size));
    if (m.method == 0) std::copy(packed.begin(), packed.end(), r.begin());
    else if (!unpack(packed, r)) damaged("it cannot be unpacked");
    if (crc32_z(0, reinterpret_cast<unsigned char const*>(r.data()), r.size()) != m.checksum)
      damaged("its checksum is another");
    return r;
  }

 private:
  [[noreturn]] void fail(std::string const& what) const { raise("data: " + name_ + what); }
  void require(bool ok, char const* what) const {
    if (!ok) fail(std::string(" is damaged: ") + what);
  }
  // A number of so many bytes; those asked for are there.
  std::uint64_t word(std::uint64_t at, int bytes) const {
    std::uint64_t r = 0;
    for (int i = bytes; i-- > 0;)
      r = r << 8 |
          static_cast<std::uint64_t>(bytes_[static_cast<std::size_t>(at) + static_cast<std::size_t>(i)]);
    return r;
  }

  static bool unpack(std::span<std::byte const> from, std::vector<std::byte>& to) {
    z_stream z{};
    if (inflateInit2(&z, -MAX_WBITS) != Z_OK) return false;
    std::size_t in = 0, out = 0;
    int status = Z_OK;
    unsigned char none = 0;  // zlib wants an address even for no bytes
    while (status == Z_OK) {
      constexpr std::size_t step = 1u << 30;  // zlib counts in unsigned ints
      auto const some = static_cast<unsigned>(std::min(step, from.size() - in));
      auto const room = static_cast<unsigned>(std::min(step, to.size() - out));
      z.next_in = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(from.data() + in));
      z.avail_in = some;
      z.next_out = to.empty() ? &none : reinterpret_cast<unsigned char*>(to.data() + out);
      z.avail_out = room;
      status = inflate(&z, Z_NO_FLUSH);
      in += some - z.avail_in;
      out += room - z.avail_out;
      if (status == Z_OK && z.avail_in == some && z.avail_out == room) break;
    }
    inflateEnd(&z);
    return status == Z_STREAM_END && in == from.size() && out == to.size();
  }

  void read_list() {
    std::uint64_t const size = bytes_.size();
    // The end of the list, behind which only a comment of known length may stand.
    if (size < 22) fail(" is no zip file");
    std::uint64_t end = size - 22;
    for (; word(end, 4) != 0x06054b50 || word(end + 20, 2) != size - 22 - end; --end)
      if (end == 0 || size - 22 - end == 0xffff) fail(" is no zip file");
    require(word(end + 4, 2) == 0 && word(end + 6, 2) == 0, "it is in several parts");
    std::uint64_t count = word(end + 10, 2), bytes = word(end + 12, 4);
    list_ = word(end + 16, 4);
    // Some writers, as PyTorch's, give wide numbers whether or not they need them.
    if (count == 0xffff || bytes == 0xffffffff || list_ == 0xffffffff ||
        (list_ + bytes < end && end >= 20 && word(end - 20, 4) == 0x07064b50)) {
      require(end >= 20 && word(end - 20, 4) == 0x07064b50, "no place of the list of members");
      std::uint64_t const wide = word(end - 12, 8);
      require(end >= 76 && wide <= end - 76 && word(wide, 4) == 0x06064b50, "no list of members");
      count = word(wide + 32, 8), bytes = word(wide + 40, 8), list_ = word(wide + 48, 8);
      end = wide;
    }
    require(list_ <= end && bytes == end - list_, "the list of members is not where it should be");
    require(count <= bytes / 46, "the list of members is too short");

    std::uint64_t at = list_, total = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      require(end - at >= 46 && word(at, 4) == 0x02014b50, "the list of members is broken off");
      Member m{{},
               static_cast<std::uint32_t>(word(at + 16, 4)),
               static_cast<unsigned>(word(at + 10, 2)),
               word(at + 20, 4),
               word(at + 24, 4),
               word(at + 42, 4)};
      std::uint64_t const name = word(at + 28, 2), extra = word(at + 30, 2), comment = word(at + 32, 2);
      require(end - at - 46 >= name + extra + comment, "the list of members is broken off");
      m.name.assign(reinterpret_cast<char const*>(bytes_.data()) + at + 46, static_cast<std::size_t>(name));
      widen(m, at + 46 + name, extra);
      bool const encrypted = (word(at + 8, 2) & 1) != 0;
      if (encrypted || (m.method != 0 && m.method != 8))
        fail(":" + m.name + " is packed in a way that is not supported");
      // Members that share their bytes could become anything.
      require(m.packed <= size && (total += m.packed) <= size, "its members overlap");
      members_.push_back(std::move(m));
      at += 46 + name + extra + comment;
    }
    require(at == end, "there is more than the list of members");
  }
  // Sizes of 64 bits stand in a part of their own, those that do not fit into 32.
  void widen(Member& m, std::uint64_t at, std::uint64_t left) const {
    while (left >= 4) {
      std::uint64_t const size = word(at + 2, 2);
      require(size <= left - 4, "the list of members is broken off");
      if (word(at, 2) == 1) {
        std::uint64_t next = at + 4;
        for (std::uint64_t* x : {&m.size, &m.packed, &m.begin}) {
          if (*x != 0xffffffff) continue;
          require(next + 8 <= at + 4 + size, "a size is missing");
          *x = word(next, 8);
          next += 8;
        }
      }
      at += 4 + size;
      left -= 4 + size;
    }
  }

  std::span<std::byte const> bytes_;
  std::string name_;
  std::uint64_t list_ = 0;
  std::vector<Member> members_;
};

}  // namespace detail

/// read_npz - the arrays in an .npz file (numpy.savez, savez_compressed) by name.
///
/// Errors    "data: x.npz is no zip file"; "data: x.npz:a.npy is damaged: its checksum is another"; "data:
///           x.npz:a.txt is no array"; for each member those of npy_array
/// Source    numpy.lib.npyio
inline std::map<std::string, Array> read_npz(std::filesystem::path const& path) {
  auto const bytes = read_file(path, "data");
  detail::ZipFile const zip(bytes, path.string());
  std::map<std::string, Array> r;
  for (auto const& m : zip.members()) {
    std::string const where = path.string() + ":" + m.name;
    if (!m.name.ends_with(".npy")) raise("data: " + where + " is no array");
    auto const [place, fresh] = r.try_emplace(m.name.substr(0, m.name.size() - 4));
    if (!fresh) raise("data: " + where + " is there twice");
    place->second = npy_array(zip.read(m), where);
  }
  return r;
}

}  // namespace dfdx::data
