#include "setup/tool_plan.h"

#include <algorithm>
#include <utility>

namespace lockstep::setup {
namespace {

using Kind = Spec::Kind;

class Plan {
 public:
  Plan(const Installer& installer, const std::vector<std::string>& args)
      : by_uv_(!installer.uv.empty()), args_(args) {
    if (by_uv_) begin_ = {installer.uv, "pip", "install", "--python", installer.python};
    // Run pip by its folder, not by "-m pip": "-m" would look for pip's modules in the project's
    // folder first.
    if (!by_uv_) begin_ = {installer.python, installer.pip, "install"};
  }

  // what: arguments naming the packages.
  void install(const Argv& what) { add({}, what); }

  void put_in_place_again(const Argv& what) {
    Argv again = {by_uv_ ? "--reinstall" : "--force-reinstall"};
    // Some tools refuse an option that is given twice.
    if (std::find(args_.begin(), args_.end(), "--no-deps") == args_.end())
      again.emplace_back("--no-deps");
    add(again, what);
  }

  bool by_uv() const { return by_uv_; }
  std::vector<Argv> take() { return std::move(commands_); }

 private:
  void add(const Argv& options, const Argv& what) {
    Argv& command = commands_.emplace_back(begin_);
    for (const Argv* words : {&options, &what, &args_})
      command.insert(command.end(), words->begin(), words->end());
  }

  bool by_uv_;
  Argv begin_;
  const Argv args_;
  std::vector<Argv> commands_;
};

}  // namespace

std::vector<Argv> install_plan(const Spec& spec, const Resolved& resolved,
                               const Installer& installer) {
  Plan plan(installer, spec.args);
  // uv caches the build of a folder until the project file changes, so edits of other files need
  // --reinstall.
  const bool again = plan.by_uv() && resolved.from_here;
  switch (spec.kind) {
    case Kind::tree: {
      const std::string what = resolved.path + spec.extras;
      const Argv words = spec.editable ? Argv{"-e", what} : Argv{what};
      if (again) plan.put_in_place_again(words);
      plan.install(words);
      break;
    }
    case Kind::wheel:
      plan.put_in_place_again({resolved.path});
      plan.install({resolved.path});
      break;
    case Kind::git: {
      std::string what = "git+" + spec.subject;
      if (!resolved.commit.empty()) what += "@" + resolved.commit;
      plan.put_in_place_again({what + spec.extras});
      plan.install({what + spec.extras});
      break;
    }
    case Kind::requirements:
      plan.install(again ? Argv{"--reinstall", "-r", resolved.path} : Argv{"-r", resolved.path});
      break;
    case Kind::packages:
      plan.install(again ? Argv{"--reinstall"} : Argv{});
      break;
    case Kind::conda:
    case Kind::local:
      break;
  }
  return plan.take();
}

Argv venv_plan(const VenvMaker& maker, const std::string& prefix) {
  if (!maker.uv.empty()) return {maker.uv, "venv", "--python", maker.python, prefix};
  if (!maker.virtualenv.empty()) return {maker.virtualenv, "--python", maker.python, prefix};
  // -I: PYTHONPATH and the user's own site-packages must not change what venv does.
  return {maker.python, "-I", "-m", "venv", prefix};
}

Argv conda_plan(const std::string& conda, const CondaPlace& place, const std::string& file,
                const std::vector<std::string>& args) {
  Argv argv = {conda, "env", place.exists ? "update" : "create", place.option, place.value,
               "-f",  file};
  argv.insert(argv.end(), args.begin(), args.end());
  return argv;
}

}  // namespace lockstep::setup
