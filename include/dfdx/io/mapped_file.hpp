// SPDX-License-Identifier: BSL-1.0
// A file as memory: the system brings its pages when they are looked at.
#pragma once

#include <memory>
#include <span>

#include <dfdx/io/file.hpp>

#if defined(__unix__) || defined(__APPLE__)
#include <sys/mman.h>
#include <sys/stat.h>
#endif

namespace dfdx {

/// MappedFile - the bytes of a file, not to be written to. On POSIX systems they are mapped: opening costs the same
/// whatever the size, and only what is touched takes memory; elsewhere the file is read. Whoever shortens the file
/// while it is mapped ends the program (SIGBUS), as with any mapped file; to replace one, rename another over it.
///
/// Errors    "gguf: cannot read m.gguf: No such file or directory", with the given op
class MappedFile {
 public:
  static std::shared_ptr<MappedFile const> open(std::filesystem::path const& path, char const* op) {
    return std::shared_ptr<MappedFile const>(new MappedFile(path, op));
  }
  MappedFile(MappedFile const&) = delete;
  MappedFile& operator=(MappedFile const&) = delete;

  std::span<std::byte const> bytes() const { return bytes_; }

#if defined(__unix__) || defined(__APPLE__)
  ~MappedFile() {
    if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  }

 private:
  MappedFile(std::filesystem::path const& path, char const* op) {
    auto const fail = [&](std::string const& why) {
      detail::raise_file(std::string(op) + ": cannot read " + path.string() + ": " + why);
    };
    // Whoever opens a pipe waits for a writer, unless told not to.
    int const file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) fail(detail::reason());
    struct stat facts{};
    void* memory = nullptr;
    std::size_t size = 0;
    std::string why;
    if (::fstat(file, &facts) != 0) why = detail::reason();
    else if (S_ISDIR(facts.st_mode)) why = "Is a directory";
    else if (!S_ISREG(facts.st_mode)) why = "not a regular file";
    else if (facts.st_size > 0) {
      size = static_cast<std::size_t>(facts.st_size);
      memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
      if (memory == MAP_FAILED) why = detail::reason();
    }
    ::close(file);
    if (!why.empty()) fail(why);
    bytes_ = {static_cast<std::byte const*>(memory), size};
  }
#else
 private:
  MappedFile(std::filesystem::path const& path, char const* op) : owned_(read_file(path, op)) {
    bytes_ = owned_;
  }
  std::vector<std::byte> owned_;
#endif

  std::span<std::byte const> bytes_;
};

}  // namespace dfdx
