#include "setup/inputs.h"

#include <gtest/gtest.h>

#include <sys/stat.h>

#include <filesystem>
#include <fstream>

namespace lockstep::setup {
namespace {

namespace fs = std::filesystem;

class InputsTest : public ::testing::Test {
 protected:
  InputsTest() {
    top_ =
        fs::path(::testing::TempDir()) /
        (std::string("inputs_") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(top_);
    fs::create_directories(top_ / "code");
  }

  void write(const std::string& below, const std::string& text) const {
    const fs::path path = top_ / "code" / below;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  std::string path(const std::string& below) const { return (top_ / "code" / below).string(); }
  std::string folder() const { return (top_ / "code").string(); }
  std::string digest(const std::string& text, const std::string& commit = "") const {
    const auto spec = parse_spec(text);
    EXPECT_TRUE(spec);
    const std::string at = spec->subject.empty() || spec->kind == Spec::Kind::git
                               ? ""
                               : fs::path(path(spec->subject)).lexically_normal().string();
    const auto found = digest_of_inputs(*spec, at, folder(), commit);
    EXPECT_TRUE(found);
    return found.value_or("");
  }
  // Returns true if carrying out `change` changes the spec's digest.
  template <class Change>
  bool changes(const std::string& text, Change change) const {
    const std::string before = digest(text);
    EXPECT_EQ(before, digest(text));
    change();
    return digest(text) != before;
  }

  fs::path top_;
};

TEST_F(InputsTest, OfATree) {
  write("a/x.py", "1");
  write("b", "2");
  const auto tree_changes = [this](auto change) { return changes("pip:./", change); };
  EXPECT_TRUE(tree_changes([&] { write("a/x.py", "2"); }));
  EXPECT_TRUE(tree_changes([&] { write("a/y.py", ""); }));
  EXPECT_TRUE(tree_changes([&] { fs::remove(path("a/y.py")); }));
  EXPECT_TRUE(tree_changes([&] { fs::rename(path("b"), path("c")); }));
  EXPECT_TRUE(tree_changes([&] { chmod(path("c").c_str(), 0755); }));
  EXPECT_TRUE(tree_changes([&] { fs::create_symlink("c", path("d")); }));
  EXPECT_TRUE(tree_changes([&] {
    fs::remove(path("d"));
    fs::create_symlink("a", path("d"));
  }));
  EXPECT_FALSE(tree_changes([&] {
    fs::last_write_time(path("c"), fs::file_time_type::clock::now() + std::chrono::hours(1));
  }));
}

TEST_F(InputsTest, WhatBuildsAndRunsLeaveInATreeDoesNotCount) {
  write("x.py", "1");
  EXPECT_FALSE(changes("pip:./", [&] {
    write("__pycache__/x.pyc", "1");
    write("code.egg-info/PKG-INFO", "1");
    write(".git/HEAD", "1");
    write("x.pyc", "1");
    write(".venv/pyvenv.cfg", "");
    write(".venv/bin/python", "1");
  }));
}

TEST_F(InputsTest, OfRequirementsAndWhatTheyLeadTo) {
  write("requirements.txt", "-r more/base.txt\n./lib\n-c limits.txt\n");
  write("more/base.txt", "-r deep.txt\n");
  write("more/deep.txt", "-r base.txt\nnumpy\n");
  write("lib/setup.py", "1");
  write("other.txt", "1");
  const std::string spec = "reqs:requirements.txt";
  EXPECT_FALSE(changes(spec, [&] { write("other.txt", "2"); }));
  EXPECT_TRUE(changes(spec, [&] { write("more/deep.txt", "-r base.txt\nnumpy>1\n"); }));
  EXPECT_TRUE(changes(spec, [&] { write("lib/setup.py", "2"); }));
  EXPECT_TRUE(changes(spec, [&] { write("limits.txt", "numpy<2\n"); }));
  EXPECT_TRUE(changes(spec + " -c other.txt", [&] { write("other.txt", "3"); }));
}

TEST_F(InputsTest, OfTheOthers) {
  write("env.yml", "dependencies:\n  - pip:\n    - -r requirements.txt\n");
  EXPECT_TRUE(changes("conda:env.yml", [&] { write("requirements.txt", "numpy\n"); }));
  EXPECT_TRUE(changes("numpy -c requirements.txt", [&] { write("requirements.txt", "x\n"); }));
  EXPECT_TRUE(changes("wheel:x.whl", [&] { write("x.whl", "x\n"); }));
  EXPECT_NE(digest("numpy"), digest("numpy -U"));
  EXPECT_NE(digest("git:https://h/a@main", "1"), digest("git:https://h/a@main", "2"));
  // A plain name is a package, even if a folder has the same name.
  EXPECT_FALSE(changes("numpy", [&] { write("numpy/x.py", "1"); }));
}

TEST_F(InputsTest, WhetherItIsInstalledFromHere) {
  write("plain.txt", "numpy\n");
  write("local.txt", "-r more.txt\n");
  write("more.txt", "-e ./lib\n");
  const auto from_here = [&](const std::string& text) {
    const auto spec = parse_spec(text);
    return installs_from_here(*spec, path(spec->subject), folder()).value();
  };
  EXPECT_TRUE(from_here("pip:./"));
  EXPECT_TRUE(from_here("reqs:local.txt"));
  EXPECT_TRUE(from_here("pip:numpy ./lib"));
  EXPECT_FALSE(from_here("reqs:plain.txt"));
  EXPECT_FALSE(from_here("numpy"));
}

TEST_F(InputsTest, TooManyFilesOfRequirementsAreRefused) {
  std::string all;
  for (int i = 0; i < 1001; ++i)
    all += "-r none" + std::to_string(i) + ".txt\n";
  write("requirements.txt", all);
  EXPECT_FALSE(digest_of_inputs(*parse_spec("reqs:x"), path("requirements.txt"), folder(), ""));
}

}  // namespace
}  // namespace lockstep::setup
