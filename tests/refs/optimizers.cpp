// SPDX-License-Identifier: BSL-1.0
// Optimizers of the reference cases: their update rules, recorded and interpreted step by step.
#include "refs/functions.hpp"

#include <dfdx/optim/adagrad.hpp>
#include <dfdx/optim/adam.hpp>
#include <dfdx/optim/adamax.hpp>
#include <dfdx/optim/clip.hpp>
#include <dfdx/optim/sgd.hpp>
#include <dfdx/testing/run_plan.hpp>

namespace refs {

namespace {

using namespace dfdx;

// p0 after each of the gradients g0, g1, ..., as train_step would update it.
template <class O>
std::vector<Array> run_optimizer(Arguments const& a, O const& optimizer) {
  Array p = a["p0"];
  std::vector<Array> slots(static_cast<std::size_t>(O::slots), full_as(p, p.meta(), 0)), r;
  for (int k = 0; a.has("g" + std::to_string(k)); ++k) {
    Graph g;
    std::vector<Array> inputs;
    auto const input = [&](Array const& value) {
      inputs.push_back(value);
      return testing::add_input(g, value.meta()).sym();
    };
    Sym parameter = input(p);
    Sym gradient = input(a["g" + std::to_string(k)]);
    std::vector<Sym> state, numbers;
    for (Array const& s : slots) state.push_back(input(s));
    for (double n : optimizer.scalars_at(k + 1)) numbers.push_back(input(full_as(p, Meta{p.dtype(), {}}, n)));
    optim::detail::prepare<O>(&gradient, 1, state.data(), state.size(), numbers.data());
    optim::detail::update<O>("p", parameter, gradient, state.data(), numbers.data());
    g.outputs.push_back(parameter.id);
    for (Sym const& s : state) g.outputs.push_back(s.id);
    // In place, as train_step does it: parameter and slots take over their inputs.
    graph::Aliases aliases(1, 0);
    for (std::size_t i = 0; i < slots.size(); ++i) aliases.push_back(static_cast<int>(i) + 2);
    testing::PlanRun const run =
        testing::run_plan(graph::prepare(graph::simplify(g), aliases), inputs, aliases);
    p = run.inputs[0];
    slots.assign(run.inputs.begin() + 2, run.inputs.begin() + 2 + static_cast<std::ptrdiff_t>(slots.size()));
    r.push_back(p);
  }
  return r;
}

}  // namespace

void add_optimizers(std::map<std::string, Function>& table) {
  table["optim_sgd"] = [](Arguments const& a) {
    double const lr = a.number("lr"), momentum = a.number("momentum", 0);
    if (a.flag("nesterov"))
      return run_optimizer(
          a, optim::SGD{
                 .lr = lr, .momentum = momentum, .weight_decay = a.number("weight_decay"), .nesterov = true});
    if (a.attrs().contains("dampening"))
      return run_optimizer(a, optim::SGD{.lr = lr, .momentum = momentum, .dampening = a.number("dampening")});
    if (momentum != 0) return run_optimizer(a, optim::SGD{.lr = lr, .momentum = momentum});
    return run_optimizer(a, optim::SGD{.lr = lr});
  };
  table["optim_adam"] = [](Arguments const& a) {
    if (a.flag("amsgrad")) return run_optimizer(a, optim::Adam{.lr = a.number("lr"), .amsgrad = true});
    optim::Adam o{.lr = a.number("lr")};
    if (a.attrs().contains("betas")) {
      o.beta1 = a.attrs()["betas"][0].get<double>();
      o.beta2 = a.attrs()["betas"][1].get<double>();
    }
    o.eps = a.number("eps", 1e-8);
    o.weight_decay = a.number("weight_decay", 0);
    return run_optimizer(a, o);
  };
  table["optim_adamw"] = [](Arguments const& a) {
    return run_optimizer(a, optim::AdamW{.lr = a.number("lr"), .weight_decay = a.number("weight_decay")});
  };
  table["optim_rmsprop"] = [](Arguments const& a) {
    double const lr = a.number("lr"), alpha = a.number("alpha", 0.99);
    if (!a.flag("centered")) return run_optimizer(a, optim::RMSprop{.lr = lr, .alpha = alpha});
    return run_optimizer(
        a, optim::RMSprop{.lr = lr, .alpha = alpha, .momentum = a.number("momentum"), .centered = true});
  };
  table["optim_adagrad"] = [](Arguments const& a) {
    return run_optimizer(a, optim::Adagrad{.lr = a.number("lr"), .lr_decay = a.number("lr_decay")});
  };
  table["optim_adadelta"] = [](Arguments const& a) {
    return run_optimizer(a, optim::Adadelta{.lr = a.number("lr")});
  };
  table["optim_adamax"] = [](Arguments const& a) {
    return run_optimizer(a, optim::Adamax{.lr = a.number("lr")});
  };
  table["optim_nadam"] = [](Arguments const& a) {
    return run_optimizer(a, optim::NAdam{.lr = a.number("lr")});
  };
  table["optim_radam"] = [](Arguments const& a) {
    return run_optimizer(a, optim::RAdam{.lr = a.number("lr")});
  };
  table["clip_grad_norm"] = [](Arguments const& a) {
    using Clip = optim::ClipNorm<optim::SGD<>>;
    Graph g;
    std::vector<Array> const inputs = {a["g0"], a["g1"],
                                       full_as(a["g0"], Meta{a["g0"].dtype(), {}}, a.number("max_norm"))};
    std::vector<Sym> x;
    for (Array const& i : inputs) x.push_back(testing::add_input(g, i.meta()).sym());
    std::vector<Sym> numbers(static_cast<std::size_t>(Clip::scalars), x[2]);
    Sym gradients[2] = {x[0], x[1]};
    Clip::prepare(gradients, 2, static_cast<Sym*>(nullptr), 0, numbers.data());
    for (Sym const& s : gradients) g.outputs.push_back(s.id);
    std::vector<Array> r = testing::run_plan(graph::prepare(graph::simplify(g), {}), inputs).results;
    r.push_back(sqrt(sum(square(a["g0"])) + sum(square(a["g1"]))));
    return r;
  };
}

}  // namespace refs
