// SPDX-License-Identifier: BSL-1.0
// Files that may be compressed by gzip. It needs zlib (zlib1g-dev; link with -lz, in CMake ZLIB::ZLIB).
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <zlib.h>

#include <dfdx/io/file.hpp>

namespace dfdx::data::detail {

/// PackedFile - the bytes of a file one after another, unpacked where they are packed.
///
/// Errors    "data: x.gz is empty"; "data: x.gz ends early"; "data: x.gz is damaged: incorrect data check"; those of
///           read_file
class PackedFile {
 public:
  explicit PackedFile(std::filesystem::path const& path)
      : path_(path.string()), bytes_(read_file(path, "data")) {
    if (bytes_.empty()) fail("is empty");
    packed_ = packed_at(0);
    if (!packed_) return;
    if (inflateInit2(&stream_, 16 + MAX_WBITS) != Z_OK) fail("cannot be unpacked: no memory");
    open_ = true;
  }
  PackedFile(PackedFile const&) = delete;
  PackedFile& operator=(PackedFile const&) = delete;
  ~PackedFile() {
    if (open_) inflateEnd(&stream_);
  }

  [[noreturn]] void fail(std::string const& what) const { raise("data: " + path_ + " " + what); }

  /// What can be left: packed bytes become at most 1032 each, so that memory is asked for what may be there only.
  std::uint64_t most_left() const {
    return packed_ ? (std::uint64_t{bytes_.size() - at_} + 64) * 1032 : bytes_.size() - at_;
  }

  void read(void* to, std::uint64_t size) {
    if (next(to, size) != size) fail("ends early");
  }
  /// Nothing may be left; of packed bytes the checksum is looked at here.
  void finish() {
    char more;
    if (next(&more, 1) != 0 || at_ != bytes_.size()) fail("has more bytes than its header says");
  }

  /// As many bytes as there are, `size` at most; of packed bytes the checksum is looked at where they end.
  std::uint64_t next(void* to, std::uint64_t size) {
    auto* out = static_cast<unsigned char*>(to);
    if (!packed_) {
      std::uint64_t const n = std::min<std::uint64_t>(size, bytes_.size() - at_);
      std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(at_), n, static_cast<std::byte*>(to));
      at_ += n;
      return n;
    }
    std::uint64_t done = 0;
    while (done < size && !ended_) {
      constexpr std::uint64_t step = 1u << 30;  // zlib counts in unsigned ints
      auto const in = static_cast<unsigned>(std::min<std::uint64_t>(bytes_.size() - at_, step));
      auto const room = static_cast<unsigned>(std::min<std::uint64_t>(size - done, step));
      stream_.next_in = reinterpret_cast<unsigned char*>(bytes_.data() + at_);
      stream_.avail_in = in;
      stream_.next_out = out + done;
      stream_.avail_out = room;
      int const status = inflate(&stream_, Z_NO_FLUSH);
      at_ += in - stream_.avail_in;
      done += room - stream_.avail_out;
      if (status == Z_STREAM_END) ended_ = !packed_at(at_) || inflateReset(&stream_) != Z_OK;
      else if (status == Z_BUF_ERROR || (status == Z_OK && stream_.avail_in == 0 && stream_.avail_out > 0))
        fail("ends early");
      else if (status != Z_OK)
        fail(std::string("is damaged: ") + (stream_.msg != nullptr ? stream_.msg : "cannot be unpacked"));
    }
    return done;
  }

  /// All that is left.
  std::string rest() {
    std::string all;
    constexpr std::size_t step = std::size_t{1} << 20;
    for (std::size_t got = step; got == step;) {
      std::size_t const have = all.size();
      all.resize(have + step);
      got = static_cast<std::size_t>(next(all.data() + have, step));
      all.resize(have + got);
    }
    if (at_ != bytes_.size()) fail("has bytes behind the end of what is packed");
    return all;
  }

 private:
  // One packed file may follow another, as cat and bgzip make them.
  bool packed_at(std::size_t i) const {
    return bytes_.size() > i + 1 && bytes_[i] == std::byte{0x1f} && bytes_[i + 1] == std::byte{0x8b};
  }

  std::string path_;
  std::vector<std::byte> bytes_;
  std::size_t at_ = 0;
  z_stream stream_{};
  bool packed_ = false, open_ = false, ended_ = false;
};

}  // namespace dfdx::data::detail
