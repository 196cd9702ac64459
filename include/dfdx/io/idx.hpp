// SPDX-License-Identifier: BSL-1.0
// IDX files, the format of MNIST and its successors, plain or compressed by gzip. Not part of <dfdx/io.hpp>: it needs
// zlib (zlib1g-dev; link with -lz, in CMake ZLIB::ZLIB).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>

#include <dfdx/io/packed_file.hpp>
#include <dfdx/value/tensor.hpp>

namespace dfdx::data {

namespace detail {

// n numbers of T in big-endian order, as E.
template <class T, class E>
void read_big_endian(PackedFile& from, E* to, std::uint64_t n) {
  using Word = bits_of<T>;
  constexpr std::uint64_t step = 4096;
  unsigned char buffer[step * sizeof(T)];
  for (std::uint64_t i = 0; i < n; i += step) {
    std::uint64_t const some = std::min(step, n - i);
    from.read(buffer, some * sizeof(T));
    for (std::uint64_t k = 0; k < some; ++k) {
      Word w = 0;
      for (std::size_t b = 0; b < sizeof(T); ++b)
        w = static_cast<Word>(static_cast<std::uint64_t>(w) << 8 | buffer[k * sizeof(T) + b]);
      to[i + k] = static_cast<E>(std::bit_cast<T>(w));
    }
  }
}

}  // namespace detail

/// read_idx - the array of an IDX file, packed by gzip or not. Unsigned bytes are u8, signed ones i8, shorts and
/// ints i32, floats f32, doubles f64.
///
/// Errors    "data: train-images.gz is no IDX file"; "data: train-images ends early"; "data: x.gz is damaged:
///           incorrect data check"; "data: x has more bytes than its header says"; those of read_file
/// Source    LeCun, Cortes and Burges, "The MNIST database", "The IDX file format"
inline Array read_idx(std::filesystem::path const& path) {
  detail::PackedFile bytes(path);
  unsigned char head[4];
  bytes.read(head, 4);
  struct Kind {
    unsigned char code;
    DType dtype;
    std::uint64_t size;
  };
  constexpr Kind kinds[] = {{0x08, DType::u8, 1},  {0x09, DType::i8, 1},  {0x0b, DType::i32, 2},
                            {0x0c, DType::i32, 4}, {0x0d, DType::f32, 4}, {0x0e, DType::f64, 8}};
  auto const* const kind =
      std::find_if(std::begin(kinds), std::end(kinds), [&](Kind const& k) { return k.code == head[2]; });
  if (head[0] != 0 || head[1] != 0 || kind == std::end(kinds)) bytes.fail("is no IDX file");
  if (head[3] > max_rank)
    bytes.fail("has " + std::to_string(head[3]) + " axes; at most " + std::to_string(max_rank) +
               " are supported");

  Shape shape;
  std::uint64_t n = 1;
  for (int i = 0; i < head[3]; ++i) {
    std::uint32_t extent[1];
    detail::read_big_endian<std::uint32_t>(bytes, extent, 1);
    shape.push_back(static_cast<index_t>(extent[0]));
    // Once it is more than can be there it is not multiplied further; an axis of 0 behind it makes it nothing.
    n = extent[0] == 0 ? 0 : std::min(n, std::uint64_t{1} << 31) * extent[0];
  }
  for (int i = 0; i < shape.rank; ++i)
    if (shape[i] == 0) n = 0;
  if (n > bytes.most_left() / kind->size) bytes.fail("ends early");

  Array r(Meta{kind->dtype, shape});
  switch (kind->code) {
    case 0x08:
    case 0x09: bytes.read(r.bytes(), n); break;
    case 0x0b: detail::read_big_endian<std::int16_t>(bytes, r.data<std::int32_t>(), n); break;
    case 0x0c: detail::read_big_endian<std::int32_t>(bytes, r.data<std::int32_t>(), n); break;
    case 0x0d: detail::read_big_endian<float>(bytes, r.data<float>(), n); break;
    default: detail::read_big_endian<double>(bytes, r.data<double>(), n); break;
  }
  bytes.finish();
  return r;
}

/// read_idx_labels - the labels of an IDX file of bytes, each below `classes`.
///
/// Errors    "data: labels: label 12 at 5, there are 10 classes"; "data: labels has no list of bytes but u8 [3, 4]";
///           those of read_idx
inline Tensor<std::int32_t, dyn> read_idx_labels(std::filesystem::path const& path, int classes) {
  Array const raw = read_idx(path);
  if (raw.dtype() != DType::u8 || raw.ndim() != 1) {
    Text const got = make_text(raw.dtype(), " ", raw.shape());
    raise("data: " + path.string() + " has no list of bytes but " + std::string(got.data(), got.size()));
  }
  auto r = Tensor<std::int32_t, dyn>::uninitialized(raw.shape());
  for (index_t i = 0; i < raw.size(); ++i) {
    int const label = raw.data<std::uint8_t>()[i];
    if (label >= classes)
      raise("data: " + path.string() + ": label " + std::to_string(label) + " at " + std::to_string(i) +
            ", there are " + std::to_string(classes) + " classes");
    r.data()[i] = label;
  }
  return r;
}

}  // namespace dfdx::data
