// SPDX-License-Identifier: BSL-1.0
// Work that moves numbers or makes them: an embedding and the gradient of its table, elements by index and sums at
// places, a transpose, dropout, random normal numbers.
#include "works.hpp"

namespace {

using namespace dfdx;

void embedding_table() {
  nn::Embedding<32000, 256> table;
  table.weight = bench::numbers<Tensor<float, 32000, 256>>(1);
  auto const index = bench::integers<Tensor<std::int32_t, 8192>>(2, 32000);
  auto const ct = bench::numbers<Tensor<float, 8192, 256>>(3);
  auto gather = compile([](auto const& t, auto const& i) { return t(i); });
  bench::compare_works(
      {.bench = "movement",
       .name = "embedding, 8192 rows of 32000x256",
       .work = "embedding",
       .bytes = 2 * bench::bytes_of(ct)},  // not the whole table
      [&] { return gather(table, index); }, bench::plain(table.weight), bench::plain(index));
  auto its = vjp([](auto const& t, auto const& i) { return t(i); });
  bench::compare_works(
      {"movement", "embedding, vjp, 8192 rows of 32000x256",
       "embedding"},  // the whole of the gradient is written
      [&] {
        auto r = its(table, index, ct);
        return std::pair(r.first, std::get<0>(r.second));
      },
      bench::wanted(table.weight), bench::plain(index), bench::plain(ct));
}

void by_index() {
  auto const x = bench::numbers<Tensor<float, 512, 1000>>(1);
  auto const columns = bench::integers<Tensor<std::int32_t, 500>>(2, 1000);
  auto some = compile([](auto const& v, auto const& i) { return index_select<1>(v, i); });
  bench::compare_works(
      {"movement", "index_select, 500 columns of 512x1000", "columns"}, [&] { return some(x, columns); },
      bench::plain(x), bench::plain(columns));
  auto const places = bench::integers<Tensor<std::int32_t, 512, 200>>(3, 1000);
  auto const parts = bench::numbers<Tensor<float, 512, 200>>(4);
  auto add = compile([](auto const& v, auto const& i, auto const& w) { return scatter_add<1>(v, i, w); });
  bench::compare_works(
      {"movement", "scatter_add, 512x200 to 512x1000", "scatter_add"}, [&] { return add(x, places, parts); },
      bench::plain(x), bench::plain(places), bench::plain(parts));
  auto const labels = bench::integers<Tensor<std::int32_t, 10000>>(5, 128);
  auto hot = compile([](auto const& i) { return one_hot<128>(i); });
  bench::compare_works(
      {"movement", "one_hot, 10000 of 128", "one_hot"}, [&] { return hot(labels); }, bench::plain(labels));
  auto counts = compile([](auto const& v) { return histc<100>(v, -3, 3); });
  bench::compare_works(
      {"movement", "histc 100 of 512x1000", "histc"}, [&] { return counts(x); }, bench::plain(x));
}

void transposed() {
  auto const x = bench::numbers<Tensor<float, 4096, 4096>>(4);
  bench::compare_works(
      {"movement", "transpose 4096x4096", "transpose"}, [&] { return transpose(x).contiguous(); },
      bench::plain(x));
}

void drop() {
  using T = Tensor<float, 1'000'000>;
  auto const x = bench::numbers<T>(5), ct = bench::numbers<T>(6);
  auto f = vjp([](auto const& v, auto const& key) { return nn::Dropout<0.5>{}.train(v, key); });
  Tensor<std::int64_t> const key(7);
  bench::compare_works(
      {"movement", "dropout 1000000, vjp", "dropout", 1, true}, [&] { return f(x, key, ct); },
      bench::wanted(x), bench::plain(ct));
}

void normals() {
  auto const x = zeros<float, 10'000'000>();
  bench::compare_works(
      {.bench = "movement",
       .name = "randn 10000000, eager",
       .work = "randn",
       .is_random = true,
       .bytes = bench::bytes_of(x)},
      [&] { return randn<float, 10'000'000>(Key{8}); }, bench::plain(x));
  auto f = compile([](auto const& v, auto const& key) { return randn_like(v, key); });
  Tensor<std::int64_t> const key(9);
  bench::compare_works(
      {.bench = "movement",
       .name = "randn_like 10000000",
       .work = "randn",
       .is_random = true,
       .bytes = bench::bytes_of(x)},
      [&] { return f(x, key); }, bench::plain(x));
}

}  // namespace

int main() {
  embedding_table();
  by_index();
  transposed();
  drop();
  normals();
}
