#include "host/kernel_log.h"

#include "host/fake_tree_testing.h"

#include <fstream>
#include <vector>

namespace lockstep::host {
namespace {

class KernelLogs : public FakeTree {
 protected:
  static std::vector<std::string> read(KernelLog& log) {
    std::vector<std::string> lines;
    log.read([&](std::string_view line) { lines.emplace_back(line); });
    return lines;
  }
  void append(const std::string& text) const {
    std::ofstream(root_ + "/kmsg", std::ios::app) << text;
  }
};

TEST_F(KernelLogs, BeginNow) {
  put("/kmsg", "6,1,1,-;before\n");
  KernelLog log(root_ + "/kmsg");
  EXPECT_TRUE(read(log).empty());
  append("6,2,2,-;after\n SUBSYSTEM=pci\n6,3,3,-;half a li");
  EXPECT_EQ(read(log), (std::vector<std::string>{"6,2,2,-;after", " SUBSYSTEM=pci"}));
  append("ne\n");
  EXPECT_EQ(read(log), (std::vector<std::string>{"6,3,3,-;half a line"}));
}

TEST_F(KernelLogs, WithoutLineEndsAreForgotten) {
  put("/kmsg");
  KernelLog log(root_ + "/kmsg");
  append(std::string(100'000, 'x'));
  EXPECT_TRUE(read(log).empty());
  append("\n6,1,1,-;next\n");
  EXPECT_EQ(read(log).back(), "6,1,1,-;next");
}

TEST_F(KernelLogs, ThatCannotBeReadAreEmpty) {
  KernelLog log(root_ + "/absent");
  EXPECT_TRUE(read(log).empty());
}

}  // namespace
}  // namespace lockstep::host
