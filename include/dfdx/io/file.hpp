// SPDX-License-Identifier: BSL-1.0
// Whole files: reading one into memory, and writing one so that a failure leaves what was there before. By C's files:
// some C++ libraries for small machines have no streams on files, and of std::filesystem nothing but path.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>
#include <version>

#if defined(__unix__) || defined(__APPLE__)
#include <fcntl.h>
#include <unistd.h>
#endif

#include <dfdx/core/error.hpp>

namespace dfdx {

namespace detail {

// Names of files do not fit a Text, which is cut at its end.
[[noreturn]] inline void raise_file(std::string const& what) { raise(what); }

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

// Gives a file the name of another, which goes.
inline bool replace(std::filesystem::path const& from, std::filesystem::path const& to) {
#if defined(_WIN32)  // where C's rename refuses
  std::error_code failed;
  std::filesystem::rename(from, to, failed);
  errno = failed.value();
  return !failed;
#else
  return std::rename(from.string().c_str(), to.string().c_str()) == 0;
#endif
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using OpenFile = std::unique_ptr<std::FILE, CloseFile>;

inline std::string reason() { return errno != 0 ? std::strerror(errno) : "unknown reason"; }

}  // namespace detail

/// read_file - all bytes of a file.
///
/// Errors    "load: cannot read model.safetensors: No such file or directory", with the given op
inline std::vector<std::byte> read_file(std::filesystem::path const& path, char const* op) {
  auto const fail = [&](std::string const& why) {
    detail::raise_file(std::string(op) + ": cannot read " + path.string() + ": " + why);
  };
  errno = 0;
  detail::OpenFile const in(std::fopen(path.string().c_str(), "rb"));
  if (in == nullptr) fail(detail::reason());
  std::vector<std::byte> bytes;
  // In steps, so that a size that the file system only claims is never allocated at once.
  constexpr std::size_t step = std::size_t{1} << 22;
  for (;;) {
    std::size_t const have = bytes.size();
    bytes.resize(have + step);
    std::size_t const got = std::fread(bytes.data() + have, 1, step, in.get());
    bytes.resize(have + got);
    if (std::ferror(in.get()) != 0) fail(detail::reason());
    if (got < step) return bytes;
  }
}

/// FileWriter - writes a file under a temporary name beside its own and gives it its name in finish(). Dropped
/// before that, or on any error, it removes the temporary file: whoever reads `path` finds the old file or the
/// whole new one.
class FileWriter {
 public:
  FileWriter(std::filesystem::path path, char const* op) : path_(std::move(path)), op_(op) {
#if defined(__cpp_lib_filesystem)
    std::error_code ignored;
    if (std::filesystem::is_symlink(path_, ignored)) {  // its target is replaced, not the link
      auto target = std::filesystem::canonical(path_, ignored);
      if (!ignored) path_ = std::move(target);
    }
    // A folder, and a device above all, must not be replaced by a file.
    if (std::filesystem::exists(path_, ignored) && !std::filesystem::is_regular_file(path_, ignored))
      fail("not a regular file");
#endif
    temporary_ = path_;
    temporary_ += ".partial";
    errno = 0;
    out_.reset(std::fopen(temporary_.string().c_str(), "wb"));
    if (out_ == nullptr) fail(detail::reason());
  }
  FileWriter(FileWriter const&) = delete;
  FileWriter& operator=(FileWriter const&) = delete;
  ~FileWriter() { discard(); }

  void write(void const* data, std::size_t bytes) {
    errno = 0;
    if (std::fwrite(data, 1, bytes, out_.get()) != bytes) fail(detail::reason());
  }

  void finish() {
    errno = 0;
    if (std::fflush(out_.get()) != 0 || !detail::on_disk(temporary_)) fail(detail::reason());
    if (std::fclose(out_.release()) != 0 || !detail::replace(temporary_, path_)) {
      std::string const why = detail::reason();
      std::remove(temporary_.string().c_str());
      fail(why);
    }
  }

 private:
  [[noreturn]] void fail(std::string const& why) {
    discard();
    detail::raise_file(std::string(op_) + ": cannot write " + path_.string() + ": " + why);
  }
  void discard() {
    if (out_ == nullptr) return;
    out_.reset();
    std::remove(temporary_.string().c_str());
  }

  std::filesystem::path path_, temporary_;
  char const* op_;
  detail::OpenFile out_;
};

}  // namespace dfdx
