#include "slurm/watch_folder.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace lockstep::slurm
