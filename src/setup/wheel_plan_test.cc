#include "setup/wheel_plan.h"

#include "setup/cpu_level.h"
#include "setup/overlay.h"
#include "setup/wheel_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>

namespace lockstep::setup {
namespace {

using Kind = WheelSource::Kind;
using Strings = std::vector<std::string>;

TEST(WheelSources, AFolderAnIndexOrAUrl) {
  const auto read = [](const char* text) { return *read_wheel_source(text); };
  EXPECT_EQ(read("deepspeed").kind, Kind::index);
  EXPECT_EQ(read("deepspeed").version, "");
  EXPECT_EQ(read("deepspeed==0.16.5").version, "0.16.5");
  EXPECT_EQ(read("deepspeed@../DeepSpeed").kind, Kind::folder);
  EXPECT_EQ(read("deepspeed@../DeepSpeed").place, "../DeepSpeed");
  EXPECT_TRUE(read("deepspeed@../DeepSpeed").is_deepspeed());
  EXPECT_EQ(read("deepspeed@https://x/y.tar.gz").kind, Kind::url);
  EXPECT_EQ(read("deepspeed@git+https://github.com/a/b@v1").place, "git+https://github.com/a/b@v1");
  for (const char* url : {"git+https://github.com/a/DeepSpeed@v1", "https://x/y.tar.gz"}) {
    EXPECT_EQ(read(url).kind, Kind::url) << url;
    EXPECT_EQ(read(url).place, url);
  }
  EXPECT_TRUE(read("git+https://github.com/a/DeepSpeed.git@v1").is_deepspeed());
  EXPECT_FALSE(read("git+https://github.com/a/deepspeed-kernels").is_deepspeed());
  for (const char* folder : {"./deepspeed", "deepspeed/", "deepspeed-kernels", "../a@b", "/x"}) {
    EXPECT_EQ(read(folder).kind, Kind::folder) << folder;
    EXPECT_EQ(read(folder).place, folder);
    EXPECT_FALSE(read(folder).is_deepspeed());
  }
  for (const char* bad : {"", "deepspeed==", "deepspeed==--x", "deepspeed== 1", "deepspeed@",
                          "deepspeed@ftp://x/y", "deepspeed@https://"})
    EXPECT_FALSE(read_wheel_source(bad)) << bad;
}

TEST(Ops, NamesAndVariablesOfDeepSpeedsOwnFiles) {
  const auto ops = ops_in(
      "class A(Builder):\n    BUILD_VAR = \"DS_BUILD_AIO\"\n    NAME = \"async_io\"\n\n"
      "class B(Builder):\n    BUILD_VAR = 'DS_BUILD_FUSED_LAMB'\n    NAME = 'fused_lamb'\n"
      "class C:\n    NAME = name\nclass D:\n    NAME = \"x\"\n    BUILD_VAR = \"OTHER\"\n");
  EXPECT_EQ(ops,
            (std::vector<Op>{{"async_io", "DS_BUILD_AIO"}, {"fused_lamb", "DS_BUILD_FUSED_LAMB"}}));
}

TEST(Ops, AreChosenByNameOrVariable) {
  const auto names = [](const char* given) {
    Strings all;
    const auto chosen = choose_ops(given, deepspeed_ops());
    for (const Op& op : *chosen)
      all.push_back(op.name + "=" + op.variable);
    return all;
  };
  EXPECT_EQ(names("cpu_adam"), Strings{"cpu_adam=DS_BUILD_CPU_ADAM"});
  EXPECT_EQ(names("cpu_adam, AIO,async_io,DS_BUILD_CPU_ADAM"),
            (Strings{"async_io=DS_BUILD_AIO", "cpu_adam=DS_BUILD_CPU_ADAM"}));
  const auto unknown = choose_ops("cpu_adm", deepspeed_ops());
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().message.find("did you mean cpu_adam?"), std::string::npos)
      << unknown.error().message;
  EXPECT_NE(unknown.error().hint.find("async_io, cpu_adagrad, cpu_adam"), std::string::npos);
  EXPECT_FALSE(choose_ops(",", deepspeed_ops()));
}

WheelPlan plan() {
  WheelPlan made;
  made.source = *read_wheel_source("deepspeed==0.16.5");
  made.content = "deepspeed==0.16.5";
  made.ops = *choose_ops("cpu_adam", deepspeed_ops());
  made.python = {.python = "/a/python",
                 .version = "3.11.2",
                 .tag = "cpython-311-x86_64-linux-gnu",
                 .libc = "glibc 2.36",
                 .torch = "2.6.0",
                 .torch_cuda = "12.4"};
  made.tools.gcc_version = Release{12, 2};
  made.tools.cuda = Release{12, 4};
  made.archs = *read_archs("8.0;9.0");
  made.level = 3;
  made.ninja = "/usr/bin/ninja";
  made.jobs = 4;
  return made;
}

TEST(BuildVariables, AreWhatDeepSpeedReads) {
  EXPECT_EQ(build_variables(plan()),
            (Strings{"DS_BUILD_OPS=0", "DS_BUILD_CPU_ADAM=1", "TORCH_CUDA_ARCH_LIST=8.0;9.0",
                     "MAX_JOBS=4", "DS_ENABLE_NINJA=1"}));
  WheelPlan own = plan();
  own.given = {"DS_ENABLE_NINJA="};
  own.archs.clear();
  EXPECT_EQ(build_variables(own), (Strings{"DS_BUILD_OPS=0", "DS_BUILD_CPU_ADAM=1", "MAX_JOBS=4"}));
  own.given = {"DS_BUILD_UTILS=1", "DS_BUILD_AIO=0",    "DS_BUILD_OPS=1", "DS_BUILD_ADAM=2",
               "DS_BUILD_GDS=",    "DS_BUILD_STRING=x", "CC=1",           "DS_BUILD_CPU_ADAM=1"};
  EXPECT_EQ(ops_of_environment(own), (Strings{"DS_BUILD_ADAM=2", "DS_BUILD_UTILS=1"}));
  WheelPlan project;
  project.source = *read_wheel_source("./mine");
  project.given = {"DS_BUILD_OPS=1"};  // passed on to the build of a folder
  EXPECT_EQ(ops_of_environment(project), Strings{"DS_BUILD_OPS=1"});
  EXPECT_EQ(build_variables(project), Strings{"MAX_JOBS=1"});
}

// The key changes with everything that changes the wheel, and with nothing else.
TEST(WheelKeys, ChangeWithAllThatMatters) {
  std::set<std::string> keys = {key_of_wheel(plan())};
  const auto is_new = [&](const std::function<void(WheelPlan&)>& change) {
    WheelPlan changed = plan();
    change(changed);
    return keys.insert(key_of_wheel(changed)).second;
  };
  EXPECT_TRUE(is_new([](WheelPlan& p) { p.content = "deepspeed==0.16.6"; }));
  EXPECT_TRUE(is_new([](WheelPlan& p) { p.ops.clear(); }));
  EXPECT_TRUE(is_new([](WheelPlan& p) { p.python.tag = "cpython-312-x86_64-linux-gnu"; }));
  EXPECT_TRUE(is_new([](WheelPlan& p) { p.python.torch = "2.7.0"; }));
  EXPECT_TRUE(is_new([](WheelPlan& p) { p.python.torch_cuda = "12.6"; }));
  EXPECT_TRUE(is_new([](WheelPlan& p) { p.python.libc = "glibc 2.28"; }));
  EXPECT_TRUE(is_new([](WheelPlan& p) { p.tools.cuda = Release{12, 6}; }));
  EXPECT_TRUE(is_new([](WheelPlan& p) { p.tools.gcc_version = Release{13, 1}; }));
  EXPECT_TRUE(is_new([](WheelPlan& p) { p.archs.pop_back(); }));
  EXPECT_TRUE(is_new([](WheelPlan& p) { p.level = 2; }));
  EXPECT_TRUE(is_new([](WheelPlan& p) { p.level = kNative; }));
  EXPECT_TRUE(is_new([](WheelPlan& p) {
    p.level = kNative;
    p.cpu = "another";
  }));
  EXPECT_TRUE(is_new([](WheelPlan& p) { p.given = {"CFLAGS=-g"}; }));
  EXPECT_FALSE(is_new([](WheelPlan& p) { p.jobs = 9; }));
  EXPECT_FALSE(is_new([](WheelPlan& p) { p.ninja.clear(); }));
  EXPECT_FALSE(is_new([](WheelPlan& p) { p.python.python = "/b/python"; }));
  EXPECT_FALSE(is_new([](WheelPlan& p) { p.cpu = "of no account"; }));
}

TEST(BuildJobs, FitTheMemory) {
  constexpr std::int64_t kGiB = std::int64_t{1} << 30;
  EXPECT_EQ(build_jobs(16, 64 * kGiB), 16);
  EXPECT_EQ(build_jobs(16, 8 * kGiB), 4);
  EXPECT_EQ(build_jobs(16, 0), 1);
  EXPECT_EQ(build_jobs(0, 64 * kGiB), 1);
  EXPECT_EQ(build_jobs(500, 4096 * kGiB), 64);
}

TEST(Variables, OnlyThoseThatBuildsLookAt) {
  for (const char* name : {"CFLAGS", "DS_SKIP_CUDA_CHECK", "CUDA_HOME", "CXX"})
    EXPECT_TRUE(concerns_builds(name)) << name;
  for (const char* name : {"PATH", "HOME", "DSX", "CUDA_VISIBLE_DEVICES", "MAX_JOBS"})
    EXPECT_FALSE(concerns_builds(name)) << name;
}

TEST(WheelFiles, AnAnswerThatMakesNoSenseIsRefused) {
  EXPECT_FALSE(read_wheel_answer("/a/x.whl", ""));
  EXPECT_FALSE(read_wheel_answer("/a/x.whl", R"({"name": 1})"));
  const auto read = read_wheel_answer(
      "/a/x-1-py3-none-any.whl",
      R"({"name":"x","version":"1","modules":["x"],"libraries":[],"pure":true,"ops":[],)"
      R"("knows_ops":false})");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->file, "x-1-py3-none-any.whl");
  EXPECT_TRUE(read->pure);
}

TEST(OverlayKeys, NameThePackageAndItsContent) {
  const std::string sha = "0123456789abcdef";
  EXPECT_EQ(overlay_key("/a/deepspeed-0.16.5+x-cp311-cp311-linux_x86_64.whl", sha),
            "deepspeed-0.16.5+x-0123456789ab");
  EXPECT_EQ(overlay_key("../evil name-1.whl", sha), "evil_name-1.whl-0123456789ab");
  EXPECT_EQ(overlay_key("...-1-py3.whl", sha), "_...-1-0123456789ab");
  EXPECT_TRUE(same_package("deepspeed-0.1-aa", "DeepSpeed-0.2-bb"));
  EXPECT_FALSE(same_package("deepspeed-0.1-aa", "deepspeed_mii-0.1-aa"));
}

}  // namespace
}  // namespace lockstep::setup
