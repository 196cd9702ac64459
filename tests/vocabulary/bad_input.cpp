// SPDX-License-Identifier: BSL-1.0
// What cannot be is refused in words that name the function called, before any memory of that size is asked for: sizes
// that overflow, numbers that a dtype does not hold, labels and offsets that are none.
#include <limits>
#include <string>

#include <catch2/catch_test_macros.hpp>

#include <dfdx/dfdx.hpp>

namespace tests::vocabulary_bad_input {
using namespace dfdx;

namespace {

constexpr index_t most = std::numeric_limits<index_t>::max(), least = std::numeric_limits<index_t>::min();
constexpr index_t huge = index_t{1} << 62;
constexpr double inf = std::numeric_limits<double>::infinity(),
                 not_a_number = std::numeric_limits<double>::quiet_NaN();

template <class F>
::std::string refusal(F const& f) {
  try {
    f();
  } catch (error const& e) {
    return e.what();
  }
  return "nothing";
}
#define REFUSED(text, ...) CHECK(refusal([&] { return __VA_ARGS__; }) == text)

Array numbers(Extents const& shape) {
  return cast_to(arange(shape.shape.numel()), DType::f32).reshape(shape);
}
Array places(std::initializer_list<std::int64_t> p) { return from<std::int64_t>(p); }

}  // namespace

TEST_CASE("views and arrangements refuse sizes that overflow", "[bad_input]") {
  Array const x = numbers({2, 3}), s = numbers({}), list = numbers({5});
  REFUSED("reshape: cannot view [2, 3] as [-9223372036854775808]", reshape(x, {least}));
  // What the extents of programs are in types is none in memory.
  CHECK(refusal([&] {
          return reshape(x, {extent::symbol(0)});
        }).starts_with("reshape: cannot view [2, 3] as "));
  REFUSED("tile: size overflows for [2, 3]", tile(x, {huge, huge}));
  REFUSED("repeat_interleave: size overflows for [2, 3]", repeat_interleave(x, most));
  REFUSED("repeat_interleave: size overflows for [2, 3]", repeat_interleave(x, huge, 0));
  REFUSED("diag_embed: size overflows for [5]", diag_embed(list, most));
  REFUSED("diag_embed: size overflows for [5]", diag_embed(list, least));
  REFUSED("diag_embed: size overflows for [0]", diag_embed(zeros({0}), huge));
  REFUSED("pixel_shuffle: channels of [0, 4, 4] are no multiple of 4294967296 squared",
          pixel_shuffle(zeros({0, 4, 4}), index_t{1} << 32));
  REFUSED("pixel_shuffle: channels of [4, 2, 2] are no multiple of -1 squared",
          pixel_shuffle(numbers({4, 2, 2}), -1));
  REFUSED("pixel_unshuffle: rows and columns of [1, 0, 0] are no multiples of 4294967296",
          pixel_unshuffle(zeros({1, 0, 0}), index_t{1} << 32));
  Array const long_one = expand(s, {huge});
  REFUSED("concat: size overflows: [4611686018427387904] x [4611686018427387904] along axis 0",
          concat({long_one, long_one}));
  REFUSED("meshgrid: size overflows for [4611686018427387904]", meshgrid(long_one, long_one));
  REFUSED("pad: widths -9223372036854775808 and 1 are too large for axis 1 of [2, 3]",
          pad(x, {least, 1}, PadMode::reflect));
  REFUSED("one_hot: at most 7 axes, got [1, 1, 1, 1, 1, 1, 1, 1]",
          one_hot(places({0}).reshape({1, 1, 1, 1, 1, 1, 1, 1}), 2));
}

TEST_CASE("steps and diagonals beyond every extent", "[bad_input]") {
  Array const x = numbers({2, 3});
  CHECK(array_equal(slice(x, 1, 1, 3, most), slice(x, 1, 1, 2)));
  CHECK(array_equal(x(all(), range(0, 3, most)), slice(x, 1, 0, 1)));
  CHECK(array_equal(x(all(), range(most - 1, least, least)), slice(x, 1, 2, 3)));
  CHECK(array_equal(unfold(x, 1, 2, most), slice(x, 1, 0, 2).reshape({2, 1, 2})));
  CHECK(array_equal(tril(x, most), x));
  CHECK(array_equal(triu(x, least), x));
  CHECK(array_equal(tril(x, least), zeros_like(x)));
  CHECK(array_equal(triu(x, most), zeros_like(x)));
  REFUSED("at: index 9223372036854775807 out of range for axis 0 of [2, 3]", x(places({most})));
  REFUSED("at: index -3 out of range for axis 0 of [2, 3]", x(places({-3})));
}

TEST_CASE("patches and convolutions refuse options that overflow", "[bad_input]") {
  Array const image = numbers({1, 2, 4, 4}), columns = numbers({1, 8, 9});
  ::std::string const unfit = "unfold: the patches do not fit images [1, 2, 4, 4]";
  REFUSED(unfit, unfold(image, {.kernel = 2, .padding = huge}));
  REFUSED(unfit, unfold(image, {.kernel = 3, .dilation = most}));
  REFUSED(unfit, unfold(image, {.kernel = most, .dilation = most}));
  REFUSED("unfold: size overflows for [1, 2, 4, 4]",
          unfold(image, {.kernel = 2, .padding = (index_t{1} << 31) - 1}));
  ::std::string const unmade = "fold: patches [1, 8, 9] do not make images ";
  REFUSED(unmade + "[4611686018427387904, 4]", fold(columns, {huge, 4}, {.kernel = 2}));
  REFUSED(unmade + "[4, 4]", fold(columns, {4, 4}, {.kernel = {most, 2}}));
  Array const weight = numbers({4, 2, 3, 3});
  REFUSED("conv2d: input [1, 2, 4, 4] does not fit weight [4, 2, 3, 3], groups = 4611686018427387904",
          conv2d(image, weight, {.groups = huge}));
  // A window is kept in 15 bits for each of its numbers.
  REFUSED("conv1d: weight [1, 1, 100] and options do not fit axis 2 of input [1, 1, 100]",
          conv1d(numbers({1, 1, 100}), numbers({1, 1, 100}), {.padding = "same", .dilation = 1000}));
}

TEST_CASE("terms of einsum that do not fit", "[bad_input]") {
  Array const x = numbers({2, 3});
  REFUSED("einsum: more than 8 different axes",
          einsum("abcde,fghij->abcdefghij", numbers({1, 1, 1, 1, 1}), numbers({1, 1, 1, 1, 2})));
  REFUSED("einsum: one axis of extents 1 and 2 in [1, 2]", einsum("ii->i", numbers({1, 2})));
  REFUSED("einsum: one axis of extents 2 and 3 in [2, 3]", einsum("ii", x));
  CHECK(einsum("ij,jk->ik", numbers({2, 1}), numbers({3, 2})).shape() == make_shape(2, 2));
}

TEST_CASE("numbers that a dtype does not hold", "[bad_input]") {
  Array const few = cast_to(numbers({2}), DType::u8), more = cast_to(numbers({2}), DType::i32);
  Array target = cast_to(numbers({2}), DType::u8);
  REFUSED("add: 300 does not fit u8", few + 300);
  REFUSED("fill_: 300 does not fit u8", target.fill_(300));
  REFUSED("fill_: a number that does not fit u8", target.fill_(not_a_number));
  CHECK(array_equal(target, few));
  REFUSED("mul: 4294967296 does not fit i32", more * (std::int64_t{1} << 32));
  // As in PyTorch u8 takes a negative number for what it is beside 256.
  CHECK(array_equal(few + 1 + (-1), few));
  CHECK(array_equal(target.fill_(-1), full({2}, 255, DType::u8)));
  REFUSED("uniform: finite bounds required", uniform({2}, Key{1}, 0, inf));
  REFUSED("randint: f16 does not hold all of [0, 100000)", randint({2}, Key{1}, 0, 100000, DType::f16));
  REFUSED("permutation: of 4611686018427387904 numbers", permutation(huge, Key{1}));
}

TEST_CASE("functions refuse dtypes by their own names", "[bad_input]") {
  Array const x = numbers({2, 3}), whole = cast_to(x, DType::i32), truths = x > 1;
  Array const row = places({0, 1, 1}).reshape({1, 3});
  REFUSED("max: numeric dtype required, got bool", max(truths));
  REFUSED("min: numeric dtype required, got bool", min(truths, {0}));
  REFUSED("scatter_add: numeric dtype required, got bool", scatter_add(truths, 0, row, truths));
  REFUSED("index_add: numeric dtype required, got bool", index_add(truths, 0, places({0, 1}), truths));
  REFUSED("uniform_like: floating dtype required, got i32", uniform_like(whole, Key{1}));
  REFUSED("bernoulli: floating dtype required, got bool", bernoulli(truths, Key{1}));
  REFUSED("dropout: floating dtype required, got i32", dropout(whole, 0.5, Key{1}));
  REFUSED("cross_entropy: floating dtype required, got i32", cross_entropy(whole, places({0, 1})));
  REFUSED("nll_loss: floating dtype required, got i32", nll_loss(whole, places({0, 1})));
  REFUSED("norm: empty axis 0 of [0] has no largest or smallest element", norm(zeros({0}), inf));
  REFUSED("normalize: empty axis 0 of [0, 2] has no largest or smallest element",
          normalize(zeros({0, 2}), inf, 0));
  REFUSED("isclose: shapes do not broadcast: [2, 3] x [4]", isclose(x, zeros({4})));
  REFUSED("masked_fill: bool mask required, got f32", masked_fill(x, x, 1));
  REFUSED("searchsorted: lists [2, 3] do not fit values [3]", searchsorted(x, numbers({3})));
  REFUSED("bucketize: lists [2, 3] do not fit values [3]", bucketize(numbers({3}), x));
  REFUSED("cosine_embedding_loss: shapes do not broadcast: [2, 3] x [4, 5]",
          cosine_embedding_loss(x, numbers({4, 5}), numbers({2})));
  REFUSED("cosine_embedding_loss: shapes do not broadcast: [2] x [3]",
          cosine_embedding_loss(x, x, numbers({3})));
  REFUSED("linear: inner dimensions differ: [2, 3] x [2]", linear(x, numbers({2})));
  Array const p = zeros({5, 2, 4}, DType::i32), lengths = places({2, 2});
  REFUSED("ctc_loss: floating dtype required, got i32",
          ctc_loss(p, places({1, 2, 1, 3}).reshape({2, 2}), lengths, lengths));
}

TEST_CASE("a label that their dtype does not have is not ignored", "[bad_input]") {
  Array const scores = randn({3, 4}, Key{1});
  Array const labels = from<std::int32_t>({1, 0, 3});
  CHECK(allclose(cross_entropy(scores, labels, {.ignore_index = -(std::int64_t{1} << 40)}),
                 cross_entropy(scores, labels)));
}

TEST_CASE("labels, offsets and options that are none", "[bad_input]") {
  Array const x = numbers({4, 3});
  REFUSED("multilabel_margin_loss: labels [2] do not fit scores [4, 3]",
          multilabel_margin_loss(x, places({0, 1})));
  REFUSED("multilabel_margin_loss: labels of dtype i32 or i64 required, got f32",
          multilabel_margin_loss(x, x));
  Array const labels = places({0, 1, 2, -1, 7, 7, 0, 1, -1, 1, 1, 1}).reshape({4, 3});
  CHECK(multilabel_margin_loss(x, labels).ndim() == 0);  // what follows the end does not count
  REFUSED("multilabel_margin_loss: label 7 out of range for 3 classes",
          multilabel_margin_loss(x, where(labels == -1, 7, labels)));
  Array const index = places({0, 1, 2});
  ::std::string const offsets = "embedding_bag: offsets that ascend from 0 to at most 3 required, got ";
  REFUSED(offsets + "1", embedding_bag(index, x, places({1, 2})));
  REFUSED(offsets + "1", embedding_bag(index, x, places({0, 2, 1})));
  REFUSED(offsets + "4", embedding_bag(index, x, places({0, 4})));
  REFUSED(offsets + "-1", embedding_bag(index, x, places({0, -1})));
  // Bags of nothing are 0, also of a matrix of indices.
  Array const none = zeros({2, 0}, DType::i64);
  CHECK(array_equal(embedding_bag(none, x), zeros({2, 3})));
  CHECK(array_equal(embedding_bag<Bag::sum>(none, x), zeros({2, 3})));
  CHECK(array_equal(embedding_bag<Bag::max>(none, x), zeros({2, 3})));
  Tensor<std::int64_t, 2, 0> const fixed(none);
  CHECK(array_equal(embedding_bag<Bag::max>(fixed, Tensor<float, 4, 3>(x)), zeros({2, 3})));
  REFUSED("quantile: no numbers between 0 and 1 given", quantile(x, ::std::vector<double>{}, 0));
  REFUSED("multinomial: weights of a finite sum required, of [3]",
          multinomial(full({3}, 1.7e308, DType::f64), 1, Key{1}));
  REFUSED("layer_norm: [dyn] are not the last axes of [4, 3]", layer_norm(x, {-1}));
  Array const q = numbers({1, 2, 3, 4});
  REFUSED("scaled_dot_product_attention: dropout with a probability required",
          scaled_dot_product_attention(q, q, q, no_mask, Key{1}, {.dropout = not_a_number}));
  REFUSED("rope: a positive base and a positive factor required", rope(q, {.base = -1}));
  REFUSED("rope: a positive base and a positive factor required", rope(q, {.base = not_a_number}));
}

}  // namespace tests::vocabulary_bad_input
