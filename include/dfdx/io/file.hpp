// SPDX-License-Identifier: BSL-1.0
// Whole files: reading one into memory, and writing one so that a failure leaves what was there before.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <ios>
#include <string>
#include <system_error>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <fcntl.h>
#include <unistd.h>
#endif

#include <dfdx/core/error.hpp>

namespace dfdx {

namespace detail {

// Names of files do not fit a Text, which is cut at its end.
[[noreturn]] inline void raise_file(std::string const& what) { throw error(what); }

// Whether all of a file has reached the disk, so that after a crash a name stands for a whole file.
inline bool on_disk(std::filesystem::path const& path) {
#if defined(__unix__) || defined(__APPLE__)
  int const file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  bool const done = ::fsync(file) == 0 || errno == EINVAL || errno == ENOTSUP;  // some file systems have none
  int const error = errno;
  ::close(file);
  errno = error;
  return done;
#else
  (void)path;
  return true;
#endif
}

inline std::string reason() { return errno != 0 ? std::strerror(errno) : "unknown reason"; }

}  // namespace detail

/// read_file - all bytes of a file.
///
/// Errors    "load: cannot read model.safetensors: No such file or directory", with the given op
inline std::vector<std::byte> read_file(std::filesystem::path const& path, char const* op) {
  auto const fail = [&](std::string const& why) {
    detail::raise_file(std::string(op) + ": cannot read " + path.string() + ": " + why);
  };
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) fail("Is a directory");
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) fail(detail::reason());
  std::vector<std::byte> bytes;
  // In steps, so that a size that the file system only claims is never allocated at once.
  constexpr std::size_t step = std::size_t{1} << 22;
  for (;;) {
    std::size_t const have = bytes.size();
    bytes.resize(have + step);
    in.read(reinterpret_cast<char*>(bytes.data() + have), static_cast<std::streamsize>(step));
    auto const got = static_cast<std::size_t>(in.gcount());
    bytes.resize(have + got);
    if (in.bad()) fail(detail::reason());
    if (got < step) return bytes;
  }
}

/// FileWriter - writes a file under a temporary name beside its own and gives it its name in finish(). Dropped
/// before that, or on any error, it removes the temporary file: whoever reads `path` finds the old file or the
/// whole new one.
class FileWriter {
 public:
  FileWriter(std::filesystem::path path, char const* op) : path_(std::move(path)), op_(op) {
    std::error_code ignored;
    if (std::filesystem::is_symlink(path_, ignored)) {  // its target is replaced, not the link
      auto target = std::filesystem::canonical(path_, ignored);
      if (!ignored) path_ = std::move(target);
    }
    // A folder, and a device above all, must not be replaced by a file.
    if (std::filesystem::exists(path_, ignored) && !std::filesystem::is_regular_file(path_, ignored))
      fail("not a regular file");
    temporary_ = path_;
    temporary_ += ".partial";
    errno = 0;
    out_.open(temporary_, std::ios::binary | std::ios::trunc);
    if (!out_) fail(detail::reason());
    started_ = true;
  }
  FileWriter(FileWriter const&) = delete;
  FileWriter& operator=(FileWriter const&) = delete;
  ~FileWriter() { discard(); }

  void write(void const* data, std::size_t bytes) {
    errno = 0;
    out_.write(static_cast<char const*>(data), static_cast<std::streamsize>(bytes));
    if (!out_) fail(detail::reason());
  }

  void finish() {
    errno = 0;
    out_.close();
    if (!out_ || !detail::on_disk(temporary_)) fail(detail::reason());
    std::error_code failed;
    std::filesystem::rename(temporary_, path_, failed);
    if (failed) fail(failed.message());
    started_ = false;
  }

 private:
  [[noreturn]] void fail(std::string const& why) {
    discard();
    detail::raise_file(std::string(op_) + ": cannot write " + path_.string() + ": " + why);
  }
  void discard() {
    if (!started_) return;
    started_ = false;
    out_.close();
    std::error_code ignored;
    std::filesystem::remove(temporary_, ignored);
  }

  std::filesystem::path path_, temporary_;
  char const* op_;
  std::ofstream out_;
  bool started_ = false;
};

}  // namespace dfdx
