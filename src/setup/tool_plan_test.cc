#include "setup/tool_plan.h"

#include "base/text.h"

#include <gtest/gtest.h>

namespace lockstep::setup {
namespace {

const Installer kPip = {.python = "/v/bin/python", .pip = "/v/lib/pip", .uv = ""};
const Installer kUv = {.python = "/v/bin/python", .pip = "/v/lib/pip", .uv = "/b/uv"};

// Returns one line per command. "IN" stands for the common first words.
std::string plan(const std::string& spec, const Installer& installer, const Resolved& resolved) {
  std::string text;
  for (const Argv& argv : install_plan(parse_spec(spec).value(), resolved, installer))
    text += shell_join(argv) + "\n";
  replace_all(text, "/v/bin/python /v/lib/pip install", "IN");
  replace_all(text, "/b/uv pip install --python /v/bin/python", "IN");
  return text;
}

TEST(ToolPlan, OfPip) {
  EXPECT_EQ(plan("torch -U 'a b'", kPip, {}), "IN torch -U 'a b'\n");
  EXPECT_EQ(plan("pip:./[dev] -q", kPip, {.path = "/p", .from_here = true}), "IN '/p[dev]' -q\n");
  EXPECT_EQ(plan("pip:-e ./", kPip, {.path = "/p", .from_here = true}), "IN -e /p\n");
  EXPECT_EQ(plan("reqs:r.txt --no-index", kPip, {.path = "/p/r.txt", .from_here = true}),
            "IN -r /p/r.txt --no-index\n");
  EXPECT_EQ(plan("wheel:x.whl -q", kPip, {.path = "/c/x.whl", .from_here = true}),
            "IN --force-reinstall --no-deps /c/x.whl -q\nIN /c/x.whl -q\n");
  EXPECT_EQ(plan("git:https://h/a@main#subdirectory=s", kPip, {.commit = "12"}),
            "IN --force-reinstall --no-deps 'git+https://h/a@12#subdirectory=s'\n"
            "IN 'git+https://h/a@12#subdirectory=s'\n");
}

TEST(ToolPlan, OfUv) {
  EXPECT_EQ(plan("torch -U", kUv, {}), "IN torch -U\n");
  EXPECT_EQ(plan("pip:./", kUv, {.path = "/p", .from_here = true}),
            "IN --reinstall --no-deps /p\nIN /p\n");
  EXPECT_EQ(plan("pip:./ --no-deps", kUv, {.path = "/p", .from_here = true}),
            "IN --reinstall /p --no-deps\nIN /p --no-deps\n");
  EXPECT_EQ(plan("reqs:r.txt", kUv, {.path = "/p/r.txt"}), "IN -r /p/r.txt\n");
  EXPECT_EQ(plan("reqs:r.txt", kUv, {.path = "/p/r.txt", .from_here = true}),
            "IN --reinstall -r /p/r.txt\n");
  EXPECT_EQ(plan("wheel:x.whl", kUv, {.path = "/c/x.whl", .from_here = true}),
            "IN --reinstall --no-deps /c/x.whl\nIN /c/x.whl\n");
}

TEST(ToolPlan, OfEnvironments) {
  EXPECT_EQ(shell_join(venv_plan({"/usr/bin/python3", "", ""}, "/v")),
            "/usr/bin/python3 -I -m venv /v");
  EXPECT_EQ(shell_join(venv_plan({"/usr/bin/python3", "/b/uv", "/b/virtualenv"}, "/v")),
            "/b/uv venv --python /usr/bin/python3 /v");
  EXPECT_EQ(shell_join(venv_plan({"/usr/bin/python3", "", "/b/virtualenv"}, "/v")),
            "/b/virtualenv --python /usr/bin/python3 /v");
  EXPECT_EQ(shell_join(conda_plan("/c/conda", {"-p", "/e", false}, "/p/e.yml", {})),
            "/c/conda env create -p /e -f /p/e.yml");
  EXPECT_EQ(shell_join(conda_plan("/c/conda", {"-n", "e", true}, "/p/e.yml", {"--prune"})),
            "/c/conda env update -n e -f /p/e.yml --prune");
}

}  // namespace
}  // namespace lockstep::setup
