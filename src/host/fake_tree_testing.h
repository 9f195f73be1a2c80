// A temporary folder that stands in for the root of a machine.
#pragma once

#include "io/fd.h"

#include <gtest/gtest.h>

#include <stdlib.h>

#include <filesystem>
#include <string>
#include <string_view>

namespace lockstep::host {

class FakeTree : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/lockstep_host_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    root_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void put(const std::string& path, std::string_view text = "") const {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    ASSERT_TRUE(io::write_file(root_ + path, text));
  }
  // Makes a symbolic link. The target is stored unchanged.
  void link(const std::string& path, const std::string& target) const {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::filesystem::create_symlink(target, root_ + path);
  }

  std::string root_;
};

}  // namespace lockstep::host
