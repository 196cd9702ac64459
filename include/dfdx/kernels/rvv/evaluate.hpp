// SPDX-License-Identifier: BSL-1.0
// Formulas carried out on vectors. Which variable holds which step is decided when the file is compiled; the variables
// are handed from function to function by reference, for nothing else can hold a vector without a size, and melt into
// registers when the functions are inlined.
#pragma once

#include <utility>

#include <dfdx/kernels/rvv/steps.hpp>

#if defined(DFDX_RVV)

namespace dfdx::kernels::inline DFDX_TARGET {
namespace rvv {

/// Traced - the formula of F::eval for operands of types T, and where its steps' values are kept: `slot` counts the
/// operands first, then variables of floats (and 32-bit integers), of doubles (and 64-bit ones), of truth values.
template <class F, class... T>
struct Traced {
  struct Plan {
    Formula formula;
    int result = -1, variables[3] = {};
    int runs[Formula::most] = {}, run_count = 0;  // the steps that are carried out, in order
    int slot[Formula::most] = {};
  };
  static constexpr int operands = sizeof...(T);
  using Result = typename decltype(F::eval(Symbol<T>{}...))::value_type;

  static constexpr int family(Kind k) {
    return k == Kind::truth ? 2 : k == Kind::f64 || k == Kind::i64 ? 1 : 0;
  }

  static constexpr Plan plan = [] {
    Plan p;
    Formula& f = p.formula;
    int given = 0;
    auto const operand = [&]<class X>(std::type_identity<X>) {
      int const s =
          f.add({.what = Do::argument, .kind = kind_of<X>, .bits = static_cast<std::uint64_t>(given++)});
      return Symbol<X>(&f, s);
    };
    auto const result = F::eval(operand(std::type_identity<T>{})...);
    p.result = place(&f, result);
    if (f.is_too_long) return p;

    int last[Formula::most] = {};
    bool lives[Formula::most] = {};
    lives[p.result] = true;
    last[p.result] = f.count;
    for (int i = f.count - 1; i >= 0; --i) {
      if (!lives[i]) continue;
      for (int const of : {f.steps[i].a, f.steps[i].b, f.steps[i].c})
        if (of >= 0) {
          if (!lives[of]) last[of] = i;
          lives[of] = true;
        }
    }
    bool taken[3][64] = {};
    int variable[Formula::most] = {};
    for (int i = 0; i < f.count; ++i) {
      Step const& s = f.steps[i];
      if (!lives[i] || s.what == Do::constant || s.what == Do::argument) continue;
      p.runs[p.run_count++] = i;
      int const own = family(s.kind);
      // The operands that end here hand on their variables, but not to the result, which may be written before the
      // last of them is read.
      while (taken[own][variable[i]]) ++variable[i];
      taken[own][variable[i]] = true;
      if (p.variables[own] <= variable[i]) p.variables[own] = variable[i] + 1;
      for (int const of : {s.a, s.b, s.c})
        if (of >= 0 && last[of] == i && f.steps[of].what != Do::constant && f.steps[of].what != Do::argument)
          taken[family(f.steps[of].kind)][variable[of]] = false;
    }
    for (int i = 0; i < f.count; ++i) {
      Step const& s = f.steps[i];
      int const own = family(s.kind);
      p.slot[i] = s.what == Do::argument ? static_cast<int>(s.bits)
                                         : operands + variable[i] + (own > 0 ? p.variables[0] : 0) +
                                               (own > 1 ? p.variables[1] : 0);
    }
    return p;
  }();

  static constexpr Step step(int i) { return plan.formula.steps[i]; }

  template <int I, class... R>
  static DFDX_INLINE void run(R&... variables) {
    auto& to = nth<plan.slot[I]>(variables...);
    constexpr int a = step(I).a, b = step(I).b, c = step(I).c;
    if constexpr (c >= 0)
      keep(to,
           perform<step_of<I>>(operand<a>(variables...), operand<b>(variables...), operand<c>(variables...)));
    else if constexpr (b >= 0)
      keep(to, perform<step_of<I>>(operand<a>(variables...), operand<b>(variables...)));
    else keep(to, perform<step_of<I>>(operand<a>(variables...)));
  }

  template <int I>
  struct step_of {
    static constexpr Step value = step(I);
  };

  /// A step's value: a vector, or the number itself if it is a constant.
  template <int I, class... R>
  static DFDX_INLINE auto operand(R&... variables) {
    constexpr Step s = step(I);
    if constexpr (s.what == Do::constant) return number_of<number_t<s.kind>>(s.bits);
    else return as_kind<s.kind>(nth<plan.slot[I]>(variables...));
  }

  template <int First, std::size_t... I, class... R>
  static DFDX_INLINE void run_from(std::index_sequence<I...>, R&... variables) {
    (run<plan.runs[First + static_cast<int>(I)]>(variables...), ...);
  }

  // Declares the variables one by one, then runs the steps.
  template <int Declared, class... R>
  static DFDX_INLINE auto with_variables(R&... r) {
    constexpr int floats = plan.variables[0], doubles = plan.variables[1], truths = plan.variables[2];
    if constexpr (Declared < floats) {
      Floats next = __riscv_vundefined_f32m2();
      return with_variables<Declared + 1>(r..., next);
    } else if constexpr (Declared < floats + doubles) {
      Doubles next = __riscv_vundefined_f64m4();
      return with_variables<Declared + 1>(r..., next);
    } else if constexpr (Declared < floats + doubles + truths) {
      Mask next = __riscv_vmclr_m_b16(every);
      return with_variables<Declared + 1>(r..., next);
    } else {
      constexpr int half = plan.run_count / 2;  // clang's folds end at 256
      run_from<0>(std::make_index_sequence<static_cast<std::size_t>(half)>{}, r...);
      run_from<half>(std::make_index_sequence<static_cast<std::size_t>(plan.run_count - half)>{}, r...);
      return vector_operand(operand<plan.result>(r...));
    }
  }
};

/// result_t - the type of the numbers that F::eval gives.
template <class F, class... T>
using result_t = typename Traced<F, T...>::Result;

/// evaluate - F::eval of lane values; T are the types of its operands' numbers. What is too long for a
/// formula is called number by number.
template <class F, class... T>
DFDX_INLINE auto evaluate(vector_t<T> const&... x) {
  if constexpr (Traced<F, T...>::plan.formula.is_too_long)
    return detail::call_each(+[](T... v) { return F::eval(v...); }, x...);
  else return Traced<F, T...>::template with_variables<0>(x...);
}

}  // namespace rvv
}  // namespace dfdx::kernels::inline DFDX_TARGET

#endif  // DFDX_RVV
