// SPDX-License-Identifier: BSL-1.0
// Convolutions forward, and the gradients of their input and weight: checked at some places against sums by the
// definition, then timed. With -DDFDX_BENCH_DNNL oneDNN stands beside it (OMP_NUM_THREADS=1), in the layouts that it
// asks for, "oneDNN", which it is handed for free; and on operands as ours are, N C Y X, "oneDNN nchw". Every round
// times all contenders in turn; a row is the median of its rounds.
#include <dfdx/kernels/conv.hpp>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <vector>

#include "roof.hpp"

#if defined(DFDX_BENCH_DNNL)
#include <oneapi/dnnl/dnnl.hpp>
#endif

namespace {

using namespace dfdx;
using bench::Row;

double roof = 0;

struct Shape2 {
  char const* name;
  index_t batch, in, out, size, kernel, stride, padding, groups;
};

enum class Which { forward, input, weight };

ConvGeometry geometry_of(Shape2 const& s) {
  ConvGeometry g;
  g.batch = s.batch, g.groups = s.groups, g.in = s.in / s.groups, g.out = s.out / s.groups;
  for (int i = 1; i < 3; ++i) {
    g.x[i] = s.size;
    g.w[i] = {s.kernel, s.stride, 1, s.padding};
    g.y[i] = (s.size + 2 * s.padding - s.kernel) / s.stride + 1;
  }
  return g;
}

// As programs lay their values out.
using Numbers = std::vector<float, xsimd::aligned_allocator<float, 64>>;

Numbers numbers(index_t n, int seed) {
  Numbers v(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < v.size(); ++i)
    v[i] = static_cast<float>(static_cast<double>((i + static_cast<std::size_t>(seed)) * 7919 % 1009) / 1009 -
                              0.5);
  return v;
}

// Number `at` of the result by the definition, in double.
double plain(ConvGeometry const& g, Which which, index_t at, float const* x, float const* w, float const* y) {
  double sum = 0;
  index_t const channels = g.groups * g.in, outs = g.groups * g.out, k = g.w[1].size;
  auto const each = [&](index_t n, index_t o, index_t c, index_t p, index_t q, index_t a, index_t b) {
    index_t const i = g.w[1].at(p, a), j = g.w[2].at(q, b);
    if (i < 0 || i >= g.x[1] || j < 0 || j >= g.x[2]) return;
    auto const xs =
        static_cast<std::size_t>(((n * channels + o / g.out * g.in + c) * g.x[1] + i) * g.x[2] + j);
    auto const ws = static_cast<std::size_t>(((o * g.in + c) * k + a) * k + b);
    auto const ys = static_cast<std::size_t>(((n * outs + o) * g.y[1] + p) * g.y[2] + q);
    sum += which == Which::forward ? static_cast<double>(x[xs]) * w[ws]
           : which == Which::input ? static_cast<double>(y[ys]) * w[ws]
                                   : static_cast<double>(x[xs]) * y[ys];
  };
  auto const part = [&](index_t n) {
    index_t const r = at % n;
    at /= n;
    return r;
  };
  if (which == Which::forward) {
    index_t const q = part(g.y[2]), p = part(g.y[1]), o = part(outs);
    for (index_t c = 0; c < g.in; ++c)
      for (index_t a = 0; a < k; ++a)
        for (index_t b = 0; b < k; ++b) each(at, o, c, p, q, a, b);
  } else if (which == Which::weight) {
    index_t const b = part(k), a = part(k), c = part(g.in);
    for (index_t n = 0; n < g.batch; ++n)
      for (index_t p = 0; p < g.y[1]; ++p)
        for (index_t q = 0; q < g.y[2]; ++q) each(n, at, c, p, q, a, b);
  } else {
    index_t const j = part(g.x[2]), i = part(g.x[1]), c = part(channels);
    for (index_t o = c / g.in * g.out; o < (c / g.in + 1) * g.out; ++o)
      for (index_t p = 0; p < g.y[1]; ++p)
        for (index_t q = 0; q < g.y[2]; ++q) {
          index_t const a = i + g.w[1].before - g.w[1].stride * p, b = j + g.w[2].before - g.w[2].stride * q;
          if (a >= 0 && a < k && b >= 0 && b < k) each(at, o, c % g.in, p, q, a, b);
        }
  }
  return sum;
}

#if defined(DFDX_BENCH_DNNL)
/// The same by oneDNN. `any`: in layouts of its choice, into which operands are brought here, once.
class Dnnl {
 public:
  Dnnl(ConvGeometry const& g, Which which, bool any, float* x, float* w, float* y)
      : engine(dnnl::engine::kind::cpu, 0), stream(engine) {
    using namespace dnnl;
    using tag = memory::format_tag;
    auto const f32 = memory::data_type::f32;
    memory::dims const xs = {g.batch, g.groups * g.in, g.x[1], g.x[2]},
                       ys = {g.batch, g.groups * g.out, g.y[1], g.y[2]};
    bool const grouped = g.groups > 1;
    memory::dims ws = {g.groups, g.out, g.in, g.w[1].size, g.w[2].size};
    if (!grouped) ws.erase(ws.begin());
    memory::desc const px(xs, f32, tag::nchw), py(ys, f32, tag::nchw),
        pw(ws, f32, grouped ? tag::goihw : tag::oihw), ax(xs, f32, any ? tag::any : tag::nchw),
        ay(ys, f32, any ? tag::any : tag::nchw), aw(ws, f32, tag::any);
    memory::dims const by{g.w[1].stride, g.w[2].stride}, low{g.w[1].before, g.w[2].before};
    memory::dims high;
    for (int i = 1; i < 3; ++i)
      high.push_back(g.w[i].stride * (g.y[i] - 1) + g.w[i].reach() - g.x[i] - g.w[i].before);
    auto const how = algorithm::convolution_direct;
    auto const make = [&](auto const& pd, auto primitive_of) {
      primitive = primitive_of(pd);
      auto const bring = [&](memory::desc const& want, memory::desc const& have, float* data,
                             bool is_result) {
        memory const given(have, engine, data);
        if (want == have) return given;
        memory r(want, engine);
        if (!is_result) reorder(given, r).execute(stream, const_cast<memory&>(given), r);
        stream.wait();
        return r;
      };
      memory::desc const x_want = which == Which::input ? pd.query_md(query::diff_src_md)
                                                        : pd.query_md(query::src_md),
                         w_want = which == Which::weight ? pd.query_md(query::diff_weights_md)
                                                         : pd.query_md(query::weights_md),
                         y_want = which == Which::forward ? pd.query_md(query::dst_md)
                                                          : pd.query_md(query::diff_dst_md);
      memory const mx = bring(x_want, px, x, which == Which::input),
                   mw = bring(w_want, pw, w, which == Which::weight),
                   my = bring(y_want, py, y, which == Which::forward);
      arguments = {{which == Which::input ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC, mx},
                   {which == Which::weight ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS, mw},
                   {which == Which::forward ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST, my}};
    };
#if DNNL_VERSION_MAJOR >= 3
    convolution_forward::primitive_desc const forward(engine, prop_kind::forward_training, how, ax, aw, ay,
                                                      by, low, high);
    if (which == Which::forward) make(forward, [](auto const& p) { return convolution_forward(p); });
    else if (which == Which::input)
      make(convolution_backward_data::primitive_desc(engine, how, ax, aw, ay, by, low, high, forward),
           [](auto const& p) { return convolution_backward_data(p); });
    else
      make(convolution_backward_weights::primitive_desc(engine, how, ax, aw, ay, by, low, high, forward),
           [](auto const& p) { return convolution_backward_weights(p); });
#else
    convolution_forward::primitive_desc const forward(
        convolution_forward::desc(prop_kind::forward_training, how, ax, aw, ay, by, low, high), engine);
    if (which == Which::forward) make(forward, [](auto const& p) { return convolution_forward(p); });
    else if (which == Which::input)
      make(convolution_backward_data::primitive_desc(
               convolution_backward_data::desc(how, ax, aw, ay, by, low, high), engine, forward),
           [](auto const& p) { return convolution_backward_data(p); });
    else
      make(convolution_backward_weights::primitive_desc(
               convolution_backward_weights::desc(how, ax, aw, ay, by, low, high), engine, forward),
           [](auto const& p) { return convolution_backward_weights(p); });
#endif
  }
  void operator()() const {
    primitive.execute(stream, arguments);
    stream.wait();
  }

 private:
  dnnl::engine engine;
  mutable dnnl::stream stream;
  dnnl::primitive primitive;
  std::unordered_map<int, dnnl::memory> arguments;
};
#endif

void row(Shape2 const& s, Which which) {
  ConvGeometry const g = geometry_of(s);
  index_t const all_in = g.batch * g.groups * g.in * g.x_size(),
                all_out = g.batch * g.groups * g.out * g.y_size(),
                all_w = g.groups * g.out * g.in * g.w_size();
  Numbers x = numbers(all_in, 1), w = numbers(all_w, 2), y = numbers(all_out, 3);
  kernels::Conv<float> const conv(g);
  auto const ours = [&] {
    if (which == Which::forward) conv.forward(x.data(), w.data(), y.data());
    else if (which == Which::input) conv.input(x.data(), w.data(), y.data());
    else conv.weight(x.data(), w.data(), y.data());
  };
  ours();
  Numbers const& result = which == Which::forward ? y : which == Which::input ? x : w;
  auto const count = static_cast<index_t>(result.size());
  double worst = 0, largest = 0;
  for (index_t i = 0, n = std::min<index_t>(count, 300); i < n; ++i) {
    index_t const at = n < count ? i * 7919 * 104729 % count : i;
    double const want = plain(g, which, at, x.data(), w.data(), y.data());
    worst = std::max(worst, std::abs(want - static_cast<double>(result[static_cast<std::size_t>(at)])));
    largest = std::max(largest, std::abs(want));
  }
  char const* const what = which == Which::forward ? ""
                           : which == Which::input ? ", gradient of x"
                                                   : ", gradient of w";
  if (!(worst <= 2e-5 * largest)) {
    std::fprintf(stderr, "conv: %s%s is off by %g of %g\n", s.name, what, worst, largest);
    std::exit(1);
  }
  double const flops = 2.0 * static_cast<double>(g.batch * g.groups * g.out * g.in) *
                       static_cast<double>(g.y_size() * g.w_size());
  long const calls = bench::calls_for(ours, 1e-3);
  std::vector<double> mine;
  std::map<std::string, std::vector<double>> theirs;
#if defined(DFDX_BENCH_DNNL)
  Dnnl const blocked(g, which, true, x.data(), w.data(), y.data()),
      same(g, which, false, x.data(), w.data(), y.data());
#endif
  double const once = bench::time_of(ours, calls) * static_cast<double>(calls);
  for (int round = 0, rounds = std::clamp(static_cast<int>(0.7 / once), 9, 31); round < rounds; ++round) {
    mine.push_back(bench::time_of(ours, calls));
#if defined(DFDX_BENCH_DNNL)
    theirs["oneDNN"].push_back(bench::time_of(blocked, calls));
    theirs["oneDNN nchw"].push_back(bench::time_of(same, calls));
#endif
  }
  double const time = bench::median(mine);
  Row r{.bench = "conv",
        .name = std::string(s.name) + what,
        .ours_ms = time * 1e3,
        .roof = flops / time / roof,
        .error = worst / largest};
  r.flops = flops;
  r.bytes = 4.0 * static_cast<double>(x.size() + w.size() + y.size());
  char note[40];
  std::snprintf(note, sizeof note, "%.1f GFLOP/s", flops / time / 1e9);
  r.note = note;
  if (theirs.empty()) bench::print(r);
  for (auto const& [name, times] : theirs) {
    r.peer = name, r.peer_ms = bench::median(times) * 1e3;
    bench::print(r);
  }
}

}  // namespace

// bench_conv [TEXT] - the cases whose names contain a text, or all.
int main(int count, char** arguments) {
  std::string const wanted = count > 1 ? arguments[1] : "";
  roof = bench::measure_roof(31);
  std::fprintf(stderr, "roof: %.1f GFLOP/s f32\n", roof / 1e9);
#if defined(DFDX_BENCH_DNNL)
  dnnl_version_t const* const version = dnnl_version();
  std::fprintf(stderr, "oneDNN %d.%d.%d\n", version->major, version->minor, version->patch);
#endif
  for (Shape2 const& s : {
           Shape2{"LeNet 64x1x28x28, 6 of 5x5 same", 64, 1, 6, 28, 5, 1, 2, 1},
           {"LeNet 64x6x14x14, 16 of 5x5", 64, 6, 16, 14, 5, 1, 0, 1},
           {"fashion 64x1x28x28, 32 of 3x3", 64, 1, 32, 28, 3, 1, 0, 1},
           {"fashion 64x32x13x13, 64 of 3x3", 64, 32, 64, 13, 3, 1, 0, 1},
           {"ResNet 8x3x224x224, 64 of 7x7 by 2", 8, 3, 64, 224, 7, 2, 3, 1},
           {"ResNet 8x64x56x56, 64 of 3x3", 8, 64, 64, 56, 3, 1, 1, 1},
           {"ResNet 8x128x28x28, 128 of 3x3", 8, 128, 128, 28, 3, 1, 1, 1},
           {"ResNet 8x128x56x56, 128 of 3x3 by 2", 8, 128, 128, 56, 3, 2, 1, 1},
           {"ResNet 8x256x14x14, 256 of 3x3", 8, 256, 256, 14, 3, 1, 1, 1},
           {"ResNet 8x512x7x7, 512 of 3x3", 8, 512, 512, 7, 3, 1, 1, 1},
           {"ResNet 8x64x56x56, 256 of 1x1", 8, 64, 256, 56, 1, 1, 0, 1},
           {"ResNet 8x256x56x56, 64 of 1x1", 8, 256, 64, 56, 1, 1, 0, 1},
           {"ResNet 8x512x28x28, 128 of 1x1", 8, 512, 128, 28, 1, 1, 0, 1},
           {"ResNet 8x256x56x56, 512 of 1x1 by 2", 8, 256, 512, 56, 1, 2, 0, 1},
           {"ResNet 8x1024x14x14, 256 of 1x1", 8, 1024, 256, 14, 1, 1, 0, 1},
           {"ResNet 8x2048x7x7, 512 of 1x1", 8, 2048, 512, 7, 1, 1, 0, 1},
           {"depthwise 8x32x112x112, 3x3", 8, 32, 32, 112, 3, 1, 1, 32},
           {"depthwise 8x64x112x112, 3x3 by 2", 8, 64, 64, 112, 3, 2, 1, 64},
           {"depthwise 8x512x14x14, 3x3", 8, 512, 512, 14, 3, 1, 1, 512},
       })
    if (std::string(s.name).find(wanted) != std::string::npos)
      for (Which which : {Which::forward, Which::input, Which::weight}) row(s, which);
}
