// SPDX-License-Identifier: BSL-1.0
// Kernels shared between steps: those with equal descriptions run one, and the plan holds its description once. Blocks
// of a network that come one after another are compiled as one, and their number costs next to nothing.
#pragma once

#include <dfdx/graph/layout.hpp>

namespace dfdx::graph {

namespace detail {

class KernelSharing {
 public:
  constexpr explicit KernelSharing(Plan& plan) : plan_(plan) {
    std::size_t places = 16;
    while (places < 2 * plan.steps.size()) places *= 2;
    table_.assign(places, -1);
    for (std::size_t k = 0; k < plan.steps.size(); ++k) place(static_cast<int>(k));
    plan.code = std::move(code_);
  }

 private:
  constexpr Step& step(int k) { return plan_.steps[k]; }

  constexpr void place(int k) {
    Step& s = step(k);
    std::size_t const mask = table_.size() - 1;
    // Kernels of ops and copies are made for their step: they know its operands.
    bool const shared = s.kind == Step::Kind::loop || s.kind == Step::Kind::matmul;
    std::size_t i = hash(s) & mask;
    while (shared && table_[i] >= 0 && !equal(step(table_[i]), s)) i = (i + 1) & mask;
    int const like = shared ? table_[i] : -1;
    int const begin = like >= 0 ? step(like).code : static_cast<int>(code_.size());
    if (like < 0) {
      code_.append(plan_.code.data() + s.code, plan_.code.data() + s.code + s.code_size);
      plan_.kernels.push_back(k);
      if (shared) table_[i] = k;
    }
    s.kernel = like >= 0 ? step(like).kernel : static_cast<int>(plan_.kernels.size()) - 1;
    if (s.epilogue >= 0) s.epilogue += begin - s.code;
    s.code = begin;
  }

  constexpr std::size_t hash(Step const& s) const {
    std::uint64_t h = static_cast<std::uint64_t>(s.code_size);
    index_t const* const code = plan_.code.data() + s.code;
    int const step = 1 + s.code_size / 16;  // of a long one some numbers tell
    for (int c = 0; c < s.code_size; c += step)
      h = (h ^ static_cast<std::uint64_t>(code[c])) * 1099511628211u;
    return static_cast<std::size_t>(h ^ (h >> 32));
  }

  constexpr DType factor(Step const& s, int which) const {
    return plan_.arguments[static_cast<std::size_t>(s.argument + which)].dtype;
  }

  // `a` has been placed.
  constexpr bool equal(Step const& a, Step const& b) const {
    if (a.kind != b.kind || a.code_size != b.code_size || a.given != b.given || a.stored != b.stored ||
        a.epilogue_reads_result != b.epilogue_reads_result || (a.epilogue < 0) != (b.epilogue < 0))
      return false;
    if (a.epilogue >= 0 && a.epilogue - a.code != b.epilogue - b.code) return false;
    if (a.kind == Step::Kind::matmul &&
        (a.dtype != b.dtype || factor(a, 0) != factor(b, 0) || factor(a, 1) != factor(b, 1)))
      return false;
    index_t const *const x = code_.data() + a.code, *const y = plan_.code.data() + b.code;
    for (int c = 0; c < a.code_size; ++c)
      if (x[c] != y[c]) return false;
    return true;
  }

  Plan& plan_;
  Vec<index_t> code_;
  Vec<int> table_;  // steps with kernels of their own, by the hashes of their descriptions
};

}  // namespace detail

/// share_kernels - numbers the kernels of a plan, and takes descriptions that are there twice out of its code.
constexpr void share_kernels(Plan& plan) { static_cast<void>(detail::KernelSharing(plan)); }

}  // namespace dfdx::graph
