#include "host/xid.h"

#include "base/text.h"

#include <gtest/gtest.h>

namespace lockstep::host {
namespace {

TEST(Xids, AreReadFromTheKernelsLog) {
  const auto xid = parse_xid(
      "3,1711,95823401,-;NVRM: Xid (PCI:0000:C1:00): 79, pid='<unknown>', name=<unknown>, GPU has "
      "fallen off the bus.");
  ASSERT_TRUE(xid);
  EXPECT_EQ(xid->code, 79);
  EXPECT_EQ(xid->pci, "0000:c1:00");
  EXPECT_EQ(xid->text, "pid='<unknown>', name=<unknown>, GPU has fallen off the bus.");
  EXPECT_EQ(xid_words(*xid, 3), "XID 79 on GPU 3 (0000:c1:00): the GPU has fallen off the bus");
}

TEST(Xids, OfUnknownCodesHaveTheDriversWords) {
  const auto xid = parse_xid("4,1,1,-;NVRM: Xid (PCI:0000:01:00): 9001, something new");
  ASSERT_TRUE(xid);
  EXPECT_EQ(xid_words(*xid, std::nullopt), "XID 9001 on the GPU at 0000:01:00: something new");
  const auto bare = parse_xid("4,1,1,-;NVRM: Xid (PCI:0000:01:00): 9001");
  ASSERT_TRUE(bare);
  EXPECT_EQ(xid_words(*bare, 0), "XID 9001 on GPU 0 (0000:01:00)");
}

TEST(Xids, AreTheKernelsOwn) {
  // Programs that write to /dev/kmsg get the facility 1: priorities from 8 on.
  EXPECT_FALSE(parse_xid("12,1,1,-;NVRM: Xid (PCI:0000:01:00): 79, x"));
  EXPECT_TRUE(parse_xid("7,1,1,-;NVRM: Xid (PCI:0000:01:00): 79, x"));
}

TEST(Xids, OfOtherLinesThereAreNone) {
  for (const char* line :
       {"", ";", "3,1,1,-;", "3,1,1,-;eth0: link up", "NVRM: Xid (PCI:0000:01:00): 79, x",
        " SUBSYSTEM=pci", "3,1,1,-;NVRM: Xid (PCI:0000:01:00", "3,1,1,-;NVRM: Xid (PCI:): 79",
        "3,1,1,-;NVRM: Xid (PCI:0000:01:00): x", "3,1,1,-;NVRM: Xid (PCI:0000:01:00): -7",
        "3,1,1,-;NVRM: Xid (PCI:0000:01:00): 99999999999", "3,1,1,-;NVRM: Xid (PCI:\x1b[2J): 79, x",
        "x,1,1,-;NVRM: Xid (PCI:0000:01:00): 79, x",
        "3,1,1,-;say NVRM: Xid (PCI:0000:01:00): 79, x"})
    EXPECT_FALSE(parse_xid(line)) << line;
  const auto hostile =
      parse_xid("3,1,1,-;NVRM: Xid (PCI:0000:01:00): 9001, \x1b]0;x\x07" + std::string(900, 'y'));
  ASSERT_TRUE(hostile);
  EXPECT_LT(hostile->text.size(), 200U);
  EXPECT_EQ(printable(hostile->text), hostile->text);
}

}  // namespace
}  // namespace lockstep::host
