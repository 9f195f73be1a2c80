#include "agent/event_file.h"

#include "base/text.h"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace lockstep::agent {
namespace {

class EventFiles : public testing::Test {
 protected:
  std::string path(const char* name) const { return testing::TempDir() + "/" + mark_ + name; }
  std::string mark_ = "events" + std::to_string(getpid());
};

TEST_F(EventFiles, AppendsLines) {
  for (const char* line : {"{1}", "{2}"}) {
    auto file = EventFile::open(path("a"));
    ASSERT_TRUE(file) << file.error().message;
    file->write(line);
  }
  EXPECT_EQ(io::read_file(path("a")).value(), "{1}\n{2}\n");
  unlink(path("a").c_str());
}

TEST_F(EventFiles, RefusesAFolderAndAMissingFolder) {
  EXPECT_NE(EventFile::open(testing::TempDir()).error().message.find("--events "),
            std::string::npos);
  EXPECT_FALSE(EventFile::open(path("no/such")));
}

TEST_F(EventFiles, AFifoWithoutAReaderKeepsTheFirstLinesAndNeverBlocks) {
  const std::string fifo = path("fifo");
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  auto file = EventFile::open(fifo);
  ASSERT_TRUE(file);
  const std::string line(1000, 'x');
  for (int i = 0; i < 2000; ++i)
    file->write(line);
  const io::Fd reader(open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  std::string got;
  char chunk[4096];
  const auto read_some = [&] {
    for (ssize_t n = 0; (n = read(reader.get(), chunk, sizeof chunk)) > 0;)
      got.append(chunk, static_cast<std::size_t>(n));
  };
  read_some();
  file->write("the last");  // the reader is there now: what was kept follows
  read_some();
  EXPECT_GT(got.size(), 100'000U);
  for (const std::string& each : split(std::string(strip(got)), '\n'))
    EXPECT_TRUE(each == line || each == "the last") << each.size();
  unlink(fifo.c_str());
}

TEST_F(EventFiles, AFullDiskLosesEventsOnly) {
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full";
  auto file = EventFile::open("/dev/full");
  ASSERT_TRUE(file);
  for (int i = 0; i < 2000; ++i)
    file->write(std::string(1000, 'x'));
}

}  // namespace
}  // namespace lockstep::agent
