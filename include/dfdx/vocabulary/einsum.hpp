// SPDX-License-Identifier: BSL-1.0
// einsum: products and sums over labelled axes, two operands at a time, each pair one matrix product or one
// elementwise product.
#pragma once

#include <dfdx/vocabulary/contract.hpp>
#include <dfdx/vocabulary/parts.hpp>

namespace dfdx {

/// Equation - of einsum, "bij,bjk->bik": a letter for each axis, `...` for any number of leading axes that broadcast.
struct Equation {
  static constexpr int capacity = 95;
  char text[capacity + 1] = {};
  constexpr Equation(char const* s) {
    int n = 0;
    for (; *s != 0; ++s) {
      if (*s == ' ') continue;
      if (n == capacity) raise("einsum: more than 95 characters");
      text[n++] = *s;
    }
  }
};

namespace detail {

/// Labels - of the axes of one operand. Letters are 0 to 51; of `...` the last axis is 52, the one before it 53.
struct Labels {
  static constexpr int dots = 52, count = dots + max_rank;
  int n = 0;
  int v[max_rank] = {};
  constexpr void push(int label) { v[n++] = label; }
  constexpr int find(int label, int from = 0) const {
    for (int i = from; i < n; ++i)
      if (v[i] == label) return i;
    return -1;
  }
};

struct EinsumPlan {
  static constexpr int max_operands = 8;
  Labels in[max_operands] = {};
  Labels out{};
  Shape result{};
};

// Reads an equation for operands of known shapes.
class EinsumReader {
 public:
  constexpr EinsumReader(Equation const& e, Meta const* in, int count, Text* why)
      : at_(e.text), in_(in), count_(count), why_(why) {}

  constexpr EinsumPlan read() {
    EinsumPlan p;
    p.result = Shape::none();
    if (count_ > EinsumPlan::max_operands) return refused(p, "more than 8 operands");
    for (int k = 0; k < count_; ++k) {
      if (k > 0 && *at_++ != ',') return refused(p, "as many terms as operands required");
      if (!term(p.in[k], in_[k].shape)) return p;
    }
    if (*at_ == 0) implied(p.out);
    else if (*at_++ != '-' || *at_++ != '>') return refused(p, "as many terms as operands required");
    else if (!output(p.out)) return p;
    if (distinct_ > max_rank) return refused(p, "more than 8 different axes");
    p.result.rank = 0;
    for (int i = 0; i < p.out.n; ++i) p.result.push_back(extents_[p.out.v[i]]);
    return p;
  }

 private:
  template <class... Parts>
  constexpr EinsumPlan refused(EinsumPlan const& p, Parts const&... parts) {
    refuse(why_, "einsum: ", parts...);
    return p;
  }
  static constexpr int label_of(char c) {
    return c >= 'a' && c <= 'z' ? c - 'a' : c >= 'A' && c <= 'Z' ? c - 'A' + 26 : -1;
  }
  constexpr bool dots_here() {
    if (at_[0] != '.' || at_[1] != '.' || at_[2] != '.') return false;
    at_ += 3;
    return true;
  }

  constexpr bool term(Labels& t, Shape const& s) {
    int letters = 0;
    bool dots = false;
    for (char const* c = at_; *c != 0 && *c != ',' && *c != '-'; ++c)
      if (*c == '.') dots = true;
      else ++letters;
    int const rest = s.rank - letters;
    if (rest < 0 || (rest > 0 && !dots))
      return refuse(why_, "einsum: a term of ", letters, " axes for ", s), false;
    bool seen = false;
    while (*at_ != 0 && *at_ != ',' && *at_ != '-') {
      if (dots_here() && !seen) {
        for (int i = rest; i > 0; --i) t.push(Labels::dots + i - 1);
        dots_ = rest > dots_ ? rest : dots_;
        seen = true;
      } else if (int const label = label_of(*at_++); label >= 0) t.push(label);
      else return refuse(why_, "einsum: a letter or one ... required"), false;
    }
    for (int i = 0; i < t.n; ++i) {
      int const j = t.find(t.v[i]);
      if (!op::extents_agree(s[i], s[j]))
        return refuse(why_, "einsum: one axis of extents ", s[j], " and ", s[i], " in ", s), false;
      if (!meet(t.v[i], s[i])) return false;
    }
    return true;
  }
  constexpr bool meet(int label, index_t n) {
    index_t& e = extents_[label];
    if (uses_[label]++ == 0) {
      ++distinct_;
      e = n;
    } else if (e == 1) e = n;
    else if (n != 1 && !op::extents_agree(e, n))
      return refuse(why_, "einsum: one axis of extents ", e, " and ", n), false;
    else if (n != 1) e = op::merged(e, n);
    return true;
  }
  constexpr void implied(Labels& t) {
    for (int i = dots_; i > 0; --i) t.push(Labels::dots + i - 1);
    for (char const* s : {"AZ", "az"})
      for (char c = s[0]; c <= s[1]; ++c)
        if (int const label = label_of(c); label >= 0 && uses_[label] == 1 && t.n < max_rank) t.push(label);
  }
  constexpr bool output(Labels& t) {
    while (*at_ != 0) {
      if (dots_here()) {
        for (int i = dots_; i > 0; --i)
          if (t.find(Labels::dots + i - 1) < 0 && t.n < max_rank) t.push(Labels::dots + i - 1);
        continue;
      }
      int const label = label_of(*at_++);
      if (label < 0 || uses_[label] == 0 || t.find(label) >= 0)
        return refuse(why_, "einsum: the result names an axis twice, or one that no operand has"), false;
      if (t.n == max_rank) return refuse(why_, "einsum: more than 8 different axes"), false;
      t.push(label);
    }
    return true;
  }

  char const* at_;
  Meta const* in_;
  int count_;
  Text* why_;
  index_t extents_[Labels::count] = {};
  int uses_[Labels::count] = {};
  int distinct_ = 0, dots_ = 0;
};

/// Labelled - a value and the labels of its axes.
template <class V>
struct Labelled {
  V value;
  Labels labels;
  constexpr index_t extent(int label) const { return value.shape()[labels.find(label)]; }
};

template <class T, class V>
class EinsumSteps {
 public:
  constexpr EinsumSteps(char const* name, EinsumPlan const& plan, V const* x, int count)
      : name_(name), plan_(plan), x_(x), count_(count) {}

  constexpr V run() {
    Labelled<V> r = operand(0, nullptr);
    for (int k = 1; k < count_; ++k) {
      Labelled<V> next = operand(k, &r.labels);
      r = product(summed(r, k, &next.labels), next, k + 1);
    }
    r = summed(r, count_, nullptr);
    return in_order(r, plan_.out, plan_.result);
  }

 private:
  constexpr bool needed(int label, int from) const {
    for (int k = from; k < count_; ++k)
      if (plan_.in[k].find(label) >= 0) return true;
    return plan_.out.find(label) >= 0;
  }
  // An operand without labels that occur twice or nowhere else.
  constexpr Labelled<V> operand(int k, Labels const* other) const {
    Labelled<V> r{x_[k], plan_.in[k]};
    for (int i = 0; i < r.labels.n; ++i) {
      int const j = r.labels.find(r.labels.v[i], i + 1);
      if (j < 0) continue;
      int const label = r.labels.v[i];
      r.value = call(Diagonal{0, i, j}, r.value);
      Labels left;
      for (int a = 0; a < r.labels.n; ++a)
        if (a != i && a != j) left.push(r.labels.v[a]);
      left.push(label);
      r.labels = left;
      i = -1;
    }
    return summed(r, k + 1, other);
  }
  // Without the labels that neither the other operand, nor a later one, nor the result has.
  constexpr Labelled<V> summed(Labelled<V> const& x, int from, Labels const* other) const {
    index_t mask = 0;
    Labels left;
    for (int i = 0; i < x.labels.n; ++i) {
      int const label = x.labels.v[i];
      if (needed(label, from) || (other != nullptr && other->find(label) >= 0)) left.push(label);
      else mask |= index_t{1} << i;
    }
    if (mask == 0) return x;
    return Labelled<V>{reduce_mask<op::sum, T>(x.value, mask, false), left};
  }
  // x with its axes in the order of `to`, of the given shape, to which those of extent 1 are repeated.
  constexpr V in_order(Labelled<V> const& x, Labels const& to, Shape const& shape) const {
    Axes axes;
    for (int i = 0; i < to.n; ++i) axes.push(x.labels.find(to.v[i]));
    return broadcast_to(call(Permute{axes}, x.value), shape, name_);
  }

  constexpr Labelled<V> product(Labelled<V> const& x, Labelled<V> const& y, int from) const {
    Labels batch, rows, inner, columns;
    for (int i = 0; i < x.labels.n; ++i) {
      int const label = x.labels.v[i];
      bool const both = y.labels.find(label) >= 0;
      (!both ? rows : needed(label, from) ? batch : inner).push(label);
    }
    for (int i = 0; i < y.labels.n; ++i)
      if (x.labels.find(y.labels.v[i]) < 0) columns.push(y.labels.v[i]);
    auto const extent = [&](int label) {
      index_t const a = x.labels.find(label) < 0 ? 1 : x.extent(label);
      index_t const b = y.labels.find(label) < 0 ? 1 : y.extent(label);
      return a == 1 ? b : b == 1 ? a : op::merged(a, b);
    };
    // [batch, M, K] x [batch, K, N]
    index_t sizes[4] = {1, 1, 1, 1};
    auto const joined = [&](Labels const& a, Labels const& b, Labels const& c, Labelled<V> const& v) {
      Labels order;
      Shape shape;
      for (Labels const* part : {&a, &b, &c})
        for (int i = 0; i < part->n; ++i) order.push(part->v[i]), shape.push_back(extent(part->v[i]));
      return in_order(v, order, shape);
    };
    Labels const* const parts[] = {&batch, &rows, &inner, &columns};
    for (int k = 0; k < 4; ++k)
      for (int i = 0; i < parts[k]->n; ++i) sizes[k] = extent::mul(sizes[k], extent(parts[k]->v[i]));
    Labelled<V> r{V{}, batch};
    Shape shape;
    for (int i = 0; i < rows.n; ++i) r.labels.push(rows.v[i]);
    for (int i = 0; i < columns.n; ++i) r.labels.push(columns.v[i]);
    for (int i = 0; i < r.labels.n; ++i) shape.push_back(extent(r.labels.v[i]));
    V const a = joined(batch, rows, inner, x), b = joined(batch, inner, columns, y);
    r.value = reshape_to(multiplied(a, b, sizes, batch.n > 0, inner.n > 0), shape);
    return r;
  }
  constexpr V multiplied(V const& a, V const& b, index_t const (&s)[4], bool batch, bool inner) const {
    if (inner && !batch)
      return bind_element<op::matmul, T>(Attrs{}, reshape_to(a, make_shape(s[1], s[2])),
                                         reshape_to(b, make_shape(s[2], s[3])));
    V const x = reshape_to(a, make_shape(s[0], s[1], s[2])), y = reshape_to(b, make_shape(s[0], s[2], s[3]));
    if (inner) return bind_element<op::matmul, T>(Attrs{}, x, y);
    Shape const all = make_shape(s[0], s[1], s[3]);
    return bind_element<op::mul, T>(Attrs{}, broadcast_to(x, all, name_), broadcast_to(y, all, name_));
  }

  char const* name_;
  EinsumPlan const& plan_;
  V const* x_;
  int count_;
};

struct Einsum {
  Equation equation;
  int count;
  constexpr Meta infer(Meta const* in, Text* why) const {
    DType dtype = in[0].dtype;
    for (int i = 1; i < count; ++i) dtype = promote(dtype, in[i].dtype);
    if (count > 1) dtype = product_dtype(dtype, dtype);  // of bytes as matmul
    if (dtype == DType::boolean) return refuse(why, "einsum: numeric dtype required, got bool");
    return Meta{dtype, EinsumReader(equation, in, count, why).read().result};
  }
  template <class T, class... V>
  constexpr auto run(Meta const& y, V const&... x) const {
    std::common_type_t<V...> const all[] = {x...};
    return compute<T>(y, all);
  }
  template <class T, class V>
  constexpr V compute(Meta const& y, V const* x, char const* name = "einsum") const {
    // Bytes are computed as i32.
    using E = std::conditional_t<byte_number<T>, void, T>;
    V values[EinsumPlan::max_operands];
    Meta metas[EinsumPlan::max_operands];
    for (int i = 0; i < count; ++i) {
      if constexpr (std::is_void_v<E>) values[i] = cast_to(x[i], y.dtype);
      else values[i] = x[i];
      metas[i] = values[i].meta();
    }
    EinsumPlan const plan = EinsumReader(equation, metas, count, nullptr).read();
    return EinsumSteps<E, V>(name, plan, values, count).run();
  }
};

}  // namespace detail

/// einsum<"ij,jk->ik">(x, y), einsum("ij,jk->ik", x, y) - the sum over the axes that the result does not name of the
/// products of the operands. Without -> the result has the axes that occur once, in alphabetical order.
///
/// Shapes    as the equation says: "ij,jk->ik" is [I, J] x [J, K] -> [I, K]
/// Dtypes    all but bool, promoted; f16 and bf16 accumulate in f32; of u8 and i8 the result is i32
/// Errors    "einsum: one axis of extents 3 and 4"
/// Source    NumPy's einsum
template <Equation E, operand... X>
constexpr auto einsum(X const&... x) {
  return detail::call(detail::Fixed<detail::Einsum{E, sizeof...(X)}>{}, x...);
}
template <operand... X>
constexpr auto einsum(Equation const& equation, X const&... x) {
  return detail::call(detail::Einsum{equation, static_cast<int>(sizeof...(X))}, x...);
}
template <class List>
  requires std::convertible_to<List const&, std::span<Array const>>
Array einsum(Equation const& equation, List const& list) {
  std::span<Array const> const x(list);
  if (x.empty()) raise("einsum: no operands");
  std::vector<Meta> in;
  for (Array const& a : x) in.push_back(a.meta());
  detail::Einsum const rule{equation, static_cast<int>(x.size())};
  Text why;
  Meta const y = rule.infer(in.data(), &why);
  if (!y.valid()) raise(why);
  return rule.compute<void>(y, &detail::lazy<sizeof(List)>(x[0]));
}

}  // namespace dfdx
