#include "slurm/watch_folder.h"

#include <gtest/gtest.h>

#include <stdlib.h>

#include <filesystem>

namespace lockstep::slurm {
namespace {

TEST(WatchFolder, NamesTellWhatAFileIs) {
  EXPECT_EQ(kind_of_watch_file("lease"), WatchFile::lease);
  EXPECT_EQ(kind_of_watch_file("n1"), WatchFile::beat);
  EXPECT_EQ(kind_of_watch_file(watch_log("n1")), WatchFile::log);
  EXPECT_EQ(watch_log("n1"), "n1.log");
}

TEST(WatchFolder, ABeatIsANumberAndAWordAfterTheAgentsEnd) {
  EXPECT_EQ(beat_text(7, false), "7");
  EXPECT_EQ(beat_text(8, true), "8 ended");
  EXPECT_FALSE(tells_agent_end("7                                      \n"));
  EXPECT_TRUE(tells_agent_end("8 ended                                \n"));
  // A read may hit the middle of a write.
  for (const char* cut : {"", "\n", "8 end"})
    EXPECT_FALSE(tells_agent_end(cut)) << cut;
}

TEST(WatchFolder, TheLeaseChangesAlsoOnAHostWithALongName) {
  char name[] = "/tmp/lockstep_watch_folder_XXXXXX";
  ASSERT_NE(mkdtemp(name), nullptr);
  const WatchFolder folder(JobFolder(name), 0, 0);
  ASSERT_TRUE(folder.claim());
  const std::string host = "ip-172-31-255-255.eu-central-1.compute.internal";
  folder.beat(kLease, lease_text(99, false, host));
  const std::string before = folder.read(kLease);
  folder.beat(kLease, lease_text(100, false, host));
  EXPECT_NE(folder.read(kLease), before);
  EXPECT_FALSE(tells_to_end(folder.read(kLease)));
  folder.beat(kLease, lease_text(1'000'000, true, host));
  EXPECT_TRUE(tells_to_end(folder.read(kLease)));
  std::filesystem::remove_all(name);
}

}  // namespace
}  // namespace lockstep::slurm
